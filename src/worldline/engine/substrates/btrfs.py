"""btrfs: a snapshot is a read-only snapshot of the workspace's subvolume, a fork a writable one of that.

For a workspace that is a subvolume already, with the store on the same file system. Both cost the same for any size,
and are on the disk when they return.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from worldline.engine import clock
from worldline.engine.substrates import subvolumes
from worldline.engine.substrates.apart import refuse_whole
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.folder import FolderEnv
from worldline.engine.substrates.holders import refuse_held
from worldline.engine.substrates.scan import Scanner, own_folders
from worldline.engine.substrates.states import AWAKE, STILL, Life, State
from worldline.engine.substrates.substrate import Caps, Policy, SnapRef, seed_of
from worldline.errors import SeqMismatch, StaleBase, Unavailable, Unsupported
from worldline.model.ids import is_id
from worldline.model.tree import Change
from worldline.store import layout
from worldline.store.snapshots import exhausted

NAME = "btrfs"
_EXCHANGE, _HERE = 2, -100  # of renameat2: two names change places, in one step
_LEFT = ".worldline-left-"  # what a workspace was before it was restored, until it is dropped


class Btrfs:
    """Snapshots of subvolumes, in one store of runs."""

    name = NAME

    def __init__(self, store: Path) -> None:
        self.files = Files(store)
        self.place = self.files.snapshots.place.absolute() / "subvolumes"
        self._caps: Caps | None = None

    def probe(self) -> Caps:
        """Makes a subvolume beside the store's snapshots, a snapshot of it, and drops both, once."""
        if self._caps is None:
            self._caps = Caps(
                name=NAME, tier="disk", durable=True, lossy=("subvolumes in it",), why_not=self._why_not()
            )
        return self._caps

    def _why_not(self) -> str | None:
        above = next(folder for folder in (self.place, *self.place.parents) if folder.is_dir())
        trial = above / f".worldline-{clock.new_id('env')}"
        copy = trial.with_name(f"{trial.name}-copy")
        try:
            subvolumes.create(trial)
            try:
                subvolumes.snapshot(trial, copy, read_only=True)
                subvolumes.drop(copy)
            finally:
                subvolumes.drop(trial)
        except OSError as error:
            if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL):
                return f"{above} does not lie on btrfs"
            return f"no subvolume can be made in {above}: {error.strerror}"
        return None

    def open(self, workspace: Path, policy: Policy) -> BtrfsEnv:
        """Take charge of a subvolume. Raises `Unavailable` for what is none, or not on the store's file system."""
        workspace = workspace.absolute()
        refuse_whole(NAME, policy)
        why = self.probe().why_not
        if why is None and not subvolumes.is_subvolume(workspace):
            why = f"{workspace} is no subvolume of btrfs"
        if why is None and any(each.is_relative_to(workspace) for each in own_folders(policy.store.absolute())):
            why = f"the store {policy.store} lies in {workspace}: put it beside it"
        if why is not None:
            raise Unavailable(f"btrfs is not available: {why}", substrate=NAME, why=why)
        layout.make_private(self.place, shared=True)
        for left in workspace.parent.glob(f"{_LEFT}{workspace.name}-*"):
            subvolumes.drop(left)
        env = BtrfsEnv(self, workspace, policy, Life(str(workspace)))
        try:
            env.try_snapshot()
        except OSError as error:
            why = f"{workspace} and {self.place}: {error.strerror}"
            raise Unavailable(f"btrfs is not available: {why}", substrate=NAME, why=why) from None
        env.life.to(State.RUNNING)
        return env

    def kept(self, ref: SnapRef) -> Path:
        """The subvolume of a snapshot. Raises `StaleBase`, `SeqMismatch`."""
        path = self.place / ref.id
        if not is_id(ref.id, "snap") or not path.is_dir():
            raise StaleBase(f"the snapshot {ref.id} is not in {self.place}", ref=ref.id)
        row = int(os.readlink(_row(path)))
        if row != ref.seq:
            raise SeqMismatch(f"{ref.id} was taken at row {row}, not {ref.seq}", environment=row, agent=ref.seq)
        return path

    def fork(
        self, ref: SnapRef, n: int, *, branch_seed: str, identity: str, into: Sequence[Path] = ()
    ) -> list[BtrfsEnv]:
        """See the protocol. Folders of `into` stay when their environments are closed."""
        source = self.kept(ref)
        made: list[BtrfsEnv] = []
        try:
            for number in range(n):
                name = f"{identity}-{number}"
                place = into[number] if into else self.place / f"fork-{name}-{clock.new_id('env')[-8:]}"
                with exhausted("the fork", place.parent):
                    subvolumes.snapshot(source, place, read_only=False)
                env = BtrfsEnv(self, place, Policy(store=self.files.store), Life(name, State.GATED), own=not into)
                env.seed = seed_of(branch_seed, number)
                made.append(env)
        except BaseException:
            for env in made:
                env.life.to(State.CLOSED)
                subvolumes.drop(env.root)
            raise
        return made

    def diff(self, a: SnapRef, b: SnapRef) -> list[Change]:
        """What differs; both are exported for it."""
        for ref in (a, b):
            self.export(ref)
        return self.files.diff(*(msgspec.structs.replace(ref, digest=None) for ref in (a, b)))

    def export(self, ref: SnapRef) -> str:
        """See the protocol. From then on the substrate `files` has it, too."""
        ref = msgspec.structs.replace(ref, digest=None)
        try:
            return self.files.export(ref)
        except StaleBase:
            folder, policy = self.kept(ref), Policy(store=self.files.store)
            with self.files.snapshots.held():
                scanned = Scanner(folder, self.files.snapshots, policy).scan()
                digest = self.files.publish(ref, scanned, policy).digest
        assert digest is not None, "published with its tree"
        return digest

    def flatten(self, ref: SnapRef) -> SnapRef:
        """It stands on none."""
        return ref

    def pin(self, ref: SnapRef) -> None:
        """Keep it whatever `gc` finds."""
        self.kept(ref)
        (self.place / f"{ref.id}.pinned").touch(mode=0o600)

    def unpin(self, ref: SnapRef) -> None:
        """Take the pin off."""
        (self.place / f"{ref.id}.pinned").unlink(missing_ok=True)

    def gc(self, keep: Sequence[SnapRef]) -> int:
        """Drop every snapshot but these and the pinned ones. What that frees is shared, and not known: 0."""
        kept = {ref.id for ref in keep} | {path.stem for path in self.place.glob("snap_*.pinned")}
        for path in self.place.glob("snap_*"):
            if path.is_dir() and path.name not in kept:
                subvolumes.drop(path)
                _row(path).unlink()
        return 0


