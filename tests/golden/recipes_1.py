"""What worldline/1 has and worldline/0 had not: tiers, retention, bounds, pictures, checkpoints, derived recordings."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import worldline as wl
from tests.golden import agents
from tests.golden.make import begun, record
from worldline.engine.export import EXPORTS
from worldline.engine.pictures import thumbnail
from worldline.engine.redact.derive import derive
from worldline.engine.redact.rules import Rules
from worldline.store.bundle.pack import pack
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording

RETENTION = {"ordinary": 3600, "restricted": 60}


def private() -> None:
    """A restricted tool, and a model that is told of it twice."""
    agents.refund(812, 49.5)
    messages = [{"role": "user", "content": "what was paid?"}]
    agents.ask("openai", messages, stream=True)
    agents.ask("openai", [*messages, {"role": "assistant", "content": "49.5"}, {"role": "user", "content": "sure?"}])
    agents.stock("lamp")


def pictures() -> None:
    """What an agent saw, as a file; the same again."""
    for _ in range(2):
        wl.observe(png(), src="screenshot", name="desk", media_type="image/png")
    wl.observe("A desk.", src="a11y_full")


def png() -> bytes:
    """A small picture: one colour that fades."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(value for x in range(64) for value in (x * 4, y * 4, 128)) for y in range(64))
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


agents.AGENTS |= {"private": private, "pictures": pictures}


def restricted(store: Path) -> Path:
    """A restricted tool; with it every model body is restricted, too."""
    return record(store, "private", spec=wl.RecordingSpec(restrict=("tool:refund",)))


def retained(store: Path) -> Path:
    """Contents that may go one day: all of them in files of their own, in both tiers."""
    return record(store, "short", spec=wl.RecordingSpec(restrict=("tool:refund",), retention=RETENTION))


def expired(store: Path) -> Path:
    """The restricted ones are gone, behind their deadline; the others are due later."""
    run = retained(store)
    recording = Recording(run)
    assert recording.manifest is not None
    expire(recording, recording.manifest.sealed_at + 61 * 10**9, act=True)
    return run


def bounded(store: Path) -> Path:
    """Past a bound contents are not kept, and a row says from where."""
    return record(
        store, "large", spec=wl.RecordingSpec(bounds=wl.Bounds(content_bytes=30_000, past="loss"), replay="L0")
    )


def stopped(store: Path) -> Path:
    """Ended at a bound, cleanly: sealed as partial."""
    with suppress(wl.WorldlineError):
        record(store, "short", spec=wl.RecordingSpec(bounds=wl.Bounds(rows=4)))
    [run] = store.glob("run_*")
    return run


def checkpoint(store: Path) -> Path:
    """Two checkpoints, one made of the other."""
    recorder = begun(store)
    for number in range(2):
        said = {
            "checkpoint_id": f"cp{number}",
            "parent_checkpoint_ids": [f"cp{number - 1}"] if number else [],
            "branch_id": "main",
            "snapshot_id": f"snap{number}",
            "created_from_step": number,
            "meta": {"env_state": {"type": "none", "ref": None, "digest": None}, "side_effect_cursor": number},
        }
        recorder.append("snapshot_ref", "checkpoint", {}, said)
    recorder.seal()
    return Path(recorder.run_directory)


def seen(store: Path) -> Path:
    """Pictures, stored as files."""
    return record(store, "pictures")


def failing(store: Path) -> Path:
    """An agent that ends with an exception: a complete recording of a failure."""
    agent = {"name": "golden", "version": "1"}
    with suppress(agents.Refused), wl.record(store, task="golden failing", agent=agent):
        agents.fails("own")
    [run] = store.glob("run_*")
    return run


RECIPES: dict[str, Callable[[Path], Path]] = {
    "restricted": restricted,
    "retained": retained,
    "expired": expired,
    "bounded": bounded,
    "stopped": stopped,
    "checkpoint": checkpoint,
    "seen": seen,
    "failing": failing,
}


def bundles(name: str, run: Path, place: Path) -> None:
    """The bundles of a recipe that show more than the recipe itself."""
    recording = Recording(run)
    if name in ("retained", "stopped", "failing"):
        return
    pack(recording, place / f"{name}.skn", thumbnail=thumbnail)
    if name == "restricted":
        pack(recording, place / "shared.skn", share=True)
        pack(recording, place / "exported.skn", exports=EXPORTS)
        derive(recording, place / "derived.skn", Rules(["tool:stock"], {}), why="a golden file")
