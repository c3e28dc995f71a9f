"""The door: everything that crosses into or out of the agent goes through `Boundary.begin`.

This is the door of a recording, where every crossing is live; the words of a door are in `engine.crossing`. `call` and
`acall` are sugar over any door for functions. The gate, the cassette, the log and the numbering live on the recorder's
side; functions run in the caller. The same verbs travel over HTTP to child processes (`seams.remote`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import msgspec

from worldline.engine import clock
from worldline.engine.agent_state import Dumped
from worldline.engine.asking import Asks
from worldline.engine.content import Content
from worldline.engine.crossing import Boundary, Call, Keyed, Live, RecordEnds, Served, inside, keyed
from worldline.engine.facts import Told, request_facts, response_facts
from worldline.engine.failure import describe, revive
from worldline.engine.messages import SOURCE, Message
from worldline.engine.order import ThreadTurn
from worldline.engine.recorder import Recorder
from worldline.engine.stream import BodyRecorder
from worldline.engine.threads import in_thread
from worldline.errors import ValueRefused
from worldline.model import events
from worldline.model.effects import Effect, Mode
from worldline.store import layout, recording

if TYPE_CHECKING:
    from worldline.engine.workspace import Workspace

__all__ = [
    "Boundary",
    "Call",
    "Keyed",
    "Live",
    "LiveCall",
    "RecordBoundary",
    "RecordEnds",
    "Served",
    "acall",
    "call",
    "inside",
    "its_turn",
    "keyed",
]
_log = logging.getLogger("worldline")

STARTED = {"decision": "request", "action": "tool_call", "observation": "sample"}
FINISHED = {"decision": ("decision", "response"), "action": ("observation", "tool_result")}


class RecordBoundary:
    """Every crossing is live: its start is durable before it leaves."""

    mode = "record"

    def __init__(self, recorder: Recorder, seen: Iterable[str] = ()) -> None:
        self.recorder = recorder
        self.asks = Asks(recorder)  # who is asked for permission, and waits
        self.workspace: Workspace | None = None  # what is kept beside the rows, where that was asked for
        self.crossed: Counter[str] = Counter()  # how often what did: `decision`, or `action` and its name
        self._crossing = threading.Lock()
        self._told = Told(seen)  # tool results that some request has carried

    def begin(self, call: Call) -> LiveCall:
        """Write the started row (durable) and hand the call back to its caller."""
        return self.started(call, self.known(call))

    def known(self, call: Call) -> Keyed:
        """The key of a call, and what of it the record holds."""
        return keyed(call, self.recorder.vault, self.recorder.restriction, self.recorder.keep.key)

    def started(self, call: Call, known: Keyed, mode: Mode = Mode.LIVE, identifier: str | None = None) -> LiveCall:
        """The same for a call whose key is known, and perhaps its id; of what is no live one `mode` says so."""
        recorder = self.recorder
        self.count(call)
        identifier = identifier or recorder.next_call(known.key)
        keys = {
            "call": identifier,
            "mode": str(mode),
            "key": known.key,
            "effect": call.effect,
            "idempotency_key": call.idempotency_key,
            "parent_id": call.parent,
        }
        data = {"name": call.name, **call.facts}
        if call.kind == "action":
            data["arguments"] = Content(known.inputs, call.inputs.media_type, known.tier)
        elif call.kind == "decision":
            data["inputs"] = msgspec.json.decode(known.inputs)
            data |= request_facts(call.name, known.body or b"", self._told, str(call.facts.get("path", "")))
        request = (identifier, known.body, known.tier) if known.body is not None else None
        decides = call.kind == "decision" and call.parent is None
        if self.workspace is not None and decides:
            self.workspace.step_begins(call.lane, known.key)
        # A sample (clock, randomness) has no effect outside: its one row is written when its value is known.
        if call.kind != "observation":
            self.recorder.append(call.kind, STARTED[call.kind], keys, data, call.lane, durable=True, request=request)
        answered = self.workspace.answered if self.workspace is not None and decides else None
        return LiveCall(self.recorder, call, identifier, keys, self._told, known.tier, answered)

    def count(self, call: Call) -> None:
        """Count a crossing, for those who hear of calls elsewhere and ask whether they crossed."""
        with self._crossing:
            self.crossed["decision" if call.kind == "decision" else f"{call.kind} {call.name}"] += 1

    def forks(self) -> int | None:
        """None: a recording begins at its beginning."""
        return None

    def restored(self) -> Dumped | None:
        """None: a recording begins at its beginning."""
        return None

    def heard(self, server: str) -> list[Message]:
        """Nothing yet."""
        return []

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Append a row that is no crossing. An outcome is also kept for the result.

        A step that begins is also a checkpoint, of the workspace and of the agent's `state` where it has one.
        """
        begins = (kind, src, data.get("phase")) == ("marker", "step", "begin")
        if begins:
            data = dict(data)
            schema, state = data.pop("schema", None), data.pop("state", None)
            if self.workspace is not None:
                dumped = Dumped(schema, state.value()) if state is not None else None
                self.workspace.step_begins(lane, state=dumped)
        if kind == "observation" and src.startswith(SOURCE) and self.recorder.restriction.rules:
            data = _in_tier(data, layout.RESTRICTED)  # it may quote any tool
        row = self.recorder.append(kind, src, keys, data, lane, durable=kind == "permission")
        if (kind, src) == ("marker", "outcome"):
            said = events.read(row.line).data  # as written: without secrets
            self.recorder.outcome |= {key: value for key, value in said.items() if value is not None}


