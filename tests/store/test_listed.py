"""The catalogue of a store makes its list quick, and says nothing that reading the runs would not say now."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store import catalog, layout, listed
from worldline.store.catalog import entries, runs
from worldline.store.forget import quarantine, trash
from worldline.store.forget.contain import contain
from worldline.store.forget.quarantine import Containment
from worldline.store.listed import CATALOG, Entry, Listed
from worldline.store.recording import Recording

TASK = "a task that nobody else has"
SECRET = "not-a-real-" + "secret-value"


def record(store: Path, task: str = TASK, run: Path | None = None) -> Path:
    """A sealed run. Returns its directory."""
    recorder = Recorder(Spec(store=store, task=task, run=run, shapes=False))
    call = Call(kind="action", name="look", inputs=Content.of({}), effect="pure")
    RecordBoundary(recorder).begin(call).finish({}, Content.of(SECRET))
    recorder.outcome["outcome"] = "succeeded"
    recorder.seal()
    return recorder.run_directory


@pytest.fixture
def store(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three sealed runs that are worth keeping at once."""
    monkeypatch.setattr(listed, "WORTH", 1)
    monkeypatch.setattr(listed, "_TICK", -(10**18))
    monkeypatch.setattr(listed, "_COARSE_TICK", -(10**18))
    for _ in range(3):
        record(quick / "runs")
    yield quick / "runs"


def read_anew(store: Path) -> list[Entry]:
    """The list as it is without any catalogue."""
    return sorted((catalog._entry(run)[0] for run in runs(store)), key=lambda entry: entry.run)


def changed(path: Path, change: Callable[[], object]) -> None:
    """Make a change, in another tick of the file system's clock than what stood there."""
    before = path.stat().st_ctime_ns
    change()
    while os.path.exists(path) and path.stat().st_ctime_ns == before:
        os.utime(path)


