"""LangGraph: `builder.compile(checkpointer=WorldlineSaver())`. The extra `langgraph` brings the framework.

The graph's checkpoints and writes go into the recording as they are made (rows `observation/agent_state`), in a form
that any language reads; nothing of them is kept anywhere else. After a crash `WorldlineSaver(resume=RUN)` gives a graph
the state that the broken run had: what its nodes had written is not computed again. The state that was given crosses
the door, so a replay needs the recording of the second run alone. Without a run the saver keeps its states in memory.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from worldline.engine import boundary as doors
from worldline.engine.boundary import Call, inside
from worldline.engine.content import Content
from worldline.engine.lineage import opened
from worldline.engine.threads import in_thread
from worldline.errors import RecordingNotFound, UsageError
from worldline.seams.active import current
from worldline.seams.bridges.graph_values import TAG, Neutral, packed
from worldline.seams.lanes import lane
from worldline.store.catalog import default_store, find
from worldline.store.recording import Recording

SOURCE = "agent_state"
FORMAT = "langgraph/1"
EMPTY = ("empty", b"")  # a channel that has a version and no value


class WorldlineSaver(InMemorySaver):
    """A checkpointer whose checkpoints stand in the recording.

    `types` are classes of the agent's own that its state may hold (pydantic models, dataclasses, enums); `resume` is a
    run to go on from: its id, its path, or a `Run`. Putting raises `ValueRefused` for a state that no record can carry,
    asking for a thread `RecordingNotFound` where there is no such run.
    """

    def __init__(self, *, types: Iterable[type] = (), resume: Any = None) -> None:
        self._neutral = Neutral(types)
        super().__init__(serde=self._neutral)
        self._source = None if resume is None else _recording(resume)
        self._given: set[Any] = set()  # threads that are filled in
        self._opening: dict[Any, threading.Lock] = {}
        self._versions = 0
        self._lock = threading.RLock()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its thread."""
        self._begin(config)
        return super().get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the framework's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints that fit, newest first."""
        if config is not None:
            self._begin(config)
        yield from super().list(config, filter=filter, before=before, limit=limit)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Record a checkpoint; of its channels those that are new."""
        self._begin(config)
        with self._lock:
            made = super().put(config, checkpoint, metadata, new_versions)
            where = made["configurable"]
            thread, space, identifier = where["thread_id"], where["checkpoint_ns"], where["checkpoint_id"]
            self._record(thread, self._checkpoint(thread, space, identifier, new_versions))
        return made

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Record what a node wrote behind a checkpoint, before the next one is made."""
        self._begin(config)
        with self._lock:
            super().put_writes(config, writes, task_id, task_path)
            where = config["configurable"]
            thread, space, identifier = where["thread_id"], where.get("checkpoint_ns", ""), where["checkpoint_id"]
            self._record(thread, self._writes(thread, space, identifier, task_id))

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread. That it was forgotten is recorded; what the recording holds of it stays there."""
        with self._lock:
            self._given.add(thread_id)
            super().delete_thread(thread_id)
            self._record(thread_id, {"did": "deleted"})

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The async twin of `get_tuple`."""
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the framework's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The async twin of `list`."""

        def found() -> Sequence[CheckpointTuple]:
            return tuple(self.list(config, filter=filter, before=before, limit=limit))

        for each in await in_thread(found):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The async twin of `put`."""
        return await in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """The async twin of `put_writes`."""
        await in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """The async twin of `delete_thread`."""
        await in_thread(self.delete_thread, thread_id)

    def get_next_version(self, current: Any, channel: None) -> str:
        """The next version of a channel: no two are the same, in two branches of one thread neither."""
        with self._lock:
            self._versions += 1
            number = 0 if current is None else int(str(current).partition(".")[0])
            return f"{number + 1:032}.{self._versions:016}"

    def with_allowlist(self, extra_allowlist: Any) -> WorldlineSaver:
        """Itself: which classes a state may hold is said by `types`, and no list of the framework's widens it."""
        return self

    @property
    def schema(self) -> str:
        """The schema of what `dump` gives, so that a saver is the agent's half of a checkpoint (`AgentState`)."""
        return FORMAT

    def dump(self) -> Any:
        """Its states as plain data: what it would have recorded to come to them."""
        with self._lock:
            return [
                {"thread": self._neutral.tagged(thread), **said}
                for thread, spaces in self.storage.items()
                for space, found in spaces.items()
                for identifier in sorted(found)
                for said in self._all_of(thread, space, identifier)
            ]

    def load(self, state: Any) -> None:
        """Go on from what `dump` gave."""
        with self._lock:
            for said in state:
                thread = self._neutral.untagged(said["thread"])
                self._given.add(thread)
                self._fill(thread, said)

    def _all_of(self, thread: Any, space: str, identifier: str) -> Iterator[dict[str, Any]]:
        state = _plain(self.storage[thread][space][identifier][0])
        yield self._checkpoint(thread, space, identifier, state["channel_versions"])
        for task in dict.fromkeys(task for task, _ in self.writes.get((thread, space, identifier), ())):
            yield self._writes(thread, space, identifier, task)

    def _checkpoint(self, thread: Any, space: str, identifier: str, versions: Mapping[str, Any]) -> dict[str, Any]:
        """A checkpoint as its row has it, with the values of these channels."""
        state, about, parent = self.storage[thread][space][identifier]
        before = self._versions_of(thread, space, parent)
        return {
            "did": "checkpoint",
            "ns": space,
            "id": identifier,
            "parent": parent,
            "checkpoint": _plain(state),
            "metadata": _plain(about),
            "channels": [
                [name, version, *self._value(thread, space, name, version, before.get(name))]
                for name, version in versions.items()
            ],
        }

    def _writes(self, thread: Any, space: str, identifier: str, task: str) -> dict[str, Any]:
        """What a task wrote behind a checkpoint, as its row has it."""
        found = {at: held for (by, at), held in self.writes[thread, space, identifier].items() if by == task}
        return {
            "did": "writes",
            "ns": space,
            "id": identifier,
            "task": task,
            "path": next((path for _, _, _, path in found.values()), ""),
            "writes": [[at, channel, _plain(typed)] for at, (_, channel, typed, _) in found.items()],
        }

    def _versions_of(self, thread: Any, space: str, identifier: str | None) -> dict[str, Any]:
        found = self.storage[thread][space].get(identifier or "")
        return {} if found is None else dict(_plain(found[0])["channel_versions"])

    def _value(self, thread: Any, space: str, name: str, version: Any, before: Any) -> tuple[Any, ...]:
        """A channel's value as its row has it: none, or of a list that only grew what was added, or the whole."""
        now, old = self.blobs[thread, space, name, version], self.blobs.get((thread, space, name, before), EMPTY)
        if EMPTY in (now, old):
            return () if now == EMPTY else (_plain(now),)
        value, known = _plain(now), _plain(old)
        if isinstance(value, list) and isinstance(known, list) and known and value[: len(known)] == known:
            return ({TAG: "more", "of": before, "value": value[len(known) :]},)
        return (value,)

    def _record(self, thread: Any, said: dict[str, Any]) -> None:
        run = current()
        if run is not None:
            value = {"format": FORMAT, "thread": self._neutral.tagged(thread), **said}
            data = {"name": str(thread), "value": Content.of(value)}
            run.boundary.note("observation", SOURCE, lane(), {}, data)

    def _begin(self, config: RunnableConfig) -> None:
        """Fill in what the run that is resumed has of a thread, when it is first asked for."""
        thread = config["configurable"]["thread_id"]
        if self._source is None:
            return
        with self._lock:
            opening = self._opening.setdefault(thread, threading.Lock())
        with opening:  # and not the saver's own: a crossing may wait for others, whose threads use the saver
            if thread in self._given:
                return
            rows = self._rows(self._source, thread)
            with self._lock:
                self._given.add(thread)
                for said in rows:
                    self._fill(thread, said)

    def _rows(self, source: Recording | RecordingNotFound, thread: Any) -> Sequence[dict[str, Any]]:
        """What a recording has of a thread, in order. It crosses the door of the run that goes on with it."""
        own = self._neutral.tagged(thread)

        def read() -> Any:
            if isinstance(source, RecordingNotFound):
                raise source
            return [said for said in recorded(opened(source)) if said.get("thread") == own]

        run = current()
        if run is None:
            return read()  # type: ignore[no-any-return]
        here = lane()
        inputs = Content.of({"lane": here, "thread": own})
        call = Call(kind="observation", name=SOURCE, inputs=inputs, lane=here, parent=inside.get())
        return doors.call(run.boundary, call, read)  # type: ignore[no-any-return]

    def _filled(self, thread: Any, space: str, name: str, values: Sequence[Any]) -> tuple[str, bytes]:
        """Undo `_value`."""
        if not values:
            return EMPTY
        (value,) = values
        if isinstance(value, dict) and value.get(TAG) == "more":
            return packed([*_plain(self.blobs[thread, space, name, value["of"]]), *value["value"]])
        return packed(value)

    def _fill(self, thread: Any, said: dict[str, Any]) -> None:
        self._versions += 1 + len(said.get("channels", ()))  # versions go on behind those that there are
        if said["did"] == "deleted":
            super().delete_thread(thread)
            return
        space, identifier = said["ns"], said["id"]
        if said["did"] == "checkpoint":
            for name, version, *values in said["channels"]:
                self.blobs[thread, space, name, version] = self._filled(thread, space, name, values)
            made = packed(said["checkpoint"]), packed(said["metadata"]), said["parent"]
            self.storage[thread][space][identifier] = made
            return
        held = self.writes[thread, space, identifier]
        for at, channel, value in said["writes"]:
            held[said["task"], at] = said["task"], channel, packed(value), said["path"]


def recorded(source: Recording) -> Iterator[dict[str, Any]]:
    """What a recording has of graphs' states, in order: what it was given by one before it, and what came in it."""
    for event in source.events():
        if event.name == f"observation/{SOURCE}":
            said = [source.value(event.data.get("value"))]
        elif event.name == "observation/sample" and event.data.get("name") == SOURCE:
            said = source.value(event.data.get("result"))
        else:
            continue
        yield from (each for each in said if isinstance(each, dict) and each.get("format") == FORMAT)


def _plain(typed: tuple[str, bytes]) -> Any:
    """What a saver holds as bytes, as the data it is."""
    return Content(typed[1], typed[0]).value()


def _recording(named: Any) -> Recording | RecordingNotFound:
    """The recording that is resumed, or that there is none: a replay gives what it had and does without it."""
    found = getattr(named, "recording", None)
    if isinstance(found, Recording):
        return found
    if not isinstance(named, str | Path):
        raise UsageError(f"resume= is a run, its id or its path, not a {type(named).__name__}")
    try:
        return find(str(named), default_store())
    except RecordingNotFound as missing:
        return missing
