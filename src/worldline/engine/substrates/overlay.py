"""Overlay: a snapshot freezes the layer that was written to and puts an empty one on top; a fork is one more on top.

The workspace's folder is the lowest layer and is never written to while the environment is open. The layers are seen
through `root` and, by the commands that are launched inside, at the workspace's own path; nobody else sees them
(`holder.py`). Snapshots survive this process, and are on the disk for good once they are exported.
"""

from __future__ import annotations

import errno
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from worldline.engine.substrates.apart import refuse_whole
from worldline.engine.substrates.base import Base
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.layers import DEEPEST, HEAD, Layer, place_for
from worldline.engine.substrates.namespaces import Layers, Namespaces, Shown, busy
from worldline.engine.substrates.states import AWAKE, STILL, Life, State
from worldline.engine.substrates.substrate import Caps, Launch, Policy, SnapRef, seed_of
from worldline.engine.substrates.underlay import Underlay
from worldline.errors import StaleBase, Unavailable, UsageError
from worldline.model import tree
from worldline.store.snapshots import exhausted

NAME = "overlay"
TIER = "disk"
_LINKS = "hard links of which one is written to"
_RENAMES = "renaming folders (EXDEV)"
T = TypeVar("T")


class Overlay:
    """Overlays of folders. `own_users`: in a user namespace, which needs no root (None: where root cannot mount)."""

    name = NAME

    def __init__(self, store: Path, own_users: bool | None = None) -> None:
        self.files = Files(store)
        self._inside = self.files.snapshots.place.absolute() / "layers"
        self._ways = (False, True) if own_users is None else (own_users,)
        self._caps: Caps | None = None
        self._namespaces: Namespaces | None = None
        self._opened = 0
        self._lock = threading.RLock()
        self._kept: dict[Path, Underlay] = {}

    def probe(self) -> Caps:
        """Mounts two layers and writes to them, once."""
        with self._lock:
            if self._caps is None:
                self._caps = self._probed()
            return self._caps

    def _probed(self) -> Caps:
        why = []
        for own_users in self._ways:
            try:
                _try(own_users)
            except (OSError, Unavailable) as error:
                said = error.facts["why"] if isinstance(error, Unavailable) else error.strerror or str(error)
                why.append(f"{'in a user namespace' if own_users else 'as this user'}: {said}")
                continue
            self._namespaces = Namespaces(own_users)
            lossy = (_LINKS, _RENAMES) if own_users else (_LINKS,)
            return Caps(name=NAME, tier=TIER, max_depth=DEEPEST - 1, lossy=lossy)
        return Caps(name=NAME, tier=TIER, needs_root=True, why_not="; ".join(why))

    @property
    def namespaces(self) -> Namespaces:
        """Where the mounts are. Raises `Unavailable`."""
        caps = self.probe()
        if self._namespaces is None:
            raise Unavailable(f"overlay is not available: {caps.why_not}", substrate=NAME, why=caps.why_not)
        return self._namespaces

    def open(self, workspace: Path, policy: Policy) -> OverlayEnv:
        """Take charge of a folder. What happens in it is settled in the folder when it is closed.

        What a process that was killed left unsettled is settled first.
        """
        workspace = workspace.absolute()
        refuse_whole(NAME, policy)
        if not workspace.is_dir():
            raise UsageError(f"no folder {workspace}", path=str(workspace))
        kept = self._kept_at(place_for(workspace, policy.store), policy)
        for left, head in kept.layers.heads(workspace):
            kept.settle(left, head)
        base = kept.note(workspace)
        env = self._environment(kept, base.name, State.COLD, workspace, str(workspace), opens=base)
        env.life.to(State.RUNNING)
        return env

    def _kept_at(self, place: Path, policy: Policy) -> Underlay:
        with self._lock:
            if place not in self._kept:
                self._kept[place] = Underlay(place, policy, self)
            return self._kept[place]

    def of(self, ref: SnapRef) -> Underlay:
        """Where the layers of a snapshot are. Raises `StaleBase` where they are nowhere."""
        kept = [*self._kept.values(), self._kept_at(self._inside, Policy(store=self.files.store))]
        for each in kept:
            if each.layers.has(ref.id):
                return each
        raise StaleBase(f"no layers of the snapshot {ref.id} are here", ref=ref.id)

    def fork(
        self, ref: SnapRef, n: int, *, branch_seed: str, identity: str, into: Sequence[Path] = ()
    ) -> list[OverlayEnv]:
        """See the protocol. Commands see the workspace at its own path, or at `into`, which may be there.

        A snapshot of another substrate, or one whose layers are gone, becomes a base, once, from its tree in the store.
        """
        kept, parent = self.standing(ref)
        made: list[OverlayEnv] = []
        try:
            for number in range(n):
                where = into[number] if into else kept.workspace(parent)
                env = self._environment(kept, parent, State.GATED, where, f"{identity}-{number}")
                env.seed = seed_of(branch_seed, number)
                made.append(env)
        except BaseException:
            for env in made:
                env.close()
            raise
        return made

    def standing(self, ref: SnapRef) -> tuple[Underlay, str]:
        """The layer or base that is the snapshot."""
        try:
            kept = self.of(ref)
        except StaleBase:
            taken = self.files.record(ref)
            kept = self._kept_at(self._inside, Policy(store=self.files.store))
            return kept, kept.materialised(taken.snapshot)
        kept.check(ref.id)
        return kept, ref.id

    def _environment(
        self, kept: Underlay, parent: str, state: State, where: Path, name: str, opens: Base | None = None
    ) -> OverlayEnv:
        own_folder = not where.exists()
        layer = kept.layers.add(parent)
        try:
            if own_folder:
                with exhausted("the fork", where.parent):
                    where.mkdir(mode=0o700)
            point = kept.layers.aim(opens.name, HEAD, layer.id) if opens is not None else lambda: None
            shown = self.entered(
                lambda: self.namespaces.open(layer.id, kept.layers.stack(parent, layer), kept.layers.private, where)
            )
        except BaseException as error:
            layer.drop()
            if own_folder and where.exists():
                where.rmdir()
            if not isinstance(error, OSError):
                raise
            # What it is to stand on, or in, is no file system for it.
            why = f"{kept.layers.place} over {where}: {error.strerror or error}"
            raise Unavailable(f"overlay is not available: {why}", substrate=NAME, why=why) from None
        env = OverlayEnv(self, kept, layer, shown, where, Life(name, state))
        env.opens, env.own_folder = opens, own_folder
        point()
        return env

    def entered(self, open_one: Callable[[], T]) -> T:
        """Open a namespace; the holder lives while any is open."""
        with self._lock:
            self._opened += 1
            try:
                return open_one()
            except BaseException:
                self.left()
                raise

    def left(self, env: str | None = None) -> None:
        """One namespace is needed no more."""
        with self._lock:
            if env is not None:
                self.namespaces.forget(env)
            self._opened -= 1
            if self._opened == 0:
                self.namespaces.close()

    def diff(self, a: SnapRef, b: SnapRef) -> list[tree.Change]:
        """What differs; both are exported for it."""
        for ref in (a, b):
            self.export(ref)
        return self.files.diff(*(msgspec.structs.replace(ref, digest=None) for ref in (a, b)))

    def export(self, ref: SnapRef) -> str:
        """See the protocol. From then on the substrate `files` has it, too."""
        try:
            return self.files.export(msgspec.structs.replace(ref, digest=None))
        except StaleBase:
            digest = self.of(ref).export(ref).digest
        assert digest is not None, "published with its tree"
        return digest

    def flatten(self, ref: SnapRef) -> SnapRef:
        """See the protocol."""
        kept = self.of(ref)
        if len(kept.layers.below(ref.id)) <= 2:
            return ref
        kept.check(ref.id)
        flat = kept.flatten(ref.id)
        return msgspec.structs.replace(ref, id=flat.id, parent=None, depth=0, bytes=flat.size())

    def pin(self, ref: SnapRef) -> None:
        """See the protocol."""
        self.of(ref).layers.pin(ref.id)

    def unpin(self, ref: SnapRef) -> None:
        """See the protocol."""
        self.of(ref).layers.unpin(ref.id)

    def gc(self, keep: Sequence[SnapRef]) -> int:
        """See the protocol. What was exported is the substrate `files`' to drop."""
        return sum(kept.layers.sweep([ref.id for ref in keep]) for kept in list(self._kept.values()))


