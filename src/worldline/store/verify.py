"""Is the record what was written? Five questions, each with its own verdict, and every problem with its place.

structure      rows chain, nothing is missing, out of place or added; head and root are what the seal says
evidence       every content that a row names is what was written
publication    the result that people see is this attempt's, whole
availability   what is kept is still here
authenticity   who vouches for it; a chain alone shows edits, not authors
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from worldline.errors import Damaged, WorldlineError
from worldline.model.manifest import Manifest
from worldline.model.merkle import Merkle
from worldline.store import layout
from worldline.store.blobs import stream_blob
from worldline.store.recording import Recording
from worldline.store.rows import RowReader


class Problem(msgspec.Struct, frozen=True):
    """One thing that is not as it should be: its kind, where, and in words."""

    kind: str
    where: str
    detail: str


class Verification(msgspec.Struct):
    """The verdicts and the problems; `facts` holds counts for people."""

    verdicts: dict[str, str]
    problems: list[Problem]
    facts: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong. An unsigned record can be ok; an unsealed one cannot."""
        return not self.problems


WATCHED_BYTES = 1 << 20
_FOLDERS = frozenset({layout.CHUNKS, layout.BLOBS})


class _Log(msgspec.Struct):
    """What one pass over the rows found."""

    reader: RowReader
    merkle: Merkle
    header: str = ""
    last: str = ""
    blobs: dict[str, dict[str, Any]] = {}


def verify(recording: Recording, watch: Callable[[int], None] = lambda size: None) -> Verification:
    """Read every byte of a recording and judge it. Raises only for what is no recording at all.

    `watch` is told, now and then, how many more bytes of the log have been read: for a progress line.
    """
    manifest = recording.manifest
    structure: list[Problem] = []
    if recording.seal_problem is not None:
        structure.append(Problem("manifest", layout.MANIFEST, recording.seal_problem))
    log = _read(recording, watch)
    structure += _structure(recording, manifest, log)
    corrupt, missing = _contents(recording, manifest, log)
    publication = list(_publication(recording, manifest)) if manifest else []
    if manifest is None and not structure:
        state = "its writer is still at work" if recording.live else "its writer died before sealing it"
        publication.append(Problem("unsealed", recording.attempt.name, state))
    verdicts = {
        "structure": "failed" if structure else "ok",
        "evidence": "failed" if corrupt else "ok",
        "publication": _publication_verdict(manifest, publication),
        "availability": "missing" if missing else "ok",
        "authenticity": "unsigned",
    }
    facts = {
        "run": recording.run_directory.name,
        "attempt": recording.attempt.name,
        "rows": log.reader.seq,
        "contents": len(log.blobs),
        "disposition": manifest.disposition if manifest else recording.disposition,
        "fingerprint": recording.fingerprint if manifest else None,
    }
    return Verification(verdicts, [*structure, *corrupt, *missing, *publication], facts)


def _read(recording: Recording, watch: Callable[[int], None]) -> _Log:
    log, told = _Log(RowReader(recording.files()), Merkle(), blobs={}), 0
    for event in log.reader:
        log.merkle.add(log.reader.leaf)
        log.last = event.name
        if event.seq == 0:
            log.header = event.h
        _collect_blobs(event.data, log.blobs)
        if log.reader.bytes - told >= WATCHED_BYTES:
            watch(log.reader.bytes - told)
            told = log.reader.bytes
    return log


def _structure(recording: Recording, manifest: Manifest | None, log: _Log) -> Iterator[Problem]:
    try:
        _ = recording.header
    except Damaged as error:
        yield Problem(error.kind, "row 0", str(error))
    for damage in log.reader.damages:
        yield Problem(damage.kind, f"row {damage.seq} ({damage.file}, byte {damage.offset:,})", damage.detail)
    if manifest is None:
        return
    reader = log.reader
    found = (reader.seq, (reader.head or b"").hex(), log.merkle.root().hex(), log.header, reader.bytes)
    sealed = (manifest.rows, manifest.head, manifest.root, manifest.header, manifest.bytes)
    names = ("rows", "head", "root", "header", "bytes")
    for name, here, there in zip(names, found, sealed, strict=True):
        if here != there:
            yield Problem("changed", name, f"the seal says {there}, the log gives {here}")
    if log.last != "meta/end":
        yield Problem("gap", "the last row", f"a sealed log ends with meta/end, not {log.last or 'nothing'}")
    yield from _files(recording, manifest)


