"""Promise 5, of a sealed directory: any changed byte of any of its files is reported, and as what it is.

Thousands of flips, cuts and shifts, dealt evenly over every file: none goes unnoticed, each is reported under the
question that it touches with a kind of problem that fits, and nothing but our own errors ever comes out.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.soak import Soak
from tests.tamper import sampling, subjects
from tests.tamper.sampling import Change, Region
from worldline.engine.replay import inspect
from worldline.engine.steps import steps
from worldline.errors import WorldlineError
from worldline.store import layout, signature
from worldline.store.catalog import entries
from worldline.store.recording import Recording
from worldline.store.verify import verify

NAMES = ("whole", "copied", "expired", "reconciled")
ROWS = {"changed", "malformed", "order", "gap", "torn", "zeros", "damaged", "newer-format"}
# What is changed: the questions that have to find it, and the kinds of problems that they may name.
EXPECTED: dict[str, tuple[set[str], set[str]]] = {
    "chunks": ({"structure"}, ROWS),
    "content": ({"evidence"}, {"corrupt"}),
    "key": ({"evidence"}, {"corrupt"}),
    "a short key": ({"availability"}, {"missing"}),
    layout.MANIFEST: ({"structure"}, {"manifest"}),
    layout.STAGED: ({"publication"}, {"changed"}),
    layout.RESULT: ({"publication"}, {"changed"}),
    layout.OPEN: ({"structure"}, {"changed"}),
    layout.TORN: ({"structure"}, {"changed"}),
    layout.EXPIRY: ({"availability"}, {"forged", "torn", "missing"}),
}


@pytest.fixture(scope="module", params=NAMES)
def attempt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A sealed attempt; `copied` is one whose hard links became files of their own."""
    with subjects.folder(tmp_path_factory) as folder:
        if request.param != "copied":
            yield subjects.DIRECTORIES[request.param](folder / request.param)
            return
        subjects.whole(folder / "linked")
        shutil.copytree(folder / "linked", folder / "copied")
        (copied,) = (folder / "copied").glob("run_*/trajectory/attempts/*")
        assert (copied / layout.MANIFEST).stat().st_nlink == 1
        yield copied


def name_of(attempt: Path) -> str:
    return attempt.parents[3].name


def regions(attempt: Path) -> list[Region]:
    """Every file of the attempt and what it published. The log's by rows: body, hash, line end."""
    found = []
    for path in sorted([*attempt.rglob("*"), *attempt.parents[2].glob("*.json")]):
        if not path.is_file() or not (size := path.stat().st_size):
            continue
        if path.parent.name == layout.CHUNKS:
            at = 0
            for line in path.read_bytes().splitlines(True):
                borders = (at, at + len(line) - 73, at + len(line) - 1, at + len(line))
                found += [Region("chunks", path, *ends) for ends in pairwise(borders)]
                at += len(line)
        elif path == layout.tier_key_path(attempt):
            found.append(Region("key", path, 0, size))
        elif attempt / layout.BLOBS in path.parents:
            found.append(Region("content", path, 0, size))
        else:
            found.append(Region(path.name if path.parent == attempt else layout.RESULT, path, 0, size))
    return found


def expected(change: Change, attempt: Path) -> tuple[set[str], set[str]]:
    """The questions that have to fail, and the kinds of problems that may be named."""
    name = change.region.name
    if name == "key" and len(change.data) != 32:
        name = "a short key"
    if name == layout.STAGED and change.region.path.samefile(attempt / layout.MANIFEST):
        name = layout.MANIFEST  # two names of one file
    questions, kinds = EXPECTED[name]
    if name == layout.MANIFEST and (attempt / layout.EXPIRY).exists():  # without a seal nothing vouches for its records
        return questions | {"availability"}, kinds | {"forged", "missing"}
    return questions, kinds


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """The file with the change, and as it was again."""
    path = change.region.path
    before = path.read_bytes()
    path.write_bytes(change.data)
    try:
        yield
    finally:
        path.write_bytes(before)


def unreported(changes: Iterable[Change], attempt: Path) -> tuple[int, list[str]]:
    """How many changes were tried, and what is wrong with what was said of them."""
    count, wrong = 0, []
    for count, change in enumerate(changes, 1):
        with changed(change):
            found = verify(Recording(attempt))
            questions = {name for name, state in found.verdicts.items() if state in ("failed", "missing")}
            kinds = {problem.kind for problem in found.problems}
            if count % 16 == 0:
                read_in_every_way(attempt)
        due, may = expected(change, attempt)
        if questions != due or not kinds or not kinds <= may:
            place = change.region.path.relative_to(attempt.parents[2])
            wrong.append(f"{place}, byte {change.offset}, {change.how}: {questions} {kinds}, not {due} {may}")
    assert verify(Recording(attempt)).ok, "what was changed is as it was"
    return count, wrong


def read_in_every_way(attempt: Path) -> None:
    """Whatever else reads a changed record raises nothing but ours, and one run is listed."""
    for way in (inspect, lambda recording: steps(recording), lambda recording: recording.summary):
        try:
            way(Recording(attempt))
        except WorldlineError:
            continue
    assert len(entries(attempt.parents[3])) == 1


@pytest.fixture(autouse=True)
def one_check_per_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ssh-keygen` is asked once about the same bytes: it is what would take the time."""
    subjects.remember_signatures(monkeypatch)


def test_no_flipped_byte_goes_unnoticed(attempt: Path, soak: Soak) -> None:
    due = sampling.FLIPS[name_of(attempt)]
    count, wrong = unreported(sampling.flips(regions(attempt), due, soak), attempt)
    assert wrong == [] and count >= due


def test_no_cut_file_goes_unnoticed(attempt: Path, soak: Soak) -> None:
    due = sampling.CUTS[name_of(attempt)]
    count, wrong = unreported(sampling.cuts(regions(attempt), due, soak), attempt)
    assert wrong == [] and count >= due


def test_no_byte_more_or_less_goes_unnoticed(attempt: Path, soak: Soak) -> None:
    for number in soak.rounds():
        changes = sampling.shifts(regions(attempt), sampling.SHIFTS[name_of(attempt)], 13 + number)
        assert unreported(changes, attempt)[1] == []


def test_a_grown_file_is_noticed(attempt: Path) -> None:
    (attempt / layout.LOCK).write_bytes(b"")
    files = {region.path: region for region in regions(attempt)} | {
        attempt / layout.LOCK: Region(layout.OPEN, attempt / layout.LOCK, 0, 0)
    }
    for path, region in files.items():
        for more in (b"\n", b"\0", b"x" * 5000, path.read_bytes()):
            change = Change(region, "grown", path.stat().st_size, path.read_bytes() + more)
            if more:
                assert unreported([change], attempt)[1] == []


def test_a_changed_signature_is_reported_or_says_the_same(attempt: Path, soak: Soak) -> None:
    """It stands outside the seal, in a text form of OpenSSH's that has room for other words: they change nothing."""
    found = list(attempt.parents[2].glob("*.sig"))
    if not found:
        return
    (path,) = found
    good = signature.check((attempt / layout.MANIFEST).read_bytes(), path, None)
    assert good.state == "stranger"
    region, same = Region("signature", path, 0, path.stat().st_size), []
    for change in sampling.flips([region], 150, soak):
        with changed(change):
            said = verify(Recording(attempt))
        if said.ok:
            assert str(good.key) in said.facts["authenticity"]
            same.append(change.offset)
        else:
            assert [problem.kind for problem in said.problems] == ["signature"]
    print(len(same), "of the signature's changes leave it what it says")
