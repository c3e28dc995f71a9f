"""Checkpoints of a run: both halves taken at one row and written as one, and how they are found again.

    points = Checkpoints(recorder, env)
    points.take(3, state=chat)                 # a durable row `snapshot_ref/checkpoint`, or nothing

The environment's half is durable before the row that names it. Rows that come while the halves are taken would tear
them apart: then both are taken again. `state_at` gives the checkpoint before a row, and the rows that lead from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine import clock
from worldline.engine.agent_state import AgentState, half_of
from worldline.engine.cadence import Cadence
from worldline.engine.content import Content
from worldline.engine.lineage import LineageRecording
from worldline.engine.recorder import Recorder
from worldline.engine.substrates.apart import secret_notes
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.substrate import Env, SnapRef
from worldline.errors import Damaged, NotQuiescent, SeqMismatch
from worldline.model.checkpoint import ROW, AgentHalf, Checkpoint, EnvState, Graph, read_row, row_of, state_digest
from worldline.model.events import Event
from worldline.model.ids import is_id
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.snapshots import SnapshotStore

_OF_A_CRASH = frozenset({"torn", "zeros", "unfit"})  # what stands behind them was never durable: no checkpoint is there
TRIES = 3  # how often both halves are taken where rows come meanwhile


class Kept(msgspec.Struct, frozen=True, eq=False):
    """A checkpoint with its snapshot; `load` reads the agent's state."""

    checkpoint: Checkpoint
    ref: SnapRef
    load: Callable[[], Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and (self.checkpoint, self.ref) == (other.checkpoint, other.ref)

    def __hash__(self) -> int:
        return hash(self.checkpoint.id)

    @property
    def state(self) -> Any:
        """The agent's state as it was dumped, None where it was not. Raises `Damaged` where it is gone."""
        return self.load()

    @property
    def checkpoint_id(self) -> str:
        """Its id."""
        return self.checkpoint.id

    @property
    def step(self) -> int | None:
        """The step that begins behind it."""
        return self.checkpoint.step

    @property
    def seq(self) -> int:
        """The last row that it holds; of a lineage in its numbers."""
        return self.checkpoint.seq

    @property
    def by(self) -> str | None:
        """Who changed the workspace since the one before, where it was not the agent."""
        return self.checkpoint.by


class Checkpoints:
    """Takes the checkpoints of one run. `parents` are those that its first one comes from: a branch's, its parent's."""

    def __init__(
        self, recorder: Recorder, env: Env, *, parents: Sequence[str] = (), cadence: Cadence | None = None
    ) -> None:
        self.recorder = recorder
        self.env = env
        self.cadence = cadence or Cadence()
        self.last: Kept | None = None
        self._parents = tuple(parents)
        self._snapshots = SnapshotStore(recorder.spec.store)
        self._left_out = False  # whether the cadence let the last step pass
        self._ended = clock.monotonic_ns()

    def take(
        self,
        step: int | None = None,
        *,
        state: AgentState | None = None,
        by: str | None = None,
        only_changed: bool = False,
        force: bool = False,
        parents: Sequence[str] | None = None,
    ) -> Kept | None:
        """Take both halves at the last row that there is, and write them as one; None where none was to be taken.

        The cadence decides, but for `force` (a gate, an effect) and `only_changed`, which writes one wherever the
        workspace is not as it was. `by` names who changed it, if not the agent: that cannot be said where the step's
        own checkpoint was left out. `parents` are given where several ways come together. Raises `NotQuiescent` where
        rows keep coming, what taking a snapshot raises, `ValueRefused` for a state that is no data; then no row is
        written.
        """
        if not only_changed:
            self.cadence.took(event=(clock.monotonic_ns() - self._ended) / 1e9)
            self._left_out = not self.cadence.due(gate=force)
        if self._left_out and (by is not None or not only_changed):
            self._ended = clock.monotonic_ns()
            return None
        try:
            return self._take(step, state, by, only_changed, parents)
        finally:
            self._ended = clock.monotonic_ns()

    def _take(
        self,
        step: int | None,
        agent: AgentState | None,
        by: str | None,
        only_changed: bool,
        parents: Sequence[str] | None,
    ) -> Kept | None:
        with self._snapshots.held():  # nobody sweeps what no row names yet
            for _ in range(TRIES):
                seq = self.recorder.log.seq - 1
                began = clock.monotonic_ns()
                with self.env.quiesce():
                    ref = self.env.snapshot(seq)
                    half, state = half_of(agent, seq)
                if self.recorder.log.seq - 1 != seq:
                    continue
                self.cadence.took(snapshot=(clock.monotonic_ns() - began) / 1e9)
                if only_changed and self.last is not None and _same(ref, self.last.ref):
                    return None
                return self.publish(ref, half, state, step=step, by=by, parents=parents)
        raise NotQuiescent(
            f"rows came each of the {TRIES} times that a checkpoint was taken: take it between two steps",
            threads=["whoever records meanwhile"],
        )

    def publish(
        self,
        ref: SnapRef,
        half: AgentHalf,
        state: Content | None,
        *,
        step: int | None = None,
        by: str | None = None,
        parents: Sequence[str] | None = None,
    ) -> Kept:
        """Write the row of two halves that were taken. Raises `SeqMismatch` where they are of different rows."""
        if ref.seq != half.seq or ref.seq >= self.recorder.log.seq:
            raise SeqMismatch(
                f"the environment is as behind row {ref.seq:,}, the agent as behind row {half.seq:,}: no checkpoint",
                environment=ref.seq,
                agent=half.seq,
            )
        restricted = bool(self.recorder.restriction.rules)  # what a model was told stands in it, too
        if state is not None and restricted:
            state = msgspec.structs.replace(state, tier=layout.RESTRICTED)
        found = Checkpoint(
            id=clock.new_id("ckpt"),
            parents=tuple(parents) if parents is not None else self._parents,
            branch=self.recorder.run,
            snapshot=ref.id,
            step=step,
            seq=ref.seq,
            row=0,
            env=env_state(ref),
            agent=half,
            side_effect_cursor=self.recorder.tally.side_effect_cursor,
            state=None if restricted or state is None else state_digest(ref.digest, half, state.data),
            by=by,
        )
        data = row_of(found) if state is None else {**row_of(found), "state": state}
        appended = self.recorder.append("snapshot_ref", "checkpoint", {}, data, durable=True)
        self._parents = (found.id,)
        load = state.value if state is not None else _no_state
        self.last = Kept(msgspec.structs.replace(found, row=appended.seq), ref, load)
        return self.last


def _same(ref: SnapRef, last: SnapRef) -> bool:
    """Whether a workspace is as it was, and the same is left out of it for its secrets."""
    return ref.digest == last.digest is not None and secret_notes(ref.notes) == secret_notes(last.notes)


def env_state(ref: SnapRef) -> EnvState:
    """A snapshot as the row of a checkpoint says it."""
    return EnvState(
        type=ref.substrate,
        ref=ref.id,
        digest=ref.digest,
        seq=ref.seq,
        tier=ref.tier,
        parent=ref.parent,
        depth=ref.depth,
        bytes=ref.bytes,
        uniqueness_debt=ref.uniqueness_debt,
        notes=ref.notes,
    )


def snap_ref(env: EnvState) -> SnapRef:
    """The snapshot that the row of a checkpoint names."""
    return SnapRef(
        id=env.ref,
        substrate=env.type,
        seq=env.seq,
        tier=env.tier,
        parent=env.parent,
        digest=env.digest,
        depth=env.depth,
        bytes=env.bytes,
        uniqueness_debt=env.uniqueness_debt,
        notes=env.notes,
    )


def checkpoints_of(recording: Recording) -> list[Kept]:
    """The checkpoints of a recording, or of a lineage in its numbers, in their order.

    Rows that are no pair of halves are left out.
    """
    return [kept for event in recording.events() if (kept := kept_in(recording, event)) is not None]


def nearest(recording: Recording, seq: int) -> Kept | None:
    """The last checkpoint that holds nothing behind row `seq`; None where there is none."""
    return next((kept for kept in reversed(checkpoints_of(recording)) if kept.seq <= seq), None)


def kept_in(recording: Recording, event: Event) -> Kept | None:
    """The checkpoint that a row says; None where it says none."""
    if event.name != ROW:
        return None
    data = {key: recording.loaded(value) for key, value in event.data.items() if key != "state"}
    own = recording.own_number(event) if isinstance(recording, LineageRecording) else event.seq
    found = read_row(own, data)
    if found is None:
        return None
    # Rows have other numbers in a lineage. What comes between a half and its row is of the recorder and few.
    placed = msgspec.structs.replace(found, row=event.seq, seq=max(0, event.seq - (own - found.seq)))
    written = event.data.get("state")
    load = partial(recording.value, written) if written is not None else _no_state
    return Kept(placed, snap_ref(found.env), load)


def _no_state() -> None:
    return None


class StateAt(msgspec.Struct, frozen=True):
    """A row's state: the nearest checkpoint before it (None: the beginning), and the rows behind that one up to it."""

    checkpoint: Kept | None
    tail: list[Event]


def state_at(recording: Recording, seq: int) -> StateAt:
    """The checkpoint nearest before row `seq`, and what happened since. Issuing the tail again leads to the row."""
    near: Kept | None = None
    events = []
    for event in recording.events():
        if event.seq > seq:
            break
        events.append(event)
        near = kept_in(recording, event) or near
    behind = near.seq if near is not None else -1
    return StateAt(near, [event for event in events if event.seq > behind and event.name != ROW])


def graph_of(store: Path) -> Graph:
    """The checkpoints of all runs of a store. Raises `ReadError` where a run cannot be read, or not whole."""
    graph = Graph()
    for recording in _recordings(store):
        for kept in checkpoints_of(recording):
            graph.add(kept.checkpoint)
        crash = _OF_A_CRASH if recording.manifest is None else frozenset({"unfit"})
        if damage := next((each for each in recording.damages if each.kind not in crash), None):
            what = f"{recording.path}: {damage.detail}; which snapshots it needs is not known"
            raise Damaged(what, file=damage.file, offset=damage.offset, seq=damage.seq)
    return graph


def sweep(store: Path) -> int:
    """Drop every snapshot in the store that no checkpoint of any run names. Returns the bytes that this freed.

    Raises `ReadError` where a run cannot be read: what it needs is not known then, and nothing is dropped.
    """
    if not SnapshotStore(store).place.is_dir():
        return 0
    return Files(store).gc_named(lambda: [node.env.ref for node in graph_of(store)])


def _recordings(store: Path) -> Iterator[Recording]:
    for run in sorted(path for path in store.iterdir() if is_id(path.name, "run") and path.is_dir()):
        for attempt in layout.attempts(run):
            recording = Recording(attempt)
            if recording.log_bytes:  # else its writer died before its first row
                _ = recording.header
                yield recording
