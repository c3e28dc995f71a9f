"""The substrate `files` under what goes wrong: writers, damage, full disks, sockets, links that lead out, sweeps."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from worldline.engine import clock
from worldline.engine.substrates import materialise, scan, seen
from worldline.engine.substrates.files import Files, FilesEnv
from worldline.engine.substrates.holders import holders
from worldline.engine.substrates.materialise import Materialiser
from worldline.engine.substrates.substrate import Policy, SnapRef
from worldline.errors import Corrupt, ResourceExhausted, StaleBase, SubstrateError, Unsupported, UsageError
from worldline.model import tree
from worldline.store import layout
from worldline.testing.subject import contents


class Place(SimpleNamespace):
    """A workspace with a store beside it."""

    workspace: Path
    files: Files
    env: FilesEnv


@pytest.fixture
def place(quick: Path) -> Place:
    workspace = quick / "workspace"
    (workspace / "lib").mkdir(parents=True)
    (workspace / "main.py").write_text("one\n")
    (workspace / "lib" / "mod.py").write_text("two\n")
    files = Files(quick / "runs")
    return Place(workspace=workspace, files=files, env=files.open(workspace, Policy(store=files.store)))


def fork(place: Place, ref: SnapRef) -> FilesEnv:
    (branch,) = place.files.fork(ref, 1, branch_seed="", identity="run")
    return branch


def test_a_change_behind_the_reader_is_seen_and_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read = scan.Scanner._read
    behind = iter(["changed behind the reader\n"])

    def reading(self: scan.Scanner, *args: object) -> seen.Seen:
        found = read(self, *args)  # type: ignore[arg-type]
        if text := next(behind, None):
            (place.workspace / "main.py").write_text(text)
            (place.workspace / "lib" / "late.py").write_text(text)
        return found

    monkeypatch.setattr(scan.Scanner, "_read", reading)
    ref = place.env.snapshot(1)
    assert contents(fork(place, ref).root) == contents(place.workspace)
    assert ref.notes == ()


def test_a_file_that_never_holds_still_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read = scan.Scanner._read
    count = iter(range(10_000))

    def reading(self: scan.Scanner, batch: object, at: int, name: str, *args: object) -> seen.Seen:
        found = read(self, batch, at, name, *args)  # type: ignore[arg-type]
        if name == "main.py":
            (place.workspace / name).write_text(f"{next(count)}\n" * 3)
        return found

    monkeypatch.setattr(scan.Scanner, "_read", reading)
    ref = place.env.snapshot(1)
    assert [note["path"] for note in ref.notes] == ["main.py"]
    assert next(count) == place.env.policy.rereads + 1, "read again a bounded number of times"


def test_many_writers_never_tear_a_snapshot(place: Place) -> None:
    """Two files are always written in one order; no snapshot that is said to be whole has only the second's news."""
    stop = threading.Event()

    def writing() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            for name in ("a", "b"):
                temporary = place.workspace / f".{name}.new"
                temporary.write_text(str(number))
                temporary.rename(place.workspace / name)

    for name in ("a", "b"):
        (place.workspace / name).write_text("0")
    writer = threading.Thread(target=writing)
    writer.start()
    try:
        refs = [place.env.snapshot(seq) for seq in range(12)]
    finally:
        stop.set()
        writer.join()
    for ref in (ref for ref in refs if not ref.notes):
        branch = fork(place, ref)
        a, b = (int((branch.root / name).read_text()) for name in ("a", "b"))
        assert a - 1 <= b <= a
        branch.close()


def test_what_was_written_a_moment_ago_is_read_again() -> None:
    """git's racy rule: a file with times as late as its reading could change again without showing it."""
    now = clock.wall_ns() // 1_000_000_000 * 1_000_000_000 + 123_456_789

    def state(age: int, coarse: bool = False) -> os.stat_result:
        at = now - age if not coarse else (now - age) // 1_000_000_000 * 1_000_000_000
        return SimpleNamespace(st_mtime_ns=at - 5, st_ctime_ns=at)  # type: ignore[return-value]

    assert not seen.settled(state(0), now)
    assert not seen.settled(state(seen.SETTLED_NS - 1), now)
    assert seen.settled(state(seen.SETTLED_NS + 1), now)
    assert not seen.settled(state(1_000_000_000, coarse=True), now)
    assert seen.settled(state(4_000_000_000, coarse=True), now)


