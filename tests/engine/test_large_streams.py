"""A streamed answer of any size is recorded, packed, verified and read with bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.engine.recorded import answer, decision, recorder_in
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.recording import Recording
from worldline.store.verify import verify

SIZE = 20 << 20
ROOM = 24 << 20  # what is kept of a body for those who read it whole is 8 MiB, and once more joined


def pieces() -> Iterator[bytes]:
    words = [f"word{number} " for number in range(1000)]
    choose = random.Random(4)
    for _ in range(SIZE >> 16):
        text = "".join(choose.choices(words, k=8500)).encode()
        yield text[: 1 << 16]


def peak_of(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("spec", [None, wl.RecordingSpec(restrict=("model",))], ids=["in rows", "restricted"])
def test_a_long_answer_is_never_held(spec: wl.RecordingSpec | None, tmp_path: Path) -> None:
    recorder, door = recorder_in(tmp_path / "runs", recording=spec, shapes=False)
    assert peak_of(lambda: answer(door, decision(), pieces())) < ROOM
    recorder.seal()
    recording = Recording(recorder.attempt)
    assert sum(blob[1] for blob in recording.manifest.blobs) + recording.log_bytes > SIZE  # type: ignore[union-attr]
    bundle = tmp_path / "run.skn"
    assert peak_of(lambda: pack(recording, bundle)) < ROOM
    assert peak_of(lambda: verify(recording).ok) < ROOM
    packed = open_recording(bundle)
    found: list[bool] = []
    assert peak_of(lambda: found.append(verify(packed).ok)) < ROOM and found == [True]
