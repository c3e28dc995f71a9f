"""The contents of an attempt: each by the name of its bytes, written once, durable before a row refers to it.

A content of the ordinary tier is named by its SHA-256; one of the restricted tier by its HMAC-SHA256 under a key that
stands in that tier alone, so that no digest of it leaves the directory. Runs of one store share the disk space of equal
ordinary contents: a further name in the store's pool leads to the same file (the same inode). A pool may be deleted at
any time, and each attempt stays whole without it.
"""

from __future__ import annotations

import errno
import filecmp
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from worldline.errors import Damaged
from worldline.store import layout

KEY_BYTES = 32
_NAME = re.compile(r"[0-9a-f]{64}")
_UNSHARED = (*layout.NO_LINKS, errno.EMLINK, errno.EXDEV, errno.EEXIST)  # then there is one copy more, and no harm


class Digest(Protocol):
    """A hash under way."""

    def update(self, data: bytes, /) -> None:
        """Take in more."""

    def hexdigest(self) -> str:
        """The digest of all that came, in hex."""


class Blob(msgspec.Struct, frozen=True):
    """A blob as rows name it: `name` in hex (see `naming`), `size` in bytes, `type` a media type."""

    name: str
    size: int
    type: str
    tier: str = layout.ORDINARY

    def reference(self) -> dict[str, Any]:
        """The form in a row's data."""
        return {"$blob": {"name": self.name, "size": self.size, "type": self.type, "tier": self.tier}}


def naming(tier: str, key: bytes | None) -> Digest:
    """The digest that names contents of a tier. `key` is the restricted tier's. Raises `Damaged` where it is lost."""
    if tier == layout.ORDINARY:
        return hashlib.sha256()
    if key is None or len(key) != KEY_BYTES:
        raise Damaged("the key of the restricted tier is missing: its contents cannot be checked", state="missing")
    return hmac.new(key, digestmod=hashlib.sha256)


def read_tier_key(attempt: Path) -> bytes | None:
    """The key of the restricted tier, or None where there is none."""
    path = layout.tier_key_path(attempt)
    if not path.is_file() or path.stat().st_size != KEY_BYTES:
        return None
    return path.read_bytes()


class BlobStore:
    """The contents of one attempt directory. `new_key` makes the 32 random bytes that name restricted ones.

    `pool` is where other runs of the store left names of theirs. Safe from one thread at a time.
    """

    def __init__(self, attempt: Path, new_key: Callable[[], bytes], pool: Path | None = None) -> None:
        self._attempt = attempt
        self._new_key = new_key
        self._pool = pool
        self._key: bytes | None = None
        self.written: dict[str, Blob] = {}
        self.bytes = 0  # of all contents, each once

    def put(self, content: bytes | Iterable[bytes], media_type: str, tier: str = layout.ORDINARY) -> Blob:
        """Store content, given whole or in parts (then memory stays bounded). The same bytes are stored once."""
        parts = (content,) if isinstance(content, bytes) else content
        folder = self._attempt / layout.BLOBS / tier
        layout.make_private(folder)
        digest, size = naming(tier, self.tier_key() if tier == layout.RESTRICTED else None), 0
        temporary = folder / f".{os.getpid()}-{id(parts):x}.tmp"
        temporary.unlink(missing_ok=True)
        try:
            descriptor = layout.create(temporary)
            try:
                for part in parts:
                    digest.update(part)
                    size += len(part)
                    layout.write_all(descriptor, part)
                blob = Blob(digest.hexdigest(), size, media_type, tier)
                if blob.name not in self.written:
                    self._keep(descriptor, temporary, blob)
            finally:
                os.close(descriptor)
        finally:
            temporary.unlink(missing_ok=True)
        return self.written.setdefault(blob.name, blob)

    def _keep(self, descriptor: int, temporary: Path, blob: Blob) -> None:
        path = layout.blob_path(self._attempt, blob.tier, blob.name)
        layout.make_private(path.parent)
        shared = self._pool / blob.name[:2] / blob.name if self._pool and blob.tier == layout.ORDINARY else None
        if shared is None or not _same(shared, temporary) or not _linked(shared, path):
            os.fsync(descriptor)
            with suppress(FileExistsError):  # the same bytes, from a writer before us
                layout.place(temporary, path)
            if shared is not None:
                layout.make_private(shared.parent)
                _linked(path, shared)
        layout.sync_directory(path.parent)
        self.bytes += blob.size

    def tier_key(self) -> bytes:
        """The key of the restricted tier, durable in it before anything is named by it."""
        if self._key is None:
            layout.make_private(layout.tier_key_path(self._attempt).parent)
            self._key = self._new_key()
            layout.write_durable(layout.tier_key_path(self._attempt), self._key)
        return self._key


