"""Overlay: what layers hold is what a folder would hold, at any depth, and nobody loses or leaves anything."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.substrates.surroundings import world
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.overlay import Overlay
from worldline.engine.substrates.scan import Scanner
from worldline.engine.substrates.states import State
from worldline.engine.substrates.substrate import Policy, SnapRef
from worldline.errors import Busy, StaleBase, Unavailable, UsageError
from worldline.store.snapshots import SnapshotStore
from worldline.testing.subject import contents, require

SEED = "5eed" * 16


@pytest.fixture
def tmp_path(quick: Path) -> Path:
    """In memory: layers are made by the hundred here."""
    return quick


@pytest.fixture(params=["root", "user"])
def overlay(request: pytest.FixtureRequest, tmp_path: Path) -> Overlay:
    made = Overlay(tmp_path / "runs", own_users=request.param == "user")
    require(made.probe())
    return made


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src" / "deep" / "er").mkdir(parents=True)
    for number in range(6):
        (folder / "src" / f"{number}.txt").write_text(f"{number}\n" * 10)
        (folder / "src" / "deep" / f"{number}.txt").write_text(f"deep {number}\n")
    (folder / "link").symlink_to("src/1.txt")
    return folder


def digest(folder: Path, at: Path) -> str:
    """Of a folder's tree, by the substrate files."""
    return Scanner(folder, SnapshotStore(at), Policy(store=at)).scan().digest


class Doer:
    """Does things to a folder, the same for the same seed. `whole`: with what only root's overlays can do."""

    def __init__(self, root: Path, seed: int, whole: bool) -> None:
        self.root = root
        self.chance = random.Random(seed)
        self.acts: list[Callable[[Path], None]] = [
            self.write, self.write, self.append, self.folder, self.gone, self.mode, self.attribute, self.symlink,
            self.hole, self.replaced, self.emptied,
        ]  # fmt: skip
        if whole:
            self.acts.append(self.moved)

    def __call__(self, times: int) -> None:
        for _ in range(times):
            self.chance.choice(self.acts)(self.some())

    def some(self) -> Path:
        """A path that is there, or a new one."""
        paths = sorted(path for path in self.root.rglob("*") if not path.is_symlink())
        if not paths or self.chance.random() < 0.25:
            folders = [self.root, *(path for path in paths if path.is_dir())]
            return self.chance.choice(folders) / f"new-{self.chance.randrange(40)}"
        return self.chance.choice(paths)

    def write(self, path: Path) -> None:
        if not path.is_dir():
            path.write_text(f"{self.chance.random()}\n" * self.chance.randrange(1, 30))

    def append(self, path: Path) -> None:
        if path.is_file():
            with path.open("a") as file:
                file.write("more\n")

    def folder(self, path: Path) -> None:
        if not os.path.lexists(path):
            (path / "in" / "it").mkdir(parents=True)

    def gone(self, path: Path) -> None:
        if path.is_dir():
            if self.chance.random() < 0.3:
                shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def mode(self, path: Path) -> None:
        if path.exists():
            path.chmod(self.chance.choice([0o700, 0o755, 0o711] if path.is_dir() else [0o600, 0o644, 0o755]))

    def attribute(self, path: Path) -> None:
        if path.exists():
            os.setxattr(path, f"user.{self.chance.choice('abc')}", str(self.chance.random()).encode())

    def symlink(self, path: Path) -> None:
        if not os.path.lexists(path):
            path.symlink_to(self.chance.choice(["../x", "src/2.txt", "nowhere"]))

    def hole(self, path: Path) -> None:
        if path.is_file():
            os.truncate(path, 1 << 16)

    def replaced(self, path: Path) -> None:
        """A file becomes a folder, a folder a file."""
        if path.is_file():
            path.unlink()
            path.mkdir()
            (path / "was-a-file").write_text("yes")
        elif path.is_dir() and self.chance.random() < 0.3:
            shutil.rmtree(path)
            path.write_text("was a folder")

    def emptied(self, path: Path) -> None:
        """A folder that hides what was below it."""
        if path.is_dir():
            shutil.rmtree(path)
            path.mkdir()
            (path / "anew").write_text("anew")

    def moved(self, path: Path) -> None:
        target = self.root / f"moved-{self.chance.randrange(1000)}"
        if path.exists() and not target.exists():
            path.rename(target)


