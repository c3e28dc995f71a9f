"""Following a run while it is written: its rows as they are in the log, and whether its recorder is at work.

A follower keeps to the numbers of rows and to their place in the whole log, never to a file: the log rotates and is
sealed under it. What it gives out are the bytes of the log, row by row, as Server-Sent Events:

    event: rows       data: one line of the log, for each row      id: the number of the last one
    event: state      data: live | stalled | ended

`stalled` is a run without a seal whose recorder let go of it, or does not answer; `ended` comes behind its last row.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from worldline.engine import clock
from worldline.errors import WorldlineError
from worldline.model import events
from worldline.seams.answering import is_at_work
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.rendezvous import rendezvous_of
from worldline.store.seek import JoinedLog, SeekableLog

POLL_SECONDS = 0.06
STEP = 256 * 1024  # bytes of rows that go out together
LIVE, STALLED, ENDED = "live", "stalled", "ended"
LOOK_SECONDS = 1.0  # between two looks at the writer's lock
BEAT_SECONDS = 5.0  # of silence, before the recorder is asked whether it is there; and between two of these
PATIENCE_SECONDS = 2.0
COMMENT_SECONDS = 15.0  # of nothing to say: then a line that says nothing, which tells a broken connection


class Log:
    """The rows of an attempt from one on, as they come."""

    def __init__(self, attempt: Path, seq: int) -> None:
        self._attempt = attempt
        self._seq = seq
        self._offset = _offset_of(attempt, seq)
        self._seen: tuple[int, ...] | None = None
        self.last = seq - 1

    def rows(self) -> Iterator[list[bytes]]:
        """The lines that came since the last time, in parts; damaged ones are left out."""
        now = _stamp(self._attempt)
        if now == self._seen and now[:1] != (0,):
            return
        log = JoinedLog(self._attempt)
        self._offset = min(self._offset, log.size)  # a crash took what was not durable, and what came is to be new
        while self._offset < log.size:
            data = log.read(self._offset, min(STEP, log.size - self._offset))
            end = data.rfind(b"\n") + 1 or len(data)  # no row is that long
            self._offset += end
            if found := [line for line in data[:end].splitlines(True) if self._is_next(line)]:
                yield found
        self._seen = now

    def _is_next(self, line: bytes) -> bool:
        try:
            seq = events.read(line).seq
        except ValueError:
            return False
        if seq <= self.last or b"\r" in line:
            return False
        self.last = seq
        return True


def _offset_of(attempt: Path, seq: int) -> int:
    """The byte of the log at which row `seq` begins, or one before it."""
    found = SeekableLog.of(attempt).by_seq(seq - 1) if seq > 0 else None
    if found is None or found.offset is None:
        return 0
    return found.offset + len(found.event.raw)


def _stamp(attempt: Path) -> tuple[int, ...]:
    """What changes with every row: that of the file that is written to."""
    try:
        state = os.stat(attempt / layout.TAIL)
    except FileNotFoundError:
        return (0,)
    return state.st_ino, state.st_size, state.st_mtime_ns


class Writer:
    """Whether the recorder of an attempt is at work; looked at now and then."""

    def __init__(self, attempt: Path, now: Callable[[], int] = clock.monotonic_ns) -> None:
        self._attempt = attempt
        self._now = now
        self._looked = self._asked = self._row = now()
        self._looked -= int(LOOK_SECONDS * 1e9)
        self.state = LIVE

    def wrote(self) -> None:
        """A row came: it is."""
        self._row = self._now()
        self.state = LIVE

    def look(self) -> str:
        """`live`, or `stalled`: its lock is free, or it has been silent and does not answer."""
        now = self._now()
        if now - self._looked < LOOK_SECONDS * 1e9:
            return self.state
        self._looked = now
        try:
            recording = Recording(self._attempt)
            if not recording.live:
                self.state = STALLED
            elif now - max(self._row, self._asked) >= BEAT_SECONDS * 1e9:
                reached = rendezvous_of(recording)
                silent = reached is not None and not is_at_work(reached, PATIENCE_SECONDS)
                self.state = STALLED if silent else LIVE
                self._asked = self._now()
        except WorldlineError:  # it was moved away
            self.state = STALLED
        return self.state


def follow(attempt: Path, seq: int, closing: threading.Event) -> Iterator[bytes]:
    """The events of a run from row `seq` on, until it has ended, is gone, or `closing`. Empty where there is nothing.

    Raises what opening the attempt raises.
    """
    Recording(attempt)
    log, writer, said = Log(attempt, max(0, seq)), Writer(attempt), ""
    quiet = 0.0
    yield b"retry: 1000\n\n"
    while not closing.is_set():
        sealed = (attempt / layout.MANIFEST).exists()  # before the rows: then the last one is among them
        if not attempt.is_dir():
            return
        for lines in log.rows():
            writer.wrote()
            yield _rows(lines, log.last)
            quiet = 0.0
        state = ENDED if sealed else writer.look()
        if state == STALLED and (attempt / layout.MANIFEST).exists():
            continue  # sealed since it was looked for, and so let go of: its end comes next
        if state != said:
            said, quiet = state, 0.0
            yield f"event: state\ndata: {state}\n\n".encode("ascii")
        if sealed:
            return
        quiet += POLL_SECONDS
        yield b": \n\n" if quiet >= COMMENT_SECONDS else b""
        quiet = 0.0 if quiet >= COMMENT_SECONDS else quiet
        closing.wait(POLL_SECONDS)


def _rows(lines: list[bytes], last: int) -> bytes:
    return b"event: rows\nid: %d\n%b\n" % (last, b"".join([b"data: " + line for line in lines]))
