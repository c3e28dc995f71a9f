"""A recorder in a process of its own that can be killed, or its disk made to fail, at any system call.

Run as a script it is a server: for each request (one JSON line on stdin) it forks a child that waits for a line `go`
and then records a short scripted agent, reconciles, expires or contains. The child says on stdout what was
acknowledged, one JSON each: `begun` (the call may leave now), `finished`, `sealed`, `error`. The last line is
`{"exit": status}`.

`RecorderServer` is the other side. System calls are met either by strace, which attaches to the waiting child, or by
wrappers around the `os` functions that the store uses.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worldline.engine.account import account
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
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
CHUNK_BYTES = 1500  # so that the log rotates on the way
WRAPPED = ("write", "fdatasync", "fsync", "link", "rename", "replace", "unlink", "mkdir", "open", "ftruncate")


def agent(store: Path, say: Callable[..., None], run: Path | None = None) -> None:
    """Record a few tool calls and seal; `say` hears what the recorder acknowledged."""
    kept_apart = RecordingSpec(restrict=("tool:visit",))  # its key and its contents come to be on the way, too
    recorder = Recorder(Spec(store=store, task="kill me", run=run, recording=kept_apart))
    recorder.log._chunk_bytes = CHUNK_BYTES
    boundary = RecordBoundary(recorder)
    for number in range(CALLS):
        name = "visit" if number == 3 else "pay"
        call = Call(kind="action", name=name, inputs=Content.of({"n": number}), effect="side_effecting")
        live = boundary.begin(call)
        say(begun=live.call)
        live.finish({}, Content.of(LARGE if number == 1 else number))
        say(finished=live.call)
        if number == 2:
            try:
                recorder.progress()
            except OSError:  # what lists show is stale then; the recording goes on
                say(stale=True)
    say(sealed=str(recorder.seal()))


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


def _say(**fact: Any) -> None:
    # writev is among no system calls that the tests meet.
    os.writev(1, [json.dumps(fact).encode() + b"\n"])


def _meet(number: int, error: int | None, names: tuple[str, ...]) -> None:
    """Make the `number`-th call of the wrapped functions fail with `error`, or kill this process."""
    count = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def met(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                if error is not None:
                    raise OSError(error, os.strerror(error))
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return met

    for name in names:
        setattr(os, name, wrap(getattr(os, name)))


def _child(request: dict[str, Any]) -> None:
    os.read(0, 3)
    if request.get("at"):
        _meet(request["at"], request.get("errno"), tuple(request.get("names", WRAPPED)))
    try:
        if request.get("expire"):
            forget(Path(request["store"]), request["expire"])
        elif request.get("contain"):
            hide(Path(request["store"]), *request["contain"])
        else:
            work = settle if request.get("reconcile") else agent
            work(Path(request["store"]), _say)
    except WorldlineError as error:
        _say(error=error.kind, message=str(error), seq=error.facts.get("seq"))
    except OSError as error:
        _say(error="os", message=str(error))


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
            _say(pid=child)
            _, status = os.waitpid(child, 0)
            _say(exit=os.waitstatus_to_exitcode(status))


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
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.recorder_process"],
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
        output = store.with_name(store.name + ".trace")
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
        return Recorded(lines, output.read_text().splitlines() if strace is not None else [])

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _attach(pid: int, arguments: list[str], output: Path) -> subprocess.Popen[bytes]:
    tracer = subprocess.Popen(
        ["strace", "-y", "-s", "40", "-o", str(output), *arguments, "-p", str(pid)], stderr=subprocess.PIPE
    )
    assert tracer.stderr is not None
    assert b"attached" in tracer.stderr.readline()
    return tracer


def _warm_up() -> None:
    """Load what is loaded late, so that every child makes the same system calls."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs"
        agent(store, lambda **fact: None)
        Recorder(Spec(store=store)).close()
        settle(store, lambda **fact: None)


if __name__ == "__main__":
    _warm_up()
    _serve()
