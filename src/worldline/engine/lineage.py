"""The lineage of a branch: the recordings that it continues, oldest first, read as one.

A branch holds what happened behind its fork and names, in its header, the row at which it left its parent:
`{run, attempt, seq, h, genesis}`. Each such edge is checked whenever a lineage is opened. What stands before the fork
is never copied: it is read where it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Damaged, LineageBroken, ReadError
from worldline.model.dialects.change import Change
from worldline.model.events import Event
from worldline.model.ids import is_id, short
from worldline.store import layout
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording, fit
from worldline.store.rows import RowReader
from worldline.store.seek import SeekableLog

BRANCH, EDIT, RESEED = "snapshot_ref/branch", "meta/edit", "meta/branch_reseed"
_ENDS = frozenset({"decision/response", "observation/tool_result"})
DEEPEST = 10_000  # forks of forks
_OWN = frozenset({"meta/header", "meta/end", BRANCH, EDIT, RESEED})  # rows that say something of one recording alone


class Branch(msgspec.Struct, frozen=True):
    """What a branch says of itself in its row `snapshot_ref/branch`.

    `step` is the number of its first step; `change` is made in every request behind the fork, `changed` says in words
    what this fork changed; `edits` holds by call what its results were changed to; `resumed` goes on where its parent
    broke off, with nothing changed. `by_step` says that it was opened by a step that the agent marked, not by a call.
    """

    step: int
    at: str
    change: Change
    changed: list[str]
    edits: dict[str, Event]
    resumed: bool
    seed: str | None
    by_step: bool = False


class Forked(msgspec.Struct, frozen=True):
    """A fork of a lineage: the first row behind it, and whether a step that the agent marked opened the branch."""

    seq: int
    by_step: bool


class Segment(msgspec.Struct, frozen=True):
    """One recording of a lineage, up to and with its row `upto`; None for all of it."""

    recording: Recording
    upto: int | None
    branch: Branch | None  # None of the first


def branch_of(recording: Recording) -> Branch | None:
    """What a recording says of the fork that made it; None where none did. Raises `Damaged` where it cannot be read."""
    if recording.header.data.get("parent") is None:
        return None
    said: dict[str, Any] | None = None
    by_step = False  # said in a row behind them, perhaps behind those of the workspace
    edits: dict[str, Event] = {}
    for event in recording.events():
        if event.name == BRANCH:
            said = {key: recording.loaded(value) for key, value in event.data.items()}
        elif event.name == EDIT:
            edits[str(event.data.get("edited"))] = event
        elif event.name == RESEED:
            by_step = event.data.get("by") == "step"
            break
        elif event.name != "meta/header" and event.kind != "snapshot_ref":
            break
    try:
        if said is None:
            raise ValueError("it has no row that says where it left its parent")
        return Branch(
            step=msgspec.convert(said.get("step"), int),
            at=str(said.get("at")),
            change=msgspec.convert(said.get("change") or {}, Change),
            changed=[str(word) for word in said.get("changed") or ()],
            edits=edits,
            resumed=said.get("resumed") is True,
            seed=said.get("seed") if isinstance(said.get("seed"), str) else None,
            by_step=by_step,
        )
    except (ValueError, TypeError) as error:
        raise Damaged(f"{recording.path}: the branch cannot be read: {error}", file=str(recording.attempt)) from None


def parent_of(recording: Recording) -> tuple[Recording, int] | None:
    """The recording that a branch left and the row at which it did; None for one that left none.

    Raises `LineageBroken` where it is not in the store, or is not what the branch was bound to.
    """
    bound = recording.header.data.get("parent")
    if bound is None:
        return None
    run, attempt, seq = str(bound.get("run")), str(bound.get("attempt")), bound.get("seq")
    facts = {"run": run, "attempt": attempt, "seq": seq}
    if isinstance(recording, PackedRecording):
        what = f"{recording.source.name} is the bundle of a branch of {run}, which is not in it: give the branch's run"
        raise LineageBroken(what, **facts)
    if not (is_id(run, "run") and is_id(attempt, "ainst") and type(seq) is int and seq >= 0):
        raise LineageBroken(f"{recording.path} is bound to no row of a run", **facts)
    places = [home / run / layout.ATTEMPTS / attempt for home in layout.homes(recording.run_directory)]
    place = next((found for found in places if found.is_dir()), None)
    what = f"{short(recording.run_id)} left {run} at row {seq:,}"
    if place is None:
        raise LineageBroken(f"{what}, which is not in {recording.run_directory.parent}: bring that run back", **facts)
    try:
        parent = Recording(place)
        header, found = parent.header, SeekableLog.of(parent.attempt).by_seq(seq)  # not held open: they may be many
        row = fit(found.event) if found is not None and found.event.seq == seq else None
    except ReadError as error:
        raise LineageBroken(f"{what}, which cannot be read: {error}", **facts) from error
    said = header.data
    if (said.get("run"), said.get("attempt")) != (run, attempt) or genesis_of(parent) != bound.get("genesis"):
        raise LineageBroken(f"{what}, and what stands there is another run", **facts)
    if row is None or row.h != bound.get("h"):
        raise LineageBroken(f"{what}, and that row is not what it was", **facts)
    return parent, seq


def genesis_of(recording: Recording) -> str:
    """The hash of the header of the oldest ancestor, as the recording says it."""
    parent = recording.header.data.get("parent")
    return str(parent.get("genesis")) if parent else recording.header.h


class LineageRecording(Recording):
    """A recording and all it continues, read as one: rows from the first ancestor on, numbered anew.

    What was edited reads as the branch has it. Of a call that was under way where a branch left, the end stands right
    before the branch's own rows. Raises `LineageBroken`, or what reading a recording raises.
    """

    def __init__(self, recording: Recording, upto: int | None = None, older: Sequence[Segment] | None = None) -> None:
        before = _older(recording) if older is None else older
        super().__init__(recording.attempt)
        self.own = recording
        self.segments = [*before, Segment(recording, upto, branch_of(recording))]
        self._origins: list[tuple[int, int]] = []

    def until(self, recording: Recording, upto: int) -> LineageRecording:
        """The same up to and with row `upto` of one of its recordings. The edges were checked when it was opened."""
        number = next(n for n, segment in enumerate(self.segments) if segment.recording is recording)
        return LineageRecording(recording, upto, self.segments[:number])

    def ancestors(self) -> Iterator[Recording]:
        """The recordings that the last one continues, nearest first."""
        return (segment.recording for segment in self.segments[-2::-1])

    @property
    def change(self) -> Change:
        """What is changed in requests behind the last fork."""
        branch = self.segments[-1].branch
        return branch.change if branch is not None else Change()

    @property
    def changes(self) -> list[Change]:
        """Every change that was made in requests of the lineage, each once, oldest first."""
        found: list[Change] = []
        for segment in self.segments:
            if segment.branch is not None and segment.branch.change and segment.branch.change not in found:
                found.append(segment.branch.change)
        return found

    @property
    def origins(self) -> list[tuple[int, int]]:
        """Where each row was written: the number of its recording, oldest first, and its own number there."""
        if not self._origins:
            for _ in self.events():
                pass
        return self._origins

    def origin(self, seq: int) -> tuple[Segment, int]:
        """The recording that row `seq` of the lineage was written to, and its own number there."""
        segment, own = self.origins[seq]
        return self.segments[segment], own

    def own_number(self, event: Event) -> int:
        """The number that a row had where it was written: its line says it still."""
        return int(msgspec.json.decode(event.raw)["seq"])

    def begins(self) -> int:
        """The first row of the last recording, in the lineage's numbers; behind all where it has none."""
        last, origins = len(self.segments) - 1, self.origins
        return next((seq for seq, (which, _) in enumerate(origins) if which == last), len(origins))

    def forks(self) -> list[Forked]:
        """Each fork: its first row in the lineage's numbers; a run that was resumed is one with the one before.

        A fork behind which nothing stands yet is behind all rows.
        """
        begun: dict[int, int] = {}
        for seq, (number, _) in enumerate(self.origins):
            begun.setdefault(number, seq)
        found, first = list[Forked](), len(self.origins)
        for number in reversed(range(len(self.segments))):
            first = begun.get(number, first)  # where it has no rows, the next one's are the first behind it
            branch = self.segments[number].branch
            if branch is not None and not branch.resumed:
                found.insert(0, Forked(first, branch.by_step))
        return found

    def events(self, through: Callable[[RowReader], Iterable[Event]] = iter) -> Iterator[Event]:
        """The rows of all, each with its number and time in the lineage."""
        edits = {call: row for s in self.segments if s.branch for call, row in s.branch.edits.items()}
        origins: list[tuple[int, int]] = []
        base = latest = 0
        self.damages = []
        for number, segment in enumerate(self.segments):
            for event in _rows(segment):
                if event.name == "observation/tool_result" and event.call in edits:
                    event = _edited(event, edits[event.call])
                latest = max(latest, base + event.t)
                origins.append((number, event.seq))
                yield msgspec.structs.replace(event, seq=len(origins) - 1, t=base + event.t)
            self.damages += segment.recording.damages
            base = latest
        self._origins = origins

    @cached_property
    def tier_key(self) -> bytes | None:
        """The key of the restricted tier, which a branch has of its parent."""
        return next((key for s in reversed(self.segments) if (key := s.recording.tier_key) is not None), None)

    def stored_size(self, reference: dict[str, Any]) -> int | None:
        """How many bytes stand under a content's name in any of the recordings."""
        sizes = (segment.recording.stored_size(reference) for segment in reversed(self.segments))
        return next((size for size in sizes if size is not None), None)

    def stream_blob(self, reference: dict[str, Any]) -> Iterator[bytes]:
        """The bytes of a content, from the recording that has it."""
        held = (s.recording for s in reversed(self.segments) if s.recording.stored_size(reference) is not None)
        yield from next(held, self.own).stream_blob(reference)