def _files(recording: Recording, manifest: Manifest) -> Iterator[Problem]:
    """Every file of a sealed attempt is what was sealed, and there is no other."""
    attempt = recording.attempt
    sealed = {f"{layout.CHUNKS}/{name}": (size, digest) for name, size, digest in manifest.chunks}
    known = {str(layout.blob_path(attempt, tier, name).relative_to(attempt)) for name, _, _, tier, _ in manifest.blobs}
    for path in sorted(attempt.rglob("*")):
        name = str(path.relative_to(attempt))
        folder = path.is_dir() and not path.is_symlink()
        if name.split("/")[0] not in layout.SEALED_NAMES or (folder and name in layout.SEALED_NAMES - _FOLDERS):
            yield Problem("added", name, "a name that no sealed attempt has")
        elif not folder and name.split("/")[0] in _FOLDERS and name not in sealed and name not in known:
            yield Problem("added", name, "a file that was not sealed")
        elif not folder and not path.is_file():
            yield Problem("changed", name, "no file")
    for name, (size, digest) in sealed.items():
        if not (attempt / name).is_file():
            yield Problem("missing", name, "a sealed file is gone")
        elif ((attempt / name).stat().st_size, layout.sha256_of(attempt / name)) != (size, digest):
            yield Problem("changed", name, "not the bytes that were sealed")
    yield from _derived(recording)


def _derived(recording: Recording) -> Iterator[Problem]:
    try:
        opened = layout.opened(recording.header.data)
    except WorldlineError:
        return  # the header's own problem is reported already
    for name, bytes_due in ((layout.OPEN, opened), (layout.LOCK, b"")):
        path = recording.attempt / name
        if path.is_file() and path.read_bytes() != bytes_due:  # gone is no loss: it can be derived again
            yield Problem("changed", name, "not what the header says" if bytes_due else "the lock is not empty")


def _contents(recording: Recording, manifest: Manifest | None, log: _Log) -> tuple[list[Problem], list[Problem]]:
    """The problems of contents: corrupt ones, missing ones."""
    references = dict(log.blobs)
    for name, size, media_type, tier, _ in manifest.blobs if manifest else ():
        references.setdefault(name, {"name": name, "size": size, "type": media_type, "tier": tier})
    corrupt: list[Problem] = []
    missing: list[Problem] = []
    for name, reference in sorted(references.items()):
        try:
            size = sum(len(part) for part in stream_blob(recording.attempt, reference))
        except Damaged as error:
            problem = Problem(error.facts.get("state", "corrupt"), f"blob {name[:12]}", str(error))
            (missing if problem.kind == "missing" else corrupt).append(problem)
            continue
        if size != reference["size"]:
            corrupt.append(Problem("corrupt", f"blob {name[:12]}", f"{size:,} bytes, not {reference['size']:,}"))
    return corrupt, missing


def _publication(recording: Recording, manifest: Manifest) -> Iterator[Problem]:
    own, name = recording.attempt / layout.RESULT, manifest.result["name"]
    if not own.is_file():
        yield Problem("missing", layout.RESULT, "the sealed result is gone")
    elif (own.stat().st_size, layout.sha256_of(own)) != (manifest.result["size"], manifest.result["sha256"]):
        yield Problem("changed", layout.RESULT, "not the bytes that were sealed")
    staged = recording.attempt / layout.STAGED
    if not staged.is_file():
        yield Problem("missing", layout.STAGED, "the staged manifest is gone")
    elif staged.read_bytes() != (recording.attempt / layout.MANIFEST).read_bytes():
        yield Problem("changed", layout.STAGED, "not the manifest that was sealed")
    if manifest.result["publish"] == "none":
        return
    target = recording.run_directory / name
    if not target.is_file():
        yield Problem("unpublished", name, "the published result is gone from the run's directory")
    elif (target.stat().st_size, layout.sha256_of(target)) != (manifest.result["size"], manifest.result["sha256"]):
        yield Problem("changed", name, "the published result is not this attempt's")


def _publication_verdict(manifest: Manifest | None, problems: list[Problem]) -> str:
    if manifest is None:
        return "unsealed"
    if problems:
        return "failed"
    return "ok" if manifest.result["publish"] != "none" else "withheld"


def _collect_blobs(value: Any, found: dict[str, dict[str, Any]]) -> None:
    """Every `$blob` reference inside a row's data."""
    if isinstance(value, dict):
        reference = value.get("$blob")
        if isinstance(reference, dict) and isinstance(reference.get("name"), str):
            found[reference["name"]] = reference
        else:
            for item in value.values():
                _collect_blobs(item, found)
    elif isinstance(value, list):
        for item in value:
            _collect_blobs(item, found)
