"""Forking from the panel: the command that does it, to be copied, and on request that command as a child process.

The panel makes no fork itself. It shows the words that somebody would type, and what they confirm is started with just
these words, without a shell. A run that somebody sent is not started: its command is a stranger's.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from worldline.engine import clock
from worldline.errors import UsageError
from worldline.model.ids import short
from worldline.seams.environment import WORLDLINE_URL
from worldline.store import layout
from worldline.store.bundle.packed import PackedRecording
from worldline.store.catalog import default_store, runs
from worldline.store.recording import Recording

PATIENCE_SECONDS = 20.0  # for a fork to say which run it is
END_SECONDS = 10.0  # for one to seal what it has, when the panel ends
MOST_SET = 50
MOST_TOLD = 2_000  # characters of what a fork said that ended at once
_AT = re.compile(r"(?:step|seq):[0-9]{1,18}")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")


class _Opened(msgspec.Struct):
    """Of `open.json`."""

    pid: int


class Forking:
    """Starts forks by `program` (the words that start worldline itself); None where this version has no such verb."""

    def __init__(self, program: Sequence[str] | None) -> None:
        self._program = list(program) if program is not None else None
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def there(self) -> bool:
        """Whether forks can be started at all."""
        return self._program is not None

    def answer(self, recording: Recording, body: Mapping[str, Any]) -> dict[str, Any]:
        """`POST r/<id>/fork`. Raises `UsageError` for what cannot be asked."""
        words = self._words(recording, body)
        said: dict[str, Any] = {"command": "worldline " + shlex.join(words)}
        if body.get("confirm") is not True:
            return said
        if (why := self._obstacle(recording)) is not None:
            return {**said, "missing": "fork", "why": why}
        return {**said, **self._start(recording.run_directory.parent, words)}

    def close(self) -> None:
        """End what was started and still runs: it seals what it has."""
        with self._lock:
            running = [child for child in self._children if child.poll() is None]
        for child in running:
            child.terminate()
        for child in running:
            with suppress(subprocess.TimeoutExpired):
                child.wait(END_SECONDS)

    def _words(self, recording: Recording, body: Mapping[str, Any]) -> list[str]:
        """The words behind `worldline`."""
        at, changes = body.get("at"), body.get("set") or {}
        if not (isinstance(at, str) and _AT.fullmatch(at)):
            raise UsageError(f"a fork leaves its run at step:N or seq:N, not at {at!r:.40}")
        if not isinstance(changes, dict) or len(changes) > MOST_SET:
            raise UsageError(f"what a fork sets is an object of up to {MOST_SET} fields")
        words = ["fork", _name(recording), "--at", at]
        for field, value in changes.items():
            if not _FIELD.fullmatch(field):
                raise UsageError(f"no field of a request: {field!r:.40}")
            words += ["--set", f"{field}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"]
        if any("\0" in word for word in words):
            raise UsageError("no command line holds a NUL character")
        return [*words, "--", *self._command(recording)]

    def _command(self, recording: Recording) -> list[str]:
        """The recorded command; where a program recorded itself, a word that stands for it."""
        command = recording.header.data.get("agent", {}).get("command")
        return list(command) if command else ["CMD"]

    def _obstacle(self, recording: Recording) -> str | None:
        """Why the command is not started from here; None where it can be."""
        if self._program is None:
            return "This version of worldline cannot fork a run yet."
        if isinstance(recording, PackedRecording):
            return "It is a bundle, and its command is that of whoever made it. Read it, and type it where it may run."
        if not recording.header.data.get("agent", {}).get("command"):
            return "The run was recorded inside a program. Start that program yourself in place of CMD."
        return None

    def _start(self, store: Path, words: Sequence[str]) -> dict[str, Any]:
        assert self._program is not None, "looked at before"
        environment = {name: value for name, value in os.environ.items() if name != WORLDLINE_URL}
        before = clock.new_id("run")
        with tempfile.TemporaryFile() as said:
            try:
                child = subprocess.Popen(
                    [*self._program, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                return {"run": None, "missing": "fork", "why": f"it cannot be started: {error.strerror}"}
            with self._lock:
                self._children = [each for each in self._children if each.poll() is None] + [child]
            return _run_of(child, store, before, said)


def _run_of(child: subprocess.Popen[bytes], store: Path, before: str, said: IO[bytes]) -> dict[str, Any]:
    """Which run a fork records: it is there as soon as its recorder has begun. Waits for it a while."""
    until = clock.monotonic_ns() + int(PATIENCE_SECONDS * 1e9)
    while clock.monotonic_ns() < until:
        ended = child.poll()
        if (found := _begun_by(child.pid, store, before)) is not None:
            return {"run": found, "pid": child.pid}
        if ended is not None:
            return {"run": None, "exit": ended, "said": _told(said)[-MOST_TOLD:]}
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.05)
    return {"run": None, "pid": child.pid, "said": _told(said)[-MOST_TOLD:]}


def _begun_by(pid: int, store: Path, before: str) -> str | None:
    """The run of a store that a process began since `before` was made: ids sort by time."""
    for path in reversed(runs(store)):
        if path.name < before:
            return None
        for attempt in layout.attempts(path):
            try:
                opened = msgspec.json.decode((attempt / layout.OPEN).read_bytes(), type=_Opened)
            except (OSError, msgspec.DecodeError):  # it begins in this moment
                continue
            if opened.pid == pid:
                return path.name
    return None


def _told(said: IO[bytes]) -> str:
    """The end of what it said."""
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - 4 * MOST_TOLD))
    return said.read(4 * MOST_TOLD).decode("utf-8", "replace").strip()


def _name(recording: Recording) -> str:
    """The shortest name of a run that works from here."""
    if isinstance(recording, PackedRecording):
        return recording.source.name
    if recording.run_directory.parent.resolve() == default_store().resolve():
        return short(recording.run_id)
    return str(recording.run_directory)
