"""The near side of an environment's processes (`nursery.py`): starts them, asks them, and ends them.

A process that is ended is killed: it has nothing to finish, and may be in an endless loop.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from worldline.engine.substrates.frames import Frames
from worldline.errors import EnvironmentFailed, NotQuiescent, ResourceExhausted, Unavailable, Unsupported

NAME = "zygote"
# Libraries that would start threads of their own at import are asked for one.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Nursery:
    """The process that looks after an environment's processes. It lives while any of them is wanted."""

    def __init__(self, factory: str, workspace: Path) -> None:
        control, theirs = socket.socketpair()
        path = os.pathsep.join(["", *sys.path]).strip(os.pathsep)
        environment = {**_ONE_THREAD, **os.environ, "PYTHONPATH": path}
        arguments = [str(theirs.fileno()), str(os.getpid()), factory]
        self._control = control
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.nursery", *arguments],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=workspace,
                env=environment,
            )
        self._members = 0
        ours, first = socket.socketpair()
        with first:
            Frames(control).send({}, [first.fileno()])
        self.first = Member(self, Frames(ours))
        try:
            self.first.told()
        except BaseException:
            self.first.end()
            raise

    def joined(self) -> None:
        """One more process is wanted."""
        self._members += 1

    def left(self) -> None:
        """One less; with the last one the nursery ends, and waits for none."""
        self._members -= 1
        if self._members == 0:
            self._control.close()
            self._process.wait()


class Member:
    """One process of a nursery, as who asks it things sees it."""

    def __init__(self, nursery: Nursery, frames: Frames) -> None:
        self._nursery = nursery
        self._frames: Frames | None = frames
        self.pid = 0
        self._process: int | None = None  # a descriptor of it
        nursery.joined()

    def ask(self, **question: Any) -> dict[str, Any]:
        """Its answer. Raises `Unavailable` where it has ended."""
        frames = self._open()
        try:
            frames.send(question)
        except OSError as error:
            self._lost(error)
        return self._answer()

    def told(self) -> None:
        """Wait until it says that it is there. Raises `EnvironmentFailed`."""
        answer = self._answer()
        if "raised" in answer:
            raise failed("could not be made", answer)
        self.pid = answer["pid"]
        try:
            self._process = os.pidfd_open(self.pid)
        except ProcessLookupError as error:
            self._lost(error)

    def fork(self, folders: Sequence[Path | None], state: str) -> list[Member]:
        """Processes like this one, in these folders. Raises `NotQuiescent`, `Unsupported`, `ResourceExhausted`."""
        pairs = [socket.socketpair() for _ in folders]
        question = {"op": "fork", "state": state, "folders": [None if f is None else str(f) for f in folders]}
        try:
            self._open().send(question, [theirs.fileno() for _, theirs in pairs])
            answer = self._answer()
        except OSError as error:
            for ours, _ in pairs:
                ours.close()
            self._lost(error)
        finally:
            for _, theirs in pairs:
                theirs.close()
        if "pids" not in answer:
            for ours, _ in pairs:
                ours.close()
            _refuse_fork(answer)
        made = [Member(self._nursery, Frames(ours)) for ours, _ in pairs]
        for member in made:
            member.told()
        return made

    @property
    def has_ended(self) -> bool:
        """Whether there is no such process any more."""
        return self._process is None or bool(select.select([self._process], [], [], 0)[0])

    def end(self) -> None:
        """It ends, whatever it is doing."""
        if self._frames is None:
            return
        self._frames.close()
        self._frames = None
        if self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            os.close(self._process)
            self._process = None
        self._nursery.left()

    def _open(self) -> Frames:
        if self._frames is None:
            self._lost(EOFError())
        return self._frames

    def _answer(self) -> dict[str, Any]:
        try:
            answer, _ = self._open().receive()
        except (OSError, EOFError) as error:
            self._lost(error)
        told: dict[str, Any] = answer
        return told

    def _lost(self, error: Exception) -> NoReturn:
        why = "the environment's process has ended"
        raise Unavailable(f"{why} (process {self.pid})", substrate=NAME, why=why) from error


def failed(what: str, answer: Mapping[str, Any]) -> EnvironmentFailed:
    """The error for what the environment's own code raised."""
    said = f"{answer['raised']}: {answer['why']}"
    return EnvironmentFailed(f"the environment {what}: {said}", raised=said, where=answer["where"])


def _refuse_fork(answer: Mapping[str, Any]) -> NoReturn:
    if (threads := answer.get("threads")) is not None:
        named = ", ".join(threads)
        raise NotQuiescent(f"threads run in the environment that a fork would lose: {named}", threads=threads)
    if (resources := answer.get("resources")) is not None:
        named = ", ".join(resources)
        what = f"the environment has what a fork would share with its twin: {named}; close it before the snapshot"
        raise Unsupported(what, resource=resources[0], resources=resources)
    raise ResourceExhausted(f"the environment cannot be forked: {answer['why']}", resource=answer["resource"])
