"""The layers of overlays on the disk, and what they stand on.

    <place>/snap_<26>/{upper/,work/,parent}      one layer: what changed, the kernel's room, a link to what is below
    <place>/base_<26>/{folder,workspace}         links: the folder underneath, and where commands see it
    <place>/base_<26>/fingerprint                what the folder looked like
    <place>/base_<26>/{head,snapshot,own/}       its open layer; its tree in the store; a copy of ours in its place
    <place>/{empty/,private/}                    for views

A layer is named by the snapshot that it becomes, and gets its name in one step, with its parent in it: whatever is
killed on its way leaves a folder with a dot that nobody reads. Whoever writes to a layer holds a lock on it, so a sweep
in another process leaves it alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from worldline.engine import clock
from worldline.engine.substrates.attributes import dress
from worldline.engine.substrates.namespaces import Layers
from worldline.errors import StaleBase
from worldline.model.ids import is_id
from worldline.store import layout
from worldline.store.snapshots import SnapshotStore, exhausted

DEEPEST = 500  # the kernel's own limit of lower layers
PINNED = "pinned"
HEAD = "head"  # of a base: the layer in which an environment goes on that was opened over a user's folder


class Underneath(NamedTuple):
    """A base: the folder, where commands see it, and what it looked like (empty of one that is ours alone)."""

    folder: Path
    workspace: Path
    fingerprint: str


class Layer:
    """A layer that is written to, locked by this process. `parent` names what it stands on."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock

    @property
    def id(self) -> str:
        """The id of the snapshot that it becomes."""
        return self.path.name

    def size(self) -> int:
        """The bytes of the files in it."""
        return sum(state.st_size for _, state in contents(self.path / "upper") if stat.S_ISREG(state.st_mode))

    def release(self) -> None:
        """It is written to no more."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def drop(self) -> None:
        """Remove it with all that is in it."""
        remove(self.path)
        self.release()


def contents(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every path below a folder, relative to it, a folder before what is in it."""
    waiting, top = [""], str(folder)
    while waiting:
        at = waiting.pop()
        with os.scandir(f"{top}/{at}") as listing:
            for each in listing:
                state = each.stat(follow_symlinks=False)
                yield at + each.name, state
                if stat.S_ISDIR(state.st_mode):
                    waiting.append(f"{at}{each.name}/")


def remove(path: Path) -> None:
    """Remove a folder with all in it, whatever its modes are."""
    for folder, folders, _ in os.walk(path):
        for name in folders:
            inner = os.path.join(folder, name)
            with suppress(OSError):
                if not os.path.islink(inner) and stat.S_IMODE(os.lstat(inner).st_mode) & 0o700 != 0o700:
                    os.chmod(inner, 0o700)
    with suppress(FileNotFoundError):
        shutil.rmtree(path)