def test_a_change_that_keeps_size_and_mtime_is_seen(place: Place) -> None:
    old = place.workspace / "main.py"
    first = place.env.snapshot(1)
    state = old.stat()
    old.write_text("two\n")
    os.utime(old, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert [change.path for change in place.files.diff(first, place.env.snapshot(2))] == [b"main.py"]


def test_sockets_pipes_and_what_may_not_be_read_are_named_and_left_alone(place: Place) -> None:
    os.mkfifo(place.workspace / "lib" / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(place.workspace)  # a socket's path is short
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        (place.workspace / "new").mkdir()
        ref = place.env.snapshot(1)
        assert [(n["path"], n["why"]) for n in ref.notes] == [
            ("lib/pipe", "not kept: a pipe"),
            ("socket", "not kept: a socket"),
        ]
        os.mkfifo(place.workspace / "new" / "later")
        (place.workspace / "main.py").write_text("changed\n")
        place.env.restore(ref)
    assert (place.workspace / "main.py").read_text() == "one\n"
    assert {"lib/pipe", "new/later", "socket"} <= {
        os.path.relpath(os.path.join(at, name), place.workspace)
        for at, _, names in os.walk(place.workspace)
        for name in names
    }


def test_a_file_over_the_size_that_is_kept_is_named_and_stays(place: Place) -> None:
    env = place.files.open(
        place.workspace, Policy(store=place.files.store, largest=100, exclude=("build", "lib/*.log"))
    )
    (place.workspace / "big").write_bytes(b"x" * 101)
    (place.workspace / "build").mkdir()
    (place.workspace / "build" / "out").write_text("made")
    (place.workspace / "lib" / "a.log").write_text("log")
    ref = env.snapshot(1)
    assert [note["path"] for note in ref.notes] == ["big"]
    assert set(contents(fork(place, ref).root)) == {"main.py", "lib/mod.py"}
    (place.workspace / "build" / "out").write_text("made again")
    env.restore(ref)
    assert (place.workspace / "big").stat().st_size == 101
    assert (place.workspace / "build" / "out").read_text() == "made again"


def test_the_store_is_in_no_snapshot_of_what_it_stands_in(place: Place) -> None:
    store = place.workspace / ".worldline" / "runs"
    files = Files(store)
    env = files.open(place.workspace, Policy(store=store))
    first = env.snapshot(1)
    assert env.snapshot(2).digest == first.digest, "the store came into the snapshot"
    assert set(contents(files.fork(first, 1, branch_seed="", identity="run")[0].root)) == {"main.py", "lib/mod.py"}
    env.restore(first)
    assert files.export(first) == first.digest, "a restore removed the store"
    with pytest.raises(UsageError):
        Materialiser(files.snapshots).make(files.tree_of(first), place.workspace)


def test_damage_is_found_before_anything_is_changed(place: Place) -> None:
    ref = place.env.snapshot(1)
    damaged = Path(place.files.snapshots.path(tree.name_of(b"two\n")))
    damaged.write_bytes(b"TWO\n")
    for name in ("main.py", "lib/mod.py"):
        (place.workspace / name).write_text("changed\n")
    before = contents(place.workspace)
    with pytest.raises(Corrupt) as refused:
        place.env.restore(ref)
    assert refused.value.facts["digest"] == tree.name_of(b"two\n")
    assert contents(place.workspace) == before
    with pytest.raises(Corrupt):
        fork(place, ref)
    with pytest.raises(Corrupt):
        place.files.export(ref)
    assert list(place.files._forks.iterdir()) == [], "a fork that failed left something"
    damaged.unlink()
    with pytest.raises(Corrupt, match="missing"):
        fork(place, ref)


def test_a_damaged_content_is_written_again_when_it_comes_again(place: Place) -> None:
    ref = place.env.snapshot(1)
    damaged = Path(place.files.snapshots.path(tree.name_of(b"two\n")))
    damaged.write_bytes(b"TWO\n")
    (place.workspace / "copy.py").write_text("two\n")
    place.env.snapshot(2)
    assert damaged.read_bytes() == b"two\n"
    assert place.files.export(ref) == ref.digest


def test_a_restore_follows_no_link_out_of_the_workspace(place: Place, quick: Path) -> None:
    ref = place.env.snapshot(1)
    outside = quick / "outside"
    outside.mkdir()
    (outside / "mod.py").write_text("not yours\n")
    (place.workspace / "lib" / "mod.py").unlink()
    (place.workspace / "lib").rmdir()
    (place.workspace / "lib").symlink_to(outside)
    place.env.restore(ref)
    assert (outside / "mod.py").read_text() == "not yours\n"
    assert not (place.workspace / "lib").is_symlink() and (place.workspace / "lib" / "mod.py").read_text() == "two\n"


def test_a_link_that_comes_under_way_is_not_followed(place: Place, quick: Path) -> None:
    """An agent that swaps a folder for a link between the look and the write gets an error, not a write outside."""
    ref = place.env.snapshot(1)
    (place.workspace / "lib" / "mod.py").write_text("changed\n")
    now = place.env.snapshot(2)
    changes = place.files.diff(now, ref)
    outside = quick / "outside"
    (place.workspace / "lib").rename(outside)
    (place.workspace / "lib").symlink_to(outside)
    with pytest.raises(Unsupported):
        Materialiser(place.files.snapshots).apply(place.workspace, changes)
    assert (outside / "mod.py").read_text() == "changed\n"


def test_a_fork_is_no_name_of_a_file_of_the_store(place: Place) -> None:
    ref = place.env.snapshot(1)
    branch = fork(place, ref)
    kept = {path.stat().st_ino for path in place.files.snapshots.place.rglob("blobs/**/*") if path.is_file()}
    for root in (place.workspace, branch.root):
        files = [path for path in root.rglob("*") if path.is_file()]
        assert files and kept.isdisjoint(path.stat().st_ino for path in files)


def test_a_full_disk_publishes_nothing(place: Place) -> None:
    """A limit on the size of a file stands for a full disk; the one error says so, and the next snapshot is whole."""
    ref = place.env.snapshot(1)
    (place.workspace / "large").write_bytes(os.urandom(1 << 18))
    program = (
        "import resource, signal, sys, pathlib\n"
        "from worldline.engine.substrates.files import Files\n"
        "from worldline.engine.substrates.substrate import Policy\n"
        "from worldline.errors import ResourceExhausted\n"
        "store, workspace = map(pathlib.Path, sys.argv[1:])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "env = Files(store).open(workspace, Policy(store=store))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))\n"
        "try: env.snapshot(2)\n"
        "except ResourceExhausted as error: print(error)\n"
    )
    argv = [sys.executable, "-c", program, os.fspath(place.files.store), os.fspath(place.workspace)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "nothing was published" in said.stdout, said.stderr
    assert place.files.snapshots.taken() == [ref.id]
    assert list((place.files.snapshots.place / "new").iterdir()) == []
    assert contents(fork(place, place.env.snapshot(3)).root) == contents(place.workspace)


def test_too_many_open_files_is_one_error(place: Place) -> None:
    deep = place.workspace
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, before[1]))
    try:
        with pytest.raises(ResourceExhausted):
            place.env.snapshot(1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert place.files.snapshots.taken() == []


def test_folders_that_nest_too_deep_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "DEEPEST", 3)
    (place.workspace / "a" / "b" / "c" / "d").mkdir(parents=True)
    with pytest.raises(Unsupported) as refused:
        place.env.snapshot(1)
    assert refused.value.facts["resource"] == "depth"


