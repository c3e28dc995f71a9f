"""What must hold of a run after any fault, whatever its place and kind.

Before reconciling: what is read is good up to where the fault was. After it: every acknowledged row is in a sealed log
that verifies, a start without a finish is unknown, a result that is out is whole and from one attempt, and nothing
changes any more. Then the next attempt of the run records, publishes and verifies.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from tests.faults.recorder_process import Recorded, agent
from worldline.engine.account import account
from worldline.engine.cassette import Cassette
from worldline.engine.replay import inspect
from worldline.store import layout
from worldline.store.catalog import entries
from worldline.store.reconcile import State, reconcile, refuse_doubt
from worldline.store.recording import Recording
from worldline.store.verify import verify

SEALED = {"sealed:complete", "sealed:partial"}
DIED = "its writer died"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def results(run: Path) -> dict[str, bytes]:
    """What the run has published."""
    return {path.name: path.read_bytes() for path in run.glob("*.json")}


def run_in(store: Path) -> Path | None:
    """The one run of a store, None where none came to be."""
    runs = list(store.glob("run_*")) if store.exists() else []
    assert len(runs) <= 1
    return runs[0] if runs else None


def judge(store: Path, came: Recorded, left: frozenset[str] = frozenset({"torn"})) -> str | None:
    """Everything, after one recording into `store`. Returns the state of its attempt, None where there is none.

    `left` are the kinds of damage that the fault may leave at the end of the log.
    """
    run = run_in(store)
    if run is None or not list(layout.attempts(run)):
        assert not came.said("begun") and not came.said("sealed")
        return None
    published = results(run)
    as_left(run, came, left)
    state = settled(run, came, published)
    assert [entry.run for entry in entries(store)] == [run.name]
    go_on(store, run, published)
    return state


def as_left(run: Path, came: Recorded, left: frozenset[str]) -> None:
    """What a reader finds before anybody reconciles."""
    recording = Recording(run)
    events = list(recording.events())
    assert {damage.kind for damage in recording.damages} <= left, recording.damages
    assert not recording.live
    found = verify(recording)
    if came.said("sealed") or (recording.attempt / layout.MANIFEST).exists():
        assert found.ok, found.problems
    elif events:
        assert {problem.kind for problem in found.problems} <= {"unsealed"} | left
        acknowledged(recording, came)
    if came.said("sealed"):
        assert recording.published is not None
        assert Path(came.said("sealed")[0]).name == recording.published.name


def acknowledged(recording: Recording, came: Recorded) -> None:
    """What the recorder acknowledged is there; what it did not is one call at most, and unknown."""
    begun, finished = came.said("begun"), came.said("finished")
    exchanges = Cassette(recording).by_call
    assert set(begun) <= set(exchanges) and len(set(exchanges) - set(begun)) <= 1
    unknown = {call for call, exchange in exchanges.items() if exchange.finished is None}
    assert len(unknown) <= 1 and not unknown & set(finished)
    if {damage.kind for damage in recording.damages} <= {"torn"}:  # what has holes is refused until it is reconciled
        assert inspect(recording).equivalent


def settled(run: Path, came: Recorded, published: dict[str, bytes]) -> str:
    """Reconcile the one attempt of a run, and judge what comes of it. Returns its state."""
    (state,) = twice(run)
    assert results(run) == published
    if state.state == "stillborn":
        assert not came.said("begun") and not published
        return state.state
    assert state.state in SEALED, state
    recording = Recording(run)
    assert verify(recording).ok, verify(recording).problems
    assert recording.manifest is not None
    assert recording.manifest.disposition == state.state.removeprefix("sealed:")
    assert (recording.published is not None) == bool(published) == (state.state == "sealed:complete")
    acknowledged(recording, came)
    *_, last = rows = list(recording.events())
    assert [row.seq for row in rows] == list(range(len(rows)))
    assert (last.name, last.data["disposition"]) == ("meta/end", recording.manifest.disposition)
    assert [row.seq for row in rows if row.raw.endswith(last.raw) or row.data == last.data] == [last.seq]
    assert refuse_doubt(recording) is recording
    if published:
        assert not [each for each in Cassette(recording).exchanges if each.finished is None]
        assert list(published.values()) == [(recording.attempt / layout.RESULT).read_bytes()]
    else:
        assert not came.said("sealed") and str(state.reason).startswith(DIED)
    return state.state


def twice(run: Path) -> list[State]:
    """Reconcile twice; the second time nothing is done, and nothing on the disk changes."""
    first = reconcile(run, account)
    before = contents(run)
    second = reconcile(run, account)
    assert contents(run) == before
    assert [msgspec.structs.replace(state, did=None) for state in first] == second
    return second


def go_on(store: Path, run: Path, published: dict[str, bytes]) -> None:
    """The next attempt (of the same run while nothing is published) leaves what stands there alone, and is whole."""
    before = contents(run)
    said: list[dict[str, object]] = []
    agent(store, lambda **fact: said.append(fact), None if published else run)
    again = Recording(Path(str(said[-1]["sealed"])))
    assert verify(again).ok and before.items() <= contents(run).items() and len(results(run)) == 1


def clear(store: Path) -> None:
    """Take a judged store away."""
    shutil.rmtree(store, ignore_errors=True)
