"""The promises of a substrate, as checks that any implementation runs: they tell whether it keeps them.

    from worldline.testing.subject import Subject
    from worldline.testing.substrates import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_mine_keeps_the_promises(check, tmp_path):
        check(Subject("my_package.mine:Mine", tmp_path))

A check passes, fails with an `AssertionError`, or is skipped where the substrate cannot be had (`why_not`); it fails
there, too, where WORLDLINE_REQUIRE names it. What it says that it does not keep (`Caps.lossy`) is not asked of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from worldline.engine.substrates.files import Files
from worldline.engine.substrates.holders import holders
from worldline.engine.substrates.states import State
from worldline.engine.substrates.substrate import Env, SnapRef, seed_of
from worldline.errors import Busy, SeqMismatch, StaleBase, StateRefused, Unsupported
from worldline.testing.subject import CLONES, FLATTEN_AT, SEED, Subject, contents, made, world


def a_snapshot_is_of_the_row_it_was_taken_at(subject: Subject) -> None:
    """Both halves of a checkpoint name their row, and a half of another row is refused."""
    env = subject.open()
    first, second = env.snapshot(7), env.snapshot(8)
    assert (first.seq, second.seq) == (7, 8)
    assert first.id != second.id and second.parent == first.id
    assert env.state in (State.RUNNING, State.LIVE), "an environment goes on behind a snapshot"
    if subject.keeps_files and subject.caps.durable:
        _refused(SeqMismatch, lambda: subject.fork(_changed(first, seq=9)))
        _refused(StaleBase, lambda: subject.fork(_changed(first, id="snap_00000000000000000000000000")))
    env.close()


def a_fork_goes_live_only_once_reseeded(subject: Subject) -> None:
    """GATED, then RESEEDED, then LIVE; nothing runs inside before."""
    env = subject.open()
    ref = env.snapshot(1)
    (branch,) = subject.substrate.fork(ref, 1, branch_seed=SEED, identity="run_test")
    assert str(branch.state) == "gated"
    _refused(StateRefused, branch.open_gate)
    _refused(StateRefused, lambda: branch.exec([sys.executable, "-c", ""]))
    branch.reseed(seed_of(SEED, 0))
    assert str(branch.state) == "reseeded"
    branch.open_gate()
    assert str(branch.state) == "live"
    branch.close()
    branch.close()
    assert str(branch.state) == "closed"
    env.close()


def neither_side_sees_what_the_other_does(subject: Subject) -> None:
    """A fork has what was there, and from then on each side has its own; so have two forks."""
    if not subject.keeps_files:
        return _says_that_it_keeps_nothing(subject)
    env = subject.open()
    _write(env, "secret.txt", "before")
    ref = env.snapshot(1)
    before = contents(env.root)
    one, two = subject.fork(ref, 2)
    assert contents(one.root) == contents(two.root) == before
    _write(one, "secret.txt", "one")
    _write(one, "only-one.txt", "one")
    _write(env, "src/main.py", "the parent goes on")
    assert contents(two.root) == before
    assert "only-one.txt" not in contents(env.root)
    assert (env.root / "secret.txt").read_text() == "before"
    assert (one.root / "src" / "main.py").read_text() == "print('one')\n"
    (again,) = subject.fork(ref)
    assert contents(again.root) == before, "writing into a fork, or its parent, changed the snapshot"
    for each in (one, two, again, env):
        each.close()
    return None


def clones_are_distinct_in_what_is_claimed(subject: Subject) -> None:
    """First the twins that the cure is for (the negative control), then as many clones, all different."""
    env = subject.open()
    ref = env.snapshot(1)
    branches = subject.fork(ref, CLONES)
    if "files" in subject.caps.distinct:
        assert len({os.fspath(branch.root) for branch in branches}) == CLONES
        for number, branch in enumerate(branches):
            _write(branch, "whose.txt", str(number))
        assert [(branch.root / "whose.txt").read_text() for branch in branches] == [*map(str, range(CLONES))]
    claimed = set(subject.caps.distinct) - {"files"}
    if claimed:
        assert subject.draw is not None and subject.twins is not None, f"give draw and twins for {sorted(claimed)}"
        without = subject.twins(CLONES)
        drawn = [subject.draw(branch) for branch in branches]
        for source in sorted(claimed):
            assert len({each[source] for each in drawn}) == CLONES, f"twins: {source}"
        assert any(len({each[source] for each in without}) < CLONES for source in claimed), "the control shows no twins"
    for each in (*branches, env):
        each.close()


def a_file_that_is_being_written_is_whole_or_named(subject: Subject) -> None:
    """A snapshot under a writer is refused as busy, has the file in one piece, or says that it may not."""
    if not subject.keeps_files:
        return
    env = subject.open()
    _write(env, "busy.txt", "a" * 4096)
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, os.fspath(env.root / "busy.txt")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None and writer.stdin is not None
        writer.stdout.readline()
        try:
            ref = env.snapshot(1)
        except Busy as busy:
            assert writer.pid in busy.facts["pids"]
            ref = None
        writer.stdin.close()
    if ref is None:
        ref = env.snapshot(1)
    (branch,) = subject.fork(ref)
    data = (branch.root / "busy.txt").read_bytes()
    assert len(set(data)) == 1 or any(note["path"] == "busy.txt" for note in ref.notes) or "." in _noted(ref)
    branch.close()
    env.close()


def any_number_of_snapshots_can_be_gone_back_to(subject: Subject) -> None:
    """Past the depth at which it flattens, each snapshot still is what it was."""
    if not subject.keeps_files:
        return
    env = subject.open()
    refs, states = [], []
    for number in range(2 * FLATTEN_AT + 2):
        _write(env, f"step-{number}.txt", str(number))
        _write(env, "notes.txt", f"step {number}")
        if number:
            (env.root / f"step-{number - 1}.txt").unlink()
        refs.append(env.snapshot(number))
        states.append(contents(env.root))
        assert refs[-1].depth <= (subject.caps.max_depth or len(refs))
    for ref, state in zip(refs, states, strict=True):
        (branch,) = subject.fork(ref)
        assert contents(branch.root) == state, f"snapshot {ref.seq}"
        branch.close()
    env.close()


def flattening_changes_nothing(subject: Subject) -> None:
    """A flat snapshot has the digest of the chain that it was made of, and what can be exported is the workspace."""
    if not subject.keeps_files:
        return
    env = subject.open()
    for number in range(3):
        _write(env, "notes.txt", f"step {number}")
        ref = env.snapshot(number)
    state = contents(env.root)
    digest = subject.substrate.export(ref)
    flat = subject.substrate.flatten(ref)
    assert flat.depth == 0 and subject.substrate.export(flat) == digest
    (branch,) = Files(subject.store).fork(
        _changed(flat, digest=digest),
        1,
        branch_seed=SEED,
        identity="run_disk",
        into=[subject.store.parent / "exported"],
    )
    assert contents(branch.root) == state, "the exported tree is not the workspace"
    branch.discard()
    env.close()


def going_back_twice_is_going_back_once(subject: Subject) -> None:
    """A restore brings back all that is kept and removes what came since; a second one finds nothing to do."""
    if not subject.keeps_files:
        return
    env = subject.open()
    (env.root / "old").mkdir()
    _write(env, "old/kept.txt", "kept")
    (env.root / "old" / "run.sh").write_text("#!/bin/sh\n")
    (env.root / "old" / "run.sh").chmod(0o755)
    os.symlink("kept.txt", env.root / "old" / "link")
    ref = env.snapshot(1)
    state = contents(env.root)
    (env.root / "old" / "kept.txt").rename(env.root / "moved.txt")
    (env.root / "old" / "run.sh").unlink()
    (env.root / "old" / "link").unlink()
    (env.root / "old" / "link").write_text("a file now")
    _write(env, "new/deep/file.txt", "new")
    later = env.snapshot(2)
    changed = contents(env.root)
    for _ in range(2):
        env.restore(ref)
        assert contents(env.root) == state
        assert env.state is State.GATED, "what was lived before goes live only once it is reseeded"
    env.reseed(SEED)
    env.open_gate()
    env.restore(later)
    assert contents(env.root) == changed, "a snapshot is there still when an earlier one was restored"
    env.close()


def killed_in_mid_snapshot_nothing_is_lost(subject: Subject) -> None:
    """A process that is killed while it takes a snapshot takes nothing with it, and nothing half is ever seen."""
    if not subject.keeps_files or not subject.caps.durable:
        return
    env = subject.open()
    ref = env.snapshot(1)
    state = contents(env.root)
    env.close()
    for number in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", _TAKER, subject.factory, os.fspath(subject.store), os.fspath(subject.workspace)],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        for _ in range(number + 1):
            line = process.stdout.readline()
        assert line, "the process that takes snapshots ended by itself"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        fresh = made(subject.factory, subject.store)
        again = fresh.open(subject.workspace, subject.policy)
        again.restore(ref)
        assert contents(again.root) == state
        again.reseed(SEED)
        again.open_gate()
        _write(again, "later.txt", str(number))
        later = again.snapshot(10 + number)
        (branch,) = fresh.fork(later, 1, branch_seed=SEED, identity="run_later")
        assert contents(branch.root) == contents(again.root)
        branch.close()
        again.close()


def the_disk_tier_comes_to_the_same(subject: Subject) -> None:
    """A fork that went on from memory is what a copy from the disk is in which the actions since are issued again."""
    if not subject.keeps_files:
        return
    env = subject.open()
    actions = [[sys.executable, "-c", _ACTION, str(number)] for number in range(4)]
    for action in actions[:2]:
        assert env.exec(action).returncode == 0
    ref = env.snapshot(2)
    digest = subject.substrate.export(ref)
    (branch,) = subject.fork(ref)
    (copy,) = Files(subject.store).fork(
        _changed(ref, digest=digest), 1, branch_seed=SEED, identity="run_disk", into=[subject.store.parent / "copy"]
    )
    copy.reseed(SEED)
    copy.open_gate()
    for each in (branch, copy):
        for action in actions[2:]:
            assert each.exec(action).returncode == 0
    assert contents(branch.root) == contents(copy.root)
    branch.close()
    copy.discard()
    env.close()


def nothing_is_left_behind(subject: Subject) -> None:
    """When all is closed there is no mount, loop device, process or zombie, and no folder of a fork."""
    before = world()
    env = subject.open()
    ref = env.snapshot(1)
    branches = subject.fork(ref, 2)
    roots = [branch.root for branch in branches]
    for branch in branches:
        branch.exec([sys.executable, "-c", ""])
        branch.close()
    env.close()
    left = {what: found - before[what] for what, found in world().items()}
    assert not any(left.values()), f"left behind: {left}"
    if subject.keeps_files:
        assert not any(root.exists() or holders(root) for root in roots), "a closed fork is there still"
        assert (subject.workspace / "notes.txt").read_text() == "one\n", "the user's folder stays"


CHECKS: tuple[Callable[[Subject], None], ...] = (
    a_snapshot_is_of_the_row_it_was_taken_at,
    a_fork_goes_live_only_once_reseeded,
    neither_side_sees_what_the_other_does,
    clones_are_distinct_in_what_is_claimed,
    a_file_that_is_being_written_is_whole_or_named,
    any_number_of_snapshots_can_be_gone_back_to,
    flattening_changes_nothing,
    going_back_twice_is_going_back_once,
    killed_in_mid_snapshot_nothing_is_lost,
    the_disk_tier_comes_to_the_same,
    nothing_is_left_behind,
)

_WRITER = """
import os, select, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY)
print("ready", flush=True)
number = 0
while not select.select([0], [], [], 0)[0]:
    number += 1
    os.pwrite(descriptor, bytes([97 + number % 26]) * 4096, 0)  # one page: the kernel writes no more at once
