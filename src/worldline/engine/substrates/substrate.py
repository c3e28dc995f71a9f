"""What every substrate offers: a way to keep an environment at one seq, to branch from there, and to go back.

    with env.quiesce():
        ref = env.snapshot(seq)                  # half of a checkpoint; `engine/checkpoints.py` publishes the pair
    (branch,) = substrate.fork(ref, 1, branch_seed=seed, identity=run)      # GATED
    branch.reseed(seed); branch.open_gate()      # LIVE

What a substrate can do is said by `probe()`. One that cannot be had says why there, and raises `Unavailable` when it is
asked for all the same. Substrates need no base class; `testing/substrates.py` tells whether one keeps the promises.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from worldline.engine.substrates.states import State
from worldline.store.secrets.vault import Vault

FLATTEN_AT = 64


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """What a substrate can do here. `tier` is `memory` (a machine's), `process` or `disk`.

    `max_depth` is how many snapshots can stand on one another before it flattens (None: any number); `durable` says
    that a snapshot outlives this process and the machine's next start; `lossy` names what of a workspace it does not
    keep; `distinct` names what its forks never share (`files`, `rng`, `openssl` ...); `why_not` says why it cannot be
    had, None where it can.
    """

    name: str
    tier: str
    needs_root: bool = False
    max_depth: int | None = None
    durable: bool = False
    shares_ram: bool = False
    lossy: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ("files",)
    why_not: str | None = None


class SnapRef(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as rows name it; plain data, good in another process where the substrate is durable.

    `id` is `snap_<26>`; `seq` the row behind which it was taken; `parent` the snapshot it stands on; `digest` the
    SHA-256 of the workspace's tree (`model/tree.py`), None while no such tree was made; `depth` counts the snapshots
    below it; `bytes` is what it added to the disk. `uniqueness_debt` names what forks of it share until they are
    reseeded, `notes` what is not in it or may be wrong in it: `{"path":..,"why":..}`.
    """

    id: str
    substrate: str
    seq: int
    tier: str
    parent: str | None = None
    digest: str | None = None
    depth: int = 0
    bytes: int = 0
    uniqueness_debt: tuple[str, ...] = ()
    notes: tuple[dict[str, str], ...] = ()


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """A substrate that was asked for and cannot be had, and the one that is used in its place. Never silent."""

    wanted: str
    used: str
    why: str

    def __str__(self) -> str:
        return f"{self.used} in place of {self.wanted}: {self.why}"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How a workspace is kept. `store` is the runs' store: snapshots are kept in it, and it is in no snapshot.

    `exclude` names paths below the workspace that are no part of the environment (`*` in them as in a shell, within
    one folder). A file of more than `largest` bytes is left out, and that is said. `flatten_at` is the depth at which a
    chain of snapshots is made one; `rereads` how often a file is read again that changes while it is read. What holds
    a secret that is registered in `secrets` is left out and named, and so is what `apart` names, notes of that kind.
    """

    store: Path
    exclude: tuple[str, ...] = ()
    largest: int | None = None
    flatten_at: int = FLATTEN_AT
    rereads: int = 3
    secrets: Vault | None = None
    apart: tuple[dict[str, str], ...] = ()


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How a command is started so that it runs inside an environment: its words, its folder, more environment."""

    argv: list[str]
    cwd: Path
    environment: dict[str, str] = {}


class Gated(Protocol):
    """The way of a fork, or of what was restored, to being live."""

    def reseed(self, seed: str) -> Sequence[str]:
        """Draw anew what twins would share, from `seed` (hex) where it must be repeatable. Returns what was drawn.

        Raises `ReseedFailed`; then the gate stays shut.
        """

    def open_gate(self) -> None:
        """Go live. Raises `StateRefused` where it was not reseeded."""


class Env(Gated, Protocol):
    """One environment: a workspace and, where the substrate has them, its processes. `root` is its folder."""

    @property
    def root(self) -> Path:
        """Its folder, as this process sees it."""

    @property
    def state(self) -> State:
        """What may be done with it now."""

    def quiesce(self) -> AbstractContextManager[None]:
        """Hold it still, for a snapshot. Raises `Busy` (facts `pids`, `fds`) or `NotQuiescent` (`threads`)."""

    def snapshot(self, seq: int) -> SnapRef:
        """Keep it as it is behind row `seq`; it is held still meanwhile. Raises `Unsupported`, `ResourceExhausted`."""

    def restore(self, ref: SnapRef) -> None:
        """Make it what it was, in place; then it is GATED.

        Raises `Corrupt` with nothing changed, `StaleBase`, `Busy`.
        """

    def exec(self, action: Any) -> Any:
        """Carry out one action inside: of a folder, an argv, which gives a `subprocess.CompletedProcess` of bytes."""

    def launch(self, argv: Sequence[str]) -> Launch:
        """How to start a command inside. Raises `Unsupported` where no command can be."""

    def close(self) -> None:
        """Let go of everything: no process, mount or folder of a fork is left. Twice is once."""


class Substrate(Protocol):
    """A way of keeping environments."""

    @property
    def name(self) -> str:
        """The word that policies, rows and reports have for it."""

    def probe(self) -> Caps:
        """What it can do here, found out by doing it once, and cheap the second time."""

    def open(self, workspace: Path, policy: Policy) -> Env:
        """Take charge of a folder that is there. It is RUNNING. Raises `Unavailable`."""

    def fork(
        self, ref: SnapRef, n: int, *, branch_seed: str, identity: str, into: Sequence[Path] = ()
    ) -> Sequence[Env]:
        """`n` environments as they were at `ref`, each GATED and none seeing another's changes.

        `identity` names the branching (a run's id); number i is `<identity>-<i>`, its seed `seed_of(branch_seed, i)`.
        `into` gives their folders, which are not there yet; else the substrate picks them. All of them or none.
        """

    def diff(self, a: SnapRef, b: SnapRef) -> Sequence[Any]:
        """What differs in their workspaces: `model.tree.Change`s by path. Raises `Unsupported` without digests."""


class Keeping(Protocol):
    """What is done with snapshots afterwards."""

    def export(self, ref: SnapRef) -> str:
        """The digest of its workspace's tree, which then stands in the store's content-addressed form. Always works."""

    def flatten(self, ref: SnapRef) -> SnapRef:
        """The same snapshot (same digest) that stands on none; what stands on nothing is given back as it is."""

    def pin(self, ref: SnapRef) -> None:
        """Keep it whatever `gc` finds."""

    def unpin(self, ref: SnapRef) -> None:
        """Take the pin off."""

    def gc(self, keep: Sequence[SnapRef]) -> int:
        """Drop what neither these nor a pin need. Returns the bytes that this freed."""


def seed_of(branch_seed: str, number: int) -> str:
    """The seed of the branch with this number, in hex: repeatable, and another one for each."""
    return hashlib.sha256(f"{branch_seed}/{number}".encode()).hexdigest()
