"""The manifest: one line that says what a sealed attempt holds, and its seal, the run's fingerprint.

    {"format":"worldline/0",...,"seal":"<SHA256(0x03 | the bytes before ,\\"seal\\":)>"}

It is hashed as written, like the rows. Reading keeps the raw bytes; fields this version does not know are ignored.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from worldline.model.events import encode_json

FORMAT = "worldline/0"
_SEAL = b',"seal":"'
_SUFFIX = len(_SEAL) + 64 + 2  # the hash, then "}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was sealed. Sizes in bytes, times in Unix ns, hashes in hex.

    `disposition` is `complete`, `partial` or `sanitized-partial`; `coverage` says per channel what was recorded.
    """

    format: str
    session: str
    run: str
    attempt: str
    disposition: str
    reason: str | None
    sealed_at: int
    sealed_by: str
    rows: int
    bytes: int
    head: str
    root: str
    durability: str
    header: str
    parent: dict[str, Any] | None
    result: dict[str, Any]
    blobs: list[list[Any]]  # [name, size, type, tier, disposition], sorted by name
    coverage: dict[str, Any]
    masks: list[str]
    secrets: dict[str, Any]
    limits: dict[str, int]
    capture: str
    chunks: list[list[Any]]  # [name, size, sha256]
    torn: dict[str, Any] | None
    writer: str


def seal(manifest: Manifest) -> bytes:
    """The manifest's line, seal and LF included."""
    before = encode_json(manifest)[:-1]
    return before + _SEAL + _digest(before).encode("ascii") + b'"}\n'


def unseal(line: bytes) -> tuple[Manifest, str]:
    """The manifest of a line and its seal. Raises `ValueError` where the seal does not fit or the line is none."""
    text = line.removesuffix(b"\n")
    before, suffix = text[:-_SUFFIX], text[-_SUFFIX:]
    if not suffix.startswith(_SEAL) or suffix != _SEAL + _digest(before).encode("ascii") + b'"}' or line == text:
        raise ValueError("the seal does not fit the manifest")
    try:
        return msgspec.json.decode(before + b"}", type=Manifest), suffix[len(_SEAL) : -2].decode("ascii")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"not a manifest: {error}") from None


def _digest(before: bytes) -> str:
    return hashlib.sha256(b"\x03" + before).hexdigest()
