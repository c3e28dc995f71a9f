"""`gc` moves whole runs to the trash: those that were asked for, and only when told to. Nothing else is removed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from worldline.cli.main import cli
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import RecordError, RecordingNotFound
from worldline.store import layout
from worldline.store.catalog import entries, find, runs
from worldline.store.forget import trash
from worldline.store.verify import verify

DAY = 86400
NOW = 1_900_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Four sealed runs whose last change was 40, 30, 20 and 10 days before NOW."""
    place = tmp_path / "project" / layout.DEFAULT_STORE
    for number in range(4):
        recorder = Recorder(Spec(store=place, task=f"run {number}"))
        recorder.seal()
        age(recorder.run_directory, 40 - 10 * number)
    return place


def age(run: Path, days: float) -> None:
    for path in (run, *layout.attempts(run)):
        os.utime(path, (NOW - days * DAY, NOW - days * DAY))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def chosen(store: Path, days: float | None = None, keep: int | None = None) -> list[int]:
    """The numbers of the runs that would be asked for."""
    names = [run.name for run in runs(store)]
    older = None if days is None else days * DAY
    return [names.index(each.run) for each in trash.select(store, NOW, older, keep)]


def test_what_is_chosen(store: Path) -> None:
    assert chosen(store) == []
    assert chosen(store, days=25) == [0, 1]
    assert chosen(store, keep=1) == [0, 1, 2]
    assert chosen(store, days=25, keep=3) == [0]
    assert chosen(store, days=0, keep=9) == []
    newest_attempt = next(layout.attempts(runs(store)[0]))
    os.utime(newest_attempt, (NOW, NOW))  # what was continued is young again
    assert chosen(store, days=25) == [1]


def test_runs_go_whole_and_come_back(store: Path) -> None:
    before = contents(store)
    first, second = runs(store)[:2]
    picked = trash.select(store, NOW, 25 * DAY)
    assert all(each.size > 1000 for each in picked)
    moved = list(trash.move(store, picked))
    assert [(each.run, each.kept) for each in moved] == [(first.name, None), (second.name, None)]
    assert len(entries(store)) == 2
    with pytest.raises(RecordingNotFound):
        find(first.name, store)
    place = store.parent / "trash"
    assert contents(store) | contents(place) == before
    assert verify(find(str(place / first.name), store)).ok
    (place / first.name).rename(first)
    assert verify(find(first.name, store)).ok
    assert [each.run for each in trash.trashed(store, NOW)] == [second.name]


def test_pinned_and_live_runs_stay(store: Path) -> None:
    pinned, other, continued, _ = runs(store)
    trash.pin(pinned, True)
    live = Recorder(Spec(store=store, run=continued))
    for run in (pinned, continued):
        age(run, 50)
    moved = list(trash.move(store, trash.select(store, NOW, 15 * DAY)))
    assert [each.kept for each in moved] == ["pinned", None, "live"]
    assert [run.name for run in runs(store.parent / "trash")] == [other.name]
    assert verify(find(pinned.name, store)).ok
    live.close()
    trash.pin(pinned, False)
    age(pinned, 50)
    # What is true when it is moved counts, not when it was chosen.
    picked = trash.select(store, NOW, 15 * DAY)
    assert [each.kept for each in picked] == [None, None]
    trash.pin(pinned, True)
    assert [each.kept for each in trash.move(store, picked)] == ["pinned", None]


def test_only_the_trash_is_ever_deleted(store: Path) -> None:
    first = runs(store)[0]
    with pytest.raises(RecordError, match="no run in the trash"):
        list(trash.delete(store, trash.select(store, NOW, 35 * DAY)))
    list(trash.move(store, trash.select(store, NOW, 25 * DAY)))
    place = store.parent / "trash"
    (place / "mine").mkdir()
    outside = store.parent / "outside"
    (place / first.name).rename(outside)
    (place / first.name).symlink_to(outside)
    with pytest.raises(RecordError):
        list(trash.delete(store, trash.trashed(store, NOW)))
    assert verify(find(str(outside), store)).ok
    (place / first.name).unlink()
    trash.pin(outside, True)
    outside.rename(place / first.name)
    assert [each.kept for each in trash.delete(store, trash.trashed(store, NOW))] == ["pinned", None]
    assert sorted(path.name for path in place.iterdir()) == ["mine", first.name]
    assert len(runs(store)) == 2


def gc(*words: str) -> Result:
    return CliRunner().invoke(cli, ["gc", *words], standalone_mode=False)


def test_the_verb_changes_nothing_without_now(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent.parent)
    before = contents(store.parent)
    assert gc().exception is not None
    assert gc("--empty-trash", "--keep", "1").exception is not None
    assert gc("--older-than", "3 months").exception is not None
    dry = gc("--keep", "1", "--json")
    report = json.loads(dry.output)
    assert (report["done"], [each["run"] for each in report["runs"]]) == (False, [run.name for run in runs(store)[:3]])
    assert contents(store.parent) == before
    assert "would be moved" in gc("--keep", "1").output and "would be deleted" in gc("--empty-trash").output
    assert contents(store.parent) == before
    assert "pinned" in gc("--pin", runs(store)[0].name).output
    done = json.loads(gc("--keep", "1", "--now", "--json").output)
    assert [each["kept"] for each in done["runs"]] == ["pinned", None, None] and len(runs(store)) == 2
    gc("--unpin", runs(store)[0].name)
    assert "1 run" in gc("--keep", "1", "--now").output
    assert "3 runs" in gc("--empty-trash", "--now").output
    assert len(runs(store)) == 1 and list((store.parent / "trash").iterdir()) == []
