"""Recordings for tests: a real recorder in a directory of its own, calls through the real door, read back from disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.cassette import Cassette
from worldline.engine.content import Content
from worldline.engine.exchanges import Exchange
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store.recording import Recording

SSE = [["Content-Type", "text/event-stream"]]


def recorder_in(store: Path, **spec: Any) -> tuple[Recorder, RecordBoundary]:
    """A recorder and its door. The store may be any directory."""
    recorder = Recorder(Spec(store=store, **spec))
    return recorder, RecordBoundary(recorder)


def decision(body: bytes = b"{}", name: str = "http", lane: str = "main", **facts: Any) -> Call:
    """A model call with this request body."""
    inputs = Content.of({"method": "POST", "path": "/x", "query": []})
    return Call(kind="decision", name=name, inputs=inputs, body=body, lane=lane, **facts)


def action(name: str, arguments: Mapping[str, Any] | None = None, lane: str = "main", **facts: Any) -> Call:
    """A tool call."""
    return Call(
        kind="action", name=name, inputs=Content.of(dict(arguments or {})), lane=lane, effect="idempotent", **facts
    )


def answer(
    boundary: RecordBoundary, call: Call, pieces: Iterable[bytes], encoding: str = "identity", **data: Any
) -> str:
    """Carry out a decision whose response body comes in these pieces. Returns its call id."""
    live = boundary.begin(call)
    live.encoded(encoding)
    for piece in pieces:
        live.chunk(piece)
    live.finish({"status": 200, "reason": "OK", "headers": SSE, "framing": "chunked", "complete": True, **data})
    return live.call


def exchange_of(recorder: Recorder, call: str) -> tuple[Cassette, Exchange]:
    """A call as it stands on disk."""
    cassette = Cassette(Recording(recorder.attempt))
    return cassette, cassette.by_call[call]


def written(directory: Path) -> dict[Path, bytes]:
    """Every file below `directory`, with its bytes."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def same_bodies(recorder: Recorder) -> bool:
    """No row over the limit, and every row reads back."""
    recording = Recording(recorder.attempt)
    rows = [len(event.raw) for event in recording.events()]
    return not recording.damages and max(rows) <= 64 * 1024 and len(rows) == recorder.log.seq
