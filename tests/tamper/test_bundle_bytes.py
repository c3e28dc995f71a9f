"""Promise 5, of a bundle: any changed byte of it is reported, container included, and as what it is.

Thousands of flips, cuts and shifts, dealt evenly over every entry's header and stored bytes, the container, each record
of the directory and the end records. The container alone must tell where: nothing is derived again here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.golden.test_golden import good
from tests.soak import Soak
from tests.tamper import sampling, subjects
from tests.tamper.sampling import Change, Region
from worldline.errors import WorldlineError
from worldline.store.bundle.container import CONTAINER, EVENTS, EXPIRY, MANIFEST, RESOURCES, TIER_KEY
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.verify import verify

NAMES = {"whole.skn": "whole", "shared.skn": "whole", "expired.skn": "expired"}
OLD = [path for version in ("v0", "v1") for path in good(version).values() if path.suffix == ".skn"]
# What is changed, and what may be said of it: kinds of problems, or the error that opening raises.
NOT_OPENED = {"not-a-recording", "damaged", "cut-short"}
EXPECTED: dict[str, set[str]] = {
    "the first header's mark": {"not-a-recording"},
    "header": {"changed"},
    "stored": {"changed"},
    "content": {"changed", "corrupt"},
    MANIFEST: {"changed", "manifest", "added", "corrupt", "missing", "forged", "signature"},
    TIER_KEY: {"changed", "corrupt"},
    EXPIRY: {"changed", "forged", "torn", "missing"},
    EVENTS: {"changed", "malformed", "order", "gap", "torn", "zeros", "missing"},
    CONTAINER: {"damaged"},
    "directory": {"damaged"},
    "end records": NOT_OPENED,
}


@pytest.fixture(scope="module", params=NAMES)
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bundle with everything that one may hold; one with contents left out; one whose contents expired."""
    with subjects.folder(tmp_path_factory) as folder:
        made = subjects.DIRECTORIES[NAMES[request.param]](folder / "runs")
        path = subjects.bundle_of(made, folder / request.param, share=request.param == "shared.skn")
        if request.param == "whole.skn":
            subjects.sign(PackedRecording(str(path)), subjects.key_in(folder))
        yield path


def regions(path: Path) -> list[Region]:
    """Every part of the file that means something of its own, from its first byte to its last."""
    packed, at, found = PackedRecording(str(path)), 4, [Region("the first header's mark", path, 0, 4)]
    for entry in packed.container.entries:
        stored = at - (4 if at == 4 else 0) + entry.header_size
        found.append(Region(f"header of {entry.name}", path, at, stored))
        if entry.stored:
            found.append(Region(entry.name, path, stored, stored + entry.stored))
        at = stored + entry.stored
    size = path.stat().st_size
    directory = int.from_bytes(path.read_bytes()[size - 98 + 48 : size - 98 + 56], "little")
    found.append(Region(CONTAINER, path, at, directory))
    data = path.read_bytes()
    while data[directory : directory + 4] == b"PK\x01\x02":
        length = 46 + int.from_bytes(data[directory + 28 : directory + 30], "little") + 28
        found.append(Region("directory", path, directory, directory + length))
        directory += length
    for length in (56, 20, 22):
        found.append(Region("end records", path, directory, directory + length))
        directory += length
    assert directory == size and sum(region.end - region.start for region in found) == size
    return found


def expected(region: Region) -> tuple[set[str], str | None]:
    """What may be said of a change in a region, and the entry that has to be named."""
    if region.name.startswith("header of "):
        entry = region.name.removeprefix("header of ")
        return EXPECTED["header"] | expected(region._replace(name=entry))[0], entry
    name = "content" if region.name.startswith(RESOURCES) else region.name
    named = region.name if name not in ("the first header's mark", CONTAINER, "directory", "end records") else None
    return EXPECTED.get(name, EXPECTED["stored"]), named


def said_of(path: Path) -> tuple[set[str], set[str]]:
    """The kinds of what is found wrong with a file, and the places that are named."""
    try:
        found = verify(open_recording(path))
    except WorldlineError as error:
        return {error.kind}, set()
    return {problem.kind for problem in found.problems}, {problem.where for problem in found.problems}


def unreported(changes: Iterable[Change], opens: bool = True) -> tuple[int, list[str]]:
    """How many changes were tried, and what is wrong with what was said of them."""
    count, wrong, held = 0, [], {}
    for count, change in enumerate(changes, 1):  # noqa: B007 - the count is what it ends with
        path = change.region.path
        held.setdefault(path, path.read_bytes())
        path.write_bytes(change.data)
        kinds, places = said_of(path)
        path.write_bytes(held[path])
        may, named = expected(change.region) if opens else (NOT_OPENED, None)
        if not kinds or not kinds <= may or not (named is None or named in places):
            wrong.append(f"{path.name} {change.region.name}, byte {change.offset}, {change.how}: {kinds} {places}")
    assert all(said_of(path) == (set(), set()) for path in held), "what was changed is as it was"
    return count, wrong


@pytest.fixture(autouse=True)
def one_check_per_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ssh-keygen` is asked once about the same bytes: it is what would take the time."""
    subjects.remember_signatures(monkeypatch)


def test_no_flipped_byte_goes_unnoticed(bundle: Path, soak: Soak) -> None:
    due = sampling.FLIPS[bundle.name]
    count, wrong = unreported(sampling.flips(regions(bundle), due, soak))
    assert wrong == [] and count >= due


def test_no_cut_goes_unnoticed(bundle: Path, soak: Soak) -> None:
    due = sampling.CUTS[bundle.name]
    count, wrong = unreported(sampling.cuts(regions(bundle), due, soak), opens=False)
    assert wrong == [] and count >= due


def test_no_byte_more_or_less_goes_unnoticed(bundle: Path, soak: Soak) -> None:
    """All behind it is shifted, so that mostly the file is refused; zeros in one entry are found as a flip is."""
    for number in soak.rounds():
        for change in sampling.shifts(regions(bundle), sampling.SHIFTS[bundle.name], 13 + number):
            kinds, _ = said_of_change(change)
            may = (
                NOT_OPENED
                if len(change.data) != bundle.stat().st_size
                else NOT_OPENED | set().union(*EXPECTED.values())
            )
            assert kinds and kinds <= may, change[:3]


def said_of_change(change: Change) -> tuple[set[str], set[str]]:
    path = change.region.path
    before = path.read_bytes()
    path.write_bytes(change.data)
    try:
        return said_of(path)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("old", OLD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_nor_in_a_bundle_of_an_older_version(old: Path, tmp_path: Path, soak: Soak) -> None:
    path = tmp_path / "old.skn"
    path.write_bytes(old.read_bytes())
    for changes, opens in (
        (sampling.flips(regions(path), 60, soak), True),
        (sampling.cuts(regions(path), 20, soak), False),
    ):
        assert unreported(changes, opens)[1] == []


def test_the_samples_are_ten_thousand() -> None:
    assert sum(sampling.FLIPS.values()) + sum(sampling.CUTS.values()) >= 10_000
