"""A derived record: what a sealed recording says without what rules take out of it, chained and sealed anew.

It is built as a sealed attempt in a directory of its owner's alone, to which nothing is written that rules took out.
Rows keep their place and time, calls their ids. The manifest names its source by the seal, the rules, how often each
took something, and why. The source is only read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from worldline import __version__
from worldline.engine import clock
from worldline.engine.keeping import Keeper
from worldline.engine.pictures import thumbnail
from worldline.engine.redact.erase import Eraser
from worldline.engine.redact.recontent import Contents
from worldline.engine.redact.recut import recut
from worldline.engine.redact.rewrite import Rewriter
from worldline.engine.redact.rules import Rules
from worldline.errors import Ineligible, NothingRemoved, Unsealed, UsageError, ValueRefused
from worldline.model import events, values
from worldline.model.events import encode_json
from worldline.model.ids import slug
from worldline.model.manifest import FORMAT, Manifest
from worldline.model.merkle import Merkle
from worldline.store import layout, seal
from worldline.store.blobs import BlobStore
from worldline.store.bundle import pack as bundle
from worldline.store.recording import Recording
from worldline.store.signature import signature_path
from worldline.store.verify import verify

NAMED = frozenset({"run", "attempt", "disposition"})  # of a result: never words of anybody


class Derived(NamedTuple):
    """What came of it: the file (None where none was asked for), its bytes, the source's seal, what went by rule.

    `removed` has the rules that took something, with how often, and `idle` the others; `unreadable` among them counts
    bodies that went whole because nobody can look into them. `signed` says that the source was.
    """

    path: Path | None
    size: int
    source: str
    removed: dict[str, int]
    idle: list[str]
    signed: bool


def derive(
    recording: Recording,
    target: Path | None,
    rules: Rules,
    why: str | None = None,
    watch: Callable[[int], None] = lambda size: None,
) -> Derived:
    """Make a derived bundle at `target`; with None only find out what would go.

    Raises `Unsealed` for a recording without a seal, `Ineligible` for one that does not verify or a value that cannot
    be taken out, `NothingRemoved` where no rule finds anything, `UsageError` where `target` exists.
    """
    if target is not None and os.path.lexists(target):
        raise UsageError(f"{target} exists; a bundle is never overwritten", path=str(target))
    manifest, source = _sealed(recording, watch)
    for prefix in rules.contents:
        if (count := sum(blob[0].startswith(prefix) for blob in manifest.blobs)) > 1:
            raise UsageError(f"content:{prefix}: {count} contents begin so; give more of the name", prefix=prefix)
    with _workplace(manifest) as attempt:
        eraser = Eraser(rules)
        keep = Keeper(BlobStore(attempt, clock.key), nullcontext, keeps=True, in_blobs=bool(manifest.retention))
        contents = Contents(recording, eraser, keep)
        rewriter = Rewriter(recording, attempt, contents, *recut(recording, eraser))
        log = _Log(attempt, manifest)
        for event in recording.events():
            log.append(event, rewriter.row(event))
        log.close()
        if recording.damages:  # a row that no reader can make sense of would be missing without a word
            reasons = [f"{damage.kind} at row {damage.seq}: {damage.detail}" for damage in recording.damages]
            raise Ineligible(f"cannot derive from {recording.path}: {reasons[0]}", reasons=reasons)
        removed = {label: count for label, count in sorted(eraser.counts.items()) if count}
        idle = [label for label in rules.labels if label not in removed]
        if len(idle) == len(rules.labels):
            message = f"no rule finds anything in {recording.path}; nothing was written"
            raise NothingRemoved(message, rules=list(rules.labels))
        about = {
            "seal": source,
            **{name: getattr(manifest, name) for name in ("format", "run", "attempt")},
            "rules": rules.labels,
            "removed": removed,
            "why": why,
            "derived_from": manifest.derived_from,
        }
        header = Recording(attempt).header.data
        name, result, facts = _sealed_anew(recording, manifest, contents, log, header, about)
        facts["chunks"] = seal.chunks_of(attempt)
        seal.publish(attempt, name, result, facts, publishes=False)
        layout.write_durable(attempt / layout.OPEN, layout.opened(header))
        size = bundle.pack(Recording(attempt), target, thumbnail=thumbnail).size if target is not None else 0
    return Derived(target, size, source, removed, idle, _is_signed(recording))


def _sealed(recording: Recording, watch: Callable[[int], None]) -> tuple[Manifest, str]:
    manifest, source = recording.manifest, recording.fingerprint
    if (manifest is None or source is None) and recording.seal_problem is None:
        raise Unsealed(f"{recording.path} is not sealed; only a sealed recording is redacted", path=str(recording.path))
    problems = [problem.detail for problem in verify(recording, watch).problems]
    if manifest is None or source is None or problems:
        why = problems[0] if problems else str(recording.seal_problem)
        raise Ineligible(f"cannot redact {recording.path}: {why}", reasons=problems or [why])
    return manifest, source


@contextmanager
def _workplace(manifest: Manifest) -> Iterator[Path]:
    """An attempt directory that only its owner can enter, gone afterwards."""
    with TemporaryDirectory(prefix="worldline-") as place:
        attempt = Path(place) / manifest.run / layout.ATTEMPTS / manifest.attempt
        layout.make_private(attempt / layout.CHUNKS)
        os.close(layout.create(attempt / layout.LOCK))
        yield attempt


class _Log:
    """The rows' new chain, in chunks that end where those of the source do."""

    def __init__(self, attempt: Path, source: Manifest) -> None:
        self._folder = attempt / layout.CHUNKS
        self._ends = [chunk[1] for chunk in source.chunks]
        self._read = 0  # bytes of the source's chunk so far
        self._chunks = 0
        self._file: int | None = None
        self._heads: list[bytes] = []  # the first 8 bytes of each row's hash
        self.h, self.merkle, self.bytes = events.GENESIS, Merkle(), 0
        self.header = ""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._heads)

    def append(self, event: events.Event, fields: Mapping[str, bytes]) -> None:
        """Add the row that one of the source became."""
        if self._file is None:
            self._file = layout.create(self._folder / layout.chunk_name(self._chunks))
        parts = []
        for name, value in fields.items():
            if name == "sync" and event.sync is not None:
                value = encode_json([event.sync[0], self._head_before(event.sync[0])])
            parts.append(encode_json(name) + b":" + value)
        body = b"{" + b",".join(parts)
        if len(body) + events.SUFFIX > events.MAX_ROW:
            raise ValueRefused(f"row {event.seq} would have {len(body):,} bytes, over {events.MAX_ROW:,}", path="$")
        leaf = events.leaf(body)
        self.h = events.link(self.h, leaf)
        line = events.line(body, self.h)
        layout.write_all(self._file, line)
        self.merkle.add(leaf)
        self.bytes += len(line)
        self._heads.append(self.h[:8])
        self.header = self.header or self.h.hex()
        self._read += len(event.raw)
        if self._chunks + 1 < len(self._ends) and self._read >= self._ends[self._chunks]:
            self._read = 0
            self.close()

    def close(self) -> None:
        """End the chunk."""
        if self._file is not None:
            os.close(self._file)
            self._file, self._chunks = None, self._chunks + 1

    def _head_before(self, seq: int) -> str:
        return (self._heads[min(seq, self.rows) - 1] if seq and self.rows else events.GENESIS[:8]).hex()


