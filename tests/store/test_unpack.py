"""A bundle becomes a run of a store again: every sealed byte as it was, all of it or nothing."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.recorder_process import at_operation
from tests.golden.test_golden import HERE as GOLDEN
from tests.golden.test_golden import VERSIONS, kept
from tests.store import rich
from worldline.engine.eligibility import require_attested
from worldline.errors import Contained, Ineligible, UsageError, WorldlineError
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.bundle.unpack import Unpacked, unpack
from worldline.store.catalog import runs
from worldline.store.forget.contain import contain
from worldline.store.log import take_lock
from worldline.store.recording import Recording
from worldline.store.verify import verify

WHOLE = sorted(
    f"{version}/{bundle.stem}"
    for version in VERSIONS
    for bundle in (GOLDEN / version).glob("*.skn")
    if bundle.with_suffix("").is_dir() and bundle.stem != "torn"
)


def files_of(attempt: Path) -> dict[str, bytes]:
    """Every file below an attempt, by its name there."""
    return {str(path.relative_to(attempt)): path.read_bytes() for path in attempt.rglob("*") if path.is_file()}


def unpacked(bundle: Path, store: Path) -> Unpacked:
    return unpack(PackedRecording(str(bundle)), store)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with one of everything."""
    place = tmp_path_factory.mktemp("rich")
    pack(rich.recorded(place / "runs"), place / "rich.skn")
    return place / "rich.skn"


@pytest.mark.parametrize("name", WHOLE)
def test_every_old_bundle_becomes_the_very_files_that_it_was_packed_of(name: str, tmp_path: Path) -> None:
    packed = (GOLDEN / name).with_suffix(".skn")
    (attempt,) = (GOLDEN / name).glob("run_*/trajectory/attempts/*")
    done = unpacked(packed, tmp_path / "runs")
    assert done.fresh and files_of(done.recording.attempt) == files_of(attempt)
    was, now = verify(Recording(attempt)), verify(done.recording)
    assert now.ok and now.verdicts == was.verdicts
    assert os.stat(done.recording.attempt).st_mode & 0o077 == 0, "its owner alone may look"
    seen = [{path.name for path in run.iterdir()} for run in (attempt.parents[2], done.recording.run_directory)]
    assert seen[0] - {"allowed_signers"} == seen[1], "the result and its signature, under their names"


def test_it_packs_into_the_same_bytes_again_and_shares_contents_with_other_runs(bundle: Path, tmp_path: Path) -> None:
    done = unpacked(bundle, tmp_path / "runs")
    assert done.checkpoints == 1
    pack(done.recording, tmp_path / "again.skn")
    assert (tmp_path / "again.skn").read_bytes() == bundle.read_bytes()
    ordinary = list((done.recording.attempt / layout.BLOBS / layout.ORDINARY).glob("??/*"))
    assert ordinary and all(
        (tmp_path / "runs" / layout.POOL / blob.name[:2] / blob.name).samefile(blob) for blob in ordinary
    )
    again = unpacked(bundle, tmp_path / "runs")
    assert not again.fresh and again.recording.attempt == done.recording.attempt


def test_the_published_result_is_a_copy_which_no_strict_replay_takes_for_evidence(tmp_path: Path) -> None:
    recording = unpacked(GOLDEN / "v1" / "complete.skn", tmp_path / "runs").recording
    assert recording.published is not None and verify(recording).verdicts["publication"] == "ok"
    with pytest.raises(Ineligible, match="the published result is a copy"):
        require_attested(recording)


def test_what_is_not_whole_or_not_what_was_sealed_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    refused: dict[str, Path] = {name: place for name, place in kept("v1").items() if place.suffix == ".skn"}
    refused |= {"shared": GOLDEN / "v1" / "shared.skn", "torn": GOLDEN / "v1" / "torn.skn"}
    store = tmp_path / "runs"
    for name, place in refused.items():
        with pytest.raises(WorldlineError) as caught:
            unpacked(place, store)
        assert not store.exists() or [path.name for path in store.iterdir()] in ([], [layout.POOL]), (
            name,
            caught.value,
        )
        if name in ("shared", "torn"):
            assert isinstance(caught.value, Ineligible), name
    assert len(refused) > 12


