"""Finding a run by what people type, and listing a store whatever stands in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.faults.recorder_process import agent
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import AmbiguousRun, NotARecording, RecordingNotFound
from worldline.store import layout
from worldline.store.catalog import default_store, entries, find, runs
from worldline.store.recording import Recording
from worldline.store.verify import verify


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three sealed runs."""
    place = tmp_path / "project" / layout.DEFAULT_STORE
    for _ in range(3):
        agent(place, lambda **fact: None)
    return place


def test_by_path(store: Path, tmp_path: Path) -> None:
    run = runs(store)[1]
    (result,) = run.glob("*.json")
    (attempt,) = layout.attempts(run)
    for path in (run, result, attempt, Path(os.path.relpath(result)), Path(os.path.relpath(attempt))):
        assert find(str(path), tmp_path / "elsewhere").attempt == attempt
    moved = tmp_path / "renamed project"
    (tmp_path / "project").rename(moved)
    copied = tmp_path / "copied"
    shutil.copytree(moved, copied)
    for place in (moved, copied):  # a copy has no hard links any more
        again = place / layout.DEFAULT_STORE / run.name / result.name
        assert find(str(again), store).run_directory == again.parent
        assert find(str(again.parent), store).published == again
        assert find(run.name, place / layout.DEFAULT_STORE).path == again
        assert verify(find(str(again), store)).ok


def test_by_id(store: Path) -> None:
    here = runs(store)
    for run in here:
        body = run.name.removeprefix("run_")
        for name in (run.name, body, body[:-1], f"run_{body[:-2]}", body[-8:], body[-12:]):
            assert find(name, store).run_directory.name == run.name
    assert find("latest", store).run_directory == here[-1]


def test_what_cannot_be_found(store: Path, tmp_path: Path) -> None:
    first, *_, last = (run.name for run in runs(store))
    common = first[: next(index for index in range(len(first)) if first[index] != last[index])]
    with pytest.raises(AmbiguousRun, match="3 runs begin with") as ambiguous:
        find(common, store)
    assert ambiguous.value.facts["candidates"] == [run.name for run in runs(store)]
    with pytest.raises(RecordingNotFound, match=r"no run 'zzzz' in .* \(3 runs"):
        find("zzzz", store)
    with pytest.raises(RecordingNotFound, match="no runs in"):
        find("latest", tmp_path / "nowhere")
    with pytest.raises(RecordingNotFound, match="no recording at"):
        find("./nowhere/x.json", store)
    (tmp_path / "notes.json").write_text("{}")
    for path in (tmp_path / "notes.json", store):
        with pytest.raises(NotARecording):
            find(str(path), store)
    run = runs(store)[0]
    (run / "fake.json").write_text("{}")
    with pytest.raises(NotARecording, match="result of no attempt"):
        find(str(run / "fake.json"), store)


def test_a_store_is_found_upwards_as_far_as_the_project(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = store.parents[1]
    (project / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(project / "a" / "b")
    assert default_store().resolve() == store.resolve()
    (project / "a" / ".git").mkdir()
    assert default_store() == layout.DEFAULT_STORE


def test_every_state_is_listed(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    recorders = [Recorder(Spec(store=store, task=f"run {number}")) for number in range(5)]
    complete, partial, interrupted, running, progressing = recorders
    for recorder in recorders:
        recorder.append("marker", "outcome", {}, {"outcome": "succeeded"})
    complete.outcome["outcome"] = "succeeded"
    complete.seal()
    partial.seal("partial", "interrupted by SIGTERM")
    interrupted.close()
    progressing.progress()
    listed = entries(store)
    states = ["complete", "partial", "interrupted", "running", "running"]
    assert [entry.disposition for entry in listed] == states
    assert [entry.task for entry in listed] == [f"run {number}" for number in range(5)]
    assert [entry.outcome for entry in listed] == ["succeeded", "unknown", None, None, None]
    assert all(entry.started and entry.session and entry.steps == 0 for entry in listed)
    assert [Path(entry.path).suffix for entry in listed] == [".json", "", "", "", ""]
    running.close()
    progressing.close()
    assert [entry.disposition for entry in entries(store)][3:] == ["interrupted", "interrupted"]


def test_damaged_runs_never_block_the_list(store: Path) -> None:
    (store / "notes.txt").write_text("no run")
    (store / "run_00000000000000000000000000").mkdir()
    first, second, third = [next(layout.attempts(run)) for run in runs(store)[1:]]
    (first / layout.MANIFEST).write_bytes(b"{}")
    (second / layout.RESULT).write_bytes(b'{"steps":"many","started":[]}')
    found = entries(store)
    assert [entry.disposition for entry in found] == ["damaged", "damaged", "damaged", "complete"]
    assert [entry.run for entry in found] == [run.name for run in runs(store)]
    assert Recording(third).disposition == "complete"


def test_a_run_opens_its_published_attempt_else_the_newest_begun(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    first = Recorder(Spec(store=store))
    first.close()
    run = first.run_directory
    stillborn = run / layout.ATTEMPTS / "ainst_7zzzzzzzzzzzzzzzzzzzzzzzzz"
    stillborn.mkdir()
    assert Recording(run).attempt == first.attempt
    second = Recorder(Spec(store=store, run=run))
    assert Recording(run).attempt == second.attempt
    second.seal()
    third = Recorder(Spec(store=store, run=run))
    third.close()
    assert Recording(run).attempt == second.attempt


def test_a_store_is_not_sought_where_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, mine = tmp_path / "shared", tmp_path / "shared" / "mine"
    (shared / layout.DEFAULT_STORE).mkdir(parents=True)
    mine.mkdir()
    monkeypatch.chdir(mine)
    assert default_store() == shared / layout.DEFAULT_STORE
    shared.chmod(0o1777)
    assert default_store() == layout.DEFAULT_STORE
    shared.chmod(0o755)
    monkeypatch.setattr(Path, "home", lambda: mine)
    assert default_store() == layout.DEFAULT_STORE