def keyed(text: str, key: bytes) -> str:
    """The first 128 bits of `HMAC-SHA256(key, text)` in hex: what a row carries in place of a key of its content."""
    return hmac.new(key, text.encode("utf-8"), hashlib.sha256).hexdigest()[:32]


def _same(shared: Path, temporary: Path) -> bool:
    """Whether the pool's file still holds these bytes: it may have been changed, and is believed for nothing."""
    try:
        return shared.stat().st_size == temporary.stat().st_size and filecmp.cmp(shared, temporary, shallow=False)
    except OSError:
        return False


def _linked(path: Path, further: Path) -> bool:
    """Give a file a further name. False where it cannot have one (or has it)."""
    try:
        os.link(path, further)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _UNSHARED:
            raise
        return error.errno == errno.EEXIST
    return True


def share(path: Path, shared: Path) -> None:
    """Make a durable content and the pool's of its name one file: the pool's, where that holds the same bytes."""
    if _same(shared, path):
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.unlink(missing_ok=True)
        if _linked(shared, temporary):
            os.replace(temporary, path)
            temporary.unlink(missing_ok=True)  # renaming one name of a file to another of it does nothing
        return
    layout.make_private(shared.parent, shared=True)
    _linked(path, shared)


def release(pool: Path, names: Iterable[str], *, shared: bool = False) -> None:
    """Take contents out of the pool where no run has them any more (the pool's is their last name), for good.

    With `shared` also those that a run still has.
    """
    paths = [pool / name[:2] / name for name in names]
    for path in paths:
        with suppress(FileNotFoundError):
            if shared or path.stat().st_nlink == 1:
                path.unlink()
    for folder in sorted({path.parent for path in paths}):
        if folder.is_dir():
            layout.sync_directory(folder)


def sweep_pool(pool: Path) -> int:
    """Take every content out of the pool that no run has any more. Returns the bytes that this freed."""
    freed = 0
    for path in pool.glob("??/*") if pool.is_dir() else ():
        state = path.lstat()
        if state.st_nlink == 1 and path.is_file():
            path.unlink()
            freed += state.st_size
    return freed


def blob_file(attempt: Path, reference: dict[str, Any]) -> Path:
    """Where a blob stands that a row or a manifest names. Raises `Damaged` for what is no name or no tier."""
    name, tier = reference["name"], reference.get("tier", layout.ORDINARY)
    if tier not in layout.TIERS or not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Damaged(f"not a blob's name: {name!r:.80}", blob=name)
    return layout.blob_path(attempt, tier, name)


def stream_blob(attempt: Path, reference: dict[str, Any], step: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of a blob in parts of `step`; raises `Damaged` where it is missing or, at the end, not its name's."""
    name, tier, path = reference["name"], reference.get("tier", layout.ORDINARY), blob_file(attempt, reference)
    if not path.is_file():
        raise Damaged(f"the blob {name[:12]} is missing", file=str(path), blob=name, state="missing")
    digest = naming(tier, read_tier_key(attempt) if tier == layout.RESTRICTED else None)
    with path.open("rb") as file:
        while part := file.read(step):
            digest.update(part)
            yield part
    if digest.hexdigest() != name:
        raise Damaged(f"the blob {name[:12]} is not what was written", file=str(path), blob=name, state="corrupt")
