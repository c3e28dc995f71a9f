"""A checkpoint: the environment's half and the agent's half at one seq, and the graph that checkpoints make.

A row `snapshot_ref/checkpoint` says both halves or is none. Checkpoints are never changed: one names those that it came
from, several where branches were brought together, so they make a graph without circles. Two with the same `state` are
the same world and the same agent, on whatever way they were reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from worldline.model.canon import canonical
from worldline.model.tree import name_of

ROW = "snapshot_ref/checkpoint"
DUMPED, REDRIVEN = "dumped", "redriven"


class EnvState(msgspec.Struct, frozen=True, kw_only=True):
    """The environment's half: `type` is the substrate, `ref` the snapshot, `digest` that of its workspace's tree.

    The rest is what the substrate said of it: its row, its tier, what it stands on, what it lacks.
    """

    type: str
    ref: str
    digest: str | None
    seq: int
    tier: str = "disk"
    parent: str | None = None
    depth: int = 0
    bytes: int = 0
    uniqueness_debt: tuple[str, ...] = ()
    notes: tuple[dict[str, str], ...] = ()


class AgentHalf(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's half. `dumped` has a `schema` (`name/version`) and its state beside it in the row.

    `redriven` has nothing: the agent comes to its state again when it is served what came before.
    """

    type: str
    seq: int
    schema: str | None = None


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One node. `seq` is the last row that it holds; `row` is its own.

    `by` says who changed the workspace since the checkpoint before, where it was not the agent (`outside`).
    `side_effect_cursor` is the row of the last effect that began at or before `seq` (None: there was none): no effect
    that began at or before it happens again on a branch. `state` is the digest of both halves, None where one has none.
    """

    id: str
    parents: tuple[str, ...]
    branch: str
    snapshot: str
    step: int | None
    seq: int
    row: int
    env: EnvState
    agent: AgentHalf
    side_effect_cursor: int | None = None
    state: str | None = None
    by: str | None = None


def state_digest(env: str | None, agent: AgentHalf, dumped: bytes | None) -> str | None:
    """The digest of both halves: equal where the workspace's tree and the agent's dumped state are."""
    if env is None or agent.type != DUMPED or dumped is None:
        return None
    return name_of(canonical({"env": env, "schema": agent.schema, "agent": name_of(dumped)}))


def row_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """What the row of a checkpoint says, but for the agent's dumped state."""
    return {
        "checkpoint_id": checkpoint.id,
        "parent_checkpoint_ids": list(checkpoint.parents),
        "branch_id": checkpoint.branch,
        "snapshot_id": checkpoint.snapshot,
        "created_from_step": checkpoint.step,
        "meta": msgspec.to_builtins(
            {
                "env_state": checkpoint.env,
                "agent_state": checkpoint.agent,
                "side_effect_cursor": checkpoint.side_effect_cursor,
                "state": checkpoint.state,
                **({"by": checkpoint.by} if checkpoint.by is not None else {}),
            }
        ),
    }


class _Meta(msgspec.Struct, frozen=True):
    env_state: EnvState
    agent_state: AgentHalf
    side_effect_cursor: int | None = None
    state: str | None = None
    by: str | None = None


class _Row(msgspec.Struct, frozen=True):
    checkpoint_id: str
    parent_checkpoint_ids: tuple[str, ...]
    branch_id: str
    snapshot_id: str
    meta: _Meta
    created_from_step: int | None = None


def read_row(row: int, data: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint that a row says, its fields loaded; None where it is none of ours, or has halves of two rows."""
    try:
        said = msgspec.convert(dict(data), _Row)
    except (msgspec.ValidationError, TypeError):
        return None
    env, agent = said.meta.env_state, said.meta.agent_state
    if env.seq != agent.seq or env.ref != said.snapshot_id or not 0 <= env.seq < row:
        return None
    return Checkpoint(
        id=said.checkpoint_id,
        parents=said.parent_checkpoint_ids,
        branch=said.branch_id,
        snapshot=said.snapshot_id,
        step=said.created_from_step,
        seq=env.seq,
        row=row,
        env=env,
        agent=agent,
        side_effect_cursor=said.meta.side_effect_cursor,
        state=said.meta.state,
        by=said.meta.by,
    )


class Graph:
    """Checkpoints and what they came from. Nothing in it changes; what is added stands on what is there."""

    def __init__(self, checkpoints: Iterable[Checkpoint] = ()) -> None:
        self._nodes: dict[str, Checkpoint] = {}
        for checkpoint in checkpoints:
            self.add(checkpoint)

    def add(self, checkpoint: Checkpoint) -> None:
        """Add a node. The same one again is no harm; raises `ValueError` for another one of the same id.

        A parent that is not here stands in a recording that is not here. One that came later would make a circle.
        """
        if self._nodes.setdefault(checkpoint.id, checkpoint) != checkpoint:
            raise ValueError(f"two checkpoints are {checkpoint.id}")

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, checkpoint: str) -> Checkpoint:
        return self._nodes[checkpoint]

    def ancestors(self, checkpoint: str) -> set[str]:
        """All that a node came from and that are here, itself among them."""
        found, waiting = set[str](), [checkpoint]
        while waiting:
            name = waiting.pop()
            if name in self._nodes and name not in found:
                found.add(name)
                waiting += self._nodes[name].parents
        return found

    def heads(self) -> list[Checkpoint]:
        """Those that none came from."""
        came_from = {parent for node in self._nodes.values() for parent in node.parents}
        return [node for node in self._nodes.values() if node.id not in came_from]

    def converged(self) -> list[list[Checkpoint]]:
        """Groups of at least two that are the same world and the same agent."""
        groups: dict[str, list[Checkpoint]] = {}
        for node in self._nodes.values():
            if node.state is not None:
                groups.setdefault(node.state, []).append(node)
        return [group for group in groups.values() if len(group) > 1]