def test_a_sweep_keeps_what_is_named_or_pinned_and_frees_the_rest(place: Place) -> None:
    refs = []
    for number in range(6):
        (place.workspace / "main.py").write_text(f"step {number}\n")
        (place.workspace / f"only-{number}").write_text(f"only {number}")
        refs.append(place.env.snapshot(number))
        (place.workspace / f"only-{number}").unlink()
    place.files.pin(refs[1])
    assert place.files.gc([refs[4]]) > 0
    for number in (1, 4):
        assert (fork(place, refs[number]).root / f"only-{number}").read_text() == f"only {number}"
    for number in (0, 2, 3, 5):
        with pytest.raises(StaleBase):
            fork(place, refs[number])
        assert not Path(place.files.snapshots.path(tree.name_of(b"only %d" % number))).exists()
    assert place.files.gc([refs[4]]) >= 0
    # What was known of the workspace before does not make a snapshot of contents that went.
    (place.workspace / "only-2").write_text("only 2")
    place.files.unpin(refs[1])
    again = place.env.snapshot(9)
    assert place.files.export(again) == again.digest


def test_what_is_known_of_a_workspace_is_never_taken_for_what_is_kept(place: Place) -> None:
    """A sweep between two snapshots takes contents that the scanner has seen; the next snapshot keeps them again."""
    place.env.snapshot(1)
    place.files.gc([])
    ref = place.env.snapshot(2)
    assert contents(fork(place, ref).root) == contents(place.workspace)
    place.env.close()
    place.files.gc([])
    again = place.files.open(place.workspace, Policy(store=place.files.store)).snapshot(3)
    assert contents(fork(place, again).root) == contents(place.workspace)


