"""Any changed byte of a sealed attempt is reported, and so is every file that is cut, added, removed or renamed.

Only our own errors ever come out of a damaged record.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.recorder_process import agent
from worldline.engine.replay import inspect
from worldline.engine.steps import steps
from worldline.errors import WorldlineError
from worldline.store import layout
from worldline.store.catalog import entries
from worldline.store.recording import Recording
from worldline.store.verify import verify

FLIPS = 2400
DERIVED = {layout.OPEN, layout.LOCK}  # may be deleted, since they can be derived again; never changed


def reported(attempt: Path) -> bool:
    """Whether a verification finds anything; whatever else reads the record must raise nothing but ours."""
    try:
        found = not verify(Recording(attempt)).ok
    except WorldlineError:
        found = True
    return found


def read_in_every_way(attempt: Path) -> None:
    for way in (inspect, lambda recording: steps(recording), lambda recording: recording.summary):
        try:
            way(Recording(attempt))
        except WorldlineError:
            continue
    assert len(entries(attempt.parents[3])) == 1


def files(attempt: Path) -> list[Path]:
    return sorted(path for path in attempt.rglob("*") if path.is_file())


@pytest.fixture(params=[True, False], ids=["hard links", "a copy without links"])
def attempt(request: pytest.FixtureRequest, sealed: Path, quick: Path) -> Iterator[Path]:
    """A sealed attempt as it was written, and one that was copied as files."""
    if request.param:
        yield sealed
        return
    shutil.copytree(quick / "runs", quick / "copy")
    (copied,) = (quick / "copy").glob("run_*/trajectory/attempts/*")
    assert (copied / layout.MANIFEST).stat().st_nlink == 1
    yield copied


def test_no_flipped_byte_goes_unnoticed(attempt: Path) -> None:
    assert verify(Recording(attempt)).ok
    chance = random.Random(7)
    (result,) = attempt.parents[2].glob("*.json")
    everything = [path for path in [*files(attempt), result] if path.stat().st_size]
    small = [path for path in everything if path.stat().st_size < 3000]
    missed = []
    for number in range(FLIPS // 2):
        path = chance.choice(everything if number % 2 else small)
        data = path.read_bytes()
        offset, mask = chance.randrange(len(data)), chance.randrange(1, 256)
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(bytes([data[offset] ^ mask]))
        if not reported(attempt):
            missed.append((path.name, offset, mask))
        if number % 8 == 0:
            read_in_every_way(attempt)
        path.write_bytes(data)
    assert missed == []
    assert verify(Recording(attempt)).ok


def test_no_cut_or_grown_file_goes_unnoticed(attempt: Path) -> None:
    for path in files(attempt):
        data = path.read_bytes()
        sizes = {0, 1, len(data) // 2, len(data) - 1}
        for changed in (*(data[:size] for size in sizes if 0 <= size < len(data)), data + b"\n", data + b"\0"):
            path.write_bytes(changed)
            assert reported(attempt), (path.name, len(changed), len(data))
            read_in_every_way(attempt)
        path.write_bytes(data)
    assert verify(Recording(attempt)).ok


def test_no_removed_or_renamed_file_goes_unnoticed(attempt: Path) -> None:
    for path in files(attempt):
        moved = path.with_name("x" + path.name)
        path.rename(moved)
        assert reported(attempt), path.name
        read_in_every_way(attempt)
        data = moved.read_bytes()
        moved.unlink()
        assert reported(attempt) == (path.name not in DERIVED), path.name
        read_in_every_way(attempt)
        path.write_bytes(data)
    assert verify(Recording(attempt)).ok


ADDED: list[Callable[[Path], Path]] = [
    lambda attempt: attempt / "notes.txt",
    lambda attempt: attempt / layout.TAIL,
    lambda attempt: attempt / layout.PROGRESS,
    lambda attempt: attempt / layout.CHUNKS / "000099.jsonl",
    lambda attempt: attempt / layout.CHUNKS / ".hidden",
    lambda attempt: attempt / layout.BLOBS / "stray",
    lambda attempt: attempt / layout.BLOBS / "ordinary" / "00" / next((attempt / layout.BLOBS).rglob("?" * 64)).name,
    lambda attempt: attempt / "snapshots" / "meta.json",
    lambda attempt: attempt / "expiry.jsonl",
    lambda attempt: attempt / "tail.torn",
]


@pytest.mark.parametrize("place", range(len(ADDED)))
def test_no_added_file_goes_unnoticed(place: int, sealed: Path) -> None:
    path = ADDED[place](sealed)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    assert [problem.kind for problem in verify(Recording(sealed)).problems][:1] == ["added"]


@pytest.mark.parametrize("name", [layout.RESULT, layout.STAGED, layout.MANIFEST, layout.OPEN, "chunks/000000.jsonl"])
@pytest.mark.parametrize("instead", ["folder", "dangling link", "fifo"])
def test_something_else_in_place_of_a_file(name: str, instead: str, sealed: Path) -> None:
    (sealed / name).unlink()
    if instead == "folder":
        (sealed / name).mkdir()
    elif instead == "fifo":
        os.mkfifo(sealed / name)
    else:
        (sealed / name).symlink_to(sealed / "nowhere")
    assert reported(sealed)
    read_in_every_way(sealed)


def test_two_runs_with_swapped_files(sealed: Path, quick: Path) -> None:
    agent(quick / "others", lambda **fact: None)
    (other,) = (quick / "others").glob("run_*/trajectory/attempts/*")
    for name in (layout.MANIFEST, layout.RESULT, layout.OPEN, "chunks/000001.jsonl"):
        ours = (sealed / name).read_bytes()
        (sealed / name).unlink()
        shutil.copy(other / name, sealed / name)
        assert reported(sealed), name
        (sealed / name).write_bytes(ours)
