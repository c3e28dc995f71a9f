"""Promise 6: who follows a running recording gets the bytes of the log; rows behind the last sync are provisional."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store import layout
from worldline.store.log import Appended
from worldline.store.recording import Recording


def rows_of(recorder: Recorder, count: int, durable_every: int) -> list[Appended]:
    recorder.log._chunk_bytes = 1500  # so that the log rotates under its readers
    return [
        recorder.append("observation", "note", {}, {"name": "n", "value": number}, durable=number % durable_every == 0)
        for number in range(count)
    ]


def log_of(recorder: Recorder) -> bytes:
    chunks = sorted((recorder.attempt / layout.CHUNKS).iterdir())
    tail = recorder.attempt / layout.TAIL
    return b"".join(path.read_bytes() for path in [*chunks, *([tail] if tail.exists() else [])])


def test_what_is_given_out_live_is_what_stands_in_the_log(tmp_path: Path) -> None:
    recorder = Recorder(Spec(store=tmp_path))
    header = log_of(recorder)
    given = [header, *(appended.line for appended in rows_of(recorder, 40, 7))]
    assert b"".join(given) == log_of(recorder)
    followed = [event.raw for event in Recording(recorder.attempt).events()]
    assert followed == b"".join(given).splitlines(True)
    recorder.seal()
    sealed = log_of(recorder)
    assert sealed.startswith(b"".join(given)) and sealed == b"".join(
        e.raw for e in Recording(recorder.attempt).events()
    )


def test_rows_behind_the_last_sync_mark_are_provisional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark vouches for the rows before it that were synced, and for no other: they may be gone after a crash."""
    synced, sync = [0], layout.sync
    recorder = Recorder(Spec(store=tmp_path))
    first = recorder.log.seq
    synced[0] = first

    def sync_and_note(descriptor: int) -> None:
        sync(descriptor)
        synced.append(recorder.log.seq)

    monkeypatch.setattr(layout, "sync", sync_and_note)
    rows_of(recorder, 40, 6)
    marks = [event.sync for event in Recording(recorder.attempt).events() if event.sync is not None]
    assert len(marks) >= 6 and {n for n, _ in marks} <= set(synced)
    hashes = [event.h for event in Recording(recorder.attempt).events()]
    assert all(hashes[n - 1][:16] == start for n, start in marks)
    recorder.close()
    tail = recorder.attempt / layout.TAIL
    provisional = tail.read_bytes().splitlines(True)
    os.truncate(tail, len(b"".join(provisional)) - len(provisional[-1]) - 5)  # a crash takes what was not synced
    left = list(Recording(recorder.attempt).events())
    assert len(left) >= marks[-1][0], "a row that a mark vouches for is gone"