@pytest.mark.parametrize("seed", range(2))
def test_layers_hold_what_a_folder_would_hold(overlay: Overlay, workspace: Path, tmp_path: Path, seed: int) -> None:
    """The same done to layers and to a plain copy: exported, flat, forked and settled they are the same tree."""
    plain = tmp_path / "plain"
    shutil.copytree(workspace, plain, symlinks=True)
    env = overlay.open(workspace, Policy(store=tmp_path / "runs", flatten_at=4))
    whole = not overlay.namespaces.own_users
    here, there = Doer(env.root, seed, whole), Doer(plain, seed, whole)
    refs: list[tuple[SnapRef, str]] = []
    for number in range(6):
        here(25)
        there(25)
        refs.append((env.snapshot(number), digest(plain, tmp_path / "other")))
    for ref, wanted in refs:
        assert overlay.export(ref) == wanted, f"snapshot {ref.seq}"
    assert overlay.export(msgspec.structs.replace(overlay.flatten(refs[2][0]), digest=None)) == refs[2][1]
    here(10)
    there(10)
    env.close()
    assert digest(workspace, tmp_path / "other") == digest(plain, tmp_path / "other"), "the folder became another"
    (branch,) = overlay.fork(refs[3][0], 1, branch_seed=SEED, identity="late")
    assert digest(branch.root, tmp_path / "other") == refs[3][1], "what stood on the folder before it was settled"
    branch.close()


def test_a_chain_of_501_snapshots_is_no_deeper_than_it_may_be(
    overlay: Overlay, workspace: Path, tmp_path: Path
) -> None:
    env = overlay.open(workspace, Policy(store=tmp_path / "runs"))
    refs = []
    depth = 131 if overlay.namespaces.own_users else 501
    for number in range(depth):
        (env.root / "counted").write_text(str(number))
        (env.root / "src" / f"{number % 6}.txt").write_text(f"at {number}")
        refs.append(env.snapshot(number))
    assert max(ref.depth for ref in refs) < 64
    for number in (0, 63, 64, 65, depth - 1):
        (branch,) = overlay.fork(refs[number], 1, branch_seed=SEED, identity="deep")
        assert (branch.root / "counted").read_text() == str(number)
        assert (branch.root / "src" / f"{number % 6}.txt").read_text() == f"at {number}"
        branch.close()
    env.restore(refs[130])
    assert (env.root / "counted").read_text() == "130"
    env.close()
    assert (workspace / "counted").read_text() == "130"


def test_a_base_that_changes_is_found_out_and_named(overlay: Overlay, workspace: Path, tmp_path: Path) -> None:
    env = overlay.open(workspace, Policy(store=tmp_path / "runs"))
    (env.root / "agent.txt").write_text("the agent's")
    ref = env.snapshot(1)
    (workspace / "src" / "1.txt").write_text("somebody else's")
    for act in (lambda: env.snapshot(2), lambda: overlay.fork(ref, 1, branch_seed=SEED, identity="x"), env.close):
        with pytest.raises(StaleBase) as stale:
            act()
        assert stale.value.facts["paths"] == ["src/1.txt"]
    assert (workspace / "src" / "1.txt").read_text() == "somebody else's"
    assert not (workspace / "agent.txt").exists()
    layers = tmp_path / "runs" / ".snapshots" / "layers"
    assert (layers / ref.id / "upper" / "agent.txt").read_text() == "the agent's", "nothing is lost"
    overlay.open(workspace, Policy(store=tmp_path / "runs")).close()
    assert (workspace / "src" / "1.txt").read_text() == "somebody else's"


