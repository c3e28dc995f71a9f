"""A proof that one row, or one prefix of rows, is what was sealed: one small file, checked without the recording.

    {"format":"worldline-proof/1","run":"run_...","attempt":"ainst_...","manifest":"<the manifest line>",
     "row":{"seq":17,"body":"{\\"seq\\":17,...}"},"path":["<64 hex>",...]}

A prefix has `"prefix":{"rows":18,"root":"<64 hex>"}` in the place of `row`. The manifest line carries the seal, which
is the run's fingerprint, and the Merkle root over all rows (RFC 9162); the path leads from the row's bytes, or from the
prefix's root, to that root. Every byte of the file is proven: so a row stands in it without its chain hash, which is in
no leaf, and the chain hash of a prefix is told only to those who have the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from worldline.errors import Damaged, ProofFailed, Unsealed, UsageError
from worldline.model import events, merkle
from worldline.model.manifest import Manifest, unseal
from worldline.store.recording import Recording
from worldline.store.signature import check

FORMAT: Literal["worldline-proof/1"] = "worldline-proof/1"
WATCHED_BYTES = 1 << 20
LARGEST = 64 << 20  # bytes of a proof's file; a manifest names every content of a run
_HASH = re.compile(r"[0-9a-f]{64}")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: its number and its bytes before `,"h":"`."""

    seq: int
    body: str


class Prefix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first `rows` rows, and the Merkle root over them in hex."""

    rows: int
    root: str


class Proof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the file says. `path` holds hashes in hex, from the leaves up."""

    format: Literal["worldline-proof/1"]
    run: str
    attempt: str
    manifest: str
    row: Row | msgspec.UnsetType = msgspec.UNSET
    prefix: Prefix | msgspec.UnsetType = msgspec.UNSET
    path: tuple[str, ...]


class Proven(msgspec.Struct, frozen=True, kw_only=True):
    """What a proof proves of the run with this `fingerprint` (the seal, hex). `rows` is the whole log's length.

    Of a row: `seq` and `row`, its fields as written. Of a prefix: `prefix`, its length, and, where its rows were given
    and are those, `head`, the chain hash of the last of them.
    """

    run: str
    attempt: str
    fingerprint: str
    rows: int
    hashes: int
    trusted: bool  # whether the caller knows the fingerprint, or somebody whom he trusts signed it
    signer: str | None = None
    seq: int | None = None
    row: dict[str, Any] | None = None
    prefix: int | None = None
    head: str | None = None


def prove_row(recording: Recording, seq: int, watch: Callable[[int], None] = lambda size: None) -> bytes:
    """The file that proves row `seq`. Raises `Unsealed`, `Damaged`, or `UsageError` where there is no such row.

    `watch` is told, now and then, how many more bytes of the log have been read: for a progress line.
    """
    line, manifest = _sealed(recording)
    if not 0 <= seq < manifest.rows:
        raise UsageError(f"no row {seq}; {recording.path} has rows 0 to {manifest.rows - 1}", rows=manifest.rows)
    path, _, body = _fold(recording, manifest, merkle.inclusion(seq, manifest.rows), seq, 0, watch)
    return _encode(_proof(manifest, line, path, row=Row(seq, body.decode())))


def prove_prefix(recording: Recording, rows: int, watch: Callable[[int], None] = lambda size: None) -> bytes:
    """The file that proves the first `rows` rows. Raises, and tells `watch`, as `prove_row` does."""
    line, manifest = _sealed(recording)
    if not 0 < rows <= manifest.rows:
        raise UsageError(f"no prefix of {rows} rows; {recording.path} has {manifest.rows}", rows=manifest.rows)
    path, root, _ = _fold(recording, manifest, merkle.consistency(rows, manifest.rows), -1, rows, watch)
    return _encode(_proof(manifest, line, path, prefix=Prefix(rows, root)))


