"""The writer of the log: appends rows to `tail.jsonl`, chains them, makes boundaries durable, rotates.

When a durable append returns, its row and all before it survive kill -9, a kernel crash and power loss. The first row
after each sync says so (`sync:[n, h16]`: the rows before n were durable), which lets a reader tell a torn tail from
lost data. Any failing write or sync kills the writer: a sync is never retried, since what it lost cannot be known. So
does finding that somebody else cut, grew or removed the file.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from worldline.errors import AttemptClosed, LogBroken, ValueRefused, WriterConflict
from worldline.model import events
from worldline.store import layout

CHUNK_BYTES = 8 << 20
LOOKS = 1000  # how often a lock is tried that only lookers hold: for a second or more


class Appended(NamedTuple):
    """Where a row went: its seq, its time (ns since t0), its hash and the line."""

    seq: int
    t: int
    h: bytes
    line: bytes


class Written(NamedTuple):
    """Where a log stands: its rows, the time (ns since t0) and hash of the last one, its bytes."""

    seq: int
    t: int
    h: bytes
    bytes: int


class LogWriter:
    """The one writer of an attempt directory, which must exist and be new. `now` gives ns since t0.

    Raises `WriterConflict` where another process writes there, `AttemptClosed` where one did. Appending is safe from
    several threads.
    """

    _lock_file: int
    _tail: int

    def __init__(self, attempt: Path, now: Callable[[], int], chunk_bytes: int = CHUNK_BYTES) -> None:
        self._begin(attempt, now, chunk_bytes, take_lock(attempt))
        if (attempt / layout.CHUNKS).exists():
            os.close(self._lock_file)
            raise AttemptClosed(f"{attempt} was written before; a new attempt goes into a new directory")
        try:
            layout.make_private(attempt / layout.CHUNKS)
            self._tail = layout.create(attempt / layout.TAIL)
            layout.sync_directory(attempt)
        except OSError as error:
            os.close(self._lock_file)
            raise LogBroken(f"cannot write in {attempt}: {error.strerror}", file=str(attempt), seq=0) from error
        _open_writers.add(self)

    @classmethod
    def resume(cls, attempt: Path, lock: int, written: Written) -> LogWriter:
        """Go on behind the last row of a dead writer, whose log is good up to there and ends there.

        `lock` is what `take_lock` gave; closing the writer lets go of it. The rows have the time of the last one: the
        writer's clock died with it.
        """
        log = cls.__new__(cls)
        log._begin(attempt, lambda: written.t, CHUNK_BYTES, lock)
        log.seq, log.h, log.bytes = written.seq, written.h, written.bytes
        log._last_t = written.t
        log._chunks = len(list((attempt / layout.CHUNKS).glob("*.jsonl")))
        with log.fatal():
            try:
                log._tail = layout.create(attempt / layout.TAIL)  # the writer died between two files
                layout.sync_directory(attempt)
            except FileExistsError:
                log._tail = os.open(attempt / layout.TAIL, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            layout.sync(log._tail)
            log._tail_bytes = os.fstat(log._tail).st_size
        log._durable, log._mark = log.seq, (log.seq, log.h.hex()[:16])
        _open_writers.add(log)
        return log

    def _begin(self, attempt: Path, now: Callable[[], int], chunk_bytes: int, lock: int) -> None:
        self._attempt = attempt
        self._now = now
        self._chunk_bytes = chunk_bytes
        self._lock = threading.RLock()
        self._sync_lock = threading.Lock()
        self.failure: LogBroken | None = None  # why nothing can be appended any more
        self._closed = self._finished = False
        self.seq, self.h, self.bytes = 0, events.GENESIS, 0
        self._last_t = 0
        self._durable = 0  # rows made durable so far
        self._mark: tuple[int, str] | None = None
        self._chunks = self._tail_bytes = 0
        self._tail = -1
        self._lock_file = lock

    def leave_in_child(self) -> None:
        """A forked child shares the lock; it lets go of it and can never append."""
        # A thread that the child does not have may hold the old ones.
        self._lock, self._sync_lock = threading.RLock(), threading.Lock()
        if not self._closed:
            self._closed = True
            os.close(self._lock_file)
            if self._tail >= 0:
                os.close(self._tail)

    def append(
        self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: bytes, durable: bool = False
    ) -> Appended:
        """Append one row; `data` is encoded JSON. With `durable` it returns only when the row survives power loss."""
        with self._lock:
            self._check_open()
            before = self._last_t
            t = max(self._now(), before)
            body = events.body(self.seq, t, t - before, kind, src, lane, keys, data, self._mark)
            if len(body) + events.SUFFIX > events.MAX_ROW:
                raise ValueRefused(f"a row of {len(body):,} bytes is over the limit of {events.MAX_ROW:,}", path="$")
            h = events.link(self.h, events.leaf(body))
            line = events.line(body, h)
            try:
                layout.write_all(self._tail, line)
            except OSError as error:
                self._fail(error)
            size = len(line)
            appended = Appended(self.seq, t, h, line)
            self.seq, self.h, self._last_t, self._mark = self.seq + 1, h, t, None
            self.bytes += size
            self._tail_bytes += size
        if durable:
            self.sync()
        if self._tail_bytes >= self._chunk_bytes:
            self.rotate()
        return appended

    def sync(self) -> None:
        """Make every row appended so far durable. Callers that wait together share one sync."""
        with self._lock:
            self._check_open()
            wanted = self.seq
        with self._sync_lock:
            with self._lock:
                if self._durable >= wanted:
                    return
                self._check_open()  # the sync that was waited for may have failed: it is not tried again
                covered, h, descriptor = self.seq, self.h, self._tail
                self._check_untouched()
            with self.fatal():
                layout.sync(descriptor)
            with self._lock:
                self._durable = covered
                self._mark = (covered, h.hex()[:16])

    def rotate(self) -> None:
        """Close the tail as the next chunk and begin a new one. Both directories are synced in between."""
        with self._sync_lock, self._lock:
            self._check_open()
            if self._tail_bytes == 0:
                return
            self._check_untouched()
            with self.fatal():
                self._close_chunk()
                self._tail = layout.create(self._attempt / layout.TAIL)
                layout.sync_directory(self._attempt)
            self._tail_bytes = 0

    def _close_chunk(self) -> None:
        layout.sync(self._tail)
        descriptor, self._tail = self._tail, -1
        os.close(descriptor)
        chunk = self._attempt / layout.CHUNKS / layout.chunk_name(self._chunks)
        os.rename(self._attempt / layout.TAIL, chunk)
        layout.sync_directory(chunk.parent)
        layout.sync_directory(self._attempt)
        self._chunks += 1
        self._durable, self._mark = self.seq, (self.seq, self.h.hex()[:16])

    def finish(self) -> None:
        """Move the tail into `chunks/`; nothing can be appended after it. The lock stays until `close`."""
        with self._sync_lock, self._lock:
            self._check_open()
            self._check_untouched()
            with self.fatal():
                self._close_chunk()
            self._finished = True

    def close(self) -> None:
        """Let go of the files and the lock. What was appended stays; nothing is synced here."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._tail >= 0:
                os.close(self._tail)
            os.close(self._lock_file)

    def _check_open(self) -> None:
        if self._closed or self._finished:
            raise AttemptClosed("the recording is closed; nothing more can be added to it")
        if self.failure is not None:
            raise self.failure

    def _check_untouched(self) -> None:
        state = os.fstat(self._tail)
        if state.st_size != self._tail_bytes or state.st_nlink != 1:
            what = "removed" if state.st_nlink == 0 else f"{state.st_size:,} bytes, not {self._tail_bytes:,}"
            self.failure = LogBroken(
                f"the log was changed under its writer: {self._attempt / layout.TAIL} is {what}",
                file=str(self._attempt),
                seq=self.seq,
            )
            raise self.failure

    def _fail(self, error: OSError) -> NoReturn:
        self.failure = LogBroken(
            f"the log cannot be written: {error.strerror}; {self.seq} rows stand in {self._attempt}",
            file=str(self._attempt),
            seq=self.seq,
            errno=error.errno,
        )
        raise self.failure from error

    def fatal(self) -> _Fatal:
        """A context in which any OSError kills the writer and comes out as `LogBroken`: its contents' files, too.

        A writer that is dead lets nobody in, so that nothing more is tried on a disk that failed.
        """
        return _Fatal(self)