def test_a_process_finds_again_what_another_one_knew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first = place.env.snapshot(1)
    place.env.snapshot(2)
    place.env.close()
    read: list[str] = []
    reading = scan.Scanner._read
    monkeypatch.setattr(scan.Scanner, "_read", lambda self, *args: read.append(args[3]) or reading(self, *args))  # type: ignore[func-returns-value, redundant-expr]
    env = Files(place.files.store).open(place.workspace, Policy(store=place.files.store))
    assert env.scanner.seen is not None
    (place.workspace / "lib" / "mod.py").write_text("three\n")
    assert [change.path for change in place.files.diff(first, env.snapshot(3))] == [b"lib/mod.py"]
    for damaged in (place.files.snapshots.place / "seen").iterdir():
        damaged.write_text("{}")
    assert Files(place.files.store).open(place.workspace, Policy(store=place.files.store)).scanner.seen is None


def test_a_spare_is_the_snapshot_that_is_asked_for_and_nobody_elses(place: Place) -> None:
    first = place.env.snapshot(1)
    (place.workspace / "main.py").write_text("later\n")
    second = place.env.snapshot(2)
    branch = fork(place, first)
    (branch.root / "left.txt").write_text("of the first branch")
    branch.close()
    assert len(list((place.files.snapshots.place / "spares").iterdir())) == 1
    again = fork(place, second)
    assert contents(again.root) == contents(place.workspace)
    assert list((place.files.snapshots.place / "spares").iterdir()) == []
    with subprocess.Popen([sys.executable, "-c", "input()"], cwd=again.root, stdin=subprocess.PIPE) as stays:
        while stays.pid not in holders(again.root):
            assert stays.poll() is None
        again.close()
        assert list((place.files.snapshots.place / "spares").iterdir()) == [], "a process still stands in it"
        stays.communicate(b"\n")
    assert not again.root.exists()


def test_a_spare_holds_nothing_of_the_branch_before_that_no_snapshot_has(place: Place) -> None:
    """What is excluded, too large or no file at all is in no tree, and would stay in a folder that is restored."""
    policy = Policy(store=place.files.store, exclude=("cache", "lib/*.log"), largest=1000)
    env = place.files.open(place.workspace, policy)
    (place.workspace / "lib" / "own.log").write_text("the user's own, and excluded\n")
    ref = env.snapshot(1)
    for leaves in ("excluded", "large", "pipe", "unreadable depth"):
        branch = fork(place, ref)
        assert {path.name for path in branch.root.rglob("*")} == {"main.py", "lib", "mod.py"}, f"before {leaves}"
        if leaves == "excluded":
            (branch.root / "cache").mkdir()
            (branch.root / "cache" / "secret.txt").write_text("of another branch")
            (branch.root / "lib" / "run.log").write_text("of another branch")
        elif leaves == "large":
            (branch.root / "large.bin").write_bytes(b"x" * 2000)
        elif leaves == "pipe":
            os.mkfifo(branch.root / "pipe")
        branch.close()


