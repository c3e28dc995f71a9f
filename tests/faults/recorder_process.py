"""A recorder in a process of its own that can be killed, or its disk made to fail, at any system call.

Run as a script it is a server: for each request (one JSON line on stdin) it forks a child that waits for a line `go`
and then records a short scripted agent, reconciles, expires or contains. The child says on stdout what was
acknowledged, one JSON each: `begun` (the call may leave now), `finished`, `sealed`, `error`. The last line is
`{"exit": status}`.

`RecorderServer` is the other side. System calls are met either by strace, which attaches to the waiting child, or by
wrappers around the `os` functions that the store uses.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from worldline.engine import clock
from worldline.engine import recorder as recorder_of_time
from worldline.engine.account import account
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.fail_open import FailOpenBoundary
from worldline.engine.recorder import Recorder
from worldline.engine.spec import RecordingSpec, Spec
from worldline.errors import WorldlineError
from worldline.store.catalog import runs
from worldline.store.forget.contain import contain
from worldline.store.forget.retention import expire
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording

CALLS = 5
LARGE = "x" * 40_000  # over the inline limit: its result is a blob
WRAPPED = ("write", "fdatasync", "fsync", "link", "rename", "replace", "unlink", "mkdir", "open", "ftruncate")


class Shape(NamedTuple):
    """How a recording goes: how many calls, which results are blobs, which calls are restricted; bytes of a chunk."""

    calls: int = CALLS
    large: frozenset[int] = frozenset({1})
    restricted: frozenset[int] = frozenset({3})
    shown: frozenset[int] = frozenset({2})
    chunk_bytes: int = 1500  # so that the log rotates on the way

    @classmethod
    def of(cls, number: int) -> Shape:
        """The usual one for 0; for others what chance makes of the number."""
        if number == 0:
            return cls()
        chance = random.Random(number)
        calls = chance.randint(1, 24)
        some = [frozenset(chance.sample(range(calls), chance.randint(0, min(3, calls)))) for _ in range(3)]
        return cls(calls, *some, chunk_bytes=chance.choice((700, 1500, 4000, 1 << 20)))


USUAL = Shape()


def agent(store: Path, say: Callable[..., None], run: Path | None = None, shape: Shape = USUAL) -> None:
    """Record a few tool calls and seal; `say` hears what the recorder acknowledged.

    Where recording fails it is asked once more for each thing: a recorder that failed once does nothing any more.
    """
    kept_apart = RecordingSpec(restrict=("tool:visit",))  # its key and its contents come to be on the way, too
    recorder = Recorder(Spec(store=store, task="kill me", run=run, recording=kept_apart))
    recorder.log._chunk_bytes = shape.chunk_bytes
    boundary = RecordBoundary(recorder)
    try:
        for number in range(shape.calls):
            live = boundary.begin(_call(number, shape))
            say(begun=live.call)
            live.finish({}, Content.of(LARGE if number in shape.large else number))
            say(finished=live.call)
            if number in shape.shown:
                try:
                    recorder.progress()
                except OSError:  # what lists show is stale then; the recording goes on
                    say(stale=True)
        say(sealed=str(recorder.seal()))
    except WorldlineError as error:
        say(error=error.kind, message=str(error), seq=error.facts.get("seq"))
        for again in (lambda: boundary.begin(_call(0, shape)), recorder.log.sync, recorder.seal):
            try:
                say(revived=str(again()))
            except WorldlineError as same:
                say(again=same.kind)


def going_on(store: Path, say: Callable[..., None]) -> None:
    """The same calls behind a door that fails open: the agent says nothing of what cannot be written."""
    recorder = Recorder(Spec(store=store, task="go on", fail_open=True))
    boundary = FailOpenBoundary(recorder)
    for number in range(CALLS):
        live = boundary.begin(_call(number, USUAL))
        live.finish({}, Content.of(LARGE if number in USUAL.large else number))
        boundary.note("marker", "thought", "main", {}, {"text": "so far"})
        say(went_on=live.call)
    say(lost=boundary.losses.calls, why=boundary.losses.why and boundary.losses.why.kind)
    say(sealed=str(recorder.seal()))


def _call(number: int, shape: Shape) -> Call:
    name = "visit" if number in shape.restricted else "pay"
    return Call(kind="action", name=name, inputs=Content.of({"n": number}), effect="side_effecting")


def settle(store: Path, say: Callable[..., None]) -> None:
    """Reconcile every run of the store; `say` hears each state."""
    for run in runs(store):
        for state in reconcile(run, account):
            say(state=state.state)


def forget(store: Path, now_ns: int) -> None:
    """Expire what is due in every run of the store."""
    for run in runs(store):
        expire(Recording(run), now_ns, act=True)


def hide(store: Path, label: str, value: str, now_ns: int) -> None:
    """Contain every run of the store that holds a secret."""
    for run in runs(store):
        contain(run, label, value, now_ns)


def say(**fact: Any) -> None:
    """One line on stdout."""
    # writev is among no system calls that the tests meet.
    os.writev(1, [json.dumps(fact).encode() + b"\n"])


def meet(number: int, error: int | None, names: tuple[str, ...]) -> None:
    """Make the `number`-th call of the wrapped functions fail with `error`, or kill this process."""
    count = itertools.count(1)

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def met(*args: Any, **kwargs: Any) -> Any:
            if next(count) == number:
                if error is not None:
                    raise OSError(error, os.strerror(error))
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return met

    for name in names:
        setattr(os, name, wrap(getattr(os, name)))


FULL = 17  # how `at_operation` ends where the disk refused


def at_operation(number: int, error: int | None, act: Callable[[], object], names: tuple[str, ...]) -> int:
    """Do it in a process that is killed at the `number`-th of these operations, or meets an error: how it ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            meet(number, error, names)
            act()
            status = 0
        except OSError:
            status = FULL
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _child(request: dict[str, Any]) -> None:
    os.readv(0, [bytearray(3)])  # a call that nothing else makes: strace may come before it or in the middle
    if request.get("at"):
        meet(request["at"], request.get("errno"), tuple(request.get("names", WRAPPED)))
    try:
        if request.get("expire"):
            forget(Path(request["store"]), request["expire"])
        elif request.get("contain"):
            hide(Path(request["store"]), *request["contain"])
        elif request.get("fail_open"):
            going_on(Path(request["store"]), say)
        elif request.get("reconcile"):
            settle(Path(request["store"]), say)
        else:
            agent(Path(request["store"]), say, shape=Shape.of(request.get("shape", 0)))
    except WorldlineError as error:
        say(error=error.kind, message=str(error), seq=error.facts.get("seq"))
    except OSError as error:
        say(error="os", message=str(error))


