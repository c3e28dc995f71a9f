"""The tree of a run: what left it, what it left, how each ended, and how much of their contexts they share.

It is folded from the recordings of a store; nothing of it is kept anywhere. Sharing is exact: two runs share the
elements of their requests (messages, tools) that stand at the same places behind the same ones, counted in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from worldline.engine.cassette import rebuild
from worldline.engine.lineage import attempts_in, branch_of, genesis_of
from worldline.errors import ReadError
from worldline.model.chain import ROOT, cut, follow
from worldline.store.recording import Recording

NESTED = 100  # generations


class Node(msgspec.Struct, kw_only=True):
    """One attempt of the tree. Counts are of its own model calls and tool calls; `at` says where it left its parent.

    `parent` is the attempt that it left, None of the oldest; `broken` says why its own record cannot be read whole.
    """

    run: str
    attempt: str
    path: str
    parent: str | None
    parent_run: str | None = None
    at: str | None = None
    step: int | None = None
    changed: list[str] = []
    resumed: bool = False
    disposition: str
    outcome: str | None = None
    reward: float | None = None
    live: int = 0
    mocked: int = 0
    refused: int = 0
    steps: int | None = None
    tokens: int | None = None
    broken: str | None = None
    children: list[Node] = []


class Shared(msgspec.Struct, frozen=True):
    """How much the requests of the runs of a tree have in common.

    `size` counts the bytes of each run's elements once in that run, `distinct` once in the whole tree; `runs` are those
    that asked a model.
    """

    runs: int
    size: int
    distinct: int

    @property
    def share(self) -> float:
        """The part of all bytes that another run has already; 0 of none."""
        return 1 - self.distinct / self.size if self.size else 0.0

    def to_json(self) -> dict[str, Any]:
        """As `worldline tree --json` has it."""
        return {"runs": self.runs, "bytes": self.size, "distinct": self.distinct, "share": round(self.share, 4)}


class Tree(msgspec.Struct, frozen=True):
    """The oldest ancestors that are in the store (mostly one), with what left them."""

    roots: list[Node]
    shared: Shared

    def nested(self) -> tuple[list[Node], list[Node]]:
        """The roots with so many generations in them as readers of JSON take, and all that is deeper in one list."""
        roots: list[Node] = []
        deeper: list[Node] = []
        work = [(root, 0, roots) for root in reversed(self.roots)]
        while work:
            node, depth, into = work.pop()
            alone = msgspec.structs.replace(node, children=[])
            (into if depth < NESTED else deeper).append(alone)
            work += [(child, depth + 1, alone.children) for child in reversed(node.children)]
        return roots, deeper


def tree_of(recording: Recording) -> Tree:
    """The tree that a recording is in, over its store."""
    genesis, nodes, shared = genesis_of(recording), dict[str, Node](), _Sharing()
    for member in attempts_in(recording.run_directory.parent):
        if genesis_of(member) == genesis:
            nodes[member.attempt_id] = _node(member)
            shared.add(member)
    roots: list[Node] = []
    for node in nodes.values():
        parent = nodes.get(node.parent or "")
        (roots if parent is None else parent.children).append(node)
    return Tree(roots, shared.measured())


def _node(recording: Recording) -> Node:
    said, summary = recording.header.data, recording.summary
    bound = said.get("parent") or {}
    tokens = summary.get("tokens") or {}
    node = Node(
        run=said["run"],
        attempt=said["attempt"],
        path=str(recording.path),
        parent=bound.get("attempt"),
        parent_run=bound.get("run"),
        disposition=recording.disposition,
        outcome=summary.get("outcome"),
        reward=summary.get("reward"),
        steps=summary.get("steps"),
        tokens=sum(tokens.values()) if tokens else None,
        children=[],
    )
    try:
        if (branch := branch_of(recording)) is not None:
            node.at, node.step, node.changed, node.resumed = branch.at, branch.step, branch.changed, branch.resumed
        _count(recording, node)
    except ReadError as error:
        node.broken = str(error)
    return node


def _count(recording: Recording, node: Node) -> None:
    for event in recording.events():
        if event.name in ("action/tool_call", "decision/request"):
            node.live += event.keys.get("mode") == "live"
            node.mocked += event.keys.get("mode") == "mock"
        elif event.name == "permission/denied" and "parent_id" in event.keys:
            node.refused += 1
        elif event.name == "meta/edit":
            node.mocked += 1
    node.mocked -= node.refused


class _Sharing:
    """Counts the elements of contexts, each chain of them once in its run, and once in all."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._runs = self._size = self._distinct = 0

    def add(self, recording: Recording) -> None:
        """Count all requests of a recording that can be rebuilt."""
        own: set[bytes] = set()
        try:
            for _, body, met in rebuild(recording):
                for array in cut(body).arrays if met else ():
                    self._count(array.elements, own)
        except ReadError:
            pass  # what was rebuilt before counts
        self._runs += bool(own)
        self._seen |= own

    def _count(self, elements: Sequence[bytes], own: set[bytes]) -> None:
        c = ROOT
        for element in elements:
            c = follow(c, element)
            if c not in own:
                own.add(c)
                self._size += len(element)
                self._distinct += len(element) if c not in self._seen else 0

    def measured(self) -> Shared:
        return Shared(self._runs, self._size, self._distinct)
