"""Reading a workspace into a tree: what is as it was is not read again, and what changes meanwhile is found.

A file is as it was where its size, both its times, its inode and its mode are (git's key), and where it had been left
alone for a moment when it was read: else a later change could have the same times. Folders are read in passes, until a
pass finds what the one before it found. Then there was a moment between the two at which the workspace was this tree. A
workspace that never holds still is taken as the last pass saw it, and what changed is named.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from worldline.engine import clock
from worldline.engine.substrates.apart import Apart, Note
from worldline.engine.substrates.seen import Key, Seen, SeenFolder, key_of, same_entries, settled
from worldline.engine.substrates.substrate import Policy
from worldline.errors import ResourceExhausted, SecretFound, Unsupported
from worldline.model import tree
from worldline.model.tree import Entry, File, Folder, Symlink
from worldline.model.values import readable
from worldline.store import layout
from worldline.store.snapshots import Batch, SnapshotStore

DEEPEST = 400  # folders in one another: each is held open while it is read
_KEPT_ATTRIBUTES = ("user.", "security.capability", "system.posix_acl_")
_CHANGING = "it changed each time it was read"
_ABSENT = (errno.ENOENT, errno.ESTALE)
_REFUSED = (errno.EACCES, errno.EPERM)


class Scanned(msgspec.Struct, frozen=True):
    """A tree that was read: the name of its document, its digest, what it lacks, the bytes that were new."""

    tree: str
    digest: str
    notes: tuple[dict[str, str], ...]
    bytes: int


class Scanner:
    """Reads one workspace, again and again. `seen` is what it knows of it."""

    def __init__(self, root: Path, snapshots: SnapshotStore, policy: Policy) -> None:
        self.root = root
        self.snapshots = snapshots
        self.policy = policy
        self.seen: SeenFolder | None = None
        self.generation = snapshots.generation
        self._notes: dict[str, str] = {}
        self._secret: dict[str, Note] = {}
        self._links: defaultdict[tuple[int, int], list[bytes]] = defaultdict(list)
        self._changed: list[str] = []
        self._owner = (0, 0)
        self._hidden = set[tuple[int, int]]()
        self.left_out: list[str] = []  # what the last pass found that is no part of the environment
        self._began = 0  # when the last pass did
        self._unsure = False  # whether what is known was read when other secrets may have been registered

    @property
    def policy(self) -> Policy:
        """How it is read."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy = policy
        self.apart = Apart(policy.secrets, policy.apart)

    def recalled(self, seen: SeenFolder | None) -> None:
        """Know what another process knew: its files are looked through for secrets once."""
        self.seen, self._unsure = seen, self.apart.active

    def scan(self, *, once: bool = False) -> Scanned:
        """The workspace as it is. Its contents are in the store then, durable.

        `once` is for who knows what it has to be: one pass, which another has not confirmed.
        Raises `ResourceExhausted`, `Unsupported` for what nests too deep, `OSError` where the workspace is gone.
        """
        with self.snapshots.writing() as batch:
            if self.generation != self.snapshots.generation:  # what was here may have been swept
                self.seen, self.generation = None, self.snapshots.generation
            self._hidden = _identities(own_folders(self.policy.store))
            self._passes(batch, once)
            assert self.seen is not None, "a pass was made"
            groups = [paths for paths in self._links.values() if len(paths) > 1]
            document, digest = tree.encode_tree(self.seen.entry, groups)
            name = batch.add(document)
        notes = {path: {"path": path, "why": why} for path, why in self._notes.items()} | self._secret
        return Scanned(name, digest, tuple(notes[path] for path in sorted(notes)), batch.bytes)

    def _passes(self, batch: Batch, once: bool) -> None:
        """Read until nothing changes any more."""
        first = self.seen is None
        for _ in range(self.policy.rereads + 1):
            before = self.seen
            self._notes, self._changed, self.left_out = {}, [], []
            self._secret, self._began = dict(self.apart.given), clock.wall_ns()
            self._links.clear()
            self._one_pass(batch, before)
            self._unsure = False
            if once or not (self._changed or first):
                return
            first = False
        self._notes.update(dict.fromkeys(self._changed, _CHANGING))

    def _one_pass(self, batch: Batch, before: SeenFolder | None) -> None:
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            state = os.fstat(descriptor)
            self._owner = state.st_uid, state.st_gid
            self.seen = self._folder(batch, descriptor, state, "", "", before, 0)
        finally:
            os.close(descriptor)

    def _folder(
        self,
        batch: Batch,
        descriptor: int,
        state: os.stat_result,
        name: str,
        at: str,
        before: SeenFolder | None,
        depth: int,
    ) -> SeenFolder:
        """Read one folder, which is open. `at` is its path with a slash behind it, or nothing."""
        if depth > DEEPEST:
            raise Unsupported(f"{at!r:.200}: folders nest deeper than {DEEPEST}", resource="depth", path=at)
        found = SeenFolder(_NOTHING)
        files = found.files
        known, folders = (before.files, before.folders) if before is not None else ({}, {})
        with os.scandir(descriptor) as listing:
            for each in listing:
                was = known.get(each.name)
                try:
                    is_state = each.stat(follow_symlinks=False)
                    if was is not None and was.settled and not self._unsure:
                        size, mtime, ctime, inode, mode = was.key
                        if (
                            ctime == is_state.st_ctime_ns
                            and mtime == is_state.st_mtime_ns
                            and size == is_state.st_size
                            and inode == is_state.st_ino
                            and mode == is_state.st_mode
                            and is_state.st_nlink == 1
                        ):
                            files[each.name] = was  # so it is with almost all
                            continue
                    path = at + each.name
                    if self.policy.exclude and self.excluded(path):
                        self.left_out.append(path)
                        continue
                    if self.apart.active and (note := self.apart.by_name(path, told(path))) is not None:
                        self.left_out.append(path)
                        self._secret[note["path"]] = note
                        continue
                    if stat.S_ISDIR(is_state.st_mode):
                        self._into(batch, descriptor, each.name, path, folders.get(each.name), depth, found)
                    elif stat.S_ISREG(is_state.st_mode) or stat.S_ISLNK(is_state.st_mode):
                        self._file(batch, descriptor, each.name, path, is_state, was, found)
                    else:
                        self._notes[told(path)] = f"not kept: a {_kind(is_state.st_mode)}"
                except OSError as error:
                    self._unread(at + each.name, error)
        if before is not None and (
            gone := (known.keys() - found.files.keys()) | (folders.keys() - found.folders.keys())
        ):
            self._changed += [told(at + each) for each in gone]
        found.entry = self._folder_entry(batch, descriptor, state, name, at, found, before)
        return found

    def _folder_entry(
        self,
        batch: Batch,
        descriptor: int,
        state: os.stat_result,
        name: str,
        at: str,
        found: SeenFolder,
        before: SeenFolder | None,
    ) -> Folder:
        """The folder itself; its document is made again only where something in it is another."""
        digest, node = "", None
        if before is not None and same_entries(found, before):
            digest, node = before.entry.digest, before.entry.node
        if node is None:
            entries: list[Entry] = [each.entry for each in found.files.values()]
            entries += [each.entry for each in found.folders.values()]
            document, digest = tree.encode_folder(entries)
            node = batch.add(document)
        entry = Folder(
            name=tree.text_of(os.fsencode(name)),
            mode=stat.S_IMODE(state.st_mode),
            owner=self._whose(state),
            xattrs=self.apart.without(self._attributes(descriptor, at)),
            digest=digest,
            node=node,
        )
        if before is not None and _itself(entry) != _itself(before.entry):
            self._changed.append(told(at))
        return entry

    def _into(
        self,
        batch: Batch,
        descriptor: int,
        name: str,
        path: str,
        before: SeenFolder | None,
        depth: int,
        found: SeenFolder,
    ) -> None:
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        try:
            state = os.fstat(inner)
            if (state.st_dev, state.st_ino) in self._hidden:
                return
            if before is None and self.seen is not None:
                self._changed.append(told(path))
            found.folders[name] = self._folder(batch, inner, state, name, path + "/", before, depth + 1)
        finally:
            os.close(inner)

    def _file(
        self,
        batch: Batch,
        descriptor: int,
        name: str,
        path: str,
        state: os.stat_result,
        before: Seen | None,
        found: SeenFolder,
    ) -> None:
        key = key_of(state)
        if (note := self.apart.known(path, key)) is not None:
            self._secret[note["path"]] = note
            return
        if before is not None and before.settled and before.key == key:
            if self._unsure and not self._still_kept(descriptor, name, path, before):
                return
            found.files[name] = before
        elif self.policy.largest is not None and state.st_size > self.policy.largest:
            self._notes[told(path)] = f"not kept: its {state.st_size:,} bytes are over {self.policy.largest:,}"
            return
        else:
            read = self._link if stat.S_ISLNK(state.st_mode) else self._read
            try:
                seen = found.files[name] = read(batch, descriptor, name, path, state)
            except SecretFound as error:
                self._hold(path, error, key if settled(state, self._began) else None)
                return
            if (before is None and self.seen is not None) or (before is not None and seen.entry != before.entry):
                self._changed.append(told(path))
        if state.st_nlink > 1 and stat.S_ISREG(state.st_mode):
            self._links[state.st_dev, state.st_ino].append(os.fsencode(path))

    def _still_kept(self, descriptor: int, name: str, path: str, seen: Seen) -> bool:
        """Whether a file or link that was kept before may be kept again; else it is named."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            if isinstance(seen.entry, Symlink):
                self.apart.refuse(tree.bytes_of(seen.entry.target))
            else:
                self.apart.refuse(*(tree.bytes_of(text) for pair in seen.entry.xattrs for text in pair))
                self.apart.look_through(lambda: os.open(name, flags, dir_fd=descriptor))
        except SecretFound as error:
            self._hold(path, error, seen.key)
            return False
        return True

    def _hold(self, path: str, error: SecretFound, key: Key | None) -> None:
        note = self.apart.found(path, told(path), error, key)
        self._secret[note["path"]] = note

    def _read(self, batch: Batch, descriptor: int, name: str, path: str, state: os.stat_result) -> Seen:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        source = os.open(name, flags, dir_fd=descriptor)
        try:
            taken = clock.wall_ns()
            before = os.fstat(source)
            if not stat.S_ISREG(before.st_mode):
                raise FileNotFoundError(errno.ENOENT, "another thing took its place", path)
            attributes = self._attributes(source, path)
            self.apart.refuse(*(tree.bytes_of(text) for pair in attributes for text in pair))
            content, size = batch.add_from(source, before.st_size, self.apart.vault)
            after = os.fstat(source)
        finally:
            os.close(source)
        if key_of(before) != key_of(after) or size != after.st_size:
            self._changed.append(told(path))
        entry = File(
            name=tree.text_of(os.fsencode(name)),
            mode=stat.S_IMODE(before.st_mode),
            owner=self._whose(before),
            xattrs=attributes,
            size=size,
            content=content,
            mtime=str(before.st_mtime_ns),
        )
        return Seen(key_of(before), settled(before, taken) and key_of(before) == key_of(after), entry)

    def _link(self, batch: Batch, descriptor: int, name: str, path: str, state: os.stat_result) -> Seen:
        taken = clock.wall_ns()
        target = os.readlink(name, dir_fd=descriptor)
        self.apart.refuse(os.fsencode(target))
        texts = tree.text_of(os.fsencode(name)), tree.text_of(os.fsencode(target))
        entry = Symlink(name=texts[0], owner=self._whose(state), target=texts[1])
        return Seen(key_of(state), settled(state, taken), entry)

    def _whose(self, state: os.stat_result) -> tuple[int, int] | None:
        owner = state.st_uid, state.st_gid
        return owner if owner != self._owner else None

    def _attributes(self, descriptor: int, path: str) -> tuple[tuple[tree.Text, tree.Text], ...]:
        if sys.platform != "linux":
            return ()
        try:
            names = os.listxattr(descriptor)
            kept = sorted(name for name in names if name.startswith(_KEPT_ATTRIBUTES))
            values = [(name, os.getxattr(descriptor, name)) for name in kept]
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENODATA):
                raise
            return ()
        return tuple((tree.text_of(os.fsencode(name)), tree.text_of(value)) for name, value in values)

    def excluded(self, path: str) -> bool:
        """Whether a path is no part of the environment."""
        parts = path.split("/")
        return any(
            len(pattern) == len(parts) and all(map(fnmatch.fnmatchcase, parts, pattern))
            for pattern in (excluded.strip("/").split("/") for excluded in self.policy.exclude)
        )

    def _unread(self, path: str, error: OSError) -> None:
        """What could not be read: gone again, refused, or a failure that ends the scan."""
        if error.errno in _ABSENT or error.errno in (errno.ELOOP, errno.ENOTDIR):
            self._changed.append(told(path))
        elif error.errno in _REFUSED:
            self._notes[told(path)] = "not kept: it may not be read"
        elif error.errno in (errno.EMFILE, errno.ENFILE):
            raise ResourceExhausted(
                f"{path!r:.200}: too many open files", resource=errno.errorcode[error.errno], path=path
            ) from error
        else:
            raise error


_NOTHING = Folder(name="", digest="")


def told(path: str) -> str:
    """A path as notes say it: bytes that are no UTF-8 are escaped."""
    return readable(path.rstrip("/")) or "."


def own_folders(store: Path) -> list[Path]:
    """What is never in a snapshot: the runs' store, and the folder in which it stands by default with all beside it."""
    own = store.parent if store.parent.name == layout.DEFAULT_STORE.parent.name else store
    return [store, own]


def _identities(folders: list[Path]) -> set[tuple[int, int]]:
    states = (folder.stat() for folder in folders if folder.is_dir())
    return {(state.st_dev, state.st_ino) for state in states}


def _itself(folder: Folder) -> tuple[object, ...]:
    return folder.mode, folder.owner, folder.xattrs


def _kind(mode: int) -> str:
    for test, name in ((stat.S_ISSOCK, "socket"), (stat.S_ISFIFO, "pipe"), (stat.S_ISCHR, "device")):
        if test(mode):
            return name
    return "device"


@contextmanager
def scanned(root: Path, snapshots: SnapshotStore, policy: Policy) -> Iterator[Scanned]:
    """A workspace that is read once, its contents safe from a sweep until it is done with."""
    with snapshots.held():
        yield Scanner(root, snapshots, policy).scan()
