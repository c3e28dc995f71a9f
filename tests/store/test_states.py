"""Each state that reconciling knows, made by hand: what it is called, what is done, and what is left alone."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import worldline
from tests.faults.recorder_process import agent
from worldline.cli.main import cli
from worldline.engine.account import account
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import RecordError, UnattestedResultError
from worldline.model import events
from worldline.store import layout, salvage, seal
from worldline.store.reconcile import State, reconcile
from worldline.store.recording import Recording
from worldline.store.verify import verify


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def begun(store: Path, run: Path | None = None, task: str = "work") -> Recorder:
    """A recorder with a few rows, the last ones not synced."""
    recorder = Recorder(Spec(store=store, run=run, task=task))
    for number in range(6):
        recorder.append("observation", "note", {}, {"name": "n", "value": number}, durable=number == 2)
    return recorder


def died_after_commit(store: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A recorder that published and died before its last step."""
    recorder = begun(store)

    def die(attempt: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(seal, "attest", die)
        with pytest.raises(KeyboardInterrupt):
            recorder.seal()
    return recorder


def untouched(run: Path, *states: str) -> list[State]:
    """Reconcile; nothing may change."""
    before = contents(run)
    found = reconcile(run, account)
    assert [state.state for state in found] == list(states)
    assert contents(run) == before and not any(state.did for state in found)
    return found


def test_a_live_attempt_is_not_touched(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    untouched(recorder.run_directory, "live")
    newborn = Recorder(Spec(store=tmp_path))
    untouched(newborn.run_directory, "live")
    assert verify(Recording(recorder.seal())).ok and verify(Recording(newborn.seal())).ok


def test_a_torn_tail_is_kept_and_sealed(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    recorder.close()
    tail = recorder.attempt / layout.TAIL
    rows = tail.read_bytes().splitlines(keepends=True)
    # A hole before rows that were never synced: what a power loss leaves.
    hole = bytes(len(rows[5])) + rows[6] + rows[6][:40]
    tail.write_bytes(b"".join(rows[:5]) + hole)
    (state,) = reconcile(recorder.run_directory, account)
    assert (state.state, state.reason, state.did) == ("sealed:partial", "its writer died", "sealed")
    recording = Recording(recorder.run_directory)
    assert b"".join(path.read_bytes() for path in recording.attempt.rglob("*.jsonl")).startswith(b"".join(rows[:5]))
    assert (recording.attempt / layout.TORN).read_bytes() == hole
    assert verify(recording).ok and recording.manifest is not None and recording.manifest.torn is not None
    (recording.attempt / layout.TORN).write_bytes(hole[:-1])
    assert [(p.kind, p.where) for p in verify(recording).problems] == [("changed", layout.TORN)]
    (recording.attempt / layout.TORN).unlink()
    assert [(p.kind, p.where) for p in verify(recording).problems] == [("missing", layout.TORN)]


def test_a_reconciler_that_lost_power_leaves_a_torn_end_row(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    recorder.close()
    tail = recorder.attempt / layout.TAIL
    good = tail.read_bytes()
    tail.write_bytes(good + b'{"seq":7,"t')
    salvage.cut_tail(recorder.attempt, len(good))
    assert tail.read_bytes() == good
    tail.write_bytes(good + b'{"seq":7,"kind":"meta')
    (state,) = reconcile(recorder.run_directory, account)
    assert state.state == "sealed:partial" and verify(Recording(recorder.run_directory)).ok
    assert (recorder.attempt / layout.TORN).read_bytes() == b'{"seq":7,"t{"seq":7,"kind":"meta'


def test_a_hole_before_rows_that_were_durable_is_damage(tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    recorder.close()
    tail = recorder.attempt / layout.TAIL
    rows = tail.read_bytes().splitlines(keepends=True)
    synced = [events.read(row).sync for row in rows]
    assert synced[4] is not None and synced[4][0] == 4  # row 4 says that rows 0 to 3 were durable
    rows[3] = bytes(len(rows[3]))
    tail.write_bytes(b"".join(rows))
    (state,) = untouched(recorder.run_directory, "damaged")
    assert (state.file, state.offset) == (layout.TAIL, len(b"".join(rows[:3])))


@pytest.mark.parametrize("row", [1, 6])
def test_a_changed_row_is_damage(row: int, tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    recorder.close()
    tail = recorder.attempt / layout.TAIL
    rows = tail.read_bytes().splitlines(keepends=True)
    rows[row] = rows[row].replace(b'"name":"n"', b'"name":"m"')
    tail.write_bytes(b"".join(rows))
    (state,) = untouched(recorder.run_directory, "damaged")
    assert (state.file, state.offset) == (layout.TAIL, len(b"".join(rows[:row])))


def test_a_newer_record_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("worldline.engine.recorder.FORMAT", "worldline/99")
        begun(tmp_path).close()
    begun(tmp_path).close()
    (newer, _) = sorted(tmp_path.iterdir())
    (state,) = untouched(newer, "damaged")
    assert "upgrade worldline" in str(state.reason)


def test_a_missing_content_is_damage(sealed: Path) -> None:
    for name in (layout.MANIFEST, layout.STAGED):
        (sealed / name).unlink()
    run = sealed.parents[2]
    next(run.glob("*.json")).unlink()
    next(path for path in (sealed / layout.BLOBS).rglob("*") if path.is_file()).unlink()
    untouched(run, "damaged")


def test_an_attempt_beside_the_published_one_is_superseded(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.close()
    second = begun(tmp_path, first.run_directory)
    published = second.seal()
    found = reconcile(first.run_directory, account)
    assert [(state.state, state.did) for state in found] == [("superseded", "sealed"), ("sealed:complete", None)]
    assert found[0].reason == f"its writer died; {second.attempt.name} published"
    untouched(first.run_directory, "superseded", "sealed:complete")
    assert verify(Recording(first.attempt)).ok and Recording(first.run_directory).path == published


def test_a_second_attempt_cannot_publish_under_another_name(tmp_path: Path) -> None:
    first, second = begun(tmp_path), None
    second = begun(tmp_path, first.run_directory, "another task")
    first.seal()
    with pytest.raises(RecordError, match="already published by another attempt"):
        second.seal()
    assert len(list(first.run_directory.glob("*.json"))) == 1
    found = reconcile(first.run_directory, account)
    assert [state.state for state in found] == ["sealed:complete", "superseded"]
    assert str(found[1].reason).startswith("its writer died before the commit point; ")
    assert verify(Recording(second.attempt)).ok and [e.name for e in Recording(second.attempt).events()][-2:] == [
        "meta/end",
        "meta/end",
    ]


def test_a_committed_result_gets_its_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = died_after_commit(tmp_path, monkeypatch)
    (published,) = recorder.run_directory.glob("*.json")
    before = published.read_bytes()
    for name in (str(published), recorder.run, "latest"):
        with pytest.raises(UnattestedResultError, match="worldline reconcile") as refused:
            worldline.open(name, tmp_path)
        assert refused.value.facts["path"] == str(published)
    (state,) = reconcile(recorder.run_directory, account)
    assert (state.state, state.did) == ("sealed:complete", "sealed")
    run = worldline.open("latest", tmp_path)
    assert run.verify().ok and run.path == published and published.read_bytes() == before


@pytest.mark.parametrize("harm", ["staged", "log", "result", "attempt"])
def test_a_result_that_nobody_vouches_for_stays_in_doubt(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = died_after_commit(tmp_path, monkeypatch)
    attempt, run = recorder.attempt, recorder.run_directory
    (published,) = run.glob("*.json")
    chunk = attempt / layout.CHUNKS / layout.chunk_name(0)
    if harm == "staged":
        (attempt / layout.STAGED).unlink()
    elif harm == "log":
        chunk.write_bytes(b"".join(chunk.read_bytes().splitlines(keepends=True)[:-1]))
    elif harm == "result":
        published.write_bytes(b"{}\n")  # the same file as the attempt's own
    else:
        attempt.rename(tmp_path / "elsewhere")
        untouched(run, "published-unattested")
        return
    untouched(run, "published-unattested")
    with pytest.raises(UnattestedResultError):
        worldline.open(run)


def test_the_verbs_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(tmp_path)

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, words, standalone_mode=False)

    doubtful = died_after_commit(tmp_path, monkeypatch)
    for words in (
        ["replay", "latest", "--store", store],
        ["replay", "latest", "--store", store, "--", "true"],
        ["record", "--continue", "latest", "--store", store, "--", "true"],
    ):
        refused = run(*words).exception
        assert isinstance(refused, UnattestedResultError) and refused.exit_code == 3
    assert run("show", "latest", "--store", store).return_value == 0
    (doubtful.attempt / layout.STAGED).unlink()
    begun(tmp_path).close()
    first = run("reconcile", store, "--json")
    assert [entry["state"] for entry in json.loads(first.output)] == ["published-unattested", "sealed:partial"]
    assert first.return_value == 1
    again = run("reconcile", store)
    assert again.return_value == 1 and "the staged manifest is gone" in again.output
    assert run("reconcile", str(doubtful.run_directory)).return_value == 1


def test_without_hard_links_the_manifest_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*paths: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        said: list[dict[str, object]] = []
        agent(tmp_path, lambda **fact: said.append(fact))
        recording = Recording(Path(str(said[-1]["sealed"])))
        assert recording.manifest is not None and recording.manifest.result["publish"] == "rename"
        assert recording.published == recording.path and recording.path.stat().st_nlink == 1
        assert verify(recording).ok and worldline.open(recording.path).verify().ok
        untouched(recording.run_directory, "sealed:complete")
        again = begun(tmp_path, recording.run_directory)
        with pytest.raises(RecordError, match="already published"):
            again.seal()
        dead = died_after_commit(tmp_path, monkeypatch)
        assert [state.state for state in reconcile(dead.run_directory, account)] == ["sealed:complete"]
        assert verify(Recording(dead.run_directory)).ok
    assert not [path for path in tmp_path.rglob("*") if re.search(r"\.tmp$", path.name)]