def _sealed_anew(
    recording: Recording,
    manifest: Manifest,
    contents: Contents,
    log: _Log,
    header: dict[str, Any],
    derived_from: dict[str, Any],
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The result's name, the result, and the manifest's facts."""

    def again(value: Any, content: bool = False) -> Any:
        return msgspec.json.decode(contents.own(encode_json(value), fields=content, content=content, quiet=True))

    before = recording.summary
    result = {name: value if name in NAMED else again(value, name == "facts") for name, value in before.items()}
    root = manifest.genesis in (None, manifest.header)  # the oldest of its line is itself
    facts = msgspec.structs.asdict(manifest) | {
        "format": FORMAT,
        "session": header["session"],
        "reason": again(manifest.reason),
        "sealed_at": clock.wall_ns(),
        "sealed_by": f"worldline {__version__} redact",
        "rows": log.rows,
        "bytes": log.bytes,
        "head": log.h.hex(),
        "root": log.merkle.root().hex(),
        "header": log.header,
        "genesis": log.header if root else manifest.genesis,
        "coverage": _coverage(again(manifest.coverage), again),
        "checkpoint_dag": again(manifest.checkpoint_dag),
        "blobs": contents.keep.listed(),
        "torn": None,
        "derived_from": _line(derived_from, again),
        "codecs": list(values.CODECS),
        "capabilities": [level for level in manifest.capabilities if level == "L0"],
    }
    return slug(header["task"]["text"] or "", "result") + ".json", result, facts


def _coverage(coverage: dict[str, Any], again: Callable[[Any], Any]) -> dict[str, Any]:
    """A manifest's coverage; the names of tools and models in it are somebody's words."""
    tools, models = coverage.get("tools"), coverage.get("decision")
    said = {what: _named(counts, again) for what, counts in tools.items()} if isinstance(tools, dict) else {}
    told = {**coverage, "tools": said}
    if isinstance(models, dict) and "outside" in models:
        told["decision"] = {**models, "outside": _named(models["outside"], again)}
    return told


def _named(counts: Any, again: Callable[[Any], Any]) -> dict[str, int]:
    named: Counter[str] = Counter()
    for name, count in counts.items() if isinstance(counts, dict) else ():
        named[again(name)] += count if isinstance(count, int) else 0
    return dict(sorted(named.items()))


def _line(derived_from: dict[str, Any] | None, again: Callable[[Any], Any]) -> dict[str, Any] | None:
    """Where a record comes from, and where that came from; of all that only `why` is somebody's words."""
    if derived_from is None:
        return None
    before = _line(derived_from.get("derived_from"), again)
    return {**derived_from, "why": again(derived_from.get("why")), "derived_from": before}


def _is_signed(recording: Recording) -> bool:
    path = signature_path(recording)
    return path is not None and path.is_file()