def test_a_restore_that_was_killed_is_finished_by_the_next_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = place.env.snapshot(1)
    state = contents(place.workspace)
    for number in range(5):
        (place.workspace / f"new-{number}").write_text("new")
    (place.workspace / "main.py").write_text("changed\n")
    (place.workspace / "lib" / "mod.py").write_text("changed\n")
    rename = os.rename

    def killed(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        place.env.restore(ref)
    monkeypatch.setattr(os, "rename", rename)
    place.env.restore(ref)
    assert contents(place.workspace) == state
    assert not list(place.workspace.rglob("*.tmp"))


def test_a_read_only_folder_is_gone_back_in_too(place: Place) -> None:
    (place.workspace / "lib").chmod(0o555)
    ref = place.env.snapshot(1)
    (place.workspace / "lib").chmod(0o755)
    (place.workspace / "lib" / "mod.py").unlink()
    (place.workspace / "lib").chmod(0o555)
    place.env.restore(ref)
    assert (place.workspace / "lib" / "mod.py").read_text() == "two\n"
    assert (place.workspace / "lib").stat().st_mode & 0o777 == 0o555
    branch = fork(place, ref)
    branch.discard()
    assert not branch.root.exists()


def test_a_sparse_file_stays_sparse(place: Place) -> None:
    with (place.workspace / "sparse").open("wb") as file:
        file.seek(64 << 20)
        file.write(b"end")
    ref = place.env.snapshot(1)
    copy = fork(place, ref).root / "sparse"
    assert copy.stat().st_size == (64 << 20) + 3
    kept = Path(place.files.snapshots.path(hash_of(copy)))
    assert copy.stat().st_blocks * 512 < 4 << 20 and kept.stat().st_blocks * 512 < 4 << 20


def hash_of(path: Path) -> str:
    return tree.name_of(path.read_bytes())


def test_moves_are_told(place: Place) -> None:
    first = place.env.snapshot(1)
    (place.workspace / "lib" / "mod.py").rename(place.workspace / "moved.py")
    changes = place.files.diff(first, place.env.snapshot(2))
    assert tree.renames(changes) == {b"moved.py": b"lib/mod.py"}
    assert [(c.path, c.old is None, c.new is None) for c in changes] == [
        (b"lib/mod.py", False, True),
        (b"moved.py", True, False),
    ]


def test_only_what_differs_is_touched(place: Place) -> None:
    ref = place.env.snapshot(1)
    (place.workspace / "main.py").write_text("changed\n")
    before = (place.workspace / "lib" / "mod.py").stat()
    place.env.restore(ref)
    after = (place.workspace / "lib" / "mod.py").stat()
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)


def test_a_snapshot_of_another_store_or_row_is_refused(place: Place, quick: Path) -> None:
    ref = place.env.snapshot(1)
    with pytest.raises(StaleBase):
        Files(quick / "elsewhere").fork(ref, 1, branch_seed="", identity="run")
    with pytest.raises(UsageError):
        place.files.snapshots.record("../../etc/passwd")


def test_a_child_that_was_forked_meanwhile_holds_no_sweep_up(place: Place) -> None:
    """A process that is forked while a snapshot is taken has the lock's descriptor; the sweep does not wait for it."""
    ref = place.env.snapshot(1)
    reading, writing = os.pipe()
    with place.files.snapshots.held():
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0)
    try:
        with layout.locked(place.files.snapshots.place / "lock"):
            pass
        assert place.files.gc([ref]) >= 0
    finally:
        os.write(writing, b"x")
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def test_a_snapshot_goes_to_another_store_whole_or_not_at_all(place: Place, quick: Path) -> None:
    ref = place.env.snapshot(1)
    other = Files(quick / "other")
    place.files.send(ref, other)
    place.files.send(ref, other)
    materialise.remove(place.files.store)
    assert other.export(ref) == ref.digest
    (branch,) = other.fork(ref, 1, branch_seed="", identity="run")
    assert contents(branch.root) == contents(place.workspace)
    third = Files(quick / "third")
    Path(other.snapshots.path(tree.name_of(b"two\n"))).write_bytes(b"TWO\n")
    with pytest.raises(Corrupt):
        other.send(ref, third)
    assert third.snapshots.taken() == []


def test_a_workspace_that_is_gone_is_one_error(place: Place) -> None:
    ref = place.env.snapshot(1)
    materialise.remove(place.workspace)
    with pytest.raises(SubstrateError):
        place.env.snapshot(2)
    with pytest.raises(SubstrateError):
        place.env.restore(ref)
    with pytest.raises(UsageError):
        place.files.open(place.workspace, Policy(store=place.files.store))
    assert place.files.snapshots.taken() == [ref.id]
