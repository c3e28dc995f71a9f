"""A sealed run with one of everything that a bundle has a place for, and bundles whose entries somebody changed."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from pathlib import Path

from PIL import Image, PngImagePlugin

from tests.engine.recorded import action, answer, decision, recorder_in
from worldline.engine.boundary import call
from worldline.engine.content import Content
from worldline.engine.spec import RecordingSpec
from worldline.store.bundle.container import DEFLATED, place_of
from worldline.store.bundle.container_writer import ContainerWriter
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording

WORDS = "the whereabouts of the treasure"  # what only the restricted tier may hold
HIDDEN = "a place that no thumbnail tells"
CHECKPOINT = "ckpt_01m8n2b6nq1p4dyst3n7svde6k"


def picture(width: int = 900, height: int = 500) -> bytes:
    """A PNG with a text, an EXIF block and a colour profile beside its pixels."""
    image = Image.effect_mandelbrot((width, height), (-2.2, -1.2, 1.0, 1.2), 60).convert("RGB")
    said = PngImagePlugin.PngInfo()
    said.add_text("Comment", HIDDEN)
    exif = Image.Exif()
    exif[0x010E] = HIDDEN
    written = io.BytesIO()
    image.save(written, "PNG", pnginfo=said, exif=exif, icc_profile=HIDDEN.encode() * 10)
    return written.getvalue()


def recorded(store: Path, **declared: object) -> Recording:
    """Two model calls, an ordinary tool, a restricted one, a picture, a large content, a checkpoint."""
    spec = RecordingSpec(restrict=("tool:vault",), **declared)  # type: ignore[arg-type]
    recorder, boundary = recorder_in(store, task="one of everything", agent={"name": "finder"}, recording=spec)
    ask = b'{"model":"m-1","temperature":0.5,"messages":[{"role":"user","content":"where is it?"}]}'
    use = b'{"id":"u1","type":"function","function":{"name":"vault","arguments":"{}"}}'
    said = (
        b'{"id":"r1","model":"m-1","choices":[{"index":0,"finish_reason":"tool_calls","message":'
        b'{"role":"assistant","content":null,"tool_calls":[' + use + b"]}}],"
        b'"usage":{"prompt_tokens":7,"completion_tokens":3}}'
    )
    as_json = [["Content-Type", "application/json"], ["x-request-id", "q1"]]
    answer(boundary, decision(ask, name="openai.chat", facts={"path": "/v1/chat/completions"}), [said], headers=as_json)
    call(boundary, action("vault", {"key": WORDS}), lambda: WORDS * 3)
    call(boundary, action("read", {"page": 1}), lambda: "large and ordinary, " * 3000)
    boundary.note("observation", "screenshot", "main", {}, {"name": "desk", "value": Content(picture(), "image/png")})
    checkpoint = {
        "checkpoint_id": CHECKPOINT,
        "parent_checkpoint_ids": [],
        "branch_id": "main",
        "snapshot_id": "snap_01m8n2b6nq1p4dyst3n7svde6k",
        "created_from_step": 0,
        "meta": {"env_state": {"type": "none"}, "agent_state": {"messages": ["m" * 40_000]}, "side_effect_cursor": 3},
    }
    boundary.note("snapshot_ref", "checkpoint", "main", {}, checkpoint)
    answer(
        boundary, decision(ask, name="openai.chat"), [b'{"error":{"message":"slow down"}}'], headers=as_json, status=429
    )
    recorder.seal()
    return Recording(recorder.attempt)


def remade(
    bundle: Path,
    target: Path,
    other: Mapping[str, bytes] | None = None,
    without: Collection[str] = (),
    withheld: tuple[tuple[str, int, str], ...] | None = None,
) -> PackedRecording:
    """The bundle with other contents, more or fewer entries, in a container that was made for them."""
    packed, changed = PackedRecording(str(bundle)), other or {}
    names = {*packed.entries, *changed} - set(without)
    target.unlink(missing_ok=True)
    with ContainerWriter(target) as writer:
        for name in sorted(names, key=lambda name: (place_of(name), name)):
            entry = packed.entries.get(name)
            put = writer.deflate if entry is None or entry.method == DEFLATED else writer.store
            put(name, [changed[name]] if name in changed or entry is None else packed.content_of(entry))
        writer.finish(packed.container.seal, packed.container.withheld if withheld is None else withheld)
    return PackedRecording(str(target))
