"""Sealing: from a finished log to a published result, in the order that makes a crash at any point harmless.

    the log is closed and read back -> result.json -> manifest.staged.json
      -> link(result.json, <run>/<name>.json)        the commit point: the shared inode says which attempt published
      -> sync that directory -> link(staged, manifest.json) -> sync

Before the commit point nothing is visible; nothing is ever overwritten. A partial attempt is sealed without publishing.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from worldline.errors import Damaged, RecordError
from worldline.model import manifest as manifests
from worldline.model.events import encode_json
from worldline.model.manifest import Manifest
from worldline.model.merkle import Merkle
from worldline.store import layout
from worldline.store.log import LogWriter
from worldline.store.rows import RowReader


def read_back(attempt: Path, log: LogWriter) -> list[list[Any]]:
    """Read the finished log from disk and compare it with what was appended. Returns its chunks for the manifest."""
    files = sorted((attempt / layout.CHUNKS).iterdir())
    reader, merkle = RowReader(files), Merkle()
    for _ in reader:
        merkle.add(reader.leaf)
    if reader.damages or (reader.seq, reader.head, merkle.root()) != (log.seq, log.h, log.merkle.root()):
        where = reader.damages[0] if reader.damages else None
        raise Damaged(f"the log read back from {attempt} is not what was written", damage=where, seq=reader.seq)
    return [[path.name, path.stat().st_size, layout.sha256_of(path)] for path in files]


def publish(attempt: Path, name: str, result: dict[str, Any], facts: dict[str, Any], publishes: bool) -> Path | None:
    """Write the result and the manifest (from `facts`) and, with `publishes`, link them into place.

    Returns the published path. Raises `RecordError` where the run already has a result.
    """
    encoded = encode_json(result) + b"\n"
    layout.write_durable(attempt / layout.RESULT, encoded)
    for derived in (layout.PROGRESS, f".{layout.PROGRESS}.tmp"):  # the result says it now
        (attempt / derived).unlink(missing_ok=True)
    facts["result"] = {
        "name": name,
        "size": len(encoded),
        "sha256": hashlib.sha256(encoded).hexdigest(),
        "publish": "hard-link" if publishes else "none",
    }
    layout.write_durable(attempt / layout.STAGED, manifests.seal(Manifest(**facts)))
    target = attempt.parent.parent.parent / name
    if publishes:
        try:
            os.link(attempt / layout.RESULT, target)
        except FileExistsError:
            raise RecordError(f"{target} is already published by another attempt", path=str(target)) from None
        layout.sync_directory(target.parent)
    os.link(attempt / layout.STAGED, attempt / layout.MANIFEST)
    layout.sync_directory(attempt)
    return target if publishes else None
