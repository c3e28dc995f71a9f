"""A tree becomes a folder: whole and new, or in place, where only what differs is touched.

Every file is a copy (or a reflink) of the store's, never a hard link to it: a link that is written to would change the
store. A new folder has its name only once all is in it. In place, each content is checked before anything is changed, a
file takes the place of another by renaming, and no symbolic link is followed on the way, whatever the workspace did.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from worldline.engine import clock
from worldline.engine.substrates import reflink
from worldline.engine.substrates.scan import own_folders
from worldline.engine.substrates.seen import Seen, SeenFolder, key_of, settled
from worldline.errors import Corrupt, Unsupported, UsageError
from worldline.model import tree
from worldline.model.tree import Change, Entry, File, Folder, Symlink, Tree
from worldline.store import newfile
from worldline.store.snapshots import SnapshotStore, exhausted

Notes = dict[bytes, str]  # what could not be made as it was, by path


class Materialiser:
    """Makes folders of the trees of one store. `notes` says what could not be made as it was."""

    def __init__(self, snapshots: SnapshotStore) -> None:
        self.snapshots = snapshots
        self.notes: Notes = {}
        self._reflinks = True
        self._made: list[tuple[SeenFolder, bytes, os.stat_result, File | Symlink]] = []
        self._temporary = f".worldline-{os.getpid()}.tmp".encode()

    def read_tree(self, name: str) -> Tree:
        """The tree of a document. Raises `Corrupt` where it is none."""
        try:
            return tree.decode_tree(self.snapshots.read(name))
        except ValueError as error:
            raise Corrupt(f"the tree {name[:12]} cannot be read: {error}", digest=name) from None

    def entries(self, folder: Folder) -> tuple[Entry, ...]:
        """What a folder holds. Raises `Corrupt` where its document is none."""
        try:
            return tree.entries_of(self.snapshots.read, folder)
        except ValueError as error:
            raise Corrupt(f"a folder's document cannot be read: {error}", digest=folder.node or "") from None

    def needed(self, name: str) -> Iterator[str]:
        """Every document and content that a tree needs, itself first. Raises `Corrupt`."""
        yield name
        waiting = [self.read_tree(name).root]
        while waiting:
            folder = waiting.pop()
            if folder.node is not None:
                yield folder.node
            for entry in self.entries(folder):
                if isinstance(entry, Folder):
                    waiting.append(entry)
                elif isinstance(entry, File):
                    yield entry.content

    def make(self, name: str, place: Path) -> SeenFolder:
        """Make the folder `place`, which is not there yet, of a tree. It is there whole at the end, or not at all.

        Returns what a scanner would know of it.

        Raises `Corrupt`, `ResourceExhausted`, `UsageError` where the place is taken.
        """
        self.notes, self._made = {}, []
        if any(place == own or place in own.parents for own in own_folders(self.snapshots.place.parent)):
            raise UsageError(f"{place} holds the store of the snapshot itself", path=str(place))
        newfile.refuse_taken(place)
        with self.snapshots.held(), exhausted("the workspace", place):
            found = self.read_tree(name)
            temporary = newfile.temporary_name(place)
            remove(temporary)
            os.mkdir(temporary, 0o700)
            try:
                top = os.open(temporary, _FOLDER)
                try:
                    linked = {tree.bytes_of(path): group for group in found.hardlinks for path in group[1:]}
                    made = self._fill(top, found.root, b"", linked)
                    for path, group in linked.items():
                        with opened_parent(top, path) as (folder, last):
                            _link(top, tree.bytes_of(group[0]), folder, last)
                    self._as_it_was(top, found.root, b"")
                finally:
                    os.close(top)
                self._known()
                os.rename(temporary, place)
            except BaseException:
                remove(temporary)
                raise
        return made

    def _fill(
        self, descriptor: int, folder: Folder, at: bytes, linked: dict[bytes, tuple[tree.Text, ...]]
    ) -> SeenFolder:
        made = SeenFolder(folder)
        for entry in self.entries(folder):
            name = tree.bytes_of(entry.name)
            if isinstance(entry, Folder):
                os.mkdir(name, 0o700, dir_fd=descriptor)
                inner = os.open(name, _FOLDER, dir_fd=descriptor)
                try:
                    made.folders[os.fsdecode(name)] = self._fill(inner, entry, at + name + b"/", linked)
                    self._as_it_was(inner, entry, at + name)
                finally:
                    os.close(inner)
            elif at + name not in linked:
                self._made.append((made, name, self._put(descriptor, name, entry, at + name), entry))
        return made

    def _known(self) -> None:
        """Note how each file was made. Nobody else could change one before the folder has its name, which is now."""
        now = clock.wall_ns()
        for folder, name, state, entry in self._made:
            folder.files[os.fsdecode(name)] = Seen(key_of(state), settled(state, now), entry)
        self._made = []

    def _put(self, descriptor: int, name: bytes, entry: File | Symlink, path: bytes) -> os.stat_result:
        """Make a file or a symbolic link, whose name is free. Returns its state."""
        if isinstance(entry, Symlink):
            os.symlink(tree.bytes_of(entry.target), name, dir_fd=descriptor)
            if entry.owner is not None:
                self._own(path, lambda owner: os.chown(name, *owner, dir_fd=descriptor, follow_symlinks=False), entry)
            return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=descriptor)
        try:
            self._copy(entry, target)
            self._as_it_was(target, entry, path)
            return os.fstat(target)
        finally:
            os.close(target)

    def _copy(self, entry: File, target: int) -> None:
        path = self.snapshots.path(entry.content)
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Corrupt(f"the content {entry.content[:12]} is missing", digest=entry.content, path=path) from None
        try:
            name, self._reflinks = reflink.copy(source, target, self._reflinks)
        finally:
            os.close(source)
        if name != entry.content:
            raise Corrupt(
                f"the content {entry.content[:12]} is not what was kept", digest=entry.content, path=path
            ) from None

    def _as_it_was(self, descriptor: int, entry: File | Folder, path: bytes) -> None:
        """Owner, attributes, mode and time of what is open; in this order, since a change of owner takes mode bits."""
        if entry.owner is not None:
            self._own(path, lambda owner: os.chown(descriptor, *owner), entry)
        for key, value in entry.xattrs:
            try:
                os.setxattr(descriptor, tree.bytes_of(key), tree.bytes_of(value))
            except (OSError, AttributeError) as error:
                self.notes[path] = f"without its attribute {key}: {error}"
        if entry.mode is not None:
            os.chmod(descriptor, entry.mode)
        if isinstance(entry, File) and entry.mtime is not None:
            os.utime(descriptor, ns=(int(entry.mtime), int(entry.mtime)))

    def _own(self, path: bytes, chown: Callable[[tuple[int, int]], None], entry: Entry) -> None:
        assert entry.owner is not None, "asked before"
        try:
            chown(entry.owner)
        except OSError as error:
            self.notes[path] = f"without its owner {entry.owner[0]}:{entry.owner[1]}: {error.strerror}"

    def check(self, changes: Iterable[Change]) -> None:
        """Raise `Corrupt` where a content that the changes bring is gone or damaged."""
        for name in {change.new.content for change in changes if isinstance(change.new, File)}:
            self.snapshots.check(name)

    def apply(self, root: Path, changes: Iterable[Change]) -> None:
        """Make each path of a folder what the changes say is new there; nothing else is touched.

        What stands in the way of a removal (a socket, what no snapshot keeps) stays, and is noted. Raises `Corrupt`
        with nothing changed, `ResourceExhausted`.
        """
        several = sorted(changes, key=lambda change: change.path)
        self.notes = {}
        with self.snapshots.held(), exhausted("the workspace", root), _folder(root) as top:
            self.check(several)
            for change in reversed(several):  # what is in a folder before the folder
                if change.old is not None and _other_thing(change):
                    self._remove(top, change)
            for change in several:
                self._bring(top, change)
            for change in several:
                if change.new is not None and change.new_links:
                    self._relink(top, change)
            for change in reversed(several):
                if isinstance(change.new, Folder):
                    with _writable(top, change.path) as (folder, last), _opened(folder, last) as inner:
                        self._as_it_was(inner, change.new, change.path)

    def _remove(self, top: int, change: Change) -> None:
        with suppress(FileNotFoundError), _writable(top, change.path) as (folder, last):
            try:
                if isinstance(change.old, Folder):
                    os.rmdir(last, dir_fd=folder)
                else:
                    os.unlink(last, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                self.notes[change.path] = "not removed: something is in it that no snapshot keeps"

    def _bring(self, top: int, change: Change) -> None:
        if change.new is None or not change.path:
            return
        with _writable(top, change.path) as (folder, last):
            if isinstance(change.new, Folder):
                with suppress(FileExistsError):
                    os.mkdir(last, 0o700, dir_fd=folder)
                return
            with suppress(FileNotFoundError):
                os.unlink(self._temporary, dir_fd=folder)
            self._put(folder, self._temporary, change.new, change.path)
            try:
                os.rename(self._temporary, last, src_dir_fd=folder, dst_dir_fd=folder)
            except IsADirectoryError:
                os.unlink(self._temporary, dir_fd=folder)
                self.notes[change.path] = "not brought back: a folder stands there that could not be removed"

    def _relink(self, top: int, change: Change) -> None:
        """Make a file one with the first of its group."""
        first = min(change.path, *change.new_links)
        if first == change.path:
            return
        with _writable(top, change.path) as (folder, last):
            _link(top, first, folder, self._temporary)
            os.rename(self._temporary, last, src_dir_fd=folder, dst_dir_fd=folder)
            with suppress(FileNotFoundError):  # renaming one name of a file to another of it does nothing
                os.unlink(self._temporary, dir_fd=folder)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _other_thing(change: Change) -> bool:
    """Whether what stands there has to go before the new thing can come."""
    return change.new is None or isinstance(change.old, Folder) != isinstance(change.new, Folder)


@contextmanager
def _folder(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _opened(folder: int, name: bytes) -> Iterator[int]:
    descriptor = os.open(name or b".", _FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_parent(top: int, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The folder in which a path stands, open, and its last name; no symbolic link is followed on the way."""
    *parts, last = path.split(b"/")
    descriptor = os.dup(top)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, last
    except NotADirectoryError as error:
        raise Unsupported(f"{path!r:.200} is reached through what is no folder", resource="path") from error
    finally:
        os.close(descriptor)


@contextmanager
def _writable(top: int, path: bytes) -> Iterator[tuple[int, bytes]]:
    """`opened_parent`, and the folder can be written to meanwhile, whatever its mode says."""
    with opened_parent(top, path) as (folder, last):
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        locked = mode & 0o300 != 0o300
        if locked:
            os.fchmod(folder, mode | 0o700)
        try:
            yield folder, last
        finally:
            if locked:
                os.fchmod(folder, mode)


def _link(top: int, first: bytes, folder: int, name: bytes) -> None:
    with opened_parent(top, first) as (there, last):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        os.link(last, name, src_dir_fd=there, dst_dir_fd=folder, follow_symlinks=False)


def remove(place: Path) -> None:
    """Remove a folder of ours, and all in it, whatever the modes of its folders say. No folder is no failure."""
    if not os.path.lexists(place):
        return
    place.chmod(0o700)
    for folder, names, _ in os.walk(place):
        for each in (os.path.join(folder, name) for name in names):
            if not os.path.islink(each) and os.lstat(each).st_mode & 0o700 != 0o700:
                os.chmod(each, 0o700)
    shutil.rmtree(place)
