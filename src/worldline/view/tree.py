"""The family of a run as a graph: what it left, what left it, and where. Derived from the headers of the store.

A branch names in its header the row at which it left its parent; of a run of the store no more than its first rows are
read, once, since they never change.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from worldline.engine.lineage import Branch, branch_of
from worldline.errors import WorldlineError
from worldline.model.ids import short
from worldline.store.catalog import entries, runs
from worldline.store.listed import Entry
from worldline.store.recording import Recording

MOST_NODES = 2_000


class Family:
    """The families of a store's runs. Safe from several threads."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._parents: dict[str, dict[str, Any] | None] = {}

    def tree(self, run: str) -> dict[str, Any]:
        """`GET r/<id>/tree`: the nodes of its family, oldest first; its own alone where it has none in the store."""
        parents = self._all_parents()
        members = _members(run, {name: _run_of(parent) for name, parent in parents.items()})
        listed = {entry.run: entry for entry in entries(self._store) if entry.run in members}
        nodes = [self._node(name, parents.get(name), listed.get(name)) for name in sorted(members)]
        return {"nodes": nodes[:MOST_NODES], "more": max(0, len(nodes) - MOST_NODES)}

    def _all_parents(self) -> dict[str, dict[str, Any] | None]:
        found: dict[str, dict[str, Any] | None] = {}
        with self._lock:
            for path in runs(self._store):
                if path.name not in self._parents:
                    try:
                        self._parents[path.name] = Recording(path).header.data.get("parent")
                    except (WorldlineError, OSError):  # begun in this moment, or damaged: it stands alone for now
                        found[path.name] = None
                        continue
                found[path.name] = self._parents[path.name]
        return found

    def _node(self, run: str, parent: dict[str, Any] | None, entry: Entry | None) -> dict[str, Any]:
        branch = self._branch(run) if parent is not None else None
        disposition = entry.disposition if entry is not None else "missing"
        change = ", ".join(branch.changed) if branch is not None else ""
        return {
            "run": run,
            "parent": _run_of(parent),
            "at_seq": parent.get("seq") if parent is not None else None,
            "at_step": branch.step if branch is not None else None,
            "at": branch.step if branch is not None else None,
            "change": change,
            "outcome": (entry.outcome if entry is not None else None) or disposition,
            "disposition": disposition,
            "label": change or (entry.task if entry is not None else None) or short(run),
            "steps": entry.steps if entry is not None else None,
            "started": _moment(entry.started) if entry is not None and entry.started is not None else "",
            "live": disposition == "running",
        }

    def _branch(self, run: str) -> Branch | None:
        try:
            return branch_of(Recording(self._store / run))
        except (WorldlineError, OSError):  # what it says of its fork cannot be read: the edge stands in the header
            return None


def _run_of(parent: dict[str, Any] | None) -> str | None:
    run = parent.get("run") if parent is not None else None
    return run if isinstance(run, str) else None


def _members(run: str, parents: dict[str, str | None]) -> set[str]:
    """All that are reached from `run` over edges, in both directions."""
    children: dict[str, list[str]] = {}
    for name, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(name)
    found, todo = set[str](), [run]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            parent = parents.get(name)
            todo += [*children.get(name, ()), *([parent] if parent is not None and parent in parents else [])]
    return found


def _moment(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="seconds")
