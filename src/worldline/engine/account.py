"""What a dead writer would have said of its attempt, counted again from its rows: for the seal that it did not make."""

from __future__ import annotations

from typing import Any

from worldline import __version__
from worldline.engine import clock
from worldline.engine.declared import declared
from worldline.engine.exchanges import CONTENTS
from worldline.engine.keeping import CAPTURED
from worldline.engine.tally import Tally
from worldline.model.events import Event
from worldline.model.ids import slug
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.salvage import Found

OUTCOME = ("outcome", "exit", "signal", "reward", "done", "error")


def account(recording: Recording, found: Found, disposition: str, reason: str) -> tuple[str, Any, dict[str, Any]]:
    """The result's name, the result, and the manifest's facts but for chunks and torn bytes.

    How often secrets were replaced was known to the writer alone: those counts are null.
    """
    tally, blobs = Tally(), _stored(recording)
    outcome: dict[str, Any] = {"outcome": "unknown"}
    for event in recording.events():
        data = {key: value if key in CONTENTS else recording.loaded(value) for key, value in event.data.items()}
        tally.add(event.kind, event.src, event.lane, event.keys, data, event.seq)
        if event.name in ("marker/outcome", "meta/end") and data.get("outcome") != "unknown":
            outcome |= {key: data[key] for key in OUTCOME if data.get(key) is not None}
        _named(event.data, blobs)
    header = recording.header.data  # a long task stands in a content
    result = {
        "session": header["session"],
        "run": header["run"],
        "attempt": header["attempt"],
        "task": header["task"]["text"],
        "started": int(header["t0_wall"]) / 1e9,
        "seconds": round(found.written.t / 1e9, 3),
        **tally.summary(),
        **outcome,
        "disposition": disposition,
        "reason": reason,
    }
    facts = _facts(recording.header, found, tally) | {
        "disposition": disposition,
        "reason": reason,
        "blobs": sorted(blobs.values()),
    }
    return slug(header["task"]["text"] or "", "result") + ".json", result, facts


def _facts(header: Event, found: Found, tally: Tally) -> dict[str, Any]:
    data, written = header.data, found.written
    return {
        **declared(data, header.h, tally),
        "sealed_at": clock.wall_ns(),
        "sealed_by": f"worldline {__version__} reconcile",
        "rows": written.seq,
        "bytes": written.bytes,
        "head": written.h.hex(),
        "root": found.merkle.root().hex(),
        "secrets": {"labels": data["secrets"]["labels"], "redactions": None, "shapes": None, "unscanned": None},
    }


def _stored(recording: Recording) -> dict[str, list[Any]]:
    """Every blob that stands there, as the manifest lists it: one that no row came to name has no media type."""
    blobs: dict[str, list[Any]] = {}
    for tier in layout.TIERS:
        for path in (recording.attempt / layout.BLOBS / tier).glob("??/*"):
            blobs[path.name] = [path.name, path.stat().st_size, "application/octet-stream", tier, CAPTURED[tier]]
    return blobs


def _named(value: Any, blobs: dict[str, list[Any]]) -> None:
    """Take over what a row says of its blobs."""
    if isinstance(value, dict):
        reference = value.get("$blob")
        if isinstance(reference, dict) and reference.get("name") in blobs:
            blobs[reference["name"]][2] = reference["type"]
        for item in value.values():
            _named(item, blobs)
    elif isinstance(value, list):
        for item in value:
            _named(item, blobs)
