"""Sealing: from a finished log to a published result, in the order that makes a crash at any point harmless.

    the log is closed and read back -> result.json -> manifest.staged.json
      -> link(result.json, <run>/<name>.json)        the commit point: the shared inode says which attempt published
      -> sync that directory -> link(staged, manifest.json) -> sync

Before the commit point nothing is visible; nothing is ever overwritten. A partial attempt is sealed without publishing.
Where the file system has no hard links a copy is moved into place instead, which the manifest says (`rename`): then
the attempt's id in the result says which attempt published.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from worldline.errors import Damaged, RecordError
from worldline.model import manifest as manifests
from worldline.model.events import encode_json
from worldline.model.manifest import Manifest
from worldline.store import layout
from worldline.store.fold import fold
from worldline.store.log import LogWriter
from worldline.store.rows import RowReader


def read_back(attempt: Path, log: LogWriter) -> tuple[list[list[Any]], str]:
    """Read the finished log from disk and compare it with what was appended.

    Returns what the manifest says of it: its chunks, and the Merkle root in hex.
    """
    files = sorted((attempt / layout.CHUNKS).iterdir())
    folded = fold(files)
    if folded is None or (folded.rows, folded.head) != (log.seq, log.h):
        for _ in (reader := RowReader(files)):
            pass
        where = reader.damages[0] if reader.damages else None
        raise Damaged(f"the log read back from {attempt} is not what was written", damage=where, seq=reader.seq)
    return chunks_of(attempt), folded.root.hex()


def chunks_of(attempt: Path) -> list[list[Any]]:
    """The chunks as the manifest lists them: name, size in bytes, SHA-256."""
    files = sorted((attempt / layout.CHUNKS).iterdir())
    return [[path.name, path.stat().st_size, layout.sha256_of(path)] for path in files]


def publish(attempt: Path, name: str, result: dict[str, Any], facts: dict[str, Any], publishes: bool) -> Path | None:
    """Write the result and the manifest (from `facts`) and, with `publishes`, put the result where people look.

    Returns the published path. Raises `RecordError` where the run already has a result.
    """
    encoded = encode_json(result) + b"\n"
    mode = layout.write_durable(attempt / layout.RESULT, encoded)
    for derived in (layout.PROGRESS, f".{layout.PROGRESS}.tmp"):  # the result says it now
        (attempt / derived).unlink(missing_ok=True)
    facts["result"] = {
        "name": name,
        "size": len(encoded),
        "sha256": hashlib.sha256(encoded).hexdigest(),
        "publish": mode if publishes else "none",
    }
    for tier in layout.TIERS:  # the names under which contents came stay gone: the seal knows none of them
        if (folder := attempt / layout.BLOBS / tier).is_dir():
            layout.sync_directory(folder)
    layout.write_durable(attempt / layout.STAGED, manifests.seal(Manifest(**facts)))
    target = _commit(attempt, name, encoded, mode) if publishes else None
    attest(attempt)
    return target


def attest(attempt: Path) -> None:
    """The last step: the staged manifest becomes the manifest."""
    try:
        os.link(attempt / layout.STAGED, attempt / layout.MANIFEST)
    except OSError as error:
        if error.errno not in layout.NO_LINKS:
            raise
        layout.write_durable(attempt / layout.MANIFEST, (attempt / layout.STAGED).read_bytes())
    layout.sync_directory(attempt)


def _commit(attempt: Path, name: str, encoded: bytes, mode: str) -> Path:
    """The commit point. One attempt of a run at a time, since without hard links the look and the step are two."""
    run = attempt.parent.parent.parent
    with alone(run / layout.ATTEMPTS):
        if taken := result_out(run):
            raise RecordError(f"{taken} is already published by another attempt", path=str(taken))
        if mode == layout.RENAME:
            layout.write_durable(run / name, encoded)
        else:
            os.link(attempt / layout.RESULT, run / name)
            layout.sync_directory(run)
    return run / name


def result_out(run: Path) -> Path | None:
    """What a run has published, whichever attempt did; None where nothing is out."""
    return min(run.glob("*.json"), default=None)


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Hold a directory's lock; who asks for it meanwhile waits. The attempts' one is for what changes a run."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked child may have the descriptor, too
    finally:
        os.close(descriptor)