class LiveCall(Live):
    """A call under way in a recording."""

    def __init__(
        self,
        recorder: Recorder,
        call: Call,
        identifier: str,
        keys: Mapping[str, Any],
        told: Told,
        tier: str = layout.ORDINARY,
        answered: Callable[[], None] | None = None,
    ) -> None:
        self.call = identifier
        self._tier = tier
        self._answered = answered
        self._told = told
        self._recorder = recorder
        self._call = call
        self._keys = {"call": identifier, "mode": keys["mode"]}
        self._sample_keys = keys
        self._began = clock.monotonic_ns()
        self._body = BodyRecorder(recorder, self._keys, call.lane, tier) if call.kind == "decision" else None

    def encoded(self, encoding: str) -> None:
        """Name the body's content encoding before its first piece, when the answer begins."""
        assert self._body is not None, "only decisions stream"
        if self._answered is not None:  # before the agent has read anything that it could act on
            self._answered()
        self._body.encoded_as(encoding)

    def chunk(self, data: bytes, ends_chunk: bool = True) -> None:
        """Record a piece of the body."""
        assert self._body is not None, "only decisions stream"
        self._body.feed(data, ends_chunk)

    def due(self) -> None:
        """Write what came of the body and waits."""
        if self._body is not None:
            self._body.due()

    def finish(self, data: Mapping[str, Any], result: Content | None = None) -> None:
        """Write the finished row."""
        fields: dict[str, Any] = _in_tier(data, self._tier)
        if self._body is not None:
            fields |= self._body.totals()
            fields |= response_facts(self._call.name, fields, self._body.readable(), self._told)
            if not self._recorder.keep.keeps or self._tier == layout.RESTRICTED:
                fields.pop("said_error", None)  # the provider's words may quote the request
        if result is not None:
            fields["result"] = msgspec.structs.replace(result, tier=self._result_tier(result))
        self._end(fields)

    def fail(self, error: Mapping[str, Any]) -> None:
        """Write the finished row of a call that failed."""
        totals = self._body.totals() if self._body is not None else {}
        told = dict(error)
        keep = self._recorder.keep
        if not keep.keeps and self._call.kind != "decision":
            told = {"type": told["type"], "message": "[withheld]", "args": None}
        # A failing tool may quote what it was given, so its words are content, too.
        tier = self._result_tier(None)
        apart = keep.keeps and self._call.kind != "decision" and keep.apart(tier)
        self._end({"error": Content(events.encode_json(told), tier=tier) if apart else told, **totals})

    def _result_tier(self, result: Content | None) -> str:
        call, text = self._call, result.data if result is not None and result.media_type == recording.JSON else None
        tier = self._recorder.restriction.tier(call.kind, call.name, text)
        return tier if self._tier == layout.ORDINARY else self._tier

    def abandon(self, why: str) -> None:
        """Leave the call unfinished, and say why."""
        self._recorder.append("meta", "unknown", self._keys, {"name": self._call.name, "why": why}, self._call.lane)

    def _end(self, fields: dict[str, Any]) -> None:
        fields["elapsed_ns"] = max(0, clock.monotonic_ns() - self._began)  # no clock is trusted not to step back
        if self._call.kind == "observation":
            self._recorder.append(
                "observation", "sample", self._sample_keys, {"name": self._call.name, **fields}, self._call.lane
            )
            return
        kind, src = FINISHED[self._call.kind]
        if self._call.kind == "action":
            fields = {"name": self._call.name, **fields}
        durable = self._call.effect == Effect.SIDE_EFFECTING
        self._recorder.append(kind, src, self._keys, fields, self._call.lane, durable=durable)


