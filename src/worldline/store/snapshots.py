"""Where the environment halves of checkpoints stand: one pool of contents and documents for all runs of a store.

    <store>/.snapshots/blobs/ordinary/<hh>/<name>   files and documents of trees, each once, named by SHA-256
    <store>/.snapshots/taken/<snapshot>.json        what was kept: the commit point of a snapshot
    <store>/.snapshots/pinned/<snapshot>            empty: `gc` leaves that snapshot
    <store>/.snapshots/{lock,generation,new/}       a lock, a count of sweeps, what is being written

A snapshot is a workspace as it was, secrets that nobody registered included: it belongs to its owner alone, stands in
no attempt and is in no bundle. Names are given to synced bytes only, and `taken/` comes last: what is killed on its way
leaves contents that no snapshot names, which the next sweep removes.
"""

from __future__ import annotations

import ctypes
import errno
import filecmp
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from worldline.errors import Corrupt, ResourceExhausted, SecretFound, StaleBase, SubstrateError, UsageError
from worldline.model.ids import is_id
from worldline.store import blobs, layout
from worldline.store.secrets.vault import Vault

FOLDER = ".snapshots"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EFBIG)
STEP = 1 << 20
_TOGETHER = 64  # from so many files on the whole file system is synced at once
_SHARED_FROM = 32 * 1024  # runs keep smaller contents in their rows


class SnapshotStore:
    """The snapshots of one store of runs. Safe from several processes and threads."""

    def __init__(self, store: Path) -> None:
        self.place = store / FOLDER
        self._pool = store / layout.POOL
        self._contents = os.fspath(self.place / layout.BLOBS / layout.ORDINARY)

    def make(self) -> None:
        """Have the place, owner-only and out of version control."""
        layout.make_private(self.place, shared=True)
        layout.keep_out_of_git(self.place.parent)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is swept meanwhile. One hold may stand in another."""
        with ExitStack() as holding:
            with exhausted("the snapshot", self.place):
                self.make()
                holding.enter_context(layout.locked(self.place / "lock", shared=True))
            yield

    @property
    def generation(self) -> int:
        """How often it was swept: what was known to be here before may be gone."""
        try:
            return int((self.place / "generation").read_bytes())
        except (FileNotFoundError, ValueError):
            return 0

    def path(self, name: str) -> str:
        """Where a content stands."""
        return f"{self._contents}/{name[:2]}/{name}"

    @contextmanager
    def writing(self) -> Iterator[Batch]:
        """Contents to be added: all are durable and have their names behind it, or none of them.

        Raises `ResourceExhausted` where the disk is full, with nothing added.
        """
        with self.held(), exhausted("the snapshot", self.place):
            batch = Batch(self, self._pool)
            try:
                yield batch
                batch.commit()
            finally:
                batch.drop()

    def read(self, name: str) -> bytes:
        """A document. Raises `Corrupt` where it is gone or not what its name says."""
        return b"".join(self.stream(name))

    def stream(self, name: str) -> Iterator[bytes]:
        """The bytes of a content in parts; raises `Corrupt`, at the end where they are not its name's."""
        path = self.path(name)
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115 - thousands of paths, and closed below
        except FileNotFoundError:
            raise Corrupt(f"the content {name[:12]} is missing", digest=name, path=path, state="missing") from None
        digest = hashlib.sha256()
        with file:
            while part := file.read(STEP):
                digest.update(part)
                yield part
        if digest.hexdigest() != name:
            raise Corrupt(f"the content {name[:12]} is not what was kept", digest=name, path=path, state="corrupt")

    def check(self, name: str) -> None:
        """Raise `Corrupt` where a content is gone or not what its name says."""
        for _ in self.stream(name):
            pass

    def publish(self, snapshot: str, record: bytes) -> None:
        """The commit point of a snapshot, all of whose contents are here."""
        with exhausted("the snapshot", self.place):
            folder = self.place / "taken"
            layout.make_private(folder, shared=True)
            layout.write_durable(self._record(snapshot), record)

    def amend(self, snapshot: str, record: bytes) -> None:
        """Let another record take the place of one that is there."""
        path = self._record(snapshot)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.amended.tmp")
        temporary.unlink(missing_ok=True)
        with exhausted("the snapshot", self.place):
            layout.write_durable(temporary, record)
            layout.replace(temporary, path)

    def record(self, snapshot: str) -> bytes:
        """What was published of a snapshot. Raises `StaleBase` where it is not here."""
        try:
            return self._record(snapshot).read_bytes()
        except FileNotFoundError:
            raise StaleBase(f"the snapshot {snapshot} is not in {self.place}", ref=snapshot) from None

    def taken(self) -> list[str]:
        """Every snapshot, oldest first."""
        names = (path.stem for path in (self.place / "taken").glob("snap_*.json"))
        return sorted(name for name in names if is_id(name, "snap"))

    def _record(self, snapshot: str) -> Path:
        if not is_id(snapshot, "snap"):
            raise UsageError(f"not the id of a snapshot: {snapshot!r:.80}", ref=snapshot)
        return self.place / "taken" / f"{snapshot}.json"

    def pin(self, snapshot: str) -> None:
        """Keep a snapshot whatever `sweep` finds. Raises `StaleBase` where it is not here."""
        self.record(snapshot)
        folder = self.place / "pinned"
        layout.make_private(folder, shared=True)
        with suppress(FileExistsError):
            layout.write_durable(folder / snapshot, b"")

    def unpin(self, snapshot: str) -> None:
        """Take the pin off, where there is one."""
        self._record(snapshot)
        with suppress(FileNotFoundError):
            (self.place / "pinned" / snapshot).unlink()
            layout.sync_directory(self.place / "pinned")

    def pinned(self) -> set[str]:
        """The snapshots that are pinned."""
        folder = self.place / "pinned"
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def sweep(self, keep: Callable[[], Iterable[str]], needed: Callable[[bytes], Iterable[str]]) -> int:
        """Drop all snapshots but these and the pinned ones, and the contents that none of the kept ones needs.

        `keep` is asked when nobody can add any more; what it raises ends it before anything is dropped. `needed` gives
        the names that a record needs, all the way down. What cannot be read of a snapshot that is kept ends it
        (`Corrupt`) before anything is dropped, too. Returns the bytes that are freed.
        """
        self.make()
        with layout.locked(self.place / "lock"):
            kept = {*keep(), *self.pinned()}
            live = {name for snapshot in self.taken() if snapshot in kept for name in needed(self.record(snapshot))}
            for snapshot in self.taken():
                if snapshot not in kept:
                    self._record(snapshot).unlink()
            if (self.place / "taken").is_dir():
                layout.sync_directory(self.place / "taken")
            self.outdate()
            dead = [path for path in (self.place / layout.BLOBS).glob("*/??/*") if path.name not in live]
            freed = sum(_drop(path) for path in [*dead, *(self.place / "new").glob("*")])
        blobs.release(self._pool, (path.name for path in dead))
        return freed

    def outdate(self) -> None:
        """Let nobody believe any more that what it knew to be here is. For who holds the lock alone."""
        new = self.place / f".generation.{os.getpid()}.tmp"
        new.unlink(missing_ok=True)
        descriptor = layout.create(new)
        try:
            layout.write_all(descriptor, b"%d" % (self.generation + 1))
            layout.sync(descriptor)
        finally:
            os.close(descriptor)
        layout.replace(new, self.place / "generation")


