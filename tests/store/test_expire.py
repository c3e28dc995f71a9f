"""Contents go behind their declared retention, each with its record; nothing else goes, and nothing goes early."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.store.forgetting import RETENTION, after, contents, here, names, once, recorded, records
from worldline.engine.recorder import Recorder
from worldline.engine.spec import RecordingSpec, Spec
from worldline.errors import Damaged
from worldline.store import layout
from worldline.store.forget.availability import state_of
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.verify import verify


def opened(recording: Recording) -> Recording:
    """The same recording, read anew."""
    return Recording(recording.attempt)


def states(recording: Recording) -> dict[str, str]:
    """The availability of every sealed content, its bytes read."""
    fresh = opened(recording)
    assert fresh.manifest is not None
    return {
        name: state_of(fresh, {"name": name, "size": size, "type": kind, "tier": tier})
        for name, size, kind, tier, _ in fresh.manifest.blobs
    }


def test_what_is_due_goes_with_its_record_and_nothing_else_changes(quick: Path) -> None:
    recording = recorded(quick / "runs")
    ordinary, restricted = names(recording, "ordinary"), names(recording, "restricted")
    assert len(ordinary) == len(restricted) == 4
    before = contents(quick / "runs")
    early = expire(recording, after(recording, 50) - 1, act=True)
    assert (early.due, len(early.later)) == ([], 8)
    dry = expire(recording, after(recording, 50))
    assert ({c.name for c in dry.due}, {c.name for c in dry.later}, dry.done) == (restricted, ordinary, False)
    assert contents(quick / "runs") == before
    done = expire(recording, after(recording, 50), act=True)
    assert done.due == dry.due and done.done and here(recording) == ordinary
    assert recording.manifest is not None
    sizes = {blob[0]: blob[1] for blob in recording.manifest.blobs}
    for seq, row in enumerate(records(recording)):
        due = after(recording, RETENTION["restricted"])
        assert {key: row[key] for key in row if key not in ("name", "h")} == {
            "seq": seq,
            "at": after(recording, 50),
            "seal": recording.fingerprint,
            "tier": "restricted",
            "size": sizes[str(row["name"])],
            "retention": 50,
            "deadline": due,
        }
    assert {row["name"] for row in records(recording)} == restricted
    assert (recording.attempt / layout.EXPIRY).stat().st_mode & 0o777 == 0o600
    gone = {path for path in before if path.rpartition("/")[2] in restricted or path.endswith("restricted/key")}
    left = contents(quick / "runs")
    assert {path: left.get(path) for path in before} == {p: None if p in gone else before[p] for p in before}
    assert states(recording) == dict.fromkeys(restricted, "expired") | dict.fromkeys(ordinary, "available")
    verification = verify(opened(recording))
    assert verification.ok and verification.verdicts["availability"] == "expired"
    assert verification.verdicts["evidence"] == verification.verdicts["structure"] == "ok"
    counts = {"available": 4, "withheld": 0, "expired": 4, "missing": 0, "corrupt": 0}
    assert verification.facts["availability"] == counts
    with pytest.raises(Damaged, match=r"expired on \d{4}-\d\d-\d\d") as caught:
        opened(recording).blob({"name": min(restricted), "tier": "restricted", "size": 1})
    assert caught.value.facts["state"] == "expired"
    again = expire(opened(recording), after(recording, 1000), act=True)
    assert ({c.name for c in again.due}, {c.name for c in again.expired}) == (ordinary, restricted)
    assert here(recording) == set() and len(records(recording)) == 8
    assert not [path for path in (quick / "runs" / layout.POOL).rglob("*") if path.is_file()]


def test_the_key_of_the_restricted_tier_goes_with_its_last_content(quick: Path) -> None:
    recording = recorded(quick / "runs", {"restricted": 50, "ordinary": 0})
    key = layout.tier_key_path(recording.attempt)
    expire(recording, after(recording, 1), act=True)
    assert here(recording) == names(recording, "restricted") and key.exists()
    lost = layout.blob_path(recording.attempt, "restricted", min(names(recording, "restricted")))
    aside = quick / "aside"
    lost.rename(aside)
    found = expire(opened(recording), after(recording, 60), act=True)
    assert [(c.name, c.availability) for c in found.incidents] == [(lost.name, "missing")] and key.exists()
    aside.rename(lost)  # it was only mislaid
    expire(opened(recording), after(recording, 61), act=True)
    assert here(recording) == set() and not key.exists() and verify(opened(recording)).ok


def test_a_content_that_another_run_shares_stays_for_that_one(quick: Path) -> None:
    first, other = recorded(quick / "runs"), recorded(quick / "runs", {"ordinary": 9000})
    shared = names(first, "ordinary")
    assert shared == names(other, "ordinary") and shared != names(first, "restricted")
    expire(first, after(first, 1000), act=True)
    assert here(first) == set() and verify(opened(other)).ok and here(other) == here(opened(other))
    pooled = {path.name for path in (quick / "runs" / layout.POOL).glob("??/*")}
    assert pooled == shared
    expire(other, after(other, 10_000), act=True)
    assert not list((quick / "runs" / layout.POOL).glob("??/*"))


def test_what_a_tier_does_not_declare_stays(quick: Path) -> None:
    recording = recorded(quick / "runs", {"ordinary": 0})
    found = expire(recording, after(recording, 10**9), act=True)
    assert {c.name for c in found.kept} == names(recording, "restricted") == here(recording)
    assert found.retention == {"ordinary": 0, "restricted": None}


# ------------------------------------------------------------------------------------------------- missing and corrupt


def test_what_is_gone_without_a_record_stays_missing(quick: Path) -> None:
    recording = recorded(quick / "runs")
    gone, changed, *_ = sorted(names(recording, "ordinary"))
    layout.blob_path(recording.attempt, "ordinary", gone).unlink()
    path = layout.blob_path(recording.attempt, "ordinary", changed)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(bytes(len(data)))
    linked = max(names(recording, "ordinary"))
    target = layout.blob_path(recording.attempt, "ordinary", linked)
    target.rename(quick / "outside")
    target.symlink_to(quick / "outside")
    for seconds in (200, 300):
        found = expire(opened(recording), after(recording, seconds), act=True)
        incidents = {c.name: c.availability for c in found.incidents}
        assert incidents == {gone: "missing", changed: "corrupt", linked: "corrupt"}
        assert {row["name"] for row in records(recording)}.isdisjoint(incidents)
    assert (quick / "outside").exists()
    found_states = states(recording)
    assert (found_states[gone], found_states[changed]) == ("missing", "corrupt")
    verification = verify(opened(recording))
    assert not verification.ok and verification.verdicts["availability"] == "missing"
    assert {p.kind for p in verification.problems} >= {"missing", "corrupt"}


def test_a_content_that_came_back_goes_again_without_a_second_record(quick: Path) -> None:
    recording = recorded(quick / "runs")
    path = layout.blob_path(recording.attempt, "ordinary", min(names(recording, "ordinary")))
    data = path.read_bytes()
    expire(recording, after(recording, 200), act=True)
    path.write_bytes(data)  # a backup was played back
    assert states(recording)[path.name] == "available"
    found = expire(opened(recording), after(recording, 300), act=True)
    assert [c.name for c in found.due] == [path.name] and not path.exists()
    assert len(records(recording)) == 8 and verify(opened(recording)).ok


def test_expiries_at_once_do_not_interleave(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, synced = recorded(quick / "runs"), layout.sync_directory

    def held(directory: Path) -> None:
        """Between the records and the removals nobody else gets in."""
        descriptor = os.open(recording.attempt.parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        synced(directory)

    monkeypatch.setattr(layout, "sync_directory", held)
    barrier = threading.Barrier(8)

    def work(_: int) -> int:
        mine = opened(recording)
        barrier.wait()
        return len(expire(mine, after(recording, 500), act=True).due)

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(8)))
    assert sorted(done) == [0] * 7 + [8] and here(recording) == set()
    assert len(records(recording)) == 8 and once([row["name"] for row in records(recording)])
    assert verify(opened(recording)).ok
    assert os.listdir(recording.attempt.parent) == [recording.attempt_id]


def test_a_reader_that_is_at_work_takes_no_expiry_for_a_loss(quick: Path) -> None:
    recording = recorded(quick / "runs")
    expire(recording, after(recording, 60), act=True)
    reader = opened(recording)
    assert verify(reader).ok  # it has read the record by now
    expire(recording, after(recording, 200), act=True)
    verification = verify(reader)
    assert verification.ok and verification.facts["availability"]["expired"] == 8


def test_what_a_link_leads_to_is_not_removed(quick: Path) -> None:
    """A stranger's directory whose contents' folder is a link to another run's."""
    mine, theirs = recorded(quick / "mine"), recorded(quick / "theirs", {"ordinary": 0})
    folder = layout.BLOBS + "/ordinary"
    shutil.rmtree(theirs.attempt / folder)
    (theirs.attempt / folder).symlink_to(mine.attempt / folder)
    found = expire(opened(theirs), after(theirs, 10), act=True)
    assert {c.availability for c in found.incidents} == {"corrupt"} and not found.due
    assert verify(opened(mine)).ok and records(theirs) == []


def test_what_the_header_names_stays_as_long_as_the_log(quick: Path) -> None:
    recorder = Recorder(
        Spec(store=quick / "runs", task="long " * 20_000, recording=RecordingSpec(retention={"ordinary": 0}))
    )
    recorder.seal()
    recording = Recording(recorder.attempt)
    found = expire(recording, after(recording, 10), act=True)
    assert len(found.kept) == 1 and not found.due
    assert opened(recording).header.data["task"]["text"].startswith("long") and verify(opened(recording)).ok
