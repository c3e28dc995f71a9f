"""Whatever is changed in notes is reported, by our verifier and the other one alike; what cannot be seen is known."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.rich import recorded, remade
from tests.tamper import subjects
from tests.tamper.test_other_readers import VERIFIER, compared, node, ours
from worldline.errors import WorldlineError
from worldline.store import layout, notes
from worldline.store.bundle.container import ANNOTATIONS
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.note_lines import read_lines
from worldline.store.recording import Recording
from worldline.store.verify import verify


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run with three notes and an audit, its bundle, and another run that has some, too."""
    with subjects.folder(tmp_path_factory) as folder:
        for name in ("runs", "others"):
            run = recorded(folder / name)
            for text in ("one", "zwei\u2028", "three"):
                notes.annotate(run, now_ns=5, seq=3, at="step:1", text=text, who="me", tag="bug")
            notes.remove(run, "a1", now_ns=6)
            notes.audit(run, "reveal", "step:1", 3, "because", now_ns=7)
            pack(run, folder / f"{name}.skn")
        yield folder


def attempt(place: Path, name: str = "runs") -> Path:
    (found,) = (place / name).glob("run_*/trajectory/attempts/*")
    return found


def lines(place: Path, name: str = ANNOTATIONS) -> bytes:
    return (attempt(place) / name).read_bytes()


def test_no_flipped_byte_of_a_note_goes_unnoticed_in_a_directory(place: Path) -> None:
    for name in layout.BESIDE:
        path, data = attempt(place) / name, lines(place, name)
        for at in range(len(data)):
            flipped = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
            assert read_lines(flipped, name, attempt(place).name).problems, (name, at)
            if at % 29 == 0:
                path.write_bytes(flipped)
                problems = verify(Recording(attempt(place))).problems
                assert problems and name in problems[0].where, (name, at)
        path.write_bytes(data)
    assert verify(Recording(attempt(place))).ok


def test_no_flipped_byte_of_a_note_goes_unnoticed_in_a_bundle(place: Path) -> None:
    bundle = place / "runs.skn"
    data, packed = bytearray(bundle.read_bytes()), PackedRecording(str(bundle))
    begins = packed.container.offsets()[ANNOTATIONS] - packed.entries[ANNOTATIONS].header_size
    for at in range(begins, len(data), 3):  # the audit, the container and the directory, too
        data[at] ^= 1 << at % 8
        (place / "flipped.skn").write_bytes(data)
        data[at] ^= 1 << at % 8
        assert not ours(place / "flipped.skn")["ok"], at
    (place / "flipped.skn").unlink()


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "another text": lambda data: data.replace(b'"one"', b'"two"'),
    "the first line gone": lambda data: data.split(b"\n", 1)[1],
    "a line gone from the middle": lambda data: b"".join([*data.splitlines(True)[:1], *data.splitlines(True)[2:]]),
    "two lines swapped": lambda data: b"".join([data.splitlines(True)[n] for n in (1, 0, 2, 3)]),
    "a line twice": lambda data: data + data.splitlines(True)[-1],
    "cut in a line": lambda data: data[:-20],
    "an empty line": lambda data: data + b"\n",
    "no notes at all": lambda data: b"these are no notes\n",
    "zeros": lambda data: data + bytes(100),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_container_that_was_made_for_changed_notes_does_not_hide_it(change: str, place: Path) -> None:
    spoilt = remade(place / "runs.skn", place / "spoilt.skn", {ANNOTATIONS: CHANGES[change](lines(place))})
    assert not verify(spoilt).ok
    compared([place / "spoilt.skn"], [change])


def test_notes_of_another_run_do_not_pass(place: Path) -> None:
    theirs = (attempt(place, "others") / ANNOTATIONS).read_bytes()
    spoilt = remade(place / "runs.skn", place / "spoilt.skn", {ANNOTATIONS: theirs})
    assert "another attempt" in verify(spoilt).problems[0].detail
    compared([place / "spoilt.skn"], ["of another run"])


def test_what_cannot_be_seen_is_that_the_last_lines_were_never_written(place: Path) -> None:
    """A chain speaks for what stands before its end. The seal speaks for none of it, and `verify` says so."""
    shorter = b"".join(lines(place).splitlines(True)[:2])
    for other in ({ANNOTATIONS: shorter}, {ANNOTATIONS: b""}):
        found = verify(remade(place / "runs.skn", place / "spoilt.skn", other))
        assert found.ok and ANNOTATIONS in found.facts["unsealed"]


def test_a_second_verifier_says_the_same_of_what_was_changed_in_notes(place: Path) -> None:
    chance, changed, what = random.Random(4), [], []
    for bundle in ("runs.skn",):
        data, packed = (place / bundle).read_bytes(), PackedRecording(str(place / bundle))
        begins = packed.container.offsets()[ANNOTATIONS] - packed.entries[ANNOTATIONS].header_size
        for number in range(25):
            at = chance.randrange(begins, len(data))
            path = place / f"changed-{number}.skn"
            path.write_bytes(data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :])
            changed.append(path)
            what.append(f"{bundle} {at}")
    run = attempt(place).parents[2]
    for number in range(12):
        copy = shutil.copytree(run, place / f"copied-{number}" / run.name) / attempt(place).relative_to(run)
        path = copy / chance.choice(layout.BESIDE)
        data, at = path.read_bytes(), chance.randrange(len(path.read_bytes()))
        path.write_bytes(data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :])
        changed.append(copy)
        what.append(f"{path.name} {at}")
    compared(changed, what)
    (good,) = node(VERIFIER, place / "runs.skn")
    assert good["ok"] and ours(place / "runs.skn")["ok"]


def test_names_of_notes_that_are_folders_are_reported(place: Path) -> None:
    other = attempt(place, "others")
    path = other / layout.AUDIT
    aside = path.rename(other.parents[3] / "aside")
    path.mkdir()
    try:
        assert {problem.kind for problem in verify(Recording(other)).problems} & {"added", "changed"}
        with pytest.raises((WorldlineError, OSError)):
            notes.audit(Recording(other), "reveal", "session", None, None, now_ns=1)
    finally:
        path.rmdir()
        aside.rename(path)
    assert verify(open_recording(other)).ok
