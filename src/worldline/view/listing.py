"""The runs page: every run of a store with its facets, searched and filtered, newest first.

What `worldline list` says of a run costs a few stats; its facets cost a look through its log, once. That look is taken
by a thread beside the requests: an answer waits for it a moment and then says what is known, and how many are to come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from worldline.errors import UsageError, WorldlineError
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.catalog import BUNDLE, entries
from worldline.store.facets import Facets, KeptFacets
from worldline.store.listed import Entry
from worldline.store.recording import Recording
from worldline.view.answers import etag_of
from worldline.view.facets import facets_of

PATIENCE_SECONDS = 1.5  # that an answer waits for facets that are not known yet
MOST_ROWS = 10_000  # of one answer
_CLOSED = ("contained", "damaged")  # what no facets are read of
_FILTERS: dict[str, Callable[[Mapping[str, Any]], Iterable[Any]]] = {
    "outcome": lambda row: [row["outcome"]],
    "disposition": lambda row: [row["disposition"]],
    "model": lambda row: [row["model"]],
    "tool": lambda row: row["tools"],
    "permission": lambda row: row["permissions"],
    "error": lambda row: [row["error"]],
}


class Listing:
    """The runs of one store. Safe from several threads; `closing` ends the look through their logs."""

    def __init__(self, store: Path, closing: threading.Event) -> None:
        self._store = store
        self._closing = closing
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, Facets]] = {}  # by the name of a run: what it was read of, what it says
        self._looking: threading.Thread | None = None

    def answer(self, query: Mapping[str, str]) -> dict[str, Any]:
        """`GET api/runs`. `q` are words that all have to be found; filters are equal; `limit` and `offset` cut.

        Raises `UsageError` for a number that is none.
        """
        found = entries(self._store)
        kept = KeptFacets(self._store)
        if missing := [entry for entry in found if not self._facets(entry, kept)[1]]:
            self._look(missing)
            kept = KeptFacets(self._store)
        rows = [_row(entry, *self._facets(entry, kept)) for entry in found]
        rows.sort(key=lambda row: (row["started"] or 0, row["run"]), reverse=True)
        rows = [row for row in rows if _fits(row, query)]
        begin, most = _number(query, "offset", 0), _number(query, "limit", MOST_ROWS)
        pending = sum(row["pending"] for row in rows)
        return {"total": len(rows), "pending": pending, "runs": rows[begin : begin + min(most, MOST_ROWS)]}

    def _facets(self, entry: Entry, kept: KeptFacets) -> tuple[Facets, bool]:
        """What is known of a run, and whether that is all that stands there now: of one that is written it grows."""
        if entry.disposition in _CLOSED:
            return Facets(), True
        if not entry.path.endswith(BUNDLE) and (facets := kept.get(entry.run)) is not None:
            return facets, True
        with self._lock:
            mark, known = self._known.get(name_of(entry), ("", Facets()))
        return known, mark == _mark(entry)

    def _look(self, missing: list[Entry]) -> None:
        """Look through the logs of these, in a thread; waits for it a moment."""
        with self._lock:
            if self._looking is None or not self._looking.is_alive():
                newest = sorted(missing, key=lambda entry: entry.started or 0, reverse=True)
                self._looking = threading.Thread(
                    target=self._read, args=(newest,), name="worldline-facets", daemon=True
                )
                self._looking.start()
            looking = self._looking
        looking.join(PATIENCE_SECONDS)

    def _read(self, missing: list[Entry]) -> None:
        kept = KeptFacets(self._store)
        kept.begin()
        try:
            for entry in missing:
                if self._closing.is_set():
                    return
                mark, facets = _mark(entry), Facets()
                try:
                    recording = open_recording(entry.path)
                    facets = facets_of(recording)
                    if not isinstance(recording, PackedRecording):
                        kept.keep(recording, facets)
                except (WorldlineError, OSError):  # the page says what is wrong with it when it is opened
                    facets = Facets()
                with self._lock:
                    self._known[name_of(entry)] = mark, facets
        finally:
            kept.save()


def name_of(entry: Entry) -> str:
    """What the page names a run by: its id; a bundle, of which there may be several of one run, by its file."""
    return Path(entry.path).name if entry.path.endswith(BUNDLE) else entry.run


def _mark(entry: Entry) -> str:
    """What tells a run that was read from the same run with more in it."""
    try:
        if entry.path.endswith((BUNDLE, ".json")):  # of what is published nothing is written any more
            return etag_of(Path(entry.path))
        recording = Recording(entry.path)
        return f"{recording.attempt_id} {recording.log_bytes} {recording.disposition}"
    except (WorldlineError, OSError):
        return "gone"


def _row(entry: Entry, known: Facets, whole: bool) -> dict[str, Any]:
    return {
        "run": name_of(entry),
        "task": entry.task,
        "model": known.model,
        "outcome": entry.outcome,
        "disposition": entry.disposition,
        "steps": entry.steps,
        "started": entry.started,
        "seconds": entry.seconds,
        "tokens": sum(known.tokens) if known.tokens is not None else None,
        "cost": known.cost,
        "tools": known.tools,
        "permissions": known.permissions,
        "error": known.error,
        "trouble_step": known.trouble_step,
        "trouble_seq": known.trouble,
        "parent": known.parent.get("run") if known.parent else None,
        "session": entry.session,
        "pending": not whole,
    }


def _fits(row: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    if any(query[name] not in read(row) for name, read in _FILTERS.items() if name in query):
        return False
    words = query.get("q", "").casefold().split()
    if not words:
        return True
    said = [row["run"], row["task"], row["model"], row["outcome"], row["error"], *row["tools"], *row["permissions"]]
    text = "\n".join(str(word) for word in said if word is not None).casefold()
    return all(word in text for word in words)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    given = query.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise UsageError(f"{name}= is a number, not {given[:40]!r}")
    return int(given)
