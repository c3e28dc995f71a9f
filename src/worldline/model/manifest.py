"""The manifest: one line that says what a sealed attempt holds, and its seal, the run's fingerprint.

    {"format":"worldline/1",...,"seal":"<SHA256(0x03 | the bytes before ,\\"seal\\":)>"}

It is hashed as written, like the rows. Reading keeps the raw bytes; fields this version does not know are ignored, and
those that an older format does not have are as `model.upcast` fills them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec

from worldline.model.events import encode_json
from worldline.model.holds import is_counts, is_hash, is_size, is_text, is_texts
from worldline.model.ids import is_id

FORMAT = "worldline/1"
READABLE = (FORMAT, "worldline/0")  # for ever: a format that was frozen once is never taken out
TIERS = ("ordinary", "restricted")
MOST_BYTES = 64 << 20  # of a manifest's line
_SEAL = b',"seal":"'
_SUFFIX = len(_SEAL) + 64 + 2  # the hash, then "}
_RESULT = re.compile(r"[^/\\\0-\x1f\x7f.][^/\\\0-\x1f\x7f]*\.json")
_LONGEST_NAME = 255  # bytes of a file's name
_CHUNK = re.compile(r"[0-9]{6,20}\.jsonl")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was sealed. Sizes in bytes, times in Unix ns, hashes in hex.

    `disposition` is `complete`, `partial` or `sanitized-partial`; `coverage` says per channel what was recorded.
    `genesis` is the hash of the oldest ancestor's header. `retention` holds seconds by tier where the recording
    declared it, `recording` that declaration whole; `derived_from` what a derived bundle was made of
    and what was taken out.
    `codecs` are the escapes that its values may use, `capabilities` the replay levels it can be used for.
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
    genesis: str | None = None
    checkpoint_dag: list[dict[str, Any]] = []
    retention: dict[str, int | None] | None = None
    recording: dict[str, Any] | None = None
    derived_from: dict[str, Any] | None = None
    codecs: list[str] = []
    capabilities: list[str] = []

    @property
    def sealed_later(self) -> bool:
        """Whether somebody else sealed it, behind a recorder that was gone (`sealed_by` says so)."""
        return self.sealed_by.endswith(" reconcile")


def seal(manifest: Manifest) -> bytes:
    """The manifest's line, seal and LF included."""
    before = encode_json(manifest)[:-1]
    return before + _SEAL + _digest(before).encode("ascii") + b'"}\n'


def unseal(line: bytes) -> tuple[Manifest, str]:
    """The manifest of a line and its seal. Raises `ValueError` where the seal does not fit, or it cannot be one."""
    if len(line) > MOST_BYTES:
        raise ValueError(f"over {MOST_BYTES:,} bytes are no manifest")
    text = line.removesuffix(b"\n")
    before, suffix = text[:-_SUFFIX], text[-_SUFFIX:]
    if not suffix.startswith(_SEAL) or suffix != _SEAL + _digest(before).encode("ascii") + b'"}' or line == text:
        raise ValueError("the seal does not fit the manifest")
    try:
        manifest = msgspec.json.decode(before + b"}", type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a manifest: {error}") from None
    for field, why in unbound(manifest):
        raise ValueError(f"the manifest cannot be: {field}: {why}")
    return manifest, suffix[len(_SEAL) : -2].decode("ascii")


def unbound(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """The fields of a manifest that cannot be, each with a reason. What fits its seal may still be an attacker's.

    After this no reader has to fear a table of the wrong shape, or a name that leads out of its directory.
    """
    for name, prefix in (("run", "run"), ("attempt", "ainst")):
        if not is_id(getattr(manifest, name), prefix):
            yield name, "not such an id"
    for name in ("head", "root", "header"):
        if not is_hash(getattr(manifest, name)):
            yield name, "not a hash in lower-case hex"
    if manifest.parent is None and manifest.genesis not in (None, manifest.header):
        yield "genesis", "without a parent it is the run's own header"
    for name in ("rows", "bytes", "sealed_at"):
        if not is_size(getattr(manifest, name)):
            yield name, "no count and no time"
    if manifest.rows < 1:
        yield "rows", "a log has at least its header"
    result = manifest.result
    if not (_is_result(result.get("name")) and is_text(result.get("publish"))):
        yield "result", "its name is no plain file name"
    if not (is_size(result.get("size")) and is_hash(result.get("sha256"))):
        yield "result", "not a size and a hash"
    chunks, blobs, torn = manifest.chunks, manifest.blobs, manifest.torn
    if not all(len(c) == 3 and is_text(c[0]) and is_size(c[1]) and is_hash(c[2]) for c in chunks):
        yield "chunks", "not name, size and hash"
    elif not all(_CHUNK.fullmatch(chunk[0]) for chunk in chunks) or not _ascends(chunks):
        yield "chunks", "not numbered"
    elif sum(chunk[1] for chunk in chunks) != manifest.bytes:
        yield "chunks", f"together not the {manifest.bytes:,} bytes of the log"
    if not all(
        len(b) == 5 and is_hash(b[0]) and is_size(b[1]) and all(map(is_text, b[2:])) and b[3] in TIERS for b in blobs
    ):
        yield "blobs", "not name, size, type, tier and disposition"
    elif not _ascends(blobs):
        yield "blobs", "not sorted, or one twice"
    if torn is not None and not (is_size(torn.get("size")) and is_hash(torn.get("sha256"))):
        yield "torn", "not a size and a hash"
    if not _is_coverage(manifest.coverage):
        yield "coverage", "not counts by channel"
    if not is_texts(manifest.secrets.get("labels", [])):
        yield "secrets", "its labels are no texts"
    if not all(seconds is None or is_size(seconds) for seconds in (manifest.retention or {}).values()):
        yield "retention", "not seconds by tier"


def _is_result(name: Any) -> bool:
    return is_text(name) and _RESULT.fullmatch(name) is not None and len(name.encode("utf-8")) <= _LONGEST_NAME


def _is_coverage(coverage: dict[str, Any]) -> bool:
    """Whether the channels that readers know are mappings, and count what they count."""
    known = [coverage.get(channel, {}) for channel in ("decision", "tools", "samples")]
    if not all(isinstance(channel, dict) for channel in known):
        return False
    models = [known[0].get(kind, {}) for kind in ("outside", "unread")]
    tools = [known[1].get(kind, {}) for kind in ("recorded", "outside", "unrecordable")]
    return all(map(is_counts, [*models, *tools])) and is_texts(coverage.get("losses", []))


def _ascends(table: list[list[Any]]) -> bool:
    return all(before[0] < after[0] for before, after in pairwise(table))


def _digest(before: bytes) -> str:
    return hashlib.sha256(b"\x03" + before).hexdigest()