class BtrfsEnv(FolderEnv):
    """One subvolume. `own` says that it is a fork which goes when it is closed."""

    def __init__(self, btrfs: Btrfs, root: Path, policy: Policy, life: Life, *, own: bool = False) -> None:
        super().__init__(root, life)
        self.btrfs = btrfs
        self.policy = policy
        self.seed: str | None = None  # of a fork
        self._own = own

    def try_snapshot(self) -> None:
        """Raises `OSError` where this workspace cannot be kept in that store."""
        trial = self.btrfs.place / f"trial-{clock.new_id('env')}"
        subvolumes.snapshot(self.root, trial, read_only=False)
        subvolumes.drop(trial)

    def snapshot(self, seq: int) -> SnapRef:
        """Keep the subvolume as it is."""
        ref = SnapRef(id=clock.new_id("snap"), substrate=NAME, seq=seq, tier="disk", parent=self._last)
        with self.life.still(), exhausted("the snapshot", self.btrfs.place):
            kept = self.btrfs.place / ref.id
            _row(kept).symlink_to(str(seq))  # on the disk with the snapshot, which is the commit point
            subvolumes.snapshot(self.root, kept, read_only=True)
            self.life.to(State.SNAPSHOTTED)
        self._last = ref.id
        return ref

    def restore(self, ref: SnapRef) -> None:
        """The workspace's name changes places with a copy of the snapshot. Raises `Busy` while it is held."""
        self.life.expect(*AWAKE, *STILL, State.GATED, State.RESEEDED)
        source = self.btrfs.kept(ref)
        refuse_held(self.root)
        copy = self.root.parent / f"{_LEFT}{self.root.name}-{clock.new_id('env')}"
        with exhausted("the workspace", self.root.parent):
            subvolumes.snapshot(source, copy, read_only=False)
        _exchange(copy, self.root)
        try:
            subvolumes.drop(copy)
        except OSError as error:
            _exchange(copy, self.root)  # what stands in it is somebody's, and in no snapshot
            subvolumes.drop(copy)
            if error.errno != errno.ENOTEMPTY:
                raise
            what = f"{self.root} has another subvolume in it, which no snapshot has"
            raise Unsupported(what, resource="nested subvolume") from None
        self.life.to(State.GATED)
        self._last = ref.id

    def close(self) -> None:
        """Let go of it. A fork without a place of its own goes."""
        if self.life.state is not State.CLOSED:
            self.life.to(State.CLOSED)
            if self._own:
                subvolumes.drop(self.root)


def _row(kept: Path) -> Path:
    """A link that says at which row a snapshot was taken."""
    return kept.with_name(f"{kept.name}.row")


def _exchange(a: Path, b: Path) -> None:
    """Let two names change places. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(a), _HERE, os.fsencode(b), _EXCHANGE) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(b))
