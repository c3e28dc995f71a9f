"""Running a command under a session: its signals, its end, and what its end says of the run.

A signal to us is passed on to the command, and the attempt is sealed as partial. A recorder that can no longer write
ends the command rather than let it run on unrecorded.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

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


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdout: IO[Any] | None = None,
    tick: Callable[[], str | None] = lambda: None,
) -> Ended:
    """Run a command to its end. `tick` is called a few times a second; a reason it returns ends the command.

    Raises `CommandNotFound` where it cannot be started.
    """
    received: list[int] = []
    try:
        child = subprocess.Popen(command, env=dict(environment), stdout=stdout)
    except OSError as error:
        raise CommandNotFound(f"cannot start '{command[0]}': {error.strerror}", command=command[0]) from error
    stopped: str | None = None
    with _passing_on(child, received):
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
    return Ended(128 - code if code < 0 else code, by_signal, signal.Signals(received[0]).name if received else None)


@contextmanager
def _passing_on(child: subprocess.Popen[bytes], received: list[int]) -> Iterator[None]:
    def pass_on(number: int, _: object) -> None:
        received.append(number)
        # The terminal sends Ctrl-C to the whole group already; the command has had it.
        if child.poll() is None and not (number == signal.SIGINT and os.isatty(0)):
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
