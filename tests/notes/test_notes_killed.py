"""Wherever a note dies on its way, the bundle is the old one or the new one, and the next note goes on from there."""

from __future__ import annotations

import errno
import shutil
import signal
from pathlib import Path

import pytest

from tests.faults.recorder_process import at_operation
from tests.store.rich import recorded
from worldline.store import layout, notes
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.recording import Recording
from worldline.store.verify import verify

CHANGING = (
    "write",
    "pwrite",
    "fdatasync",
    "fsync",
    "link",
    "rename",
    "replace",
    "unlink",
    "open",
    "ftruncate",
    "chmod",
)


def noted(place: Path, text: str) -> None:
    notes.annotate(open_recording(place), now_ns=1, seq=3, at="step:1", text=text)


def texts(place: Path) -> list[str]:
    return [note["text"] for note in notes.annotations(open_recording(place))]


def test_a_bundle_is_the_old_one_or_the_new_one_wherever_a_note_is_killed(quick: Path) -> None:
    first = pack(recorded(quick / "runs"), quick / "first.skn").path
    noted(first, "before")
    old, kills = first.read_bytes(), 0
    for number in range(1, 200):
        bundle = quick / "run.skn"
        shutil.copy(first, bundle)
        ended = at_operation(number, None, lambda: noted(quick / "run.skn", "mine"), CHANGING)
        assert ended in (0, -signal.SIGKILL)
        assert bundle.read_bytes() == old or texts(bundle) == ["before", "mine"]
        assert verify(open_recording(bundle)).ok
        noted(bundle, "after")
        assert texts(bundle)[-1] == "after" and verify(open_recording(bundle)).ok
        assert sorted(path.name for path in quick.iterdir()) == ["first.skn", "run.skn", "runs"]  # nothing is left over
        kills += ended != 0
        if ended == 0:
            break
    assert kills > 20


def test_a_directory_has_the_old_lines_or_the_new_one_wherever_a_note_is_killed(quick: Path) -> None:
    run = recorded(quick / "runs").run_directory
    noted(run, "0")
    for number in range(1, 100):
        before = texts(run)
        ended = at_operation(number, None, lambda: noted(run, "killed"), CHANGING)
        assert texts(run) in (before, [*before, "killed"])
        assert {problem.kind for problem in verify(Recording(run)).problems} <= {"torn"}
        noted(run, str(number))
        assert texts(run)[-1] == str(number) and verify(Recording(run)).ok
        if ended == 0:
            break
    assert number > 3


@pytest.mark.parametrize("name", ["bundle", "directory"])
def test_a_full_disk_changes_nothing(name: str, quick: Path) -> None:
    run = recorded(quick / "runs")
    noted(run.run_directory, "before")
    place = pack(run, quick / "run.skn").path if name == "bundle" else run.run_directory
    before = {path: path.read_bytes() for path in quick.rglob("*") if path.is_file()}
    met = 0
    for number in range(1, 60):
        ended = at_operation(number, errno.ENOSPC, lambda: noted(place, "mine"), CHANGING)
        if ended == 0:
            break
        after = {path: path.read_bytes() for path in quick.rglob("*") if path.is_file()}
        if texts(place) != ["before"]:  # it was there already when its folder could not be synced
            break
        lines = run.attempt / layout.ANNOTATIONS
        assert after[lines].startswith(before[lines])
        assert {**after, lines: b""} == {**before, lines: b""}
        met += 1
    assert met > 3 and verify(open_recording(place)).ok