def _serve() -> None:
    # Unbuffered: what comes after the line is the child's.
    with open(0, "rb", buffering=0, closefd=False) as requests:
        while line := requests.readline():
            child = os.fork()
            if child == 0:
                try:
                    _child(json.loads(line))
                finally:
                    os._exit(0)
            say(pid=child)
            _, status = os.waitpid(child, 0)
            say(exit=os.waitstatus_to_exitcode(status))


class Recorded:
    """What came of one recording: the lines of the child, and how it ended."""

    def __init__(self, lines: list[dict[str, Any]], trace: list[str]) -> None:
        self.lines = lines
        self.trace = trace

    def said(self, word: str) -> list[Any]:
        """Everything that was said under `word`, in order."""
        return [line[word] for line in self.lines if word in line]

    @property
    def killed(self) -> bool:
        """Whether the process was killed on the way."""
        return self.said("exit") == [-signal.SIGKILL]


class RecorderServer:
    """Starts recordings; one at a time."""

    def __init__(self) -> None:
        self._traces = Path(tempfile.mkdtemp(prefix="worldline-traces-"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.recorder_process"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def record(self, store: Path, strace: list[str] | None = None, **request: Any) -> Recorded:
        """Record into `store`. `strace` are its arguments; `at`, `errno` and `names` meet the wrapped functions."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"store": str(store), **request}).encode() + b"\n")
        self._process.stdin.flush()
        pid = json.loads(self._process.stdout.readline())["pid"]
        output = self._traces / f"{pid}.trace"
        tracer = _attach(pid, strace, output) if strace is not None else None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()
        lines: list[dict[str, Any]] = []
        while not lines or "exit" not in lines[-1]:
            lines.append(json.loads(self._process.stdout.readline()))
        if tracer is not None:
            assert tracer.stderr is not None
            tracer.stderr.close()
            tracer.wait()
        return Recorded(lines, _taken(output) if strace is not None else [])

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        shutil.rmtree(self._traces)


def _taken(output: Path) -> list[str]:
    trace = output.read_text().splitlines()
    output.unlink()
    return trace


def _attach(pid: int, arguments: list[str], output: Path) -> subprocess.Popen[bytes]:
    tracer = subprocess.Popen(
        ["strace", "-y", "-s", "40", "-o", str(output), *arguments, "-p", str(pid)], stderr=subprocess.PIPE
    )
    assert tracer.stderr is not None
    said = tracer.stderr.readline()
    assert b"attached" in said, said
    return tracer


def _same_every_time() -> None:
    """Make every child make the same system calls: load what is loaded late, give every run one key, and let no time
    say what is written.

    The names of restricted contents follow from the key. With a key of its own, one recording in 256 finds that two
    contents share a folder, makes one folder less, and counts three calls less than the others. What lists show is
    written once in so many milliseconds, so a recording that is held up would count four calls more.
    """
    clock.key = lambda: bytes(range(32))
    recorder_of_time.PROGRESS_NS = 1 << 62
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs"
        agent(store, lambda **fact: None)
        Recorder(Spec(store=store)).close()
        settle(store, lambda **fact: None)


if __name__ == "__main__":
    _same_every_time()
    _serve()
