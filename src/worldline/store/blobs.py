"""The blob store of an attempt: content by the name of its bytes, written once, durable before a row refers to it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Damaged
from worldline.store import layout


class Blob(msgspec.Struct, frozen=True):
    """A blob as rows name it. `name` is the SHA-256 of its bytes in hex, `size` in bytes, `type` a media type."""

    name: str
    size: int
    type: str
    tier: str = "ordinary"

    def reference(self) -> dict[str, Any]:
        """The form in a row's data."""
        return {"$blob": {"name": self.name, "size": self.size, "type": self.type, "tier": self.tier}}


class BlobStore:
    """The blobs of one attempt directory."""

    def __init__(self, attempt: Path) -> None:
        self._attempt = attempt
        self.written: dict[str, Blob] = {}

    def put(self, content: bytes | Iterable[bytes], media_type: str, tier: str = "ordinary") -> Blob:
        """Store content, given whole or in parts (then memory stays bounded). The same bytes are stored once."""
        parts = (content,) if isinstance(content, bytes) else content
        folder = self._attempt / layout.BLOBS / tier
        layout.make_private(folder)
        temporary = folder / f".{os.getpid()}-{id(parts):x}.tmp"
        temporary.unlink(missing_ok=True)
        digest, size = hashlib.sha256(), 0
        descriptor = layout.create(temporary)
        try:
            try:
                for part in parts:
                    digest.update(part)
                    size += len(part)
                    layout.write_all(descriptor, part)
                blob = Blob(digest.hexdigest(), size, media_type, tier)
                if blob.name not in self.written:
                    os.fsync(descriptor)
                    self._place(temporary, blob)
            finally:
                os.close(descriptor)
        finally:
            temporary.unlink(missing_ok=True)
        return self.written.setdefault(blob.name, blob)

    def _place(self, temporary: Path, blob: Blob) -> None:
        path = layout.blob_path(self._attempt, blob.tier, blob.name)
        layout.make_private(path.parent)
        try:
            layout.place(temporary, path)
        except FileExistsError:
            return  # the same bytes, from a writer before us
        layout.sync_directory(path.parent)


def stream_blob(attempt: Path, reference: dict[str, Any], step: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of a blob in parts of `step`; raises `Damaged` where it is missing or, at the end, not its name's."""
    name, tier = reference["name"], reference.get("tier", "ordinary")
    if tier not in layout.TIERS or not name.isalnum():
        raise Damaged(f"not a blob's name: {name!r:.80}", blob=name)
    path = layout.blob_path(attempt, tier, name)
    if not path.is_file():
        raise Damaged(f"the blob {name[:12]} is missing", file=str(path), blob=name, state="missing")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(step):
            digest.update(part)
            yield part
    if digest.hexdigest() != name:
        raise Damaged(f"the blob {name[:12]} is not what was written", file=str(path), blob=name, state="corrupt")