class _Fatal:
    """Any OSError inside it kills the writer and comes out as `LogBroken`."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    def __enter__(self) -> None:
        if self._writer.failure is not None:
            raise self._writer.failure

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            self._writer._fail(error)


def take_lock(attempt: Path) -> int:
    """The attempt's lock: a descriptor that holds it until it is closed. Raises `WriterConflict` or `LogBroken`."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW  # a link leads to what is another's
        descriptor = os.open(attempt / layout.LOCK, flags, 0o600)
    except OSError as error:
        raise LogBroken(f"cannot write in {attempt}: {error.strerror}", file=str(attempt), seq=0) from error
    if not _locks(descriptor, attempt / layout.LOCK):
        os.close(descriptor)
        raise WriterConflict(
            f"another writer{_holder(attempt)} holds {attempt}; record a new attempt", attempt=str(attempt)
        )
    if os.fstat(descriptor).st_mode & 0o600 != 0o600:  # the umask took it from its owner, who reads it later
        os.fchmod(descriptor, 0o600)
    return descriptor


def _locks(descriptor: int, path: Path) -> bool:
    """Take the lock, unless a writer has it. Who looks whether one has (`layout.is_held`) shares it for a moment."""
    for _ in range(LOOKS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if layout.is_held(path):
                return False
        time.sleep(0.001)
    return False


def _holder(attempt: Path) -> str:
    """Who says to be writing there, for the message; nothing where `open.json` does not say."""
    try:
        return f" (process {msgspec.json.decode((attempt / layout.OPEN).read_bytes())['pid']})"
    except (OSError, msgspec.DecodeError, LookupError, TypeError):
        return ""


_open_writers: weakref.WeakSet[LogWriter] = weakref.WeakSet()


def _leave_in_child() -> None:
    for writer in list(_open_writers):
        writer.leave_in_child()


os.register_at_fork(after_in_child=_leave_in_child)
