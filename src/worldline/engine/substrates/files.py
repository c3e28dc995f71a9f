"""The substrate `files`: a workspace as a content-addressed tree, everywhere, durable and portable.

A snapshot reads what changed; a fork is a copy, so it costs with the size of the workspace; going back in place touches
only what differs. What a closed fork leaves is kept as a spare: the next fork takes it and only brings what differs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from worldline.engine import clock
from worldline.engine.substrates.apart import Note, secret_notes
from worldline.engine.substrates.folder import FolderEnv
from worldline.engine.substrates.holders import holders
from worldline.engine.substrates.materialise import Materialiser, remove
from worldline.engine.substrates.remembered import forget, recall, remember
from worldline.engine.substrates.scan import Scanned, Scanner, told
from worldline.engine.substrates.states import AWAKE, STILL, Life, State
from worldline.engine.substrates.substrate import Caps, Policy, SnapRef, seed_of
from worldline.errors import Busy, Corrupt, SeqMismatch, StaleBase, Unsupported, UsageError
from worldline.model import tree
from worldline.model.events import encode_json
from worldline.model.tree import Change
from worldline.store import layout
from worldline.store.secrets.vault import Vault
from worldline.store.snapshots import SnapshotStore, exhausted

FORMAT = "worldline-snapshot/1"
SPARES = 2
_LOSSY = ("times of folders and symbolic links", "attributes outside user., capabilities and ACLs", "sockets", "pipes")


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What the store has of a snapshot: as it was told, the document of its tree, and what was left out.

    `tree` is None of a commit (`git` says of which repository) that was not brought into this form yet.
    """

    format: str = FORMAT
    snapshot: SnapRef
    tree: str | None
    git: dict[str, str] | None = None
    exclude: tuple[str, ...] = ()
    largest: int | None = None