def test_who_holds_it_is_named_and_then_it_goes_on(overlay: Overlay, workspace: Path, tmp_path: Path) -> None:
    env = overlay.open(workspace, Policy(store=tmp_path / "runs"))
    launch = env.launch(["sh", "-c", "exec >held.txt; echo ready >&2; read line"])
    with subprocess.Popen(launch.argv, cwd=launch.cwd, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None and process.stdin is not None
        process.stderr.readline()
        with pytest.raises(Busy) as busy:
            env.snapshot(1)
        assert busy.value.facts["pids"] == [process.pid]
        assert str(workspace / "held.txt") in busy.value.facts["fds"]
        process.stdin.close()
    (env.root / "after.txt").write_text("still here")
    ref = env.snapshot(1)
    (branch,) = overlay.fork(ref, 1, branch_seed=SEED, identity="x")
    assert {"held.txt", "after.txt"} <= contents(branch.root).keys()
    branch.close()
    env.close()


def test_commands_of_a_branch_see_the_workspace_where_it_was(overlay: Overlay, workspace: Path, tmp_path: Path) -> None:
    """From a snapshot of the substrate files; the folder itself is not touched, and a path that leaks leads nowhere."""
    store, before = tmp_path / "runs", contents(workspace)
    files = Files(store)
    ref = files.open(workspace, Policy(store=store)).snapshot(1)
    branches = overlay.fork(ref, 2, branch_seed=SEED, identity="run", into=[workspace, workspace])
    for number, branch in enumerate(branches):
        branch.reseed(SEED)
        branch.open_gate()
        done = branch.exec(["sh", "-c", f"pwd; rm src/1.txt; echo {number} > mine; cat link"])
        assert done.stdout.decode().splitlines()[0] == str(workspace) and b"No such" in done.stderr
    assert [(branch.root / "mine").read_text() for branch in branches] == ["0\n", "1\n"]
    assert contents(workspace) == before
    assert not os.path.realpath(branches[0].root).startswith(str(workspace))
    assert not os.path.exists(os.path.realpath(branches[0].root))
    for branch in branches:
        branch.close()


@pytest.mark.parametrize("moment", (0, 2))
def test_killed_at_any_moment_nothing_is_lost_or_left(
    overlay: Overlay, workspace: Path, tmp_path: Path, moment: int
) -> None:
    """A process that is killed between its snapshots and forks: all it had told of is there, in another process."""
    before = world()
    own_users = "1" if overlay.namespaces.own_users else ""
    command = [sys.executable, "-c", _TAKER, str(tmp_path / "runs"), str(workspace), own_users]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert process.stdout is not None
    holder = int(process.stdout.readline())
    watched = os.pidfd_open(holder)
    told = [process.stdout.readline() for _ in range(3 * moment + 1)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    told += [line for line in process.stdout if line.endswith(b"\n")]
    process.stdout.close()
    assert select.select([watched], [], [], 60)[0], "the process that held the mounts ends with its parent"
    os.close(watched)
    assert {what: found - before[what] for what, found in world().items()} == {what: set() for what in before}
    refs = [msgspec.json.decode(line, type=SnapRef) for line in told]
    fresh = Overlay(tmp_path / "runs", own_users=bool(own_users))
    for ref in refs:
        (branch,) = fresh.fork(ref, 1, branch_seed=SEED, identity="after")
        assert (branch.root / "counted").read_text() == str(ref.seq)
        branch.close()
    again = fresh.open(workspace, Policy(store=tmp_path / "runs"))
    assert int((again.root / "counted").read_text()) >= refs[-1].seq, "what was not settled is settled"
    assert again.state is State.RUNNING
    again.close()
    assert {path.name for path in (tmp_path / "runs" / ".snapshots" / "layers" / "private").iterdir()} == set()
    fresh.gc([])
    assert not list((tmp_path / "runs" / ".snapshots" / "layers").glob("*snap_*"))


def test_where_layers_cannot_stand_it_says_why(overlay: Overlay, workspace: Path, tmp_path: Path) -> None:
    """As in a container whose own files are an overlay: layers that are written to cannot stand in one."""
    env = overlay.open(workspace, Policy(store=tmp_path / "runs"))
    (tmp_path / "inner").mkdir()
    inside = env.root / "src" / "runs"
    with pytest.raises(Unavailable) as refused:
        Overlay(inside, own_users=overlay.namespaces.own_users).open(tmp_path / "inner", Policy(store=inside))
    assert str(tmp_path / "inner") in refused.value.facts["why"]
    shutil.rmtree(inside)
    env.close()


def test_where_it_cannot_be_had_it_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, workspace = tmp_path / "runs", tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    without = Overlay(store)
    why = without.probe().why_not
    assert why is not None and "as this user" in why and "in a user namespace" in why
    with pytest.raises(Unavailable, match="its holder cannot be started"):
        without.open(workspace, Policy(store=store))
    with pytest.raises(UsageError, match="no folder"):
        without.open(tmp_path / "nowhere", Policy(store=store))


_TAKER = """
import sys, pathlib, msgspec
from worldline.engine.substrates.overlay import Overlay
from worldline.engine.substrates.substrate import Policy
store, workspace = map(pathlib.Path, sys.argv[1:3])
overlay = Overlay(store, own_users=bool(sys.argv[3]))
env = overlay.open(workspace, Policy(store=store, flatten_at=5))
print(overlay.namespaces.pid, flush=True)
for number in range(1000):
    (env.root / "counted").write_text(str(number))
    ref = env.snapshot(number)
    sys.stdout.write(msgspec.json.encode(ref).decode() + "\\n")
    sys.stdout.flush()
    (branch,) = overlay.fork(ref, 1, branch_seed="00", identity="killed")
    (branch.root / "counted").write_text("in the branch")
    if number % 2:
        branch.close()
"""
