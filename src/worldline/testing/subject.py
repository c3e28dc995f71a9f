"""One substrate under test: where it is made, what it works on, and how what it leaves is looked at.

`testing/substrates.py` holds the checks.
"""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from worldline.engine.substrates.substrate import Caps, Env, Policy, SnapRef, seed_of

SEED = "5eed" * 16
CLONES = 5
FLATTEN_AT = 3
_SKIPPED = frozenset({".git", ".worldline"})

Draw = Callable[[Env], Mapping[str, str]]  # what an environment draws by chance, by what it draws from


class Subject:
    """One substrate, in an empty folder of its own; `factory` is the `module:callable` that makes it of a store.

    `prepare` makes the workspace ready (a repository, say). One that claims that its forks share nothing of something
    but files (`Caps.distinct`) gives `draw`, which draws of it in a fork, and `twins`, which does so in that many forks
    without the cure: what is the same there shows that the check would see it.
    """

    def __init__(
        self,
        factory: str,
        place: Path,
        *,
        prepare: Callable[[Path], None] = lambda workspace: None,
        draw: Draw | None = None,
        twins: Callable[[int], Sequence[Mapping[str, str]]] | None = None,
    ) -> None:
        self.factory = factory
        self.store = place / "runs"
        self.workspace = place / "workspace"
        self.draw = draw
        self.twins = twins
        self.substrate = made(factory, self.store)
        self.caps = self.substrate.probe()
        require(self.caps)
        self.keeps_files = "files" not in self.caps.lossy
        self.store.mkdir()
        (self.workspace / "src").mkdir(parents=True)
        (self.workspace / "src" / "main.py").write_text("print('one')\n")
        (self.workspace / "notes.txt").write_text("one\n")
        prepare(self.workspace)
        self.policy = Policy(store=self.store, flatten_at=FLATTEN_AT)

    def open(self) -> Env:
        """The workspace, in the substrate's charge."""
        env: Env = self.substrate.open(self.workspace, self.policy)
        return env

    def fork(self, ref: SnapRef, n: int = 1) -> Sequence[Env]:
        """Forks, each gone live."""
        branches: Sequence[Env] = self.substrate.fork(ref, n, branch_seed=SEED, identity="run_test")
        for number, branch in enumerate(branches):
            branch.reseed(seed_of(SEED, number))
            branch.open_gate()
        return branches


def made(factory: str, store: Path) -> Any:
    """The substrate that `module:callable` makes of a store."""
    module, _, name = factory.partition(":")
    return getattr(importlib.import_module(module), name)(store)


def require(caps: Caps) -> None:
    """Skip the running test where a substrate cannot be had; fail it where WORLDLINE_REQUIRE (or `all`) promises it."""
    import pytest

    if caps.why_not is None:
        return
    promised = {word.strip() for word in os.environ.get("WORLDLINE_REQUIRE", "").split(",")}
    if promised & {caps.name, "all"}:
        pytest.fail(f"{caps.name} is required here (WORLDLINE_REQUIRE): {caps.why_not}", pytrace=False)
    pytest.skip(f"{caps.name}: {caps.why_not}")


def contents(folder: Path) -> dict[str, tuple[str, str, bytes]]:
    """What a folder holds, by path: files (with their executable bit) and symbolic links. By a walk of its own."""
    found = {}
    for at, folders, names in os.walk(os.fsencode(folder)):
        folders[:] = [name for name in folders if os.fsdecode(name) not in _SKIPPED or at != os.fsencode(folder)]
        for name in [*names, *(each for each in folders if os.path.islink(os.path.join(at, each)))]:
            path = os.path.join(at, name)
            shown = os.fsdecode(os.path.relpath(path, os.fsencode(folder)))
            state = os.lstat(path)
            if stat.S_ISLNK(state.st_mode):
                found[shown] = ("link", "", os.readlink(path))
            elif stat.S_ISREG(state.st_mode):
                found[shown] = ("file", "x" if state.st_mode & 0o100 else "", Path(os.fsdecode(path)).read_bytes())
    return found


def world() -> dict[str, set[str]]:
    """Mounts of this process, loop devices in use, and the processes that are its children."""
    mounts, loops = Path("/proc/self/mountinfo"), Path("/sys/block")
    children = set()
    for process in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = process.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            children.add(process.parent.name)
    return {
        "mounts": set(mounts.read_text().splitlines()) if mounts.exists() else set(),
        "loops": {each.name for each in loops.glob("loop*/loop")} if loops.exists() else set(),
        "processes": children,
    }