class LayerStore:
    """The layers at one place. Safe from several processes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._at = str(place)
        self._below: dict[str, list[str]] = {}  # what a layer stands on never changes
        self._bases: dict[str, Underneath] = {}

    def prepare(self) -> None:
        """Make the place."""
        for name in ("empty", "private"):
            layout.make_private(self.place / name, shared=True)

    @property
    def private(self) -> Path:
        """An empty folder, which stays one outside of the namespaces."""
        return self.place / "private"

    def add_base(self, folder: Path, workspace: Path, fingerprint: str) -> str:
        """Note what layers stand on: a folder, and where commands see it. Returns its id."""
        name = clock.new_id("base")
        new = self.place / f".{name}"
        new.mkdir(mode=0o700)
        (new / "folder").symlink_to(folder)
        (new / "workspace").symlink_to(workspace)
        descriptor = layout.create(new / "fingerprint")
        layout.write_all(descriptor, fingerprint.encode())
        os.close(descriptor)
        new.rename(self.place / name)
        return name

    def base(self, name: str) -> Underneath:
        """What is noted of a base. Raises `StaleBase` where it is not here."""
        if name not in self._bases:
            base = self.place / name
            try:
                folder, workspace = (Path(os.readlink(base / link)) for link in ("folder", "workspace"))
                self._bases[name] = Underneath(folder, workspace, (base / "fingerprint").read_text())
            except OSError:
                raise StaleBase(f"what {name} stood on is not noted in {self.place}", ref=name) from None
        return self._bases[name]

    def own(self, name: str, folder: Path) -> None:
        """Let a base be a folder of ours, which nobody changes."""
        self.point(name, "folder", folder)
        new = self.place / name / ".fingerprint"
        new.unlink(missing_ok=True)
        os.close(layout.create(new))
        new.rename(self.place / name / "fingerprint")
        self._bases.pop(name, None)

    def point(self, name: str, link: str, target: str | Path | None) -> None:
        """Let a link of a base point to something else, in one step; None: to nothing."""
        if target is None:
            (self.place / name / link).unlink(missing_ok=True)
            self._bases.pop(name, None)
        else:
            self.aim(name, link, target)()

    def aim(self, name: str, link: str, target: str | Path) -> Callable[[], None]:
        """Make all ready for `point`, here, where a full disk can be told; calling what is returned does it."""
        path = self.place / name / link
        new = path.with_name(f".{link}")
        with exhausted(f"the link {link}", path.parent):
            new.unlink(missing_ok=True)
            new.symlink_to(target)

        def point() -> None:
            new.rename(path)
            self._bases.pop(name, None)

        return point

    def pointed(self, name: str, link: str) -> str | None:
        """What a link of a base points to; None where there is none."""
        try:
            return os.readlink(self.place / name / link)
        except OSError:
            return None

    def heads(self, workspace: Path) -> list[tuple[str, str]]:
        """Bases of a folder, each with the layer in which its environment was when it broke off."""
        found = []
        for base in self.place.glob("base_*"):
            head = self.pointed(base.name, HEAD)
            if head is None or self.base(base.name).workspace != workspace:
                continue
            if not layout.is_held(self.place / head):
                found.append((base.name, head))
        return sorted(found)

    def add(self, parent: str) -> Layer:
        """A new layer on top of another, or of a base."""
        name = clock.new_id("snap")
        new = f"{self._at}/.{name}"
        with exhausted("the snapshot", self.place):
            os.mkdir(new, 0o700)
            lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.mkdir("upper", 0o700, dir_fd=lock)
                dress(self.top(parent), f"{new}/upper")  # the top folder of the topmost layer is what is seen
                os.mkdir("work", 0o700, dir_fd=lock)
                os.symlink(f"../{parent}", "parent", dir_fd=lock)
                os.rename(new, f"{self._at}/{name}")
            except BaseException:
                os.close(lock)
                raise
        return Layer(self.place / name, lock)

    def below(self, name: str) -> list[str]:
        """The layers from this one down, its base last. Raises `StaleBase` where it, or what it stands on, is gone."""
        if name.startswith("base_"):
            return [name]
        if (known := self._below.get(name)) is None:
            try:
                parent = os.path.basename(os.readlink(f"{self._at}/{name}/parent"))
            except OSError:
                raise StaleBase(f"the snapshot {name} is not in {self.place}", ref=name) from None
            known = self._below[name] = [name, *self.below(parent)]
        return known

    def stack(self, name: str, on_top: Layer | None = None) -> Layers:
        """What is mounted for a layer and all below it; read-only without one on top. Raises `StaleBase`."""
        *uppers, base = self.below(name)
        lowers = [f"{self._at}/{each}/upper" for each in uppers]
        lowers.append(str(self.base(base).folder))
        if on_top is None:
            return Layers(lowers if len(lowers) > 1 else [f"{self._at}/empty", *lowers])
        return Layers(lowers, f"{self._at}/{on_top.id}/upper", f"{self._at}/{on_top.id}/work")

    def top(self, name: str) -> str:
        """The folder of a layer, or of a base."""
        return str(self.base(name).folder) if name.startswith("base_") else f"{self._at}/{name}/upper"

    def missing(self, name: str) -> str | None:
        """The first folder that is gone of what a layer is made of."""
        return next((lower for lower in self.stack(name).lowers if not os.path.isdir(lower)), None)

    def has(self, name: str) -> bool:
        """Whether there is such a layer."""
        return is_id(name, "snap") and (self.place / name / "parent").is_symlink()

    def is_stood_on(self, base: str) -> bool:
        """Whether a snapshot stands on a base: a layer that nobody writes to."""
        return any(self.below(path.name)[-1] == base and not layout.is_held(path) for path in self.place.glob("snap_*"))

    def pin(self, name: str) -> None:
        """Keep a layer, and what it stands on, whatever a sweep finds. Raises `StaleBase` where it is not here."""
        self.below(name)
        (self.place / name / PINNED).touch(mode=0o600)

    def unpin(self, name: str) -> None:
        """Take the pin off."""
        (self.place / name / PINNED).unlink(missing_ok=True)

    def sweep(self, keep: Iterable[str]) -> int:
        """Remove every layer that none of these, no pin and no writer needs. Returns the bytes that this freed."""
        here = [path for path in self.place.iterdir() if path.name.lstrip(".").startswith(("snap_", "base_"))]
        roots = {name for name in keep if self.has(name)}
        roots |= {path.name for path in here if (path / PINNED).exists() or layout.is_held(path)}
        needed = {each for name in roots if not name.startswith((".", "base_")) for each in self.below(name)} | roots
        freed = 0
        for path in here:
            if path.name not in needed:
                freed += sum(state.st_size for _, state in contents(path) if stat.S_ISREG(state.st_mode))
                self._below.pop(path.name, None)
                remove(path)
        return freed


def place_for(workspace: Path, store: Path) -> Path:
    """Where layers stand: with the store's snapshots, or outside of the workspace where the store lies in it.

    The kernel takes no layer that lies in another.
    """
    snapshots = SnapshotStore(store).place.absolute()
    if not snapshots.is_relative_to(workspace):
        return snapshots / "layers"
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "worldline" / "layers" / hashlib.sha256(os.fsencode(snapshots)).hexdigest()[:16]