def test_nothing_is_overwritten_and_what_was_contained_does_not_come_back(bundle: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    attempt = unpacked(bundle, store).recording.attempt
    (attempt / layout.MANIFEST).unlink()
    before = files_of(attempt)
    with pytest.raises(UsageError, match="another recording under the same id"):
        unpacked(bundle, store)
    assert files_of(attempt) == before
    other = tmp_path / "other" / "runs"
    contain(unpacked(bundle, other).recording.run_directory, "KEY", rich.WORDS, 0, joined=lambda *_: [])
    with pytest.raises(Contained):
        unpacked(bundle, other)


@pytest.fixture
def sealed(tmp_path: Path) -> list[Recording]:
    """Two attempts of one run, and beside them `0.skn` and `1.skn`, their bundles."""
    (run,) = (GOLDEN / "v1" / "two-attempts").iterdir()
    found = [Recording(attempt) for attempt in layout.attempts(run)]
    assert len(found) == 2
    for number, recording in enumerate(found):
        pack(recording, tmp_path / f"{number}.skn")
    return found


def test_another_attempt_of_a_run_is_put_beside_those_that_are_there(sealed: list[Recording], tmp_path: Path) -> None:
    run = sealed[0].run_directory
    for order in ((0, 1), (1, 0)):
        store = tmp_path / f"runs-{order[0]}"
        done = [unpacked(tmp_path / f"{number}.skn", store) for number in order]
        assert all(each.fresh and verify(each.recording).ok for each in done)
        assert [each.beside for each in done] == [0, 1]
        (here,) = runs(store)
        assert [files_of(attempt) for attempt in layout.attempts(here)] == [files_of(each.attempt) for each in sealed]
        assert [path.name for path in here.glob("*.json")] == [path.name for path in run.glob("*.json")]


def test_nothing_comes_beside_what_is_not_sealed_or_is_of_another_session(
    sealed: list[Recording], tmp_path: Path
) -> None:
    """It could publish in the place of who is at work there, or of who is to be resumed."""
    store = tmp_path / "runs"
    first = unpacked(tmp_path / "0.skn", store).recording
    (first.attempt / layout.MANIFEST).unlink()
    with pytest.raises(UsageError, match="not sealed: `worldline reconcile` seals it"):
        unpacked(tmp_path / "1.skn", store)
    lock = take_lock(first.attempt)
    with pytest.raises(UsageError, match="not sealed: it is being recorded"):
        unpacked(tmp_path / "1.skn", store)
    os.close(lock)
    (other,) = (GOLDEN / "v1" / "short").iterdir()
    shutil.rmtree(store)
    shutil.copytree(other, store / first.run_id)
    before = sorted(store.rglob("*"))
    with pytest.raises(UsageError, match="another run here, of another session"):
        unpacked(tmp_path / "1.skn", store)
    assert sorted(store.rglob("*")) == before


CHANGES = ("open", "write", "fsync", "fdatasync", "link", "rename", "replace", "unlink", "mkdir")


def killed_at(number: int, act: Callable[[], object]) -> bool:
    """Do it in a child that is gone at its `number`-th change of files. False where it came to its end before."""
    ended = at_operation(number, None, act, CHANGES)
    assert ended in (0, -signal.SIGKILL), ended
    return ended != 0


def test_killed_on_its_way_beside_another_attempt_it_is_whole_at_the_next_try(
    sealed: list[Recording], tmp_path: Path
) -> None:
    number, bundle = 1, tmp_path / "1.skn"
    while True:
        store = tmp_path / f"runs-{number}"
        unpacked(tmp_path / "0.skn", store)
        killed = killed_at(number, lambda store=store: unpacked(bundle, store))  # type: ignore[misc]
        there = unpacked(bundle, store).recording
        for attempt in layout.attempts(there.run_directory):
            assert verify(Recording(attempt)).ok
        assert [path.name for path in there.run_directory.glob("*.json")] == [
            path.name for path in sealed[1].run_directory.glob("*.json")
        ]
        if not killed:
            break
        number += 3
    assert number > 60


def test_whenever_it_is_killed_there_is_nothing_or_all_of_it_and_the_next_try_succeeds(tmp_path: Path) -> None:
    bundle = GOLDEN / "v1" / "seen.skn"  # a content, notes, an audit
    number, seen = 1, set()
    while True:
        store = tmp_path / f"runs-{number}"
        killed = killed_at(number, lambda store=store: unpacked(bundle, store))  # type: ignore[misc]
        found = runs(store)
        seen.add(len(found))
        assert all(verify(Recording(run)).ok for run in found)
        done = unpacked(bundle, store)
        assert done.fresh != bool(found) and verify(done.recording).ok and runs(store) == [done.recording.run_directory]
        assert not done.fresh or not list(store.glob(".*.tmp")), "what was left behind is in the way"
        shutil.rmtree(store)
        if not killed:
            break
        number += 2
    assert number > 90 and seen == {0, 1}