class Files:
    """Snapshots of folders in one store of runs. `forks` is where forks stand that are given no place."""

    name = "files"

    def __init__(self, store: Path, forks: Path | None = None) -> None:
        self.store = store
        self.snapshots = SnapshotStore(store)
        self._forks = forks or self.snapshots.place / "forks"
        self.secrets: Vault | None = None  # what its forks keep out of their snapshots

    def probe(self) -> Caps:
        """It can always be had where folders can be opened by descriptors."""
        why = None if os.open in os.supports_dir_fd and os.scandir in os.supports_fd else "no folders by descriptors"
        return Caps(name=self.name, tier="disk", durable=True, lossy=_LOSSY, why_not=why)

    def open(self, workspace: Path, policy: Policy) -> FilesEnv:
        """Take charge of a folder; it stays whose it is. Raises `UsageError` where it is none."""
        if not workspace.is_dir():
            raise UsageError(f"no folder {workspace}", path=str(workspace))
        env = FilesEnv(self, workspace, policy, Life(str(workspace)))
        env.life.to(State.RUNNING)
        return env

    def fork(
        self, ref: SnapRef, n: int, *, branch_seed: str, identity: str, into: Sequence[Path] = ()
    ) -> list[FilesEnv]:
        """`n` copies of the workspace, GATED. One without a place in `into` is removed when it is closed."""
        taken = self.record(ref)
        made: list[FilesEnv] = []
        try:
            with exhausted("the fork", self._forks):
                layout.make_private(self._forks, shared=True)
            for number in range(n):
                own = not into
                place = self._forks / f"{identity}-{number}-{clock.new_id('env')[-8:]}" if own else into[number]
                made.append(self._made(taken, place, seed_of(branch_seed, number), own))
        except BaseException:
            for env in made:
                env.discard()
            raise
        return made

    def _env(self, taken: Taken, place: Path, seed: str, own: bool) -> FilesEnv:
        apart = secret_notes(taken.snapshot.notes)
        policy = Policy(
            store=self.store, exclude=taken.exclude, largest=taken.largest, secrets=self.secrets, apart=apart
        )
        return FilesEnv(self, place, policy, Life(place.name, State.GATED), own=own, seed=seed)

    def _made(self, taken: Taken, place: Path, seed: str, own: bool) -> FilesEnv:
        env = self._env(taken, place, seed, own)
        if not self._from_spare(taken, env):
            env.scanner.seen = Materialiser(self.snapshots).make(self.tree_of(taken.snapshot), place)
        return env

    def _from_spare(self, taken: Taken, env: FilesEnv) -> bool:
        """Whether a spare could be made the fork: it is claimed by renaming it, so nobody else has it."""
        for spare in sorted((self.snapshots.place / "spares").glob("env_*")):
            try:
                os.rename(spare, env.root)
            except OSError:  # taken by another, or on another disk: then it is copied
                continue
            env.scanner.seen = recall(self.snapshots, spare)
            forget(self.snapshots, spare)
            try:
                env.bring(taken, alone=True)
            except Unsupported:  # somebody left there what no snapshot holds
                remove(env.root)
                env.scanner.seen = None
                continue
            except BaseException:
                remove(env.root)
                raise
            return True
        return False

    def prepare(self, ref: SnapRef) -> None:
        """Make a spare ahead of the next fork, which is quick then. It costs what a copy costs.

        Raises `Corrupt`, `StaleBase`, `ResourceExhausted`.
        """
        taken = self.record(ref)
        with exhausted("the spare", self._forks):
            layout.make_private(self._forks, shared=True)
        env = self._env(taken, self._forks / f"spare-{clock.new_id('env')[-8:]}", "", own=True)
        env.scanner.seen = Materialiser(self.snapshots).make(self.tree_of(ref), env.root)
        env.close()

    def spare(self, env: FilesEnv) -> bool:
        """Keep a closed fork's folder for the next one. False where there are enough, or somebody still holds it."""
        folder = self.snapshots.place / "spares"
        try:
            layout.make_private(folder, shared=True)
        except OSError:  # a full disk has no room for what is only to save time
            return False
        if len(list(folder.glob("env_*"))) >= SPARES or holders(env.root):
            return False
        spare = folder / clock.new_id("env")
        try:
            os.rename(env.root, spare)
        except OSError:  # on another disk
            return False
        remember(self.snapshots, spare, env.scanner.seen)
        return True

    def publish(self, ref: SnapRef, scanned: Scanned, policy: Policy) -> SnapRef:
        """The commit point of a snapshot whose tree is in the store. Also for other substrates' refs (`adopt`)."""
        ref = msgspec.structs.replace(ref, digest=scanned.digest, notes=(*ref.notes, *scanned.notes))
        taken = Taken(snapshot=ref, tree=scanned.tree, exclude=policy.exclude, largest=policy.largest)
        self.snapshots.publish(ref.id, encode_json(taken) + b"\n")
        return ref

    def adopt(self, ref: SnapRef, folder: Path, policy: Policy) -> SnapRef:
        """Keep what another substrate took as `ref` and shows in `folder` in this form, too.

        Returns the ref with its digest.
        """
        with self.snapshots.held():
            return self.publish(ref, Scanner(folder, self.snapshots, policy).scan(), policy)

    def amend(self, taken: Taken, scanned: Scanned) -> Taken:
        """Note the tree of a snapshot that had none in this form."""
        ref = msgspec.structs.replace(
            taken.snapshot, digest=scanned.digest, notes=(*taken.snapshot.notes, *scanned.notes)
        )
        amended = msgspec.structs.replace(taken, snapshot=ref, tree=scanned.tree)
        self.snapshots.amend(ref.id, encode_json(amended) + b"\n")
        return amended

    def read(self, snapshot: str) -> Taken:
        """What the store has of the snapshot of an id. Raises `StaleBase` where it is not here, `Corrupt`."""
        try:
            return msgspec.json.decode(self.snapshots.record(snapshot), type=Taken)
        except msgspec.DecodeError as error:
            raise Corrupt(f"what was kept of {snapshot} cannot be read: {error}", digest="") from None

    def tree_of(self, ref: SnapRef) -> str:
        """The name of the document of its tree. Raises what `record` raises, and `Unsupported` without one."""
        taken = self.record(ref)
        if taken.tree is None:
            raise Unsupported(f"{ref.id} was not brought into the content-addressed form yet", resource="tree")
        return taken.tree

    def record(self, ref: SnapRef) -> Taken:
        """What the store has of a snapshot. Raises `StaleBase` where it is not here, `Corrupt`, `SeqMismatch`."""
        taken = self.read(ref.id)
        if ref.digest is not None and taken.snapshot.digest != ref.digest:
            raise StaleBase(f"{ref.id} in {self.snapshots.place} is another snapshot", ref=ref.id)
        if taken.snapshot.seq != ref.seq:
            facts = {"environment": taken.snapshot.seq, "agent": ref.seq}
            raise SeqMismatch(f"{ref.id} was taken at row {taken.snapshot.seq}, not {ref.seq}", **facts)
        return taken

    def diff(self, a: SnapRef, b: SnapRef) -> list[Change]:
        """What differs in two workspaces, by path."""
        with self.snapshots.held():
            reader = Materialiser(self.snapshots)
            first, second = (reader.read_tree(self.tree_of(ref)) for ref in (a, b))
            return tree.diff(self.snapshots.read, first, second)

    def export(self, ref: SnapRef) -> str:
        """The digest of the tree, which stands in the store already. Every part of it is checked."""
        taken = self.record(ref)
        with self.snapshots.held():
            for name in Materialiser(self.snapshots).needed(self.tree_of(ref)):
                self.snapshots.check(name)
        assert taken.snapshot.digest is not None, "published with its tree"
        return taken.snapshot.digest

    def send(self, ref: SnapRef, to: Files) -> None:
        """Have a snapshot in another store, too. Each content is checked on its way; what is there is not sent again.

        Raises `Corrupt`, `ResourceExhausted`; then the other store does not have the snapshot.
        """
        taken = self.record(ref)
        with self.snapshots.held(), to.snapshots.writing() as batch:
            for name in Materialiser(self.snapshots).needed(self.tree_of(ref)):
                path = self.snapshots.path(name)
                if not os.path.isfile(path):
                    raise Corrupt(f"the content {name[:12]} is missing", digest=name, path=path)
                with open(path, "rb", buffering=0) as content:
                    found, _ = batch.add_from(content.fileno(), os.fstat(content.fileno()).st_size)
                if found != name:
                    raise Corrupt(f"the content {name[:12]} is not what was kept", digest=name, path=path)
            batch.commit()
            if ref.id not in to.snapshots.taken():
                to.snapshots.publish(ref.id, encode_json(taken) + b"\n")

    def flatten(self, ref: SnapRef) -> SnapRef:
        """A tree stands on none."""
        return ref

    def pin(self, ref: SnapRef) -> None:
        """Keep it whatever `gc` finds."""
        self.snapshots.pin(ref.id)

    def unpin(self, ref: SnapRef) -> None:
        """Take the pin off."""
        self.snapshots.unpin(ref.id)

    def gc(self, keep: Sequence[SnapRef]) -> int:
        """Drop every snapshot but these and the pinned ones, what only they had, and all spares. Returns the bytes."""
        return self.gc_named(lambda: [ref.id for ref in keep])

    def gc_named(self, keep: Callable[[], Iterable[str]]) -> int:
        """`gc` by ids, which are asked for when nobody can add snapshots any more."""
        for spare in (self.snapshots.place / "spares").glob("env_*"):
            gone = self.snapshots.place / f"{spare.name}.tmp"
            try:
                os.rename(spare, gone)  # so nobody takes it while it goes
            except FileNotFoundError:  # somebody did
                continue
            remove(gone)
            forget(self.snapshots, spare)
        reader = Materialiser(self.snapshots)

        def needed(record: bytes) -> Sequence[str]:
            tree = msgspec.json.decode(record, type=Taken).tree
            return list(reader.needed(tree)) if tree is not None else ()

        return self.snapshots.sweep(keep, needed)


