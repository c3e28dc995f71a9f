"""What an owner with all the tools can do: rewrite the log of a sealed attempt, chain and seal it anew."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from worldline.model import events
from worldline.model.manifest import _digest
from worldline.model.merkle import Merkle
from worldline.store import layout

SYNC = re.compile(rb'"sync":\[(\d+),"[0-9a-f]{16}"\]')


def forge(attempt: Path, change: Callable[[bytes], bytes]) -> None:
    """Apply `change` to the body of every row; every hash, the sync marks, the manifest and its seal follow."""
    head, fold, chunks, header, total = events.GENESIS, Merkle(), [], "", 0
    starts = [b""]  # of the hashes so far, as sync marks name them
    for path in sorted((attempt / layout.CHUNKS).iterdir()):
        written = b""
        for line in path.read_bytes().splitlines(True):
            body = change(line[: -events.SUFFIX])
            body = SYNC.sub(lambda mark: b'"sync":[%b,"%b"]' % (mark[1], starts[int(mark[1])]), body, count=1)
            leaf = events.leaf(body)
            head = events.link(head, leaf)
            header = header or head.hex()
            starts.append(head.hex()[:16].encode())
            fold.add(leaf)
            written += events.line(body, head)
        replace(path, written)
        total += len(written)
        chunks.append([path.name, len(written), layout.sha256_of(path)])
    facts = {
        "bytes": total,
        "head": head.hex(),
        "root": fold.root().hex(),
        "header": header,
        "genesis": header,
        "chunks": chunks,
    }
    reseal(attempt, facts)


def reseal(attempt: Path, facts: dict[str, object]) -> None:
    """Seal the manifest anew with some of its fields replaced."""
    manifest = json.loads((attempt / layout.MANIFEST).read_bytes()) | facts
    del manifest["seal"]
    before = events.encode_json(manifest)[:-1]
    line = before + b',"seal":"' + _digest(before).encode() + b'"}\n'
    for name in (layout.STAGED, layout.MANIFEST):
        replace(attempt / name, line)


def replace(path: Path, data: bytes) -> None:
    """Other bytes under the same name, in a file of its own."""
    path.unlink()
    path.write_bytes(data)