"""

_TAKER = """
import sys, pathlib
from worldline.engine.substrates.substrate import Policy
from worldline.testing.subject import FLATTEN_AT, made
store, workspace = map(pathlib.Path, sys.argv[2:])
env = made(sys.argv[1], store).open(workspace, Policy(store=store, flatten_at=FLATTEN_AT))
for number in range(1000):
    for each in range(20):
        (env.root / f"killed-{each}.txt").write_text(f"{number} {each} " * 500)
    print(number, flush=True)
    env.snapshot(100 + number)
"""

_ACTION = """
import pathlib, sys
number = int(sys.argv[1])
folder = pathlib.Path("made")
folder.mkdir(exist_ok=True)
(folder / f"{number}.txt").write_text(f"action {number}")
with (folder / "all.txt").open("a") as file:
    file.write(f"{number}\\n")
if number > 1:
    (folder / f"{number - 2}.txt").unlink()
"""


def _says_that_it_keeps_nothing(subject: Subject) -> None:
    env = subject.open()
    ref = env.snapshot(1)
    assert ref.digest is None and "." in _noted(ref), "a snapshot without files says so"
    _refused(Unsupported, lambda: env.restore(ref))
    _refused(Unsupported, lambda: subject.substrate.export(ref))
    env.close()


def _write(env: Env, path: str, text: str) -> None:
    place = env.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def _noted(ref: SnapRef) -> set[str]:
    return {note["path"] for note in ref.notes}


def _changed(ref: SnapRef, **fields: Any) -> SnapRef:
    return msgspec.structs.replace(ref, **fields)


def _refused(error: type[Exception], act: Callable[[], object]) -> None:
    try:
        act()
    except error:
        return
    raise AssertionError(f"{error.__name__} was to be raised")