class FilesEnv(FolderEnv):
    """A workspace. `own` says that it is a fork which goes when it is closed."""

    def __init__(
        self, files: Files, root: Path, policy: Policy, life: Life, *, own: bool = False, seed: str | None = None
    ) -> None:
        super().__init__(root, life)
        self.files = files
        self.policy = policy
        self.seed = seed
        self._own = own
        self.scanner = Scanner(root, files.snapshots, policy)
        if life.state is State.COLD:
            self.scanner.recalled(recall(files.snapshots, root))

    def keep_apart(self, notes: Sequence[Note]) -> None:
        """Leave out what these notes name, too: it holds a secret where the agent sees it."""
        self.policy = self.scanner.policy = msgspec.structs.replace(self.policy, apart=tuple(notes))

    def snapshot(self, seq: int) -> SnapRef:
        """Keep the workspace as it is behind row `seq`."""
        with self.quiesce(), self.files.snapshots.held():
            first = self.scanner.seen is None
            scanned = self.scanner.scan()
            ref = SnapRef(
                id=clock.new_id("snap"),
                substrate=self.files.name,
                seq=seq,
                tier="disk",
                parent=self._last,
                bytes=scanned.bytes,
            )
            ref = self.files.publish(ref, scanned, self.policy)
            self.life.to(State.SNAPSHOTTED)
        self._last = ref.id
        if first and not self._own:
            remember(self.files.snapshots, self.root, self.scanner.seen)
        return ref

    def restore(self, ref: SnapRef) -> None:
        """Make the workspace what it was, touching only what differs. Raises `Busy` where it changes meanwhile."""
        self.life.expect(*AWAKE, *STILL, State.GATED, State.RESEEDED)
        self.bring(self.files.record(ref))
        self.life.to(State.GATED)
        self._last = ref.id

    def bring(self, taken: Taken, *, alone: bool = False) -> list[Change]:
        """Make the folder what was taken. Returns what had to be changed; what is noted there stays as it is.

        `alone` says that nobody else can reach it, so that it need not be read again to see whether somebody did, and
        that it was another branch's: what is in no snapshot goes, too. Raises `Unsupported` where that cannot be told.
        """
        snapshots = self.files.snapshots
        with snapshots.held():
            maker = Materialiser(snapshots)
            target = maker.read_tree(self.files.tree_of(taken.snapshot))
            scanned = self.scanner.scan()
            if alone:
                self._clear(scanned)
            apart = {note["path"] for note in (*taken.snapshot.notes, *scanned.notes)}
            changes = [
                change
                for change in tree.diff(snapshots.read, maker.read_tree(scanned.tree), target)
                if told(os.fsdecode(change.path)) not in apart and not self.scanner.excluded(os.fsdecode(change.path))
            ]
            maker.apply(self.root, changes)
            if alone or not changes:
                return changes
            after = self.scanner.scan(once=True)
            wrong = [
                change.path
                for change in tree.diff(snapshots.read, maker.read_tree(after.tree), target)
                if change.path in {each.path for each in changes} - maker.notes.keys()
            ]
        if wrong:
            raise Busy(
                f"{self.root} changed while it was restored: {wrong[0]!r:.200}",
                pids=sorted(holders(self.root)),
                fds=[os.fsdecode(path) for path in wrong],
            )
        return changes

    def _clear(self, scanned: Scanned) -> None:
        """Remove what is no part of the environment, and what another branch has left there for that."""
        unknown = [note["path"] for note in scanned.notes if note["path"] not in self.scanner.apart.given]
        if unknown:
            raise Unsupported(f"{self.root} holds what is in no snapshot", resource=unknown[0])
        for path in map(self.root.joinpath, self.scanner.left_out):
            if path.is_dir() and not path.is_symlink():
                remove(path)
            else:
                path.unlink()

    def give_back(self) -> None:
        """Let go of a fork whose files nobody needs any more, wherever it stands: the next is made of its folder."""
        self.life.to(State.CLOSED)
        if not self.files.spare(self):
            remove(self.root)

    def close(self) -> None:
        """Let go of it. A fork without a place of its own becomes a spare, or goes."""
        if self.life.state is State.CLOSED:
            return
        self.life.to(State.CLOSED)
        if not self._own:
            remember(self.files.snapshots, self.root, self.scanner.seen)
        elif self.root.is_dir() and not self.files.spare(self):
            remove(self.root)

    def discard(self) -> None:
        """Let go of a fork and remove it, wherever it stands."""
        self.life.to(State.CLOSED)
        remove(self.root)
