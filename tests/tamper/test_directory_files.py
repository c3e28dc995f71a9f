"""Promise 5, of the files of a sealed directory: one that is gone, added, renamed, swapped or no file is reported.

What may be deleted at any time, since it can be derived again (promise 7), is the exception: `lock` and `open.json`.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tamper import subjects
from tests.tamper.test_directory_bytes import read_in_every_way
from worldline.errors import WorldlineError
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.verify import verify

DERIVED = {layout.OPEN, layout.LOCK}


@pytest.fixture(scope="module", params=subjects.DIRECTORIES)
def attempt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A sealed attempt; a test leaves it as it was."""
    with subjects.folder(tmp_path_factory) as folder:
        yield subjects.DIRECTORIES[request.param](folder / request.param)


@pytest.fixture(autouse=True)
def as_it_was(attempt: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    subjects.remember_signatures(monkeypatch)
    assert verify(Recording(attempt)).ok
    yield
    assert verify(Recording(attempt)).ok


def files(attempt: Path) -> list[Path]:
    """Every file of the attempt, and what it published."""
    return sorted(path for path in [*attempt.rglob("*"), *attempt.parents[2].glob("*.json")] if path.is_file())


def found(attempt: Path) -> set[str]:
    """The kinds of what is found wrong, by our own word where it does not even open."""
    try:
        return {problem.kind for problem in verify(Recording(attempt)).problems}
    except WorldlineError as error:
        return {error.kind}


def test_no_removed_file_goes_unnoticed(attempt: Path) -> None:
    aside = attempt.parents[3] / "aside"
    for path in files(attempt):
        path.rename(aside)
        kinds = found(attempt)
        read_in_every_way(attempt)
        aside.rename(path)
        if path.name in DERIVED:
            assert not kinds, path.name
        else:
            assert kinds & {"missing", "gap", "unsealed", "corrupt", "unpublished"}, (path.name, kinds)


def test_no_renamed_file_goes_unnoticed(attempt: Path) -> None:
    for path in files(attempt):
        others = {"x" + path.name, path.name + "x", path.name.upper(), "." + path.name, path.stem}
        others |= {"000099.jsonl"} if path.parent.name == layout.CHUNKS else set()
        for other in sorted(others - {path.name}):
            moved = path.rename(path.with_name(other))
            kinds = found(attempt)
            read_in_every_way(attempt)
            moved.rename(path)
            assert kinds & {"added", "missing", "unpublished", "unsealed"}, (path.name, other, kinds)


def test_no_two_swapped_files_go_unnoticed(attempt: Path) -> None:
    """Chunks in another order are one case; a content under another's name is one, too."""
    aside, count = attempt.parents[3] / "aside", 0
    for one, other in itertools.combinations(files(attempt), 2):
        if one.read_bytes() == other.read_bytes():
            continue
        for source, target in ((one, aside), (other, one), (aside, other)):
            source.rename(target)
        kinds = found(attempt)
        for source, target in ((one, aside), (other, one), (aside, other)):
            source.rename(target)
        assert kinds, (one.name, other.name)
        count += 1
    assert count > 150


ADDED: list[Callable[[Path], Path]] = [
    lambda attempt: attempt / "notes.txt",
    lambda attempt: attempt / layout.TAIL,
    lambda attempt: attempt / layout.PROGRESS,
    lambda attempt: attempt / "manifest.json.bak",
    lambda attempt: attempt / layout.CHUNKS / "000099.jsonl",
    lambda attempt: attempt / layout.CHUNKS / ".hidden",
    lambda attempt: attempt / layout.BLOBS / "stray",
    lambda attempt: attempt / layout.BLOBS / "ordinary" / "00" / next((attempt / layout.BLOBS).rglob("?" * 64)).name,
    lambda attempt: attempt / layout.BLOBS / "ordinary" / layout.TIER_KEY,
    lambda attempt: attempt / layout.BLOBS / "secret" / "00" / ("0" * 64),
    lambda attempt: attempt / "snapshots" / "meta.json",
]


@pytest.mark.parametrize("place", range(len(ADDED)))
@pytest.mark.parametrize("content", [b"", b"more\n"])
def test_no_added_file_goes_unnoticed(place: int, content: bytes, attempt: Path) -> None:
    path = ADDED[place](attempt)
    made = [folder for folder in (path.parent.parent, path.parent) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    kinds = found(attempt)
    path.unlink()
    for folder in reversed(made):
        folder.rmdir()
    assert "added" in kinds


def test_no_empty_folder_with_a_name_of_its_own_goes_unnoticed(attempt: Path) -> None:
    for name in ("more", layout.TORN, layout.EXPIRY):
        if not (attempt / name).exists():
            (attempt / name).mkdir()
            kinds = found(attempt)
            (attempt / name).rmdir()
            assert kinds & {"added", "forged"}, name


INSTEAD: dict[str, Callable[[Path, Path], object]] = {
    "a folder": lambda path, aside: path.mkdir(),
    "a pipe": lambda path, aside: os.mkfifo(path),
    "a link to nowhere": lambda path, aside: path.symlink_to(path.with_name("nowhere")),
    "a link to the same bytes": lambda path, aside: path.symlink_to(aside),
}


@pytest.mark.parametrize("instead", INSTEAD)
def test_no_file_that_became_something_else_goes_unnoticed(instead: str, attempt: Path) -> None:
    aside = attempt.parents[3] / "aside"
    for path in files(attempt):
        if path.parent == attempt.parents[2]:
            continue  # the published result is judged by its bytes
        path.rename(aside)
        INSTEAD[instead](path, aside)
        kinds = found(attempt)
        read_in_every_way(attempt)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        aside.rename(path)
        assert kinds, (instead, path.name)


def test_no_file_of_another_run_goes_unnoticed(attempt: Path) -> None:
    """The same program, recorded twice: nothing of the second passes for what the first has under that name."""
    other = subjects.DIRECTORIES[attempt.parents[3].name](attempt.parents[3] / "other" / attempt.parents[3].name)
    count = 0
    for path in files(attempt):
        theirs = other / path.relative_to(attempt) if attempt in path.parents else other.parents[2] / path.name
        if not theirs.is_file() or theirs.read_bytes() == path.read_bytes():
            continue
        before = path.read_bytes()
        path.write_bytes(theirs.read_bytes())
        kinds = found(attempt)
        path.write_bytes(before)
        assert kinds, path.name
        count += 1
    shutil.rmtree(attempt.parents[3] / "other")
    assert count >= 6
