"""Recordings whose contents stand in blobs of both tiers, and what is left of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import RecordingSpec, Spec
from worldline.store import layout
from worldline.store.forget.availability import SECOND
from worldline.store.recording import Recording

RETENTION = {"ordinary": 100, "restricted": 50}  # seconds
CALLS = (("pay", 1), ("look", 2), ("pay", 3), ("look", 4))  # what `pay` is given and gives is restricted


def recorded(store: Path, retention: dict[str, int] = RETENTION, text: str = "of many") -> Recording:
    """A sealed and published recording of a few tool calls. Its answers hold `text`."""
    spec = RecordingSpec(retention=retention, restrict=("tool:pay",))
    recorder = Recorder(Spec(store=store, task="forget me", recording=spec))
    boundary = RecordBoundary(recorder)
    for name, number in CALLS:
        call = Call(kind="action", name=name, inputs=Content.of({"n": number}), effect="side_effecting")
        boundary.begin(call).finish({}, Content.of(f"{name} {number} {text}"))
    recording = Recording(str(recorder.seal()))
    assert recording.manifest is not None  # read now: what a test does to the file comes later
    return recording


def after(recording: Recording, seconds: float) -> int:
    """So many seconds behind the seal, in Unix ns."""
    assert recording.manifest is not None
    return recording.manifest.sealed_at + int(seconds * SECOND)


def names(recording: Recording, tier: str) -> set[str]:
    """The sealed contents of a tier."""
    assert recording.manifest is not None
    return {name for name, _, _, of, _ in recording.manifest.blobs if of == tier}


def here(recording: Recording) -> set[str]:
    """The contents that stand in the attempt."""
    return {path.name for path in (recording.attempt / layout.BLOBS).glob("*/??/*")}


def records(recording: Recording) -> list[dict[str, object]]:
    """The rows of `expiry.jsonl`."""
    path = recording.attempt / layout.EXPIRY
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def once(values: list[object]) -> bool:
    """Whether none of the values comes twice."""
    return max(Counter(values).values(), default=1) == 1


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
