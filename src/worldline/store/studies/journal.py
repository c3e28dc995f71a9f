"""The journal of a study: what it asks, every rollout as it ended, and the answer. Append-only, each line durable.

    <store>/studies/<study>/journal.jsonl

Its lines are a chain, made like the log's. A study that was killed goes on from here: a rollout that has a line is
never drawn again, and what a crash cut off behind the last whole line counts for nothing.
"""

from __future__ import annotations

import fcntl
import io
import os
from pathlib import Path
from typing import Any, Self

import msgspec

from worldline.errors import Damaged, WriterConflict
from worldline.model import events
from worldline.store import layout
from worldline.store.forget.chained import chain, chained

JOURNAL = "journal.jsonl"
FORMAT = "worldline-study/1"
OPENED, DRAWN, ANSWERED, STOPPED = "opened", "drawn", "answered", "stopped"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line: its number, Unix ns, what it is (`opened`, `drawn`, `answered`, `stopped`), and what it says.

    A `drawn` line has the `key` of its rollout.
    """

    n: int
    when: int
    what: str
    data: dict[str, Any] = {}
    key: str = ""


class Lines(msgspec.Struct, frozen=True):
    """The good lines of a journal, how many bytes they take, the last one's hash, and why the rest does not count."""

    entries: list[Entry]
    size: int
    head: bytes
    trouble: str | None = None

    def last(self, what: str) -> Entry | None:
        """The last line of a kind."""
        return next((entry for entry in reversed(self.entries) if entry.what == what), None)


def read_journal(folder: Path) -> Lines:
    """The journal of a study's folder. Raises `Damaged` where its first line cannot be read; no file is no lines."""
    path = folder / JOURNAL
    if not path.is_file():
        return Lines([], 0, events.GENESIS)
    found, size, head, trouble = list[Entry](), 0, events.GENESIS, None
    for line in io.BytesIO(path.read_bytes()):
        read = chained(line, Entry, len(found), head) if line.endswith(b"\n") else None
        if read is None:
            torn = not line.endswith(b"\n") or b"\0" in line
            trouble = "a crash cut it off" if torn else f"line {len(found) + 1} is not what the chain needs there"
            break
        found.append(read[0])
        size, head = size + len(line), read[1]
    if not found and trouble is not None and trouble != "a crash cut it off":
        raise Damaged(f"{path}: {trouble}", file=str(path), offset=size)
    return Lines(found, size, head, trouble)


class Journal:
    """A journal that is written to. Raises `WriterConflict` where another process has it, `Damaged` for what is none.

    What stands behind the last line that chains is cut off: a crash left it. Where a whole line does not chain the
    journal was changed, and nothing is cut: `Damaged`.
    """

    def __init__(self, folder: Path) -> None:
        layout.make_private(folder, shared=True)
        self._folder = folder
        path = folder / JOURNAL
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise WriterConflict(f"the study {folder.name} runs in another process", path=str(folder)) from None
            self._read()
            layout.sync_directory(folder)
        except BaseException:
            os.close(self._file)
            raise

    def _read(self) -> None:
        """Take what stands there, and cut off half a line behind it."""
        read, path = read_journal(self._folder), self._folder / JOURNAL
        if read.trouble is not None:
            if read.trouble != "a crash cut it off":
                raise Damaged(f"{path}: {read.trouble}; nothing was changed", file=str(path), offset=read.size)
            os.ftruncate(self._file, read.size)
        self.entries, self._head, self._under_way = read.entries, read.head, False

    def add(self, what: str, data: dict[str, Any], now_ns: int, key: str = "") -> Entry:
        """Add a line; it is durable when this returns."""
        if self._under_way:  # Ctrl-C came in the midst of the last one: only the file knows how far it got
            self._read()
        entry = Entry(len(self.entries), now_ns, what, data, key)
        line, head = chain(entry, self._head)
        self._under_way = True
        layout.write_all(self._file, line)
        layout.sync(self._file)
        self.entries.append(entry)
        self._head, self._under_way = head, False
        return entry

    def close(self) -> None:
        """Let go of the file, and with it of the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