def test_a_second_list_opens_no_run_and_is_the_same(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = entries(store)
    assert first == read_anew(store) and {entry.task for entry in first} == {TASK}
    assert (store / CATALOG).stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(catalog, "Recording", None)
    assert entries(store) == first
    monkeypatch.chdir(store.parent)
    assert entries(Path("runs")) == first, "a store is the same by another path"
    (store / CATALOG).unlink()
    monkeypatch.undo()
    assert entries(store) == first, "it may be deleted at any time"


def parts(run: Path) -> tuple[Path, Path, Path]:
    """The attempt, its manifest, and the published result of a run."""
    (attempt,) = layout.attempts(run)
    (result,) = run.glob("*.json")
    return attempt, attempt / layout.MANIFEST, result


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    with path.open("r+b") as file:
        file.write(data)


def replaced(path: Path) -> None:
    (path.parent / "new").write_bytes(path.read_bytes().replace(b"succeeded", b"forgotten"))
    os.replace(path.parent / "new", path)


def half_contained(run: Path) -> None:
    said = Containment(0, 1, run.name, parts(run)[0].name, "LABEL", 0, [], [], None)
    quarantine.register(run, [said])


CHANGES: dict[str, Callable[[Path], None]] = {
    "a byte of the manifest": lambda run: changed(parts(run)[1], lambda: flip(parts(run)[1])),
    "no manifest": lambda run: parts(run)[1].unlink(),
    "a byte of the result": lambda run: changed(parts(run)[2], lambda: flip(parts(run)[2])),
    "another result in its place": lambda run: replaced(parts(run)[2]),
    "no published result": lambda run: changed(run, parts(run)[2].unlink),
    "no result of its own": lambda run: changed(parts(run)[2], (parts(run)[0] / layout.RESULT).unlink),
    "a record of its containment": lambda run: changed(run, (run / quarantine.CONTAINED).touch),
    "a broken record of it": lambda run: changed(run, lambda: (run / quarantine.CONTAINED).write_bytes(b"{}\n")),
    "contained, and killed before it was moved": lambda run: changed(run, lambda: half_contained(run)),
    "its attempt moved": lambda run: changed(run, lambda: parts(run)[0].rename(run.parent / "elsewhere")),
    "the whole run gone": lambda run: shutil.rmtree(run),
    "a file where the run was": lambda run: (shutil.rmtree(run), run.touch())[1],
    "another run in its place": lambda run: (shutil.rmtree(run), shutil.copytree(runs(run.parent)[-1], run))[1],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_run_that_has_changed_is_read_anew(change: Callable[[Path], None], store: Path) -> None:
    before = entries(store)
    change(runs(store)[1])
    assert entries(store) == read_anew(store) == entries(store)
    assert before[0] in entries(store) and before[2] in entries(store)


def test_the_state_of_a_writer_is_never_remembered(store: Path) -> None:
    recorder = Recorder(Spec(store=store, task="under way"))
    for _ in range(2):
        assert [entry.disposition for entry in entries(store)] == ["complete"] * 3 + ["running"]
    assert b"under way" not in (store / CATALOG).read_bytes()
    recorder.close()
    assert entries(store)[-1].disposition == "interrupted"
    again = Recorder(Spec(store=store, task="under way", run=recorder.run_directory))
    assert entries(store)[-1].disposition == "running"
    again.seal()
    assert entries(store)[-1].disposition == "complete" == entries(store)[-1].disposition


def test_what_changes_in_the_same_tick_is_not_remembered(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "_TICK", 10**18)
    monkeypatch.setattr(listed, "_COARSE_TICK", 10**18)
    assert entries(store) == entries(store) == read_anew(store)
    assert not (store / CATALOG).exists()


def test_a_copied_store_has_a_catalogue_that_nobody_believes(store: Path, quick: Path) -> None:
    entries(store)
    shutil.copytree(store, quick / "copied", symlinks=True)
    (result,) = runs(quick / "copied")[0].glob("*.json")
    replaced(result)
    assert entries(quick / "copied") == read_anew(quick / "copied")


def test_a_damaged_catalogue_is_none(store: Path, quick: Path) -> None:
    first, path = entries(store), store / CATALOG
    whole = path.read_bytes()
    other = whole.replace(b"succeeded", b"forgotten")
    assert other != whole
    for damaged in (b"", whole[:-1], whole[: len(whole) // 2], whole + b"x", other, b"\0" * 100, b"{}", b"[[1]]\n"):
        path.write_bytes(damaged)
        assert entries(store) == first
        assert path.read_bytes() == whole or not damaged, "and it is written anew"
    path.unlink()
    path.symlink_to(quick / "elsewhere")
    (quick / "elsewhere").write_bytes(whole)
    assert entries(store) == first
    assert not path.is_symlink() and (quick / "elsewhere").read_bytes() == whole, "a link is not followed"
    path.unlink()
    path.mkdir()
    assert entries(store) == first and list(store.glob("*.tmp")) == []


def test_a_catalogue_with_other_lines_than_ours_shows_nothing_of_them(store: Path) -> None:
    first = entries(store)
    for kind in (b"[]", b'{"run_x":3}', b'{"%b":["..","..",[1],null,"x",null,1,1,1,null]}' % first[0].run.encode()):
        (store / CATALOG).write_bytes(listed._FORMAT + b"%08x\n" % listed.zlib.crc32(kind) + kind)
        assert entries(store) == first


def test_what_leaves_the_store_leaves_the_catalogue(store: Path) -> None:
    entries(store)
    assert TASK.encode() in (store / CATALOG).read_bytes()
    contain(runs(store)[0], "LABEL", SECRET, 1)
    assert not (store / CATALOG).exists(), "the task may hold the secret, too"
    assert [entry.disposition for entry in entries(store)] == ["contained", "complete", "complete"]
    assert (store / CATALOG).read_bytes().count(TASK.encode()) == 2
    (moved,) = trash.move(store, trash.select(store, 1e12, keep=1)[1:])
    assert moved.kept is None and not (store / CATALOG).exists()
    record(store, "another task")
    entries(store)
    shutil.rmtree(runs(store)[1])
    entries(store)
    assert TASK.encode() not in (store / CATALOG).read_bytes(), "a list forgets what is gone"
    assert b"another task" in (store / CATALOG).read_bytes()


def test_a_run_that_is_contained_while_a_list_is_made_is_not_written_down(store: Path) -> None:
    first, other, _ = runs(store)
    listing = Listed(store)
    listing.begin(missing=2)
    for run in (first, other):
        entry, recording = catalog._entry(run)
        assert recording is not None
        listing.keep(entry, recording)
    changed(first, lambda: contain(first, "LABEL", SECRET, 1))
    listing.save()
    written = (store / CATALOG).read_bytes()
    assert other.name.encode() in written and first.name.encode() not in written


def test_a_store_that_cannot_be_written_to_is_listed_all_the_same(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(layout, "create", refuse)
    assert entries(store) == read_anew(store) and not (store / CATALOG).exists()
    monkeypatch.undo()
    monkeypatch.setattr(listed, "WORTH", 1)
    monkeypatch.setattr(layout, "write_all", refuse)
    assert entries(store) == read_anew(store) and list(store.glob(f"{CATALOG}*")) == []


def test_a_small_store_has_none(quick: Path) -> None:
    record(quick / "runs")
    assert len(entries(quick / "runs")) == 1 and not (quick / "runs" / CATALOG).exists()
    assert Recording(runs(quick / "runs")[0]).disposition == "complete"
