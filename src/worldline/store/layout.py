"""Where everything of a recording stands on disk, and the few file operations whose order is a promise.

runs/<run>/<result>.json                        hard link made at the commit point
runs/<run>/trajectory/attempts/<ainst_...>/     owner-only
    lock  open.json  tail.jsonl  progress.json  chunks/000000.jsonl ...  blobs/{ordinary,restricted}/<hh>/<name>
    result.json  manifest.staged.json  manifest.json  tail.torn  expiry.jsonl  annotations.jsonl  audit.jsonl
runs/.contents/<hh>/<name>                      further names of contents that several runs hold
runs/studies/<study>/{journal.jsonl,<run>/...}  a study and the rollouts that it kept, which are runs like any other

`lock` is empty; `open.json` is derived from the header row; `progress.json` is gone once there is a result; `tail.torn`
keeps what a crash cut off. Outside the seal stand `expiry.jsonl`, which says what was removed since, and what people
wrote beside it: `annotations.jsonl`, `audit.jsonl`. The key that names restricted contents stands among them, as
`blobs/restricted/key`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from worldline.model import manifest
from worldline.model.events import encode_json

WORKSPACES = ".workspaces"  # of a store: the folders of branches, by their runs
DEFAULT_STORE = Path(".worldline") / "runs"
ATTEMPTS = Path("trajectory") / "attempts"
TAIL, LOCK, OPEN, PROGRESS = "tail.jsonl", "lock", "open.json", "progress.json"
RESULT, STAGED, MANIFEST = "result.json", "manifest.staged.json", "manifest.json"
CHUNKS, BLOBS, TORN, EXPIRY = "chunks", "blobs", "tail.torn", "expiry.jsonl"
BESIDE = ANNOTATIONS, AUDIT = "annotations.jsonl", "audit.jsonl"
POOL = ".contents"
STUDIES = "studies"  # beside the runs: a folder for each study, with its journal and the rollouts that were kept
SEALED_NAMES = frozenset({LOCK, OPEN, RESULT, STAGED, MANIFEST, CHUNKS, BLOBS, TORN, EXPIRY, ANNOTATIONS, AUDIT})
# Everything that a sealed attempt's directory may hold. All of it is checked: against the manifest or the header, or by
# a chain of its own.
ORDINARY, RESTRICTED = TIERS = manifest.TIERS
TIER_KEY = "key"
HARD_LINK, RENAME = "hard-link", "rename"  # how a file came to its name; `rename` where there are no hard links
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


def make_private(directory: Path, *, shared: bool = False) -> None:
    """Make a directory (and its parents) that only its owner can enter, whatever the umask, and make it durable.

    With `shared` other processes make directories there, too: one that is there already may have been made a moment
    ago, by one that has not come to sync it or was killed before.
    """
    missing = []
    while not directory.is_dir():
        missing.append(directory)
        directory = directory.parent
    if shared:
        with suppress(PermissionError):  # who may not read a directory did not make what is in it
            sync_directory(directory.parent)
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        if path.stat().st_mode & 0o700 != 0o700:  # the umask takes from its owner, too
            path.chmod(0o700)
        sync_directory(path.parent)


def keep_out_of_git(store: Path) -> None:
    """A store in its default place hides itself from version control: recordings hold prompts and answers."""
    if store.parent.name == DEFAULT_STORE.parent.name and not (store.parent / ".gitignore").exists():
        descriptor = create(store.parent / ".gitignore")
        write_all(descriptor, b"*\n")
        os.close(descriptor)


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a file, which is made where it is not there; with `shared` others may, too. Waits for it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile has the descriptor, too
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock of a file or folder alone. Who only looks shares it for a moment."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile has the descriptor, too
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def make_folder(path: str) -> None:
    """Make one new folder that only its owner can enter; its name is not durable yet. Raises `FileExistsError`."""
    os.mkdir(path, 0o700)
    if os.stat(path).st_mode & 0o700 != 0o700:  # the umask takes from its owner, too
        os.chmod(path, 0o700)


def create(path: Path) -> int:
    """Open a file that must be new, for appending, readable by its owner only. Returns the descriptor."""
    return _owners(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600))


def create_for_writing(path: Path | str) -> int:
    """Open a file that must be new, for writing anywhere in it, readable by its owner only."""
    return _owners(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _owners(descriptor: int) -> int:
    """`descriptor`, its file now its owner's to read and write, whatever the umask took."""
    try:
        os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; a short write is continued."""
    written = os.write(descriptor, data)
    if written < len(data):
        view = memoryview(data)
        while written < len(view):
            written += os.write(descriptor, view[written:])


def sync(descriptor: int) -> None:
    """Make the file's data durable (on macOS down to the medium, which fsync alone does not)."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make the directory's entries durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place(temporary: Path, path: Path) -> str:
    """Give a synced file its name, never one that is taken: by a hard link, else by renaming. Returns which.

    Raises `FileExistsError`. Only a link finds out by itself that somebody else took the name in the same moment.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(temporary, path)
        if temporary.parent != path.parent:  # else who syncs the new name's directory has done so for both
            sync_directory(temporary.parent)
        return RENAME
    return HARD_LINK


def replace(temporary: Path, path: Path) -> None:
    """Let a synced file take the place of another: whoever opens the name finds the one or the other, also later."""
    os.replace(temporary, path)
    sync_directory(path.parent)


def write_durable(path: Path, data: bytes) -> str:
    """Create a file whole or not at all: a temporary name, synced, then its own (`place`), the directory synced.

    Returns how it got its name. Raises `FileExistsError` where the name is taken; nothing is ever overwritten.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = create(temporary)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        how = place(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
    return how


def opened(header: Mapping[str, Any]) -> bytes:
    """What `open.json` says, derived from the header row's data: who is recording what, in which format."""
    return encode_json({key: header.get(key) for key in ("format", "session", "run", "attempt", "pid")}) + b"\n"


def read_bounded(path: Path, most: int) -> bytes | None:
    """A file's bytes, up to `most` and one: who gets more than `most` has too many. None where no file is."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(most + 1)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def chunk_name(number: int) -> str:
    """The file name of a chunk."""
    return f"{number:06d}.jsonl"


def log_files(attempt: Path) -> list[Path]:
    """The files of an attempt's log in order: its chunks, then the tail where there is one."""
    chunks = sorted((attempt / CHUNKS).glob("*.jsonl"))
    return [path for path in (*chunks, attempt / TAIL) if path.is_file()]


def attempts(run: Path) -> Iterator[Path]:
    """The attempt directories of a run, oldest first (their ids sort by time)."""
    folder = run / ATTEMPTS
    if folder.is_dir():
        yield from sorted(entry for entry in folder.iterdir() if entry.is_dir())


def link_in(attempt: Path) -> Path | None:
    """The first symbolic link among the names that are written to, or None: no writer ever makes one."""
    folders = (attempt, *(attempt / name for name in (CHUNKS, BLOBS, *(f"{BLOBS}/{tier}" for tier in TIERS))))
    entries = (path for folder in folders if folder.is_dir() for path in folder.iterdir())
    return next((path for path in (attempt, *entries) if path.is_symlink()), None)


def homes(run: Path) -> tuple[Path, ...]:
    """The stores in which the family of a run stands: its own, and of a rollout the one that its study is about."""
    store = run.parent
    return (store, store.parent.parent) if store.parent.name == STUDIES else (store,)


def blob_path(attempt: Path, tier: str, name: str) -> Path:
    """Where a blob stands; two levels, so that no directory grows large."""
    return attempt / BLOBS / tier / name[:2] / name


def tier_key_path(attempt: Path) -> Path:
    """Where the key stands that names the contents of the restricted tier."""
    return attempt / BLOBS / RESTRICTED / TIER_KEY