def _in_tier(data: Mapping[str, Any], tier: str) -> dict[str, Any]:
    """A row's data with its contents in a tier."""
    return {k: msgspec.structs.replace(v, tier=tier) if isinstance(v, Content) else v for k, v in data.items()}


def call(
    boundary: Boundary,
    crossing: Call,
    run: Callable[[], Any],
    scope: Mapping[str, Any] | None = None,
    seeded: Callable[[str], Any] | None = None,
) -> Any:
    """Run a function through the door: `run` is called only where the record has no answer.

    Where the door gives a seed, `seeded` is called with it in place of `run`. `scope` maps names to the exception
    classes that a recorded failure may come back as. Raises what `run` raises, the recorded failure, or `Diverged`.
    """
    answer = boundary.begin(crossing)
    if isinstance(answer, Served):
        if answer.never_ended:
            threading.Event().wait(answer.patience)
        delivered = _delivered(answer, scope or {})
        if not answer.leaves():
            turn = ThreadTurn()
            answer.turn(turn)
            turn.wait()
        return _given(delivered)
    mark, home = inside.set(answer.call), os.getpid()
    try:
        result = run() if seeded is None or answer.seed is None else seeded(answer.seed)
    except BaseException as error:
        if os.getpid() == home:
            _broken(answer, error)
        raise
    finally:
        inside.reset(mark)
    if os.getpid() == home:  # a child forked inside leaves a call that is its parent's to end
        _finish(answer, result)
    return result


async def acall(
    boundary: Boundary, crossing: Call, run: Callable[[], Awaitable[Any]], scope: Mapping[str, Any] | None = None
) -> Any:
    """The async twin of `call`; the door's disk work happens in a thread."""
    answer = await in_thread(boundary.begin, crossing)
    if isinstance(answer, Served):
        if answer.never_ended:
            await asyncio.sleep(answer.patience)  # to be cancelled, as it was
        delivered = _delivered(answer, scope or {})
        await its_turn(answer)
        return _given(delivered)
    mark, home = inside.set(answer.call), os.getpid()
    try:
        result = await run()
    except BaseException as error:
        if os.getpid() == home and isinstance(error, Exception):
            await in_thread(_broken, answer, error)
        elif os.getpid() == home:  # a task that is cancelled waits for nothing
            _broken(answer, error)
        raise
    finally:
        inside.reset(mark)
    if os.getpid() == home:
        await in_thread(_finish, answer, result)
    return result


async def its_turn(served: Served) -> None:
    """Wait until an answer may leave; tasks of one loop go on in the record's order."""
    turn: Future[None] = Future()
    chained = asyncio.wrap_future(turn)  # before it can be done, else those that it lets go would overtake it
    served.turn(turn)
    await chained


def _delivered(served: Served, scope: Mapping[str, Any]) -> tuple[Any, BaseException | None]:
    """The recorded result, or the failure; made before its turn, so that nothing overtakes it meanwhile."""
    if served.never_ended:
        raise RecordEnds(served.never_ended)
    failure = served.data.get("error")
    return (served.value(), None) if failure is None else (None, revive(failure, scope))


def _given(delivered: tuple[Any, BaseException | None]) -> Any:
    result, failure = delivered
    if failure is not None:
        raise failure
    return result


def _broken(live: Live, error: BaseException) -> None:
    """Record how a function failed; one that was interrupted did not fail: nobody knows how it would have ended."""
    if isinstance(error, Exception):
        live.fail(describe(error))
    else:
        live.abandon(f"interrupted by {type(error).__name__}")


def _finish(live: Live, result: Any) -> None:
    """Record a result; one that no record can carry is declared, and the agent goes on with it."""
    try:
        content = Content.of(result)
    except ValueRefused as refused:
        _log.warning("a tool's result is not in the record, which cannot be replayed: %s", refused)
        live.finish({"unrecordable": {"path": refused.facts["path"], "type": refused.facts["type"]}})
        return
    live.finish({}, content)
