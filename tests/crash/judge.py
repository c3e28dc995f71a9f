"""What must hold of a store behind a crash, before and after it is reconciled.

Each check says in its message which promise of the format it belongs to. Readers and reconciling may raise errors of
this package only; any other is a failure of the test.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.crash.disk import State, found_at, materialise
from tests.crash.states import Crashed
from tests.crash.trace import Trace
from worldline.engine.account import account
from worldline.errors import WorldlineError
from worldline.store import layout
from worldline.store.catalog import entries, runs
from worldline.store.reconcile import HARMLESS, reconcile
from worldline.store.reconcile import State as Attempt
from worldline.store.recording import Recording
from worldline.store.verify import verify

STORE = "runs"


@contextmanager
def made(crashed: Crashed, folder: Path) -> Iterator[Path]:
    """The state as real files; gives the store."""
    place = folder / "crashed"
    place.mkdir()
    materialise(crashed.state, place)
    yield place / STORE
    shutil.rmtree(place)


def judge(crashed: Crashed, trace: Trace, folder: Path, *, thorough: bool = True) -> None:
    """Reconcile what a crash left, and look for everything that was promised until then.

    When `thorough`, all of it is read before, verified behind, and reconciled a second time, which must change nothing.
    """
    with made(crashed, folder) as store:
        before = published_in(store)
        for name, data in before.items():
            assert trace.results.get(name) == data, "promise 4: what is visible is not the whole result"
        if thorough:
            read(store)
        states = reconciled(store)
        for state in states:
            assert state.state in HARMLESS, f"promise 3: {state}"
        assert published_in(store) == before, "promise 4: reconciling published, or took back"
        promised(sealed(store, trace, thorough), states, before, trace, crashed.behind)
        if thorough:
            settled = found_at(store.parent)
            told = [(state.attempt, state.state) for state in states]
            assert [(state.attempt, state.state) for state in reconciled(store)] == told, "promise 3: not idempotent"
            assert found_at(store.parent) == settled, "promise 3: reconciling again changed something"


def published_in(store: Path) -> dict[str, bytes]:
    """The results that people see, by run and name."""
    return {f"{run.name}/{path.name}": path.read_bytes() for run in runs(store) for path in run.glob("*.json")}


def read(store: Path) -> None:
    """Look at everything as people do who know nothing of the crash."""
    entries(store)
    for run in runs(store):
        with suppress(WorldlineError):
            recording = Recording(run)
            for _ in recording.events():
                pass
            _ = recording.disposition, recording.summary, recording.published


def reconciled(store: Path) -> list[Attempt]:
    """Reconcile every run."""
    return [state for run in runs(store) for state in reconcile(run, account)]


class Sealed(NamedTuple):
    """The log of a sealed attempt and its fingerprint."""

    log: bytes
    fingerprint: str | None


def sealed(store: Path, trace: Trace, thorough: bool) -> dict[str, Sealed]:
    """Each attempt that is not stillborn: sealed, and its rows what its recorder wrote, up to some row.

    That its contents are whole is what reconciling verifies before it seals; when `thorough` all is verified again.
    """
    found = {}
    for run in runs(store):
        for attempt in layout.attempts(run):
            log = b"".join(path.read_bytes() for path in sorted(attempt.glob(f"{layout.CHUNKS}/*")))
            if not log:
                continue
            recording = Recording(attempt)
            assert recording.manifest is not None, "promise 3: not sealed"
            problems = verify(recording).problems if thorough else []
            assert not problems, f"promises 3 and 5: {problems}"
            # The end row may be the reconciler's.
            end = log.rfind(b"\n", 0, -1) + 1 if recording.manifest.sealed_by.endswith("reconcile") else len(log)
            assert trace.wrote[attempt.name].startswith(log[:end]), "promise 3: not the rows that were written"
            found[attempt.name] = Sealed(log, recording.fingerprint)
    return found


def promised(
    stands: dict[str, Sealed], states: list[Attempt], published: dict[str, bytes], trace: Trace, count: int
) -> None:
    """Whatever somebody was told within the first `count` operations still holds."""
    said = {state.attempt: state.state for state in states}
    for attempt, rows in dict(trace.noted("durable", count)).items():  # of each attempt the last: it has all of them
        assert attempt in stands, "promise 1: an attempt with durable rows is gone"
        assert stands[attempt].log.startswith(rows), "promise 1: a durable row is gone"
    for attempt, name in trace.noted("sealed", count):
        assert said.get(attempt) == "sealed:complete", f"promise 4: told as published, and is {said.get(attempt)}"
        assert name in published, "promise 4: what was told as published is gone"
    for attempt, state, fingerprint in trace.noted("settled", count):
        now = stands[attempt].fingerprint if attempt in stands else None
        assert (said.get(attempt), now) == (state, fingerprint), "promise 3: not what reconciling had said"


def look(state: State) -> str:
    """A state in words, for a failing test."""
    return "\n".join(f"{path} {'' if data is None else f'#{number} {data!r:.300}'}" for path, number, data in state)
