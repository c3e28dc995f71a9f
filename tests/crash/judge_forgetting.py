"""What must hold of a store behind a crash in an expiry or a containment, and once that is run again."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.crash.disk import found_at
from tests.crash.judge import made, read
from tests.crash.scenes import SECRET, Scene, forget, hide
from tests.crash.states import Crashed
from tests.crash.trace import Trace
from worldline.engine.account import account
from worldline.errors import Contained
from worldline.store import layout
from worldline.store.catalog import runs
from worldline.store.forget import quarantine
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.store.verify import verify


def judge_expiry(crashed: Crashed, trace: Trace, folder: Path, *, thorough: bool) -> None:
    """What is gone has its record, what was told as gone is gone, and the next expiry finishes."""
    with made(crashed, folder) as store:
        (run,) = runs(store)
        read(store)
        _expired(run, trace, crashed.behind, {"torn"})
        _again(store, forget, thorough)
        _expired(run, trace, len(trace.ops), set())


def _expired(run: Path, trace: Trace, count: int, allowed: set[str]) -> None:
    recording = Recording(run)
    assert recording.manifest is not None
    sealed = {name for name, *_ in recording.manifest.blobs}
    here = {path.name for path in (recording.attempt / layout.BLOBS).glob("*/??/*")}
    path = recording.attempt / layout.EXPIRY
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    whole = itertools.takewhile(lambda line: line.endswith(b"}\n") and b"\0" not in line, lines)
    records = {json.loads(line)["name"] for line in whole}
    assert sealed - here <= records, "a content was removed before its record was durable"
    problems = {problem.kind for problem in verify(recording).problems}
    assert problems <= allowed, f"promise 5: {problems}"
    for names in trace.noted("expired", count):
        assert not names & here, "what was told as expired came back"
        pool = {path.name for path in (run.parent / layout.POOL).glob("??/*")}
        assert not names & pool, "what was told as expired stands in the pool"


def judge_containment(crashed: Crashed, trace: Trace, folder: Path, *, thorough: bool) -> None:
    """Either nothing has happened, or the record stands and nobody opens the run; the next containment finishes."""
    with made(crashed, folder) as store:
        run, other = runs(store)
        read(store)
        begun = _contained(run)
        if not begun:
            (attempt,) = layout.attempts(run)
            assert list(run.glob("*.json")) and verify(Recording(attempt)).ok, "something went before the record"
        else:
            with pytest.raises(Contained):
                Recording(run)
        states = [state.state for state in reconcile(run, account)]
        assert states == (["contained"] if begun else ["sealed:complete"])
        if trace.noted("contained", crashed.behind):
            assert begun, "what was told as contained is not"
            _nothing_left(store)
        _again(store, hide, thorough)
        assert _contained(run)
        _nothing_left(store)
        assert verify(Recording(other)).ok


def _contained(run: Path) -> bool:
    return bool(quarantine.register_of(run).rows)


def _nothing_left(store: Path) -> None:
    for path, _, contents in found_at(store):
        assert contents is None or SECRET.encode() not in contents, f"the secret still stands in {path}"


def _again(store: Path, work: Scene, thorough: bool) -> None:
    """Run it on what the crash left; when `thorough` once more, which must change nothing."""
    later = Trace(store.parent)
    work(later)
    if thorough:
        ended = found_at(store.parent)
        work(later)
        assert found_at(store.parent) == ended, "run again, it changed something"
