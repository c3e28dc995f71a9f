"""LangChain: `invoke(..., config={"callbacks": [WorldlineHandler()]})`. The extra `langchain` brings the framework.

A callback hears and cannot serve. So this notes where each model and tool run began and ended (`marker/run`), puts what
runs within a tool into a lane of its own, and finds out whether the run crossed the door: a model that the proxy or a
wrapped client heard, a tool under `@worldline.tool`. What did is on record already and is not recorded again. What did
not is recorded as an observation, and the coverage of the recording says that it was only heard: a replay refuses it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, message_to_dict
from langchain_core.outputs import LLMResult
from pydantic_core import to_jsonable_python

from worldline.engine.boundary import RecordBoundary
from worldline.engine.content import Content
from worldline.engine.failure import describe
from worldline.engine.fork import ForkBoundary
from worldline.seams.active import ActiveRun, current
from worldline.seams.lanes import lane, move_to
from worldline.seams.remote import RemoteBoundary

MODEL, TOOL = "model", "tool"


class _Open(msgspec.Struct):
    """A run of the framework that has begun. `within` names the tools around it, `told` is what it was given."""

    number: int
    parent: int | None
    within: tuple[str, ...]
    of: str | None = None
    name: str = ""
    told: Any = None
    base: str = ""
    before: str = ""


class WorldlineHandler(BaseCallbackHandler):
    """Hears of model, tool and retriever runs, and notes them in the run that is open. Nothing happens without one."""

    raise_error = True  # a recording that cannot go on is said, not logged
    run_inline = True  # in the order in which things happen, in the context in which they do

    def __init__(self) -> None:
        self._runs: dict[UUID, _Open] = {}
        self._count = 0
        self._open: Counter[str] = Counter()  # model runs, and runs of each tool, that are under way
        self._claimed: Counter[str] = Counter()  # crossings that belong to a run that has ended
        self._lock = threading.Lock()

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        """Remember what stands within what."""
        with self._lock:
            parent = self._runs.get(parent_run_id) if parent_run_id is not None else None
            number = parent.number if parent is not None else -1
            within = parent.within if parent is not None else ()
            base = parent.base if parent is not None else lane()
            self._runs[run_id] = _Open(number, number, within, base=base)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """Forget it."""
        with self._lock:
            self._runs.pop(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Forget it."""
        self.on_chain_end(None, run_id=run_id)

    def on_chat_model_start(
        self, serialized: dict[str, Any] | None, messages: Sequence[Sequence[BaseMessage]], **more: Any
    ) -> None:
        """A model is asked."""
        self._begin(MODEL, serialized, [[message_to_dict(message) for message in each] for each in messages], **more)

    def on_llm_start(self, serialized: dict[str, Any] | None, prompts: list[str], **more: Any) -> None:
        """A model of text is asked."""
        self._begin(MODEL, serialized, prompts, **more)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """A model has answered."""
        self._end(run_id, {"answer": [[_generation(one) for one in each] for each in response.generations]})

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A model has not."""
        self._end(run_id, {"error": describe(error)})

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        inputs: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """A tool runs."""
        self._begin(TOOL, serialized, input_str if inputs is None else inputs, **more)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """A tool has run."""
        self._end(run_id, {"result": message_to_dict(output) if isinstance(output, BaseMessage) else output})

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A tool has failed."""
        self._end(run_id, {"error": describe(error)})

    def on_retriever_start(self, serialized: dict[str, Any] | None, query: str, **more: Any) -> None:
        """A retriever is a tool that the agent's program runs."""
        self._begin(TOOL, serialized, {"query": query}, **more)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **_: Any) -> None:
        """A retriever has found something."""
        self._end(run_id, {"result": documents})

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A retriever has failed."""
        self._end(run_id, {"error": describe(error)})

    def _begin(
        self,
        of: str,
        serialized: Mapping[str, Any] | None,
        told: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        name: str | None = None,
        **_: Any,
    ) -> None:
        run = current()
        if run is None:
            return
        called = name or (serialized or {}).get("name") or "model"
        crossed = _crossed(run)
        with self._lock:
            parent = self._runs.get(parent_run_id) if parent_run_id is not None else None
            within = parent.within if parent is not None else ()
            base = parent.base if parent is not None else lane()
            inner = (*within, called) if of == TOOL else within
            around = None if parent is None or parent.number < 0 else parent.number
            started = _Open(self._count, around, inner, of, called, told, base, lane())
            self._runs[run_id] = started
            self._count += 1
            counted = _counted(of, called)
            if not self._open[counted]:
                self._claimed[counted] = crossed.get(counted, 0)
            self._open[counted] += 1
        if within:
            move_to("/".join([base, *within]))
        self._mark(run, started, {"phase": "begin"})

    def _end(self, run_id: UUID, came: dict[str, Any]) -> None:
        run = current()
        with self._lock:
            started = self._runs.pop(run_id, None)
        if run is None or started is None or started.of is None:
            return
        crossed, counted = _crossed(run), _counted(started.of, started.name)
        with self._lock:
            self._open[counted] -= 1
            has = crossed.get(counted, 0) > self._claimed[counted]
            self._claimed[counted] += has
        if not has:
            value = {"given": started.told, **came}
            data = {"name": started.name, "value": Content.of(_plain(value))}
            run.boundary.note("observation", f"{started.of}_run", lane(), {}, data)
        phase = "error" if "error" in came else "end"
        self._mark(run, started, {"phase": phase, "crossed": has})
        if lane() != started.before:
            move_to(started.before)

    def _mark(self, run: ActiveRun, started: _Open, more: dict[str, Any]) -> None:
        said = {"of": started.of, "run": started.number, "parent": started.parent, "name": started.name}
        run.boundary.note("marker", "run", lane(), {}, {**said, **more})


def _counted(of: str, name: str) -> str:
    """What a run is counted as: any model call, or the calls of a tool by its name."""
    return "decision" if of == MODEL else f"action {name}"


def _crossed(run: ActiveRun) -> Mapping[str, int]:
    """How often what crossed this run's door; nothing is known of a replay, which records nothing."""
    boundary = run.boundary
    if isinstance(boundary, RemoteBoundary):
        found: dict[str, int] = boundary.ask("info", {}).get("crossed", {})
        return found
    return boundary.crossed if isinstance(boundary, RecordBoundary | ForkBoundary) else {}


def _generation(one: Any) -> Any:
    message = getattr(one, "message", None)
    return one.text if message is None else message_to_dict(message)


def _plain(value: Any) -> Any:
    """What was heard, as JSON; what JSON cannot say as text. A recorder breaks no agent that works."""
    try:
        return to_jsonable_python(value, fallback=repr, bytes_mode="base64", inf_nan_mode="strings")
    except ValueError:  # it holds itself
        return repr(value)
