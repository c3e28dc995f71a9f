"""What an overlay keeps of one store: its layers, what they stand on, and how both become trees in the store.

A user's folder must not change while layers stand on it. When it does all the same, because what happened is settled in
it or because somebody edits it, the layers go on standing on a copy of ours, made from the folder's tree, where that
was kept; else their snapshots are stale, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from worldline.engine import clock
from worldline.engine.substrates.base import Base, fingerprint
from worldline.engine.substrates.bringing import Touched, bring
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.layers import HEAD, Layer, LayerStore
from worldline.engine.substrates.materialise import Materialiser
from worldline.engine.substrates.namespaces import Layers, Shown
from worldline.engine.substrates.scan import Scanner, own_folders
from worldline.engine.substrates.substrate import Policy, SnapRef
from worldline.errors import StaleBase

if TYPE_CHECKING:
    from worldline.engine.substrates.overlay import Overlay

SNAPSHOT, SETTLING = "snapshot", "settling"  # links of a base: its tree in the store; the layer that it is to become


class Underlay:
    """The layers at one place, and their bases."""

    def __init__(self, place: Path, policy: Policy, overlay: Overlay) -> None:
        self.layers = LayerStore(place)
        self.layers.prepare()
        self.policy = policy
        self.files = Files(policy.store)
        self._overlay = overlay
        self._bases: dict[str, Base] = {}
        self._scanners: dict[str, Scanner] = {}
        self._without = own_folders(policy.store.absolute())

    def note(self, workspace: Path) -> Base:
        """A base for what stands in a folder now; it is watched."""
        base = Base("", workspace, "", self._without)
        base.watch()
        base.fingerprint = fingerprint(workspace, map(bytes, self._without))
        base.name = self.layers.add_base(workspace, workspace, base.fingerprint)
        self._bases[base.name] = base
        return base

    def workspace(self, name: str) -> Path:
        """Where commands see a layer, or a base."""
        return self.layers.base(self.layers.below(name)[-1]).workspace

    def check(self, name: str) -> None:
        """Raises `StaleBase` where what a layer stands on is not what it was, and no copy of that can be made."""
        base = self.layers.below(name)[-1]
        noted = self.layers.base(base)
        if not noted.fingerprint:  # ours alone
            return
        if base not in self._bases:
            self._bases[base] = Base(base, noted.folder, noted.fingerprint, self._without)
        try:
            self._bases[base].check()
        except StaleBase:
            snapshot = self.layers.pointed(base, SNAPSHOT)
            if snapshot is None:
                raise
            self._copy(base, self.files.read(snapshot).snapshot)

    def _copy(self, base: str, ref: SnapRef) -> None:
        """Let a base be a copy of ours, from now on."""
        own = self.layers.place / base / "own"
        if not own.exists():
            Materialiser(self.files.snapshots).make(self.files.tree_of(ref), own)
        self.layers.own(base, own)
        self._bases.pop(base, None)
        self._scanners.pop(base, None)

    def materialised(self, ref: SnapRef) -> str:
        """A base that is a copy of a snapshot's tree; made once."""
        for base in self.layers.place.glob("base_*"):
            if self.layers.pointed(base.name, SNAPSHOT) == ref.id and not self.layers.base(base.name).fingerprint:
                return base.name
        place = self.layers.place / f".own-{clock.new_id('env')}"
        Materialiser(self.files.snapshots).make(self.files.tree_of(ref), place)
        name = self.layers.add_base(place, place, "")
        own = self.layers.place / name / "own"
        place.rename(own)
        for link in ("folder", "workspace"):
            self.layers.point(name, link, own)
        self.layers.point(name, SNAPSHOT, ref.id)
        return name

    @contextmanager
    def seen(self, layers: Layers) -> Iterator[Path]:
        """These layers as a folder, for as long as it is looked at."""
        name = clock.new_id("view")
        shown: Shown = self._overlay.entered(
            lambda: self._overlay.namespaces.open(name, layers, self.layers.private, None)
        )
        try:
            yield shown.root
        finally:
            self._overlay.left(name)

    def export(self, ref: SnapRef) -> SnapRef:
        """Keep the tree of a layer and all below it in the store, under the snapshot's own id."""
        self.check(ref.id)
        base = self.layers.below(ref.id)[-1]
        with self.seen(self.layers.stack(ref.id)) as root, self.files.snapshots.held():
            if base not in self._scanners:
                self._scanners[base] = Scanner(root, self.files.snapshots, self._policy(base))
            scanner = self._scanners[base]
            scanner.root = root
            return self.files.publish(ref, scanner.scan(), self.policy)

    def _policy(self, base: str) -> Policy:
        """Seen through layers, the store's own folders are told by their paths."""
        folder = self.layers.base(base).folder
        own = [str(each.relative_to(folder)) for each in self._without if each.is_relative_to(folder)]
        return msgspec.structs.replace(self.policy, exclude=(*self.policy.exclude, *own))

    def flatten(self, name: str) -> Layer:
        """One layer that is what this one and all below it are, down to the base. Nobody writes to it."""
        *uppers, base = self.layers.below(name)
        flat = self.layers.add(base)
        try:
            touched = Touched(self.layers.place / each / "upper" for each in uppers)
            with self.seen(self.layers.stack(name)) as source, self.seen(self.layers.stack(base, flat)) as target:
                bring(source, target, touched.of(source, target))
        except BaseException:
            flat.drop()
            raise
        flat.release()
        return flat

    def settle(self, base: str, head: str) -> None:
        """Let a user's folder become what a layer shows. What stands on the folder stands on a copy of it from then on.

        One that was cut short is done again. Raises `StaleBase`, once, where somebody else changed the folder:
        what happened then stays in its layer, pinned.
        """
        stands_on = self.layers.below(head)[-1]
        if self.layers.pointed(base, SETTLING) is None:
            try:
                self.check(base)
                self.check(head)
            except StaleBase as stale:
                self.layers.pin(head)
                self.layers.point(base, HEAD, None)
                what = (
                    f"{stale}; what was done here stays in {self.layers.place / head / 'upper'}, and is not put there"
                )
                raise StaleBase(what, **{**stale.facts, "ref": head}) from None
            self._keep_tree(base)
            # Flat, so that all that is to be brought stands in the layer, and nothing in the folder that changes.
            self.layers.point(base, SETTLING, self.flatten(head).id)
        settling = self.layers.pointed(base, SETTLING) or head
        folder = self.layers.base(base).workspace
        touched = Touched([self.layers.place / settling / "upper"])
        if base in self._bases:
            self._bases[base].close()
        with self.seen(self.layers.stack(settling)) as root:
            if stands_on != base:  # it was restored to what stands on another base: all of it may differ
                touched.add_all(root, folder, self._without)
            bring(root, folder, touched.of(root, folder))
        self.layers.point(base, HEAD, None)
        self.layers.point(base, SETTLING, None)

    def _keep_tree(self, base: str) -> None:
        """Keep the tree of a base for the snapshots that stand on it, where there are any."""
        if self.layers.pointed(base, SNAPSHOT) is None and self.layers.is_stood_on(base):
            ref = SnapRef(id=clock.new_id("snap"), substrate=self.files.name, seq=0, tier="disk")
            folder = self.layers.base(base).folder
            with self.files.snapshots.held():
                scanned = Scanner(folder, self.files.snapshots, self.policy).scan()
                self.files.publish(ref, scanned, self.policy)
            self.files.pin(ref)
            self.layers.point(base, SNAPSHOT, ref.id)