def check_proof(
    data: bytes,
    fingerprint: str | None = None,
    rows: Iterable[bytes] | None = None,
    signed: tuple[Path, Path] | None = None,
) -> Proven:
    """What the file `data` proves. Nothing else of the run is read.

    `fingerprint` is the seal of the run as the caller knows it from elsewhere: without one, a proof speaks only of its
    own manifest, which anybody can write. `signed` is (the run's signature, a file of allowed signers): then one of
    those must have signed it. `rows` are lines of a log; those of the prefix are then checked, too.
    Raises `ProofFailed` with the reason, `SignatureFailed` where a signature cannot be checked here.
    """
    proof = _decode(data)
    try:
        manifest, seal = unseal(proof.manifest.encode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ProofFailed(f"its manifest is not what was sealed: {error}") from None
    if fingerprint is not None and fingerprint.lower() != seal:
        raise ProofFailed(f"it speaks of another run: its fingerprint is {seal}", fingerprint=seal)
    if (proof.run, proof.attempt) != (manifest.run, manifest.attempt):
        raise ProofFailed(f"its manifest is of {manifest.run}, {manifest.attempt}")
    signer = _signer(proof.manifest, *signed) if signed is not None else None
    path, root = [_hash(text) for text in proof.path], _hash(manifest.root)
    proven = Proven(
        run=proof.run,
        attempt=proof.attempt,
        fingerprint=seal,
        rows=manifest.rows,
        hashes=len(path),
        trusted=fingerprint is not None or signer is not None,
        signer=signer,
    )
    if isinstance(proof.row, Row):
        row = _row(proof.row)
        leaf = events.leaf(proof.row.body.encode("utf-8"))
        if not merkle.includes(root, manifest.rows, proof.row.seq, leaf, path):
            raise ProofFailed(f"row {proof.row.seq} does not lead to the sealed root")
        return replace(proven, seq=proof.row.seq, row=row)
    assert isinstance(proof.prefix, Prefix)
    prefix = proof.prefix
    if not merkle.extends(root, manifest.rows, _hash(prefix.root), prefix.rows, path):
        raise ProofFailed(f"the first {prefix.rows} rows do not lead to the sealed root")
    return replace(proven, prefix=prefix.rows, head=None if rows is None else _head(prefix, rows))


def _signer(line: str, signature: Path, signers: Path) -> str:
    """Who of the allowed signers signed the manifest's line."""
    found = check(line.encode("utf-8"), signature, signers)
    if found.state != "good":
        raise ProofFailed(found.detail or f"nobody signed it: there is no {signature}")
    return str(found.by)


def _sealed(recording: Recording) -> tuple[str, Manifest]:
    line, manifest = recording.manifest_line, recording.manifest
    if recording.seal_problem is not None:
        raise Damaged(f"{recording.path}: {recording.seal_problem}; nothing can be proven by it")
    if manifest is None or line is None:
        raise Unsealed(f"{recording.path} is not sealed; only what is sealed can be proven")
    return line.decode("utf-8"), manifest


def _fold(
    recording: Recording,
    manifest: Manifest,
    ranges: list[merkle.Range],
    seq: int,
    rows: int,
    watch: Callable[[int], None],
) -> tuple[tuple[str, ...], str, bytes]:
    """One pass over the log: the path's hashes, the root over the first `rows` rows, and the body of row `seq`."""
    roots, whole, before, body, unseen = merkle.RangeRoots(ranges), merkle.Merkle(), "", b"", 0
    for event in recording.events():
        leaf = events.leaf(event.raw[: -events.SUFFIX])
        roots.add(leaf)
        whole.add(leaf)
        if event.seq == seq:
            body = event.raw[: -events.SUFFIX]
        if whole.size == rows:
            before = whole.root().hex()
        unseen += len(event.raw)
        if unseen >= WATCHED_BYTES:
            watch(unseen)
            unseen = 0
    if recording.damages or whole.size != manifest.rows or whole.root().hex() != manifest.root:
        raise Damaged(f"{recording.path}: the log is not what was sealed; `worldline verify` says where")
    return tuple(root.hex() for root in roots.roots()), before, body


def _proof(manifest: Manifest, line: str, path: tuple[str, ...], **of: Any) -> Proof:
    return Proof(format=FORMAT, run=manifest.run, attempt=manifest.attempt, manifest=line, path=path, **of)


def _encode(proof: Proof) -> bytes:
    return events.encode_json(proof) + b"\n"


def _decode(data: bytes) -> Proof:
    if len(data) > LARGEST:
        raise ProofFailed(f"a file of {len(data):,} bytes is over the limit of {LARGEST:,}")
    try:
        proof = msgspec.json.decode(data, type=Proof)
        written = _encode(proof)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProofFailed(f"not a proof: {error}") from None
    if written != data:  # another spelling of the same: a byte was changed that says nothing
        raise ProofFailed("not a proof as it is written: fields in order, no spaces, one line")
    if isinstance(proof.row, Row) == isinstance(proof.prefix, Prefix):
        raise ProofFailed("not a proof: it is of one row or of one prefix")
    return proof


def _hash(text: str) -> bytes:
    if not _HASH.fullmatch(text):
        raise ProofFailed(f"not a hash in lower-case hex: {text!r:.80}")
    return bytes.fromhex(text)


def _row(row: Row) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(row.body + "}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProofFailed(f"row {row.seq} is none: {error}") from None
    if type(fields.get("seq")) is not int or fields["seq"] != row.seq:
        raise ProofFailed(f"row {row.seq} says of itself that it is {fields.get('seq')!r:.80}")
    return fields


def _head(prefix: Prefix, lines: Iterable[bytes]) -> str:
    """The chain hash of the prefix's last row, from its rows. Raises `ProofFailed` where they are others."""
    head, fold = events.GENESIS, merkle.Merkle()
    for line in lines:
        leaf = events.leaf(line[: -events.SUFFIX])
        head = events.link(head, leaf)
        if line[-events.SUFFIX :] != events.line(b"", head):
            raise ProofFailed(f"row {fold.size} of the given ones is not chained to those before", seq=fold.size)
        fold.add(leaf)
        if fold.size == prefix.rows:
            break
    if fold.size < prefix.rows or fold.root().hex() != prefix.root:
        raise ProofFailed(f"the rows given do not begin with the {prefix.rows} of the proof")
    return head.hex()
