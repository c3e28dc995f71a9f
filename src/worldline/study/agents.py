"""The agent of a study: a command, or a function of this process; how one is run in a branch, to its end."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worldline.engine.executors import processes
from worldline.errors import CommandNotFound, UsageError
from worldline.run import drive
from worldline.seams.branch import BranchResult, BranchSession
from worldline.seams.environment import described_agent
from worldline.seams.process import Ended
from worldline.study.limits import TimeOver, bounded, late

TICK_SECONDS = 0.05
GRACE_SECONDS = 2.0


BranchEnd = tuple[BranchResult, bool]


@dataclass(frozen=True)
class CommandAgent:
    """A command line. Its output goes nowhere: hundreds of rollouts say the same."""

    command: tuple[str, ...]

    def described(self) -> dict[str, Any]:
        """As a header has it. Raises `CommandNotFound`."""
        return described_agent(self.command)

    @property
    def version(self) -> str:
        """What tells it from another agent."""
        said = self.described()
        return f"{said['program_sha256']} {said['command']}"

    def run(
        self, branch: BranchSession, *, folder: Path | None, environment: Mapping[str, str], limit: float, alone: bool
    ) -> BranchEnd:
        """Run it in a branch; the branch's result, and whether its time was over. Raises `CommandNotFound`."""
        boundary, recorder = branch.boundary, branch.recorder
        words, restored = branch.launch(self.command)
        ended = run_quietly(
            tuple(words),
            {**branch.environment, **environment},
            folder or restored,
            limit,
            lambda: boundary.failure is not None or recorder.broken is not None,
        )
        if ended is None:
            return branch.close({"outcome": "failed", "error": late(limit)}), True
        return branch.close(ended.outcome()), False


@dataclass(frozen=True)
class FunctionAgent:
    """A function without arguments, named `module:function` or given itself; it may be async."""

    function: Callable[[], Any] | str

    def described(self) -> dict[str, Any]:
        """As a header has it."""
        return {"name": self.name}

    @property
    def name(self) -> str:
        """`module:function`."""
        if isinstance(self.function, str):
            return self.function
        return f"{getattr(self.function, '__module__', '?')}:{getattr(self.function, '__qualname__', 'agent')}"

    @property
    def version(self) -> str:
        """What tells it from another agent: its name and the text of its source, where that can be had."""
        try:
            source = inspect.getsource(inspect.getmodule(self.loaded()) or self.loaded())
        except (OSError, TypeError):
            source = ""
        return f"{self.name} {hashlib.sha256(source.encode()).hexdigest()}"

    def loaded(self) -> Callable[[], Any]:
        """The function. Raises `UsageError` where the name names none."""
        return named_function(self.function) if isinstance(self.function, str) else self.function

    def run(
        self, branch: BranchSession, *, folder: Path | None, environment: Mapping[str, str], limit: float, alone: bool
    ) -> BranchEnd:
        """Run it in a branch; the branch's result, and whether its time was over.

        Not `alone`, others run in this process at once: then nothing of the process is changed for it.
        """
        try:
            with surrounded(folder, environment) if alone else nullcontext():
                return drive(branch, bounded(self.loaded(), limit), alone=alone), False
        except TimeOver:
            if processes.in_pool():
                processes.replace_this_process()  # whatever it began may go on
            return branch.close({"outcome": "failed", "error": late(limit)}), True


Agent = CommandAgent | FunctionAgent


@contextmanager
def surrounded(folder: Path | None, environment: Mapping[str, str]) -> Iterator[None]:
    """This process as a rollout in it needs it: in its folder, with its variables, and what it prints goes nowhere."""
    before = {name: os.environ.get(name) for name in environment}
    here = Path.cwd()
    os.environ.update(environment)
    try:
        if folder is not None:
            os.chdir(folder)
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            yield
    finally:
        os.chdir(here)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def agent_of(given: Any) -> Agent:
    """The agent that was given: a function, `module:function`, or a command's words. Raises `UsageError`."""
    if isinstance(given, CommandAgent | FunctionAgent):
        return given
    if callable(given):
        return FunctionAgent(given)
    if isinstance(given, str) and ":" in given and " " not in given:
        agent = FunctionAgent(given)
        agent.loaded()
        return agent
    words = (given,) if isinstance(given, str) else tuple(given or ())
    if not words or not all(isinstance(word, str) for word in words):
        raise UsageError("an agent is a function, module:function, or the words of a command")
    return CommandAgent(words)


def named_function(name: str) -> Callable[..., Any]:
    """The function `module:function`; modules of the working directory count. Raises `UsageError`."""
    module, _, function = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.import_module(module)
        for word in function.split("."):
            found = getattr(found, word)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"no function {name!r}: {error}", name=name) from error
    if not callable(found):
        raise UsageError(f"{name!r} is no function", name=name)
    return found


def run_quietly(
    command: tuple[str, ...],
    environment: Mapping[str, str],
    folder: Path | None,
    limit: float,
    stopped: Callable[[], bool] = lambda: False,
) -> Ended | None:
    """Run a command to its end without a terminal; None where it took longer than `limit` seconds.

    It has a process group of its own, which ends with it: but in a process of a pool, whose group it is in.
    """
    apart = not processes.in_pool()
    try:
        child = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=apart,
        )
    except OSError as error:
        raise CommandNotFound(f"cannot start '{command[0]}': {error.strerror}", command=command[0]) from error
    left, ended = limit, False
    try:
        while not ended and left > 0 and not stopped():
            with suppress(subprocess.TimeoutExpired):
                child.wait(TICK_SECONDS)
                ended = True
            left -= TICK_SECONDS
    finally:
        if not ended:
            _end(child, apart)
    if not ended and left <= 0:
        if not apart:
            processes.replace_this_process()  # what the command started is in this very group
        return None
    code = child.wait()
    by_signal = signal.Signals(-code).name if code < 0 else None
    return Ended(128 - code if code < 0 else code, by_signal)


def _end(child: subprocess.Popen[bytes], apart: bool) -> None:
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_SECONDS)
    if apart:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()
