"""What is recorded for the enumeration: small runs that do everything that a recording does with files.

The clock, ids and keys follow from a counter, so a scene makes the same operations every time.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.disk import materialise
from tests.crash.states import Crashed
from tests.crash.trace import Trace
from worldline.engine import clock
from worldline.engine.account import account
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import RecordingSpec, Spec
from worldline.model import ids
from worldline.store.catalog import runs
from worldline.store.forget.contain import contain
from worldline.store.forget.retention import expire
from worldline.store.layout import ATTEMPTS
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording

STEP_NS = 25_000_000  # between two looks at the clock: each row is handed over at once
BEGAN_NS = 1_900_000_000_000_000_000
SECRET, LABEL = "hush-" + "7f3a9c-" + "not-a-real-one", "SHOP_TOKEN"
RETENTION = {"ordinary": 100, "restricted": 50}  # seconds
SEALED = ("sealed:complete", "sealed:partial", "superseded")
LATER_NS = BEGAN_NS + 1_000_000 * 1_000_000_000

Scene = Callable[[Trace], object]


def steady(patch: pytest.MonkeyPatch) -> None:
    """Let time, ids and keys follow from a counter, and be this process number one of the same length always."""
    ticks, made = itertools.count(1), itertools.count(1)

    def passed() -> int:
        return next(ticks) * STEP_NS

    def some(count: int) -> bytes:
        return hashlib.blake2b(b"%d" % next(made), digest_size=count).digest()

    patch.setattr(os, "getpid", lambda: 40_000)
    patch.setattr(clock, "monotonic_ns", passed)
    patch.setattr(clock, "wall_ns", lambda: BEGAN_NS + passed())
    patch.setattr(clock, "key", lambda: some(32))
    patch.setattr(clock, "nonce", lambda: some(16).hex())
    patch.setattr(clock, "new_id", lambda prefix: ids.spell(prefix, clock.wall_ns() // 1_000_000, next(made)))


def record(
    trace: Trace,
    calls: int,
    *,
    retention: dict[str, int] | None = None,
    chunk_bytes: int = 1500,
    run: Path | None = None,
    ends: str | None = "complete",
    answer: str = "so it is",
) -> Path:
    """Record calls of a few tools, one of them restricted, with pictures and notes between, and seal as `ends` or die.

    Noted is what may be relied on: `durable` with the attempt and all its rows so far each time a durable append
    returned, and `sealed` with the attempt and the result's name. Returns the run's directory.
    """
    spec = RecordingSpec(restrict=("tool:pay",), retention=retention or {})
    recorder = Recorder(Spec(store=Path(trace.place) / "runs", run=run, task="crash me", recording=spec))
    recorder.log._chunk_bytes = chunk_bytes

    def durable() -> None:
        trace.note("durable", (recorder.attempt.name, log_of(recorder.attempt)))

    durable()
    boundary = RecordBoundary(recorder)
    for number in range(calls):
        name = ("look", "pay", "paint")[number % 3]
        call = Call(kind="action", name=name, inputs=Content.of({"n": number}), effect="side_effecting")
        live = boundary.begin(call)
        durable()
        picture = Content(b"not really a picture %d" % number, "image/png")
        live.finish({}, picture if name == "paint" else Content.of(f"{answer} {number}"))
        durable()
        for note in range(3 if number % 3 == 1 else 1):  # rows that nobody waits for
            recorder.append("observation", "note", {}, {"name": "n", "value": note})
        if number == 1:
            recorder.progress()
    if ends == "complete":
        published = recorder.seal()
        durable()
        name = f"{recorder.run}/{published.name}"
        trace.note("sealed", (recorder.attempt.name, name))
        trace.results[name] = published.read_bytes()
    elif ends is not None:
        recorder.seal(ends, "it was told to")
        trace.note("settled", (recorder.attempt.name, f"sealed:{ends}", Recording(recorder.attempt).fingerprint))
    else:
        recorder.close()
    trace.wrote[recorder.attempt.name] = log_of(recorder.attempt)
    return recorder.run_directory


def log_of(attempt: Path) -> bytes:
    """The rows of an attempt as they stand in its files."""
    return b"".join(
        path.read_bytes() for path in (*sorted(attempt.glob("chunks/*")), attempt / "tail.jsonl") if path.exists()
    )


def twice(trace: Trace, calls: int) -> None:
    """Record a run whose first attempt died; the second one publishes."""
    run = record(trace, calls, ends=None)
    record(trace, calls, run=run)


def unlinked(trace: Trace, calls: int) -> None:
    """Record where the file system has no hard links."""

    def refuse(*paths: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", refuse)
        record(trace, calls)


def recorded(place: Path, scene: Scene) -> Trace:
    """The trace of a scene, from what stands at the place."""
    trace = Trace(place)
    with trace.recording():
        scene(trace)
    return trace


def settle(trace: Trace) -> None:
    """Reconcile every run; noted is, as `settled`, each attempt that is sealed now, how, and its fingerprint."""
    for run in runs(Path(trace.place) / "runs"):
        for state in reconcile(run, account):
            if state.attempt is not None and state.state in SEALED:
                sealed = Recording(run / ATTEMPTS / state.attempt)
                trace.note("settled", (state.attempt, state.state, sealed.fingerprint))


def after_kill(earlier: Trace, count: int, place: Path, then: Scene) -> Trace:
    """The trace of a program that was killed behind `count` operations, and of another that follows it.

    `place` is an empty directory. Nothing that the first one did not sync is durable before the second one syncs it.
    """
    trace = Trace.continued(earlier, count, place)
    materialise(trace.tree.state(), place)
    with trace.recording():
        then(trace)
    return trace


def after_loss(crashed: Crashed, earlier: Trace, place: Path) -> Trace:
    """The trace of reconciling what a power loss left of a recording, in an empty directory."""
    materialise(crashed.state, place)
    trace = Trace(place)
    trace.told_before = [op.note for op in earlier.ops[: crashed.behind] if op.note is not None]
    trace.wrote, trace.results = earlier.wrote, earlier.results
    with trace.recording():
        settle(trace)
    return trace


def forget(trace: Trace) -> None:
    """Expire everything that is due; noted is, as `expired`, what is gone."""
    for run in runs(Path(trace.place) / "runs"):
        found = expire(Recording(run), LATER_NS, act=True)
        trace.note("expired", {content.name for content in (*found.due, *found.expired)})


def hide(trace: Trace) -> None:
    """Contain every run in which the secret is; noted is, as `contained`, which attempts were."""
    for run in runs(Path(trace.place) / "runs"):
        trace.note("contained", contain(run, LABEL, SECRET, LATER_NS).attempts)


if __name__ == "__main__":  # records below a directory and prints the operations: for strace to see the same
    with pytest.MonkeyPatch.context() as patch:
        steady(patch)
        made = recorded(Path(sys.argv[1]), lambda trace: record(trace, 3))
    for op in made.ops:
        if op.note is None:
            print(f"write {len(op.data)}" if op.data is not None else op.what)
