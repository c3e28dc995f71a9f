"""Processes whose memory can be kept: `python -P -m worldline.engine.substrates.nursery SOCKET PARENT FACTORY`.

The nursery makes the environment that FACTORY (`module:name`) gives and holds it in a child of its own; a snapshot is a
fork of that child, which then waits; a branch is a fork of the one that waits, and is gated until it is reseeded. All
of them share memory until they write to it.

Nothing outlives its owner. The nursery ends when its parent does, adopts and reaps what is orphaned, and holds one end
of a pipe; every other process has asked the kernel to kill it the moment that end closes, even in the middle of an
endless loop.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from worldline.engine.substrates import hugepages, mounts, quiescence
from worldline.engine.substrates.frames import Frames
from worldline.engine.substrates.reseed import Chance
from worldline.errors import ReseedFailed

KEPT, GATED, RESEEDED, LIVE = "kept", "gated", "reseeded", "live"
Environment = Callable[[Any], Any]


class Process:
    """One process with an environment in it: live, gated, or kept and never touched again."""

    def __init__(self, environment: Environment, frames: Frames, lifeline: int, state: str) -> None:
        self.environment = environment
        self.frames = frames
        self.state = state
        self.chance = Chance()
        self.children: dict[int, int] = {}  # by the descriptor that tells when one has ended
        self.lifeline = lifeline  # of its own, tied
        self.operations: dict[str, Callable[[dict[str, Any], list[int]], dict[str, Any]]] = {
            "act": self.act,
            "fork": self.fork,
            "reseed": self.reseed,
            "open_gate": self.open_gate,
        }

    def serve(self) -> NoReturn:
        """Until the other end is closed."""
        while True:
            self.wait()
            try:
                asked, files = self.frames.receive()
            except (EOFError, OSError):
                os._exit(0)
            answer = self.operations[asked["op"]](asked, files)
            with suppress(BrokenPipeError):
                self.frames.send(answer)

    def wait(self) -> None:
        """For the next message; children that end meanwhile leave nothing behind."""
        waiting = select.poll()
        for descriptor in (self.frames.end.fileno(), *self.children):
            waiting.register(descriptor, select.POLLIN)
        while self.frames.end.fileno() not in (ready := [each for each, _ in waiting.poll()]):
            for descriptor in ready:
                waiting.unregister(descriptor)
                with suppress(ChildProcessError):
                    os.waitpid(self.children.pop(descriptor), 0)
                os.close(descriptor)

    def act(self, asked: dict[str, Any], _: list[int]) -> dict[str, Any]:
        """Give the environment an action. What it raises is told, with where."""
        if self.state != LIVE:
            return {"refused": self.state}
        try:
            answer = {"value": self.environment(asked["action"])}
        except Exception as error:  # noqa: BLE001  # it is the user's, and is told
            return {"raised": type(error).__name__, "why": str(error), "where": traceback.format_exc()}
        return answer

    def fork(self, asked: dict[str, Any], files: list[int]) -> dict[str, Any]:
        """As many processes like this one as there are sockets, each in its folder. Returns their ids in the parent."""
        if self.state != KEPT:  # which is what it was when it was kept, and was looked at then
            if running := quiescence.threads():
                return self._refused("threads", running, files)
            ours = {self.frames.end.fileno(), self.lifeline, *self.children, *files}
            if held := quiescence.resources(ours, self.children.values()):
                return self._refused("resources", held, files)
        if self.state == LIVE:
            self.chance.gather()
            gc.collect()
            gc.freeze()  # the collector would write to every page that it looks at
            hugepages.gather()
        sys.stdout.flush()
        sys.stderr.flush()
        pids = []
        for number, folder in enumerate(asked["folders"]):
            try:
                pid = os.fork()
            except OSError as error:  # those that are there end when they see that nobody asks
                return {"why": error.strerror, "resource": "processes", **self._refused("", [], files)}
            if pid == 0:
                self.become(asked["state"], folder, files.pop(number), files)
                return {"pid": os.getpid()}
            self.children[os.pidfd_open(pid)] = pid
            pids.append(pid)
        for descriptor in files:
            os.close(descriptor)
        return {"pids": pids}

    def become(self, state: str, folder: str | None, control: int, others: list[int]) -> None:
        """What a child does first: its own control, its own lifeline, nothing of its parent's."""
        parents = [self.lifeline, *self.children, *others]
        self.lifeline = tied(self.lifeline)
        self.frames.close()
        self.frames = Frames(socket.socket(fileno=control))
        for descriptor in parents:
            os.close(descriptor)
        self.children = {}
        self.state = state
        quiescence.reopen({control, self.lifeline})
        if folder is not None:
            os.chdir(folder)

    def reseed(self, asked: dict[str, Any], _: list[int]) -> dict[str, Any]:
        """Draw anew what its twins would draw, too."""
        if self.state != GATED:
            return {"refused": self.state}
        try:
            what = self.chance.reseed(asked["seed"])
        except ReseedFailed as error:
            return {"failed": str(error), "facts": error.facts}
        self.state = RESEEDED
        return {"what": what}

    def open_gate(self, _: dict[str, Any], __: list[int]) -> dict[str, Any]:
        """Go live."""
        if self.state != RESEEDED:
            return {"refused": self.state}
        self.state = LIVE
        return {}

    @staticmethod
    def _refused(word: str, names: list[str], files: list[int]) -> dict[str, Any]:
        for descriptor in files:
            os.close(descriptor)
        return {word: names}


def tied(lifeline: int) -> int:
    """A descriptor of this process's own for the pipe; when its other end closes, the kernel kills this process."""
    own = os.open(f"/proc/self/fd/{lifeline}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    if select.select([own], [], [], 0)[0]:  # it closed before we asked
        os.kill(os.getpid(), signal.SIGKILL)
    return own


def made(factory: str) -> Environment:
    """The environment that `module:name` gives. Raises what importing and making it raises."""
    module, _, name = factory.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    environment: Environment = found()
    return environment


def keep_alive(control: socket.socket, watched: int) -> None:
    """Adopt and reap until the parent ends or lets go."""
    awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting = select.poll()
    for descriptor in (control.fileno(), watched, awake):
        waiting.register(descriptor, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in waiting.poll()]
        if awake not in ready:
            return
        with suppress(BlockingIOError):
            os.read(awake, 4096)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def main(descriptor: int, parent: int, factory: str) -> int:
    """Fork the environment's process, and look after it and its descendants."""
    control = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt at the terminal is the parent's to handle
    watched = os.pidfd_open(parent)
    if os.getppid() != parent:  # it ended before it was watched
        return 1
    mounts.adopt_orphans()
    lifeline, _held = os.pipe2(os.O_CLOEXEC)  # the other end is closed by the end of this process alone
    frames = Frames(control)
    _, (first,) = frames.receive()
    if os.fork() == 0:
        os.close(_held)
        os.close(watched)
        control.close()
        of_its_own = Frames(socket.socket(fileno=first))
        own = tied(lifeline)
        os.close(lifeline)
        try:
            environment = made(factory)
        except Exception as error:  # noqa: BLE001  # it is the user's, and is told
            of_its_own.send({"raised": type(error).__name__, "why": str(error), "where": traceback.format_exc()})
            os._exit(1)
        hugepages.gather()
        of_its_own.send({"pid": os.getpid()})
        Process(environment, of_its_own, own, LIVE).serve()
    os.close(first)
    keep_alive(control, watched)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
