"""A stream becomes at most one row in 100 ms or 16 KiB; what comes in between waits, with the time at which it came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.recorded import decision, exchange_of, recorder_in
from worldline.engine.recorder import Recorder
from worldline.errors import SecretFound
from worldline.model import events
from worldline.store import layout

MS = 1_000_000
SECRET = "tok-" + "a1B2c3D4e5F6"


class Clock:
    """The stream's clock, which stands still unless it is set on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ns = 10**12
        monkeypatch.setattr("worldline.engine.clock.monotonic_ns", lambda: self.ns)

    def passes(self, ms: float) -> None:
        self.ns += int(ms * MS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def rows(recorder: Recorder) -> list[dict[str, Any]]:
    """The chunk rows that stand in the log."""
    lines = (recorder.attempt / layout.TAIL).read_bytes().splitlines(keepends=True)
    return [row.data for row in map(events.read, lines) if row.name == "decision/chunk"]


def test_a_piece_after_100_ms_is_a_row_at_once_and_those_of_the_next_100_ms_are_one(
    tmp_path: Path, clock: Clock
) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": SECRET})
    live = boundary.begin(decision())
    clock.passes(100)
    live.chunk(b"first;")
    assert [row["body"] for row in rows(recorder)] == ["first;"]
    for piece in (b"two;", b"three;", b"four;"):
        clock.passes(30)
        live.chunk(piece)
        assert len(rows(recorder)) == 1
    clock.passes(10)
    live.chunk(b"five;")
    assert rows(recorder)[1] == {
        "body": "two;three;four;five;",
        "pieces": [[4, 30 * MS], [6, 30 * MS], [5, 30 * MS], [5, 10 * MS]],
    }
    live.chunk(b"six")
    assert len(rows(recorder)) == 2
    live.finish({"status": 200, "headers": []})
    cassette, exchange = exchange_of(recorder, live.call)
    assert [piece for piece, _ in cassette.pieces(exchange)] == [
        b"first;",
        b"two;",
        b"three;",
        b"four;",
        b"five;",
        b"six",
    ]
    recorder.close()


def test_a_body_that_is_whole_within_100_ms_stands_in_the_finished_row_alone(tmp_path: Path, clock: Clock) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": SECRET})
    live = boundary.begin(decision())
    for piece in (b"one;", b"two;"):
        clock.passes(40)
        live.chunk(piece)
    live.finish({"status": 200, "headers": []})
    assert rows(recorder) == []
    cassette, exchange = exchange_of(recorder, live.call)
    assert (exchange.data["body"], exchange.data["pieces"]) == ("one;two;", [[4, 40 * MS], [4, 40 * MS]])
    assert [piece for piece, _ in cassette.pieces(exchange)] == [b"one;", b"two;"]
    recorder.close()


def test_16_kib_are_a_row_without_waiting(tmp_path: Path, clock: Clock) -> None:
    recorder, boundary = recorder_in(tmp_path)
    live = boundary.begin(decision())
    for _ in range(15):
        live.chunk(b"y" * 1024)
    assert rows(recorder) == []
    live.chunk(b"y" * 1024)
    assert [len(row["body"]) for row in rows(recorder)] == [16 * 1024]
    recorder.close()


def test_a_secret_over_the_border_of_two_rows_is_in_neither(tmp_path: Path, clock: Clock) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": SECRET})
    live = boundary.begin(decision())
    for piece in (b"it is ", SECRET.encode()[:7], SECRET.encode()[7:] + b" ", b"."):
        clock.passes(100)
        live.chunk(piece)
    live.finish({"status": 200, "headers": []})
    assert "".join(row["body"] for row in rows(recorder)) == "it is [secret:KEY] ." and len(rows(recorder)) == 3
    recorder.close()


def test_under_stop_a_secret_is_met_with_the_piece_in_which_it_comes(tmp_path: Path, clock: Clock) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": SECRET}, policy="stop")
    live = boundary.begin(decision())
    live.chunk(b"first")
    live.chunk(b"second")
    with pytest.raises(SecretFound):
        live.chunk(b"it is " + SECRET.encode() + b".")
    recorder.close()


def test_a_silent_provider_s_piece_is_written_when_its_row_is_due(tmp_path: Path, clock: Clock) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": SECRET})
    live = boundary.begin(decision())
    clock.passes(20)
    live.chunk(b"first;")
    live.due()
    assert rows(recorder) == []
    clock.passes(80)
    live.due()
    assert [row["body"] for row in rows(recorder)] == ["first;"]
    clock.passes(500)
    live.due()
    assert len(rows(recorder)) == 1, "nothing came since"
    live.chunk(SECRET[:9].encode())
    live.due()
    assert len(rows(recorder)) == 1, "what may become a secret is held back, however long"
    live.finish({"status": 200, "headers": []})
    recorder.close()
