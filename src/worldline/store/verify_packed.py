"""Verifying a bundle: every byte of the file is read, and what was sealed is asked of it as of a directory.

The container answers for each stored byte; the seal for rows, head, root and contents; the index is derived again. The
publication itself cannot be seen from a bundle: `packed` says that it was sealed as complete by one attempt.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from worldline.errors import Damaged, WorldlineError
from worldline.model.manifest import Manifest
from worldline.model.merkle import Merkle
from worldline.store.container import EVENTS, INDEX, MANIFEST, Entry, resource_name
from worldline.store.index import IndexBuilder
from worldline.store.packed import PackedRecording
from worldline.store.rows import RowReader
from worldline.store.verdicts import Problem, Verdict, collect_blobs, rows_against_seal


def judge_packed(
    recording: PackedRecording, watch: Callable[[int], None] = lambda size: None
) -> tuple[dict[str, Verdict], dict[str, Any]]:
    """Judge a bundle whose tail was good enough to be opened: the verdicts but authenticity's, and the facts."""
    manifest = recording.manifest
    structure: list[Problem] = []
    if recording.seal_problem is not None:
        structure.append(Problem("manifest", MANIFEST, recording.seal_problem))
    structure += _entries(recording, watch)
    rows, found = _rows(recording, manifest)
    structure += found
    corrupt, missing, withheld = _contents(recording, manifest)
    answers = {
        "structure": Verdict("failed" if structure else "ok", structure),
        "evidence": Verdict("failed" if corrupt else "ok", corrupt),
        "publication": Verdict("packed" if manifest and manifest.result["publish"] != "none" else "withheld"),
        "availability": Verdict("missing" if missing else "withheld" if withheld else "ok", missing),
    }
    facts = {
        "run": manifest.run if manifest else None,
        "attempt": manifest.attempt if manifest else None,
        "rows": rows,
        "contents": len(manifest.blobs) if manifest else 0,
        "withheld": len(recording.container.withheld),
        "disposition": recording.disposition,
        "fingerprint": recording.fingerprint,
    }
    return answers, facts


def _entries(recording: PackedRecording, watch: Callable[[int], None]) -> Iterator[Problem]:
    """Each entry's header, stored bytes, size and CRC."""
    if recording.container.seal != recording.fingerprint:
        yield Problem("changed", "container.json", "it names another seal than the manifest has")
    for entry in recording.container.entries:
        crc, size = 0, 0
        try:
            for part in recording.content_of(entry):
                crc, size = zlib.crc32(part, crc), size + len(part)
                watch(len(part) if entry.name == EVENTS else 0)
        except WorldlineError as error:
            yield Problem("changed", entry.name, str(error))
            continue
        if (crc, size) != (entry.crc32, entry.size):
            yield Problem("changed", entry.name, "not the size or CRC that the container says")


def _rows(recording: PackedRecording, manifest: Manifest | None) -> tuple[int, list[Problem]]:
    """The log's rows against the seal, the names of its contents, and the index against the rows."""
    reader, merkle = RowReader(recording.files()), Merkle()
    builder = IndexBuilder(_result(recording))
    blocks = set(recording.index.blocks.seq) if _readable(recording) else set()
    named: dict[str, dict[str, object]] = {}
    header, last = "", ""
    for event in reader:
        merkle.add(reader.leaf)
        header, last = header or event.h, event.name
        collect_blobs(event.data, named)
        if event.seq in blocks:
            builder.blocks.seq.append(builder.rows)
            builder.blocks.raw.append(builder.raw)
        builder.row(event)
    problems = list(rows_against_seal(reader, merkle.root().hex(), header, last, manifest))
    if manifest is None:
        return reader.seq, problems
    problems += [
        Problem("changed", f"blob {n[:12]}", "a row names a content that was not sealed")
        for n in named
        if n not in {blob[0] for blob in manifest.blobs}
    ]
    problems += _derived(recording, builder, manifest)
    return reader.seq, problems


def _readable(recording: PackedRecording) -> bool:
    try:
        _ = recording.index
    except Damaged:
        return False
    return True


def _result(recording: PackedRecording) -> str:
    return recording.index.result if _readable(recording) else ""


def _derived(recording: PackedRecording, builder: IndexBuilder, manifest: Manifest) -> Iterator[Problem]:
    """The index is what the rows give, and the result in it is the sealed one."""
    if not _readable(recording):
        yield Problem("changed", INDEX, "the index cannot be read")
        return
    index, derived = recording.index, builder.index()
    derived.blocks.stored = index.blocks.stored  # checked by inflating each block alone
    if derived != index:
        yield Problem("changed", INDEX, "not the index of these rows")
    elif not _blocks_fit(recording):
        yield Problem("changed", INDEX, "a block does not begin where the index says")
    result = index.result.encode("utf-8", "surrogatepass")
    if (len(result), hashlib.sha256(result).hexdigest()) != (manifest.result["size"], manifest.result["sha256"]):
        yield Problem("changed", "result", "not the result that was sealed")


def _blocks_fit(recording: PackedRecording) -> bool:
    blocks = recording.index.blocks
    try:
        for number, seq in enumerate(blocks.seq):
            if not recording.block(number).startswith(b'{"seq":%d,' % seq):
                return False
    except WorldlineError:
        return False
    return True


def _contents(recording: PackedRecording, manifest: Manifest | None) -> tuple[list[Problem], list[Problem], list[str]]:
    """Contents that are corrupt, that are missing, and that were left out and listed."""
    corrupt: list[Problem] = []
    missing: list[Problem] = []
    withheld: list[str] = []
    known: set[str] = set()
    for name, size, media_type, tier, _ in manifest.blobs if manifest else ():
        known.add(resource_name(name, media_type))
        try:
            found = sum(len(p) for p in recording.stream_blob({"name": name, "type": media_type, "tier": tier}))
        except Damaged as error:
            state = error.facts.get("state", "corrupt")
            if state == "withheld":
                withheld.append(name)
            else:
                (missing if state == "missing" else corrupt).append(Problem(state, f"blob {name[:12]}", str(error)))
            continue
        if found != size:
            corrupt.append(Problem("corrupt", f"blob {name[:12]}", f"{found:,} bytes, not {size:,}"))
    corrupt += [Problem("added", e.name, "a content that was not sealed") for e in _strangers(recording, known)]
    return corrupt, missing, withheld


def _strangers(recording: PackedRecording, known: set[str]) -> Iterator[Entry]:
    for entry in recording.container.entries:
        if entry.name.startswith("resources/") and entry.name not in known:
            yield entry
