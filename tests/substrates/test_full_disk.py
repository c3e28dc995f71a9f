"""A disk that is full is one clear error for every substrate: nothing half is seen, nothing is left, and it goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.substrates.loops import as_subvolume, btrfs
from tests.substrates.small import Disk, small
from tests.substrates.surroundings import world
from worldline.engine.substrates.btrfs import Btrfs
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.git import Git
from worldline.engine.substrates.namespaces import Layers
from worldline.engine.substrates.overlay import Overlay
from worldline.engine.substrates.states import AWAKE
from worldline.engine.substrates.substrate import Policy
from worldline.errors import ResourceExhausted
from worldline.testing.subject import contents

SEED = "5eed" * 16


@pytest.fixture
def disk(quick: Path) -> Iterator[Disk]:
    before = world()
    with small(quick / "disk") as place:
        yield place
    left = {what: found - before[what] for what, found in world().items()}
    assert not any(left.values()), f"left behind: {left}"


@pytest.fixture
def workspace(quick: Path) -> Path:
    folder = quick / "workspace"
    (folder / "src").mkdir(parents=True)
    for number in range(8):
        (folder / "src" / f"{number}.txt").write_text(f"{number}\n" * 50)
    return folder


def overlay_of_root(store: Path) -> Overlay:
    return Overlay(store, own_users=False)


def overlay_of_a_user(store: Path) -> Overlay:
    return Overlay(store, own_users=True)


def in_git(folder: Path) -> None:
    who = ["-c", "user.name=user", "-c", "user.email=user@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.mark.parametrize("make", [Files, Git, overlay_of_root, overlay_of_a_user], ids=lambda make: make.__name__)
def test_with_any_number_of_inodes_left_it_works_or_is_refused_and_goes_on(
    disk: Disk, workspace: Path, make: Callable[[Path], Any]
) -> None:
    store = disk.place / "runs"
    substrate = make(store)
    if (why := substrate.probe().why_not) is not None:
        require(substrate.name, False, why)
    if make is Git:
        in_git(workspace)
    env = substrate.open(workspace, Policy(store=store))
    refs = [env.snapshot(0)]
    states = {refs[0].id: contents(env.root)}
    refused = {"snapshot": 0, "fork": 0, "export": 0}
    for free in (0, 1, 2, 3, 4, 5, 7, 12, 34, 37):
        (env.root / "src" / f"{free % 8}.txt").write_text(f"with {free} inodes left\n" * 30)
        before = contents(env.root)
        disk.fill(inodes=free)
        try:
            refs.append(env.snapshot(free + 1))
            states[refs[-1].id] = before
        except ResourceExhausted as error:
            assert "No space left" in str(error) or "Out of diskspace" in str(error)
            refused["snapshot"] += 1
        assert env.state in AWAKE and contents(env.root) == before, "the environment is as it was, and goes on"
        mounted = world()
        try:
            (branch,) = substrate.fork(refs[-1], 1, branch_seed=SEED, identity="run")
            assert contents(branch.root) == states[refs[-1].id]
            branch.close()
        except ResourceExhausted:
            refused["fork"] += 1
        try:
            substrate.export(refs[-1])
        except ResourceExhausted:
            refused["export"] += 1
        left = {what: found - mounted[what] for what, found in world().items() if what != "processes"}
        assert not any(left.values()), f"left behind: {left}"
        disk.clear()
        again = env.snapshot(100 + free)
        states[again.id] = before
        refs.append(again)
    assert refused["snapshot"], "it was never full"
    for ref in refs:
        (branch,) = substrate.fork(ref, 1, branch_seed=SEED, identity="later")
        assert contents(branch.root) == states[ref.id], "with room again every snapshot is what it was"
        branch.close()
    last = contents(env.root)
    env.close()
    assert contents(workspace) == last
    assert not [path for path in workspace.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.parametrize("make", [overlay_of_root, overlay_of_a_user], ids=lambda make: make.__name__)
def test_layers_that_cannot_be_mounted_leave_those_that_were(
    quick: Path, workspace: Path, make: Callable[[Path], Overlay]
) -> None:
    overlay = make(quick / "runs")
    if (why := overlay.probe().why_not) is not None:
        require("overlay", False, why)
    env = overlay.open(workspace, Policy(store=quick / "runs"))
    (env.root / "written.txt").write_text("before")
    state = contents(env.root)
    for name in ("upper", "work"):
        (quick / name).mkdir()
    layers = Layers([str(quick / "nowhere")], str(quick / "upper"), str(quick / "work"))
    with pytest.raises(FileNotFoundError):
        overlay.namespaces.stack(env._name, layers)
    assert contents(env.root) == state
    (env.root / "written.txt").write_text("after")
    ref = env.snapshot(1)
    assert overlay.export(ref)
    env.close()
    assert (workspace / "written.txt").read_text() == "after"


@pytest.fixture
def on_btrfs(tmp_path: Path) -> Iterator[Path]:
    with btrfs(tmp_path) as place:
        yield place


def test_a_full_btrfs_is_refused_and_goes_on(on_btrfs: Path, workspace: Path) -> None:
    store, volume = on_btrfs / "runs", on_btrfs / "volume"
    subprocess.run(["cp", "-a", str(workspace), str(volume)], check=True)
    as_subvolume(volume)
    substrate = Btrfs(store)
    env = substrate.open(volume, Policy(store=store))
    ref = env.snapshot(1)
    state = contents(volume)
    filler = os.open(on_btrfs / "filler", os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 1 << 12):  # it is full for a large write before it is for a small one
        try:
            while True:
                os.write(filler, os.urandom(size))
        except OSError as error:
            assert error.errno == 28, error
    refused = 0
    for use in (lambda: env.snapshot(2), lambda: substrate.export(ref)):
        try:
            use()
        except ResourceExhausted:
            refused += 1
        assert env.state in AWAKE and contents(volume) == state
    os.close(filler)
    (on_btrfs / "filler").unlink()
    (branch,) = substrate.fork(ref, 1, branch_seed=SEED, identity="run")
    assert contents(branch.root) == state and env.snapshot(3).id != ref.id
    branch.close()
    env.close()
    assert refused, "it was never full"
