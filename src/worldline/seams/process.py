"""Running a command under a session: its signals, its end, and what its end says of the run.

A signal to us is passed on to the command, and the attempt is sealed as partial. A recorder that can no longer write
ends the command rather than let it run on unrecorded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from worldline.errors import CommandNotFound

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TICK_SECONDS = 0.25
GRACE_SECONDS = 5.0


class Ended(msgspec.Struct, frozen=True):
    """How a command ended: its exit code (128 + n for signal n, as shells say), that signal, and ours, if any."""

    code: int
    signal: str | None = None
    interrupted_by: str | None = None

    def outcome(self) -> dict[str, Any]:
        """The part of a run's outcome that the command's end says."""
        return {"outcome": "succeeded" if self.code == 0 else "failed", "exit": self.code, "signal": self.signal}


def stdout_beside(as_json: bool) -> IO[Any] | int | None:
    """Where a command's stdout goes: to our own, or out of its way where that carries one JSON document and no more."""
    return (sys.stderr or subprocess.DEVNULL) if as_json else None


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdout: IO[Any] | int | None = None,
    tick: Callable[[], str | None] = lambda: None,
    cwd: Path | None = None,
    stderr: IO[Any] | int | None = None,
    stdin: IO[Any] | int | None = None,
) -> Ended:
    """Run a command to its end, in `cwd` where it is given. `tick` is called a few times a second; a reason that it
    returns ends the command.

    Raises `CommandNotFound` where it cannot be started.
    """
    stopped: str | None = None
    with _Signals() as signals:
        try:
            child = subprocess.Popen(command, env=dict(environment), stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd)
        except (OSError, ValueError) as error:  # a word with a NUL byte is no word of a command
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CommandNotFound(f"cannot start '{command[0]}': {why}", command=command[0]) from error
        signals.goes_to(child)
        try:
            while stopped is None and child.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(TICK_SECONDS)
                    break
                stopped = tick()
        finally:
            if child.poll() is None:  # stopped, or the tick raised: it must not run on unrecorded
                _end(child)
    code = child.wait()
    by_signal = signal.Signals(-code).name if code < 0 else None
    return Ended(128 - code if code < 0 else code, by_signal, signals.first)


class _Signals:
    """Takes the signals meant for us and passes them on to the command, also those that come before it runs."""

    def __init__(self) -> None:
        self._received: list[int] = []
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        # What was ignored when we began (nohup, a shell's background job) stays ignored, for the command too.
        heard = [number for number in PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._take) for number in heard}
        # Where a supervisor ignores the end of children, the system throws away how the command ended.
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def first(self) -> str | None:
        """The name of the first signal that came."""
        return signal.Signals(self._received[0]).name if self._received else None

    def goes_to(self, child: subprocess.Popen[bytes]) -> None:
        """The command runs: pass on what has come and what will come."""
        self._child = child
        for number in list(self._received):
            self._pass_on(number)

    def _take(self, number: int, _: object) -> None:
        self._received.append(number)
        self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        # The terminal sends Ctrl-C to the whole group already; the command has had it.
        if self._child and self._child.poll() is None and not (number == signal.SIGINT and os.isatty(0)):
            self._child.send_signal(number)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
