"""A store from a stranger: links, pipes, folders and odd names where files belong. Nothing hangs, nothing is followed.

`verify` reports them, every verb ends in words of ours, and nothing outside of the store is written or told.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.store import hostile
from tests.store.hostile import defects
from worldline.cli.main import cli
from worldline.engine.account import account
from worldline.engine.recorder import Recorder, Spec
from worldline.store import layout
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.store.verify import verify

READ = [["show"], ["show", "--json"], ["verify"], ["replay"], ["pack", "-o", "packed.skn"], ["expire"]]
READ += [["contain", "--secret-env", "SOUGHT"], ["redact", "--dry-run", "--rule", "field:found"]]
STORE = [["list"], ["list", "--json"], ["reconcile"], ["gc", "--older-than", "0s"]]
PRIVATE = "what is told to nobody"


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    """A pipe that is opened for reading waits for ever; here it ends the test."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def attempt(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(quick)
    monkeypatch.setenv("SOUGHT", "found nowhere " * 3)
    (quick / "outside").mkdir()
    (quick / "outside" / "private.json").write_text(f'{{"{PRIVATE}": 1}}\n')
    return hostile.recorded(quick / "runs").attempt


def outside(quick: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (quick / "outside").rglob("*") if path.is_file()}


def bound(path: Path) -> None:
    """A socket that stands under a name."""
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


INSTEAD: dict[str, Callable[[Path, Path], object]] = {
    "a folder": lambda path, outside: path.mkdir(),
    "a pipe": lambda path, outside: os.mkfifo(path),
    "a socket": lambda path, outside: bound(path),
    "a link to itself": lambda path, outside: path.symlink_to(path),
    "a link to nowhere": lambda path, outside: path.symlink_to(outside / "nowhere"),
    "a link out": lambda path, outside: path.symlink_to(outside / "private.json"),
    "a link to a device": lambda path, outside: path.symlink_to("/dev/zero"),
    "a link to the root": lambda path, outside: path.symlink_to("/"),
}
FILES = [layout.MANIFEST, layout.STAGED, layout.RESULT, layout.OPEN, layout.LOCK, "chunks/000000.jsonl"]
FILES += ["chunks", "blobs", "blobs/ordinary", "a content", "the published result", "tail.jsonl", "expiry.jsonl"]


def named(attempt: Path, name: str) -> Path:
    if name == "a content":
        return next((attempt / layout.BLOBS).rglob("?" * 64))
    return next(attempt.parents[2].glob("*.json")) if name == "the published result" else attempt / name


@pytest.mark.parametrize("instead", INSTEAD)
@pytest.mark.parametrize("name", FILES)
def test_something_else_in_place_of_a_file(name: str, instead: str, attempt: Path, quick: Path) -> None:
    path, before = named(attempt, name), outside(quick)
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    INSTEAD[instead](path, quick / "outside")
    assert not verify(Recording(attempt)).ok
    assert defects(attempt, READ) == [] and defects(quick / "runs", STORE) == []
    said = "".join(CliRunner().invoke(cli, [verb, str(attempt)]).output for verb in ("show", "verify"))
    assert PRIVATE not in said
    assert outside(quick) == before and not list(quick.glob("*.skn"))


@pytest.mark.parametrize("instead", ["a link to the same bytes", "a hard link from outside"])
def test_a_link_to_the_same_bytes(instead: str, attempt: Path, quick: Path) -> None:
    for name in (layout.MANIFEST, "chunks/000000.jsonl", "a content"):
        path = named(attempt, name)
        kept = quick / "outside" / path.name
        path.rename(kept)
        if instead == "a link to the same bytes":
            path.symlink_to(kept)
            assert not verify(Recording(attempt)).ok, name  # what it leads to may be another tomorrow
        else:
            os.link(kept, path)
            assert verify(Recording(attempt)).ok
        path.unlink()
        kept.rename(path)


ODD = [
    "two\nlines",
    "\x1b[31mred",
    "\udcff\udcfe",
    "x" * 255,
    " ",
    "-rf",
    "ünïcode\u202e",
    "%s{0}$HOME",
    "\\",
    "a:b|c*?",
]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_name_that_nobody_gives(name: str, attempt: Path, quick: Path) -> None:
    for folder in (attempt, attempt / layout.CHUNKS, attempt / layout.BLOBS / "ordinary" / "00", attempt.parent):
        folder.mkdir(exist_ok=True)
        (folder / name).mkdir() if folder == attempt.parent else (folder / name).write_bytes(b"x")
        if folder != attempt.parent:
            found = verify(Recording(attempt))
            assert "added" in {problem.kind for problem in found.problems}
        assert defects(attempt, READ) == [] and defects(attempt.parents[2], [["show"]]) == []
        said = CliRunner().invoke(cli, ["verify", str(attempt)])
        assert not any(ord(char) < 32 and char not in "\n" for char in said.output)
        (folder / name).rmdir() if folder == attempt.parent else (folder / name).unlink()
    run = quick / "runs" / "run_00000000000000000000000000"
    for made in (lambda: run.mkdir(), lambda: os.mkfifo(run), lambda: run.symlink_to(run), lambda: run.symlink_to("/")):
        made()
        assert defects(quick / "runs", STORE) == []
        run.unlink() if run.is_symlink() or not run.is_dir() else run.rmdir()


def test_what_is_reconciled_stays_inside(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead writer's attempt with a link in it is left as it is: what would be moved, cut and added is another's."""
    monkeypatch.chdir(quick)
    (quick / "outside").mkdir()
    for name in (layout.CHUNKS, layout.TAIL, layout.LOCK, ""):
        recorder = Recorder(Spec(store=quick / "runs", task="dead"))
        recorder.close()
        path = recorder.attempt / name if name else recorder.attempt
        kept = quick / "outside" / (path.name + ".kept")
        path.rename(kept)
        path.symlink_to(kept)
        before = outside(quick)
        (state,) = reconcile(recorder.run_directory, account)
        assert (state.state, state.did) == ("damaged", None), name
        assert outside(quick) == before