class OverlayEnv:
    """One environment: a namespace, and the layer in it that is written to. `workspace` is where commands see it."""

    def __init__(
        self, overlay: Overlay, kept: Underlay, layer: Layer, shown: Shown, workspace: Path, life: Life
    ) -> None:
        self._overlay = overlay
        self._kept = kept
        self._layer = layer
        self._shown = shown
        self._name = layer.id
        self._last: SnapRef | None = None
        self.workspace = workspace
        self.life = life
        self.seed: str | None = None  # of a fork
        self.opens: Base | None = None  # the user's folder that becomes what this is when it is closed
        self.own_folder = False

    @property
    def root(self) -> Path:
        """The folder as this process sees it. It stays the same; never resolve it, which leads out of the namespace."""
        return self._shown.root

    @property
    def state(self) -> State:
        """What may be done with it now."""
        return self.life.state

    @contextmanager
    def quiesce(self) -> Iterator[None]:
        """Nothing may be held open in it; the kernel tells when the snapshot is taken."""
        with self.life.still():
            yield

    def snapshot(self, seq: int) -> SnapRef:
        """Freeze the layer and go on in an empty one. Raises `Busy`, `StaleBase`, `ResourceExhausted`."""
        with self.life.still():
            frozen, before = self._layer, self._last
            self._kept.check(frozen.id)
            depth = len(self._kept.layers.below(frozen.id)) - 2
            self._stack(frozen.id)
            frozen.release()
            self._last = SnapRef(
                id=frozen.id,
                substrate=NAME,
                seq=seq,
                tier=TIER,
                parent=before.id if before is not None else None,
                depth=depth,
                bytes=frozen.size(),
            )
            if depth + 1 >= min(self._kept.policy.flatten_at, DEEPEST - 1):
                self._stand_on(self._kept.flatten(frozen.id).id)
            self.life.to(State.SNAPSHOTTED)
        return self._last

    def _stand_on(self, parent: str) -> None:
        """Go on with nothing but another layer underneath; what stands in our own is dropped."""
        left = self._layer
        self._stack(parent)
        left.drop()

    def _stack(self, parent: str) -> None:
        """Go on in a new layer on top of `parent`."""
        layers = self._kept.layers
        fresh = layers.add(parent)
        try:
            point = layers.aim(self.opens.name, HEAD, fresh.id) if self.opens is not None else lambda: None
            self._shown = self._asked(partial(self._overlay.namespaces.stack, self._name, layers.stack(parent, fresh)))
        except BaseException:
            fresh.drop()
            raise
        self._layer = fresh
        point()

    def _asked(self, ask: Callable[[], Shown]) -> Shown:
        try:
            return ask()
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise busy(self._shown.mounts, self._overlay.namespaces.pid) from None
            raise
        except Unavailable:
            self.life.to(State.LOST)
            raise

    def restore(self, ref: SnapRef) -> None:
        """See the protocol. What was not kept since the last snapshot is gone."""
        self.life.expect(*AWAKE, *STILL, State.GATED, State.RESEEDED)
        kept, standing = self._overlay.standing(ref)
        if kept is not self._kept:
            raise StaleBase(f"the layers of {ref.id} stand elsewhere: fork it", ref=ref.id)
        self._stand_on(standing)
        self._last = ref
        self.life.to(State.GATED)

    def exec(self, action: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Run a command inside, to its end."""
        launch = self.launch(action)
        return subprocess.run(launch.argv, cwd=launch.cwd, capture_output=True, stdin=subprocess.DEVNULL, check=False)

    def launch(self, argv: Sequence[str]) -> Launch:
        """How to start a command inside; its working directory is the workspace's own path there."""
        self.life.expect(*AWAKE)
        return Launch(argv=self._overlay.namespaces.command(self._shown, self.workspace, argv), cwd=self.workspace)

    def reseed(self, seed: str) -> tuple[str, ...]:
        """A folder draws nothing by chance."""
        self.life.to(State.RESEEDED)
        return ()

    def open_gate(self) -> None:
        """See the protocol."""
        self.life.to(State.LIVE)

    def close(self) -> None:
        """End what runs inside and unmount. The folder that was opened becomes what this is; a fork's changes go.

        Raises `StaleBase` where somebody else changed the folder; then the changes stay in their layer.
        """
        if self.life.state is State.CLOSED:
            return
        self.life.to(State.CLOSED)
        opens, self.opens = self.opens, None
        self._overlay.namespaces.forget(self._name)
        self._layer.release()
        try:
            if opens is not None:
                self._kept.settle(opens.name, self._layer.id)
            self._layer.drop()
        finally:
            if opens is not None:
                opens.close()
            self._overlay.left()
            if self.own_folder:
                self.workspace.rmdir()


def _try(own_users: bool) -> None:
    """Do it once, in a place of its own. Raises `OSError`, `Unavailable`."""
    with tempfile.TemporaryDirectory(prefix="worldline-") as folder:
        place = Path(folder)
        for name in ("base", "a", "b", "wa", "wb", "private"):
            (place / name).mkdir()
        (place / "base" / "kept").write_text("1")
        namespaces = Namespaces(own_users)
        try:
            first = Layers([f"{place}/base"], f"{place}/a", f"{place}/wa")
            shown = namespaces.open("try", first, place / "private", None)
            (shown.root / "new").write_text("2")
            (shown.root / "kept").unlink()
            shown = namespaces.stack("try", Layers([f"{place}/a", f"{place}/base"], f"{place}/b", f"{place}/wb"))
            if [path.name for path in shown.root.iterdir()] != ["new"]:
                raise OSError(errno.EIO, "layers do not hold what was written to them")
        finally:
            namespaces.close()