class Batch:
    """Contents on their way into the pool."""

    def __init__(self, snapshots: SnapshotStore, pool: Path) -> None:
        self._snapshots = snapshots
        self._pool = pool
        self._new: dict[str, str] = {}  # by name, where its bytes stand until they have it
        self._made: set[str] = set()  # files of ours that have no name yet
        self._count = 0
        self.bytes = 0  # that were not here before
        self._folder = snapshots.place / "new"
        layout.make_private(self._folder, shared=True)
        self._begin = f"{self._folder}/{os.getpid()}-{id(self):x}"

    def add(self, data: bytes, name: str | None = None) -> str:
        """Add bytes, whose name may be known. Returns their name."""
        name = name or hashlib.sha256(data).hexdigest()
        if name not in self._new and not self._is_here(name, data):
            temporary, descriptor = self._create()
            try:
                layout.write_all(descriptor, data)
            finally:
                os.close(descriptor)
            self._took(name, temporary, len(data))
        return name

    def add_from(self, source: int, size: int, vault: Vault | None = None) -> tuple[str, int]:
        """Add what a descriptor gives up to its end; `size` is what is expected. Returns the name and the size.

        Raises `SecretFound` where it holds what is registered in the vault; nothing of it is kept then.
        """
        if size <= STEP:
            data = _read_all(source)
            if vault is not None:
                vault.refuse(data)
            return self.add(data), len(data)
        temporary, descriptor = self._create()
        try:
            parts = _pieces(source)
            name, size = _copied(parts if vault is None else vault.checked(parts), descriptor)
        except SecretFound:
            os.unlink(temporary)
            self._made.discard(temporary)
            raise
        finally:
            os.close(descriptor)
        if name in self._new or self._is_here(name, temporary):
            os.unlink(temporary)
            self._made.discard(temporary)
        else:
            self._took(name, temporary, size)
        return name, size

    def _create(self) -> tuple[str, int]:
        self._count += 1
        temporary = f"{self._begin}-{self._count}"
        self._made.add(temporary)
        try:
            return temporary, layout.create_for_writing(temporary)
        except FileExistsError:  # left by a process that had our number, and was killed
            os.unlink(temporary)
            return temporary, layout.create_for_writing(temporary)

    def _took(self, name: str, temporary: str, size: int) -> None:
        self._new[name] = temporary
        self.bytes += size

    def _is_here(self, name: str, bytes_or_file: bytes | str) -> bool:
        """Whether the pool holds these bytes; a file of the name that holds others is believed for nothing."""
        path = self._snapshots.path(name)
        try:
            if isinstance(bytes_or_file, str):
                return filecmp.cmp(path, bytes_or_file, shallow=False)
            if os.stat(path).st_size != len(bytes_or_file):
                return False
        except FileNotFoundError:
            return False
        return Path(path).read_bytes() == bytes_or_file

    def commit(self) -> None:
        """Make all durable, then name them, then make the names durable."""
        if not self._new:
            return
        durable(self._new.values(), self._folder)
        folders = {os.path.dirname(self._snapshots.path(name)) for name in self._new}
        above = Path(next(iter(folders))).parent
        layout.make_private(above, shared=True)
        for folder in folders:
            with suppress(FileExistsError):
                layout.make_folder(folder)
        for name, temporary in self._new.items():
            path = self._snapshots.path(name)
            os.replace(temporary, path)  # the same bytes, if it was here
            if os.stat(path).st_size > _SHARED_FROM:
                blobs.share(Path(path), self._pool / name[:2] / name)
        durable([*folders, above], self._folder)
        self._made.difference_update(self._new.values())
        self._new.clear()

    def drop(self) -> None:
        """Remove what has not got its name."""
        for temporary in self._made:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
        self._made.clear()
        self._new.clear()


