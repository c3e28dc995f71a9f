"""The substrate `none`: nothing of the environment is kept, and that is said. For agents that touch no files.

A checkpoint then has the agent's half alone, and a branch works in the folder as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from worldline.engine import clock
from worldline.engine.substrates.folder import FolderEnv
from worldline.engine.substrates.states import Life, State
from worldline.engine.substrates.substrate import Caps, Policy, SnapRef
from worldline.errors import Unsupported

AS_IT_STANDS = {"path": ".", "why": "not kept: nothing of the workspace is, its files are as they stand"}


class Nothing:
    """Keeps nothing."""

    name = "none"

    def __init__(self, store: Path) -> None:
        self.store = store

    def probe(self) -> Caps:
        """It can always be had."""
        return Caps(name=self.name, tier="disk", durable=True, lossy=("files",), distinct=())

    def open(self, workspace: Path, policy: Policy) -> NothingEnv:
        """The folder as it stands."""
        env = NothingEnv(workspace, State.COLD)
        env.life.to(State.RUNNING)
        return env

    def fork(
        self, ref: SnapRef, n: int, *, branch_seed: str, identity: str, into: Sequence[Path] = ()
    ) -> list[NothingEnv]:
        """`n` branches in the folders of `into`, which are there already, or all in the working directory."""
        return [NothingEnv(into[number] if into else Path.cwd(), State.GATED) for number in range(n)]

    def diff(self, a: SnapRef, b: SnapRef) -> NoReturn:
        """Refused."""
        raise _nothing_kept(a)

    def export(self, ref: SnapRef) -> NoReturn:
        """Refused."""
        raise _nothing_kept(ref)

    def flatten(self, ref: SnapRef) -> SnapRef:
        """It stands on none."""
        return ref

    def pin(self, ref: SnapRef) -> None:
        """There is nothing to lose."""

    def unpin(self, ref: SnapRef) -> None:
        """There was nothing to lose."""

    def gc(self, keep: Sequence[SnapRef]) -> int:
        """There is nothing to drop."""
        return 0


class NothingEnv(FolderEnv):
    """A folder as it stands."""

    def __init__(self, root: Path, state: State) -> None:
        super().__init__(root, Life(str(root), state))

    def snapshot(self, seq: int) -> SnapRef:
        """A reference that says that nothing was kept."""
        with self.quiesce():
            self.life.to(State.SNAPSHOTTED)
        ref = SnapRef(
            id=clock.new_id("snap"), substrate="none", seq=seq, tier="disk", parent=self._last, notes=(AS_IT_STANDS,)
        )
        self._last = ref.id
        return ref

    def restore(self, ref: SnapRef) -> NoReturn:
        """Refused."""
        raise _nothing_kept(ref)


def _nothing_kept(ref: SnapRef) -> Unsupported:
    return Unsupported(
        f"nothing of the workspace was kept at {ref.id}: record with another substrate", resource="files"
    )
