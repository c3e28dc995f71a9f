"""The pieces of work: a workspace of 20,000 files of which ten change before each snapshot, and a process of 100 MB."""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.events import place
from benchmarks.measure import WALL, Contest, Row, Work, timed
from benchmarks.substrates import heavy
from tests.substrates import loops
from worldline.engine.substrates.btrfs import Btrfs
from worldline.engine.substrates.files import Files, FilesEnv
from worldline.engine.substrates.git import Git
from worldline.engine.substrates.overlay import Overlay
from worldline.engine.substrates.substrate import Env, Policy, SnapRef, Substrate
from worldline.engine.substrates.zygote import Zygote

FILES, QUICK_FILES, IN_ONE = 20_000, 1_000, 100
CHANGES = 10
SEED = "5eed" * 16
IN_A_TURN = 10  # snapshots, or forks, of what takes milliseconds
ROOT = Path(__file__).parents[2]

BY_HAND, REFLINK = "cp -a", "cp -a --reflink=always, on btrfs"
FORK, FORK_SMALL = "os.fork(), in huge pages, too", "os.fork(), in small pages"


def filled(workspace: Path, count: int) -> None:
    """A workspace of so many small files, a hundred in a folder."""
    for folder in range(count // IN_ONE):
        (workspace / f"folder-{folder}").mkdir(parents=True)
        for number in range(IN_ONE):
            (workspace / f"folder-{folder}" / f"{number}.txt").write_text(f"{folder} {number}\n" * 20)


class Changing:
    """Changes ten files, other ones each time."""

    def __init__(self, count: int) -> None:
        self._folders = count // IN_ONE
        self._turns = itertools.count(1)

    def __call__(self, root: Path) -> None:
        """Change ten files below `root`."""
        turn = next(self._turns)
        for number in range(CHANGES):
            folder = (turn * 7 + number * 13) % self._folders
            (root / f"folder-{folder}" / f"{(turn + number) % IN_ONE}.txt").write_text(f"turn {turn}\n")


def kept(name: str, substrate: Substrate, env: Env, change: Changing, times: int = 1) -> dict[str, Work]:
    """A snapshot after ten changes, and a fork of the last one; in one turn so many `times`, of which the mean counts.

    What the turns of others left to be written is written before those: milliseconds do not pay for somebody's copy.
    """
    change(env.root)
    refs = [env.snapshot(0)]

    def snapshot() -> float:
        change(env.root)
        return timed(WALL, 1, lambda: refs.append(env.snapshot(len(refs))))

    def fork() -> float:
        made, took = forked(substrate, refs[-1])
        made.close()
        return took

    def turn(once: Work) -> Work:
        def turned() -> float:
            if times > 1:
                os.sync()
            return statistics.mean(once() for _ in range(times))

        return turned

    return {f"{name}-snapshot": turn(snapshot), f"{name}-fork": turn(fork)}


def forked(substrate: Substrate, ref: SnapRef) -> tuple[Env, float]:
    """A fork, and the seconds that it took."""
    made: list[Env] = []
    took = timed(WALL, 1, lambda: made.extend(substrate.fork(ref, 1, branch_seed=SEED, identity="bench")))
    return made[0], took


def by_command(folder: Path, command: Callable[[Path], list[str]], clear: Callable[[Path], None]) -> Work:
    """A copy that a command makes in `folder`, of a name that is not there yet; `clear` removes it, unmeasured."""
    numbers = itertools.count()

    def work() -> float:
        target = folder / f"copy-{next(numbers)}"
        took = timed(WALL, 1, lambda: subprocess.run(command(target), check=True, capture_output=True))
        clear(target)
        return took

    return work


@contextmanager
def layers(quick: bool) -> Iterator[Mapping[str, Work]]:
    """Overlay, on the disk and in memory."""
    with place() as folder, ExitStack() as leaving:
        original, change = _original(folder, quick)
        works = {"cp": _copied(original)}
        for name, where in (("overlay", folder), ("overlay-memory", leaving.enter_context(_in_memory()))):
            overlay, times = Overlay(where / "overlay" / "runs"), 1 if quick else IN_A_TURN
            works |= _opened(name, overlay, where / "overlay", original, change, leaving, times)
        yield works


@contextmanager
def _in_memory() -> Iterator[Path]:
    """A folder in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="worldline-") as folder:
        yield Path(folder)


@contextmanager
def folders(quick: bool) -> Iterator[Mapping[str, Work]]:
    """Files, the substrate of any folder, with a store of its own, on the disk of the working directory."""
    with place() as folder:
        original, change = _original(folder, quick)
        yield {**_of_files(folder / "runs", original, change), "cp": _copied(original)}


def _copied(original: Path) -> Work:
    """What one would do by hand. The copies stay till the end.

    A disk that discards what 20,000 removed files left is in the way of any `mkdir` for minutes.
    """
    return by_command(original.parent, lambda copy: ["cp", "-a", str(original), str(copy)], lambda copy: None)


@contextmanager
def repositories(quick: bool) -> Iterator[Mapping[str, Work]]:
    """The substrate git, and what one would do by hand with git."""
    if shutil.which("git") is None:
        yield {}
        return
    with place() as folder, ExitStack() as leaving:
        original, change = _original(folder, quick)
        _repository(original)
        by_git = _by_git(folder, original, change)
        store = folder / "runs"
        git = Git(store)
        env = git.open(original, Policy(store=store))
        leaving.callback(env.close)
        yield kept("git", git, env, change) | by_git


@contextmanager
def subvolumes(quick: bool) -> Iterator[Mapping[str, Work]]:
    """On a file system of btrfs in a file, where one can be mounted."""
    import pytest

    with place() as folder, ExitStack() as leaving:
        try:
            disk = leaving.enter_context(loops.btrfs(folder))
        except (pytest.skip.Exception, pytest.fail.Exception) as missing:
            print(f"no btrfs here: {missing}", file=sys.stderr)
            yield {}
            return
        original, change = _original(folder, quick)
        shutil.copytree(original, workspace := disk / "workspace")
        loops.as_subvolume(workspace)
        substrate = Btrfs(disk / "runs")
        works = kept("btrfs", substrate, substrate.open(workspace, Policy(store=disk / "runs")), change)
        copy, numbers = ["cp", "-a", "--reflink=always", str(workspace)], itertools.count()

        def reflink() -> float:
            target = disk / f"copy-{next(numbers)}"
            took = timed(WALL, 1, lambda: subprocess.run([*copy, str(target)], check=True))
            shutil.rmtree(target)
            return took

        yield {**works, "cp-reflink": reflink}


def _original(folder: Path, quick: bool) -> tuple[Path, Changing]:
    """The workspace that all others are copies of, and what changes them."""
    count = QUICK_FILES if quick else FILES
    (original := folder / "original").mkdir()
    filled(original, count)
    return original, Changing(count)


def _opened(
    name: str, substrate: Substrate, folder: Path, original: Path, change: Changing, leaving: ExitStack, times: int
) -> dict[str, Work]:
    """The works of a substrate on a copy; none where it cannot be had."""
    if substrate.probe().why_not is not None:
        return {}
    shutil.copytree(original, workspace := folder / "workspace", symlinks=True)
    env = substrate.open(workspace, Policy(store=folder / "runs"))
    leaving.callback(env.close)
    return kept(name, substrate, env, change, times)


def _repository(workspace: Path) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    # Else git packs what a commit left, in the background, while the next turn is measured.
    tidy = ["config", "gc.auto", "0"], ["config", "maintenance.auto", "false"]
    for words in (["init", "-q"], *tidy, ["add", "."], [*who, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", "-C", str(workspace), *words], check=True)


def _of_files(store: Path, workspace: Path, change: Changing) -> dict[str, Work]:
    """The substrate files: a snapshot, a fork that is a copy, and one that finds what a closed one left."""
    files = Files(store)
    env = files.open(workspace, Policy(store=store))
    works, ref = kept("files", files, env, change), env.snapshot(1)
    files.prepare(ref)

    def of_a_spare() -> float:
        made, took = forked(files, ref)
        made.close()
        return took

    def copy() -> float:
        """With the spare out of the way."""
        spare, _ = forked(files, ref)
        made: list[FilesEnv] = []
        took = timed(WALL, 1, lambda: made.extend(files.fork(ref, 1, branch_seed=SEED, identity="bench")))
        made[0].discard()
        spare.close()
        return took

    return {**works, "files-fork": copy, "files-fork-spare": of_a_spare}


def _by_git(folder: Path, original: Path, change: Changing) -> dict[str, Work]:
    """What one would do by hand with git."""
    shutil.copytree(original, workspace := folder / "by-git", symlinks=True)
    git = ["git", "-C", str(workspace), "-c", "user.name=bench", "-c", "user.email=bench@example.org"]

    def stash() -> float:
        change(workspace)
        return timed(WALL, 1, lambda: subprocess.run([*git, "stash", "create"], check=True, capture_output=True))

    def clear(target: Path) -> None:
        subprocess.run([*git, "worktree", "remove", "--force", str(target)], check=True)

    worktree = by_command(folder, lambda target: [*git, "worktree", "add", "-q", "--detach", str(target)], clear)
    return {"git-stash-create": stash, "git-worktree": worktree}


@contextmanager
def memory(quick: bool) -> Iterator[Mapping[str, Work]]:
    """A process of 100 MB: kept, forked to one that waits at its gate, and forked with nothing around it."""
    with place() as folder, ExitStack() as leaving:
        (workspace := folder / "workspace").mkdir()
        zygote = Zygote(folder / "runs", f"{heavy.__name__}:Heavy")
        if zygote.probe().why_not is not None:
            yield {}
            return
        env = zygote.open(workspace, Policy(store=folder / "runs"))
        leaving.callback(env.close)
        ref: SnapRef = env.snapshot(0)

        def half() -> float:
            """The process of a snapshot or fork, without the files that are kept beside it."""
            made = []
            took = timed(WALL, 1, lambda: made.extend(zygote.member(ref).fork([None], "gated")))
            made[0].end()
            return took

        def whole() -> float:
            made: list[Env] = []
            took = timed(WALL, 1, lambda: made.extend(zygote.fork(ref, 1, branch_seed=SEED, identity="bench")))
            made[0].close()
            return took

        by_hand = {
            "bare-fork": leaving.enter_context(_by_hand()),
            "bare-small": leaving.enter_context(_by_hand("small")),
        }
        yield {"zygote-process": half, "zygote-fork": whole, **by_hand}


@contextmanager
def _by_hand(*pages: str) -> Iterator[Work]:
    """`os.fork` in a process with the same memory, in pages as the zygote has it, or as the kernel gave it."""
    command = [sys.executable, "-m", heavy.__name__, *pages]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bare:
        assert bare.stdin is not None and bare.stdout is not None
        stdin, stdout = bare.stdin, bare.stdout

        def work() -> float:
            stdin.write(b"\n")
            stdin.flush()
            return float(stdout.readline())

        yield work
        stdin.close()


def _row(name: str, what: str, ours: str, peers: tuple[str, ...], peer: str, limit: float | None = None) -> Row:
    return Row(name, what, ours, peers, peer, figure="own" if limit is not None else "ratio", unit="ms", limit=limit)


CONTESTS = (
    Contest(
        layers,
        (
            _row("overlay-snapshot", "overlay: snapshot", "overlay-snapshot", ("cp",), BY_HAND, 5),
            _row("overlay-fork", "overlay: fork", "overlay-fork", ("cp",), BY_HAND, 5),
            _row("overlay-memory-snapshot", "the same in memory: snapshot", "overlay-memory-snapshot", (), "", 5),
            _row("overlay-memory-fork", "the same in memory: fork", "overlay-memory-fork", (), "", 5),
        ),
        rounds=15,
        seldom={"cp": 2},
    ),
    Contest(
        folders,
        (
            _row("files-snapshot", "files: snapshot", "files-snapshot", ("cp",), BY_HAND),
            _row("files-fork", "files: fork, a copy", "files-fork", ("cp",), BY_HAND),
            _row("files-fork-spare", "files: fork, from a spare", "files-fork-spare", ("cp",), BY_HAND, 250),
        ),
        rounds=6,
        seldom={"cp": 3, "files-fork": 3},
    ),
    Contest(
        repositories,
        (
            _row("git-snapshot", "git: snapshot", "git-snapshot", ("git-stash-create",), "git stash create"),
            _row("git-fork", "git: fork", "git-fork", ("git-worktree",), "git worktree add"),
        ),
        rounds=5,
        seldom={"git-fork": 2, "git-worktree": 2},
    ),
    Contest(
        subvolumes,
        (
            _row("btrfs-snapshot", "btrfs: snapshot, on the disk", "btrfs-snapshot", ("cp-reflink",), REFLINK),
            _row("btrfs-fork", "btrfs: fork", "btrfs-fork", ("cp-reflink",), REFLINK),
        ),
        rounds=5,
        seldom={"cp-reflink": 3},
    ),
    Contest(
        memory,
        (
            _row("zygote-process", "zygote: fork of 100 MB, gated", "zygote-process", ("bare-fork",), FORK, 5),
            _row("zygote-fork", "zygote: the same with its files", "zygote-fork", ("bare-fork",), FORK),
            _row("zygote-small", "the same beside small pages", "zygote-process", ("bare-small",), FORK_SMALL),
        ),
        rounds=21,
    ),
)