def _read_all(source: int) -> bytes:
    parts = []
    while part := os.read(source, STEP + 1):
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _pieces(source: int) -> Iterator[bytes]:
    while part := os.read(source, STEP):
        yield part


def _copied(parts: Iterable[bytes], descriptor: int) -> tuple[str, int]:
    """Write all parts, with holes where there were any (or blocks of zeros). The SHA-256 and the size."""
    digest, size = hashlib.sha256(), 0
    zeros = bytes(STEP)
    for part in parts:
        digest.update(part)
        size += len(part)
        if part == zeros[: len(part)]:
            os.lseek(descriptor, len(part), os.SEEK_CUR)
        else:
            layout.write_all(descriptor, part)
    os.ftruncate(descriptor, size)
    return digest.hexdigest(), size


def durable(paths: Iterable[str | Path], on: Path) -> None:
    """Make files and folders on one disk durable, together: many syncs at once cost hardly more than one.

    `on` is a folder there.
    """
    several = list(paths)
    if len(several) >= _TOGETHER and sys.platform == "linux":
        descriptor = os.open(on, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.syncfs(descriptor) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), str(on))
        finally:
            os.close(descriptor)
        return
    with ThreadPoolExecutor(max_workers=max(1, min(16, len(several)))) as pool:
        list(pool.map(_sync, several))


def _sync(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.path.isdir(path):
            os.fsync(descriptor)
        else:
            layout.sync(descriptor)
    finally:
        os.close(descriptor)


def _drop(path: Path) -> int:
    size = path.lstat().st_size
    path.unlink()
    return size


@contextmanager
def exhausted(what: str, place: Path) -> Iterator[None]:
    """A full disk, and what else runs out, as `ResourceExhausted`; any other failure as `SubstrateError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            text = f"{what} could not be kept in {place}: {reason}; nothing was published"
            raise ResourceExhausted(text, resource=errno.errorcode[error.errno], path=str(place)) from error
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(place)
        raise SubstrateError(f"{what} in {place}: {where}: {reason}", path=where, errno=error.errno) from error