def _older(recording: Recording) -> list[Segment]:
    """The recordings that one continues, oldest first, every edge checked. Raises `LineageBroken`."""
    found: list[Segment] = []
    for parent, seq in ancestors(recording):
        found.append(Segment(parent, seq, branch_of(parent)))
        if len(found) >= DEEPEST:
            raise LineageBroken(f"{recording.path} has over {DEEPEST:,} ancestors", run=recording.run_id)
    return found[::-1]


def _rows(segment: Segment) -> Iterator[Event]:
    """The rows of one recording that belong to the lineage; behind the cut only the ends of what was under way."""
    under_way: set[str] = set()
    for event in segment.recording.events():
        behind = segment.upto is not None and event.seq > segment.upto
        if behind and not under_way:
            return
        call = event.call
        if event.name in _OWN or (behind and call not in under_way):
            continue
        if call is not None and not behind and "key" in event.keys and event.name != "observation/sample":
            under_way.add(call)
        elif call is not None and event.name in _ENDS:
            under_way.discard(call)
        yield event


def _edited(event: Event, edit: Event) -> Event:
    """A tool's result as a branch changed it."""
    data = {"name": event.data.get("name"), "result": edit.data.get("result"), "elapsed_ns": 0}
    return msgspec.structs.replace(event, data=data, keys={**event.keys, "mode": "mock"}, raw=edit.raw)


def opened(recording: Recording) -> Recording:
    """The recording with its lineage, where it has one; a bundle holds its own rows alone. Raises `LineageBroken`."""
    is_branch = recording.header.data.get("parent") is not None and not isinstance(recording, PackedRecording)
    return LineageRecording(recording) if is_branch else recording


def ancestors(recording: Recording) -> Iterator[tuple[Recording, int]]:
    """The recordings that one continues, nearest first, each with the row at which it was left."""
    edge = parent_of(recording)
    while edge is not None:
        yield edge
        edge = parent_of(edge[0])


def said_workspace(recording: Recording) -> Any:
    """What a header says of the workspace that is kept (a `WorkspaceSpec`, or the content of one); None for none."""
    return (recording.header.data.get("environment") or {}).get("workspace")


def attempts_in(store: Path) -> Iterator[Recording]:
    """Every attempt of a store whose header can be read, oldest run first."""
    for run in sorted(path for path in store.iterdir() if is_id(path.name, "run") and path.is_dir()):
        for attempt in layout.attempts(run):
            try:
                recording = Recording(attempt)
                _ = recording.header
            except ReadError:
                continue
            yield recording
