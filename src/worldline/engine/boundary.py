"""The door: everything that crosses into or out of the agent goes through `Boundary.begin`.

`begin(Call)` answers `Served` (the record has the answer) or `Live` (go and do it); a live one is driven by `chunk`,
`finish`, `fail` or `abandon`. `call` and `acall` are sugar over it for functions. The gate, the cassette, the log and
the numbering live on the recorder's side; functions run in the caller. The same verbs travel over HTTP to child
processes (`seams.remote`).
"""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec

from worldline.engine import clock
from worldline.engine.content import Content, redact_escaped
from worldline.engine.facts import request_facts, response_facts
from worldline.engine.failure import describe, revive
from worldline.engine.recorder import Recorder
from worldline.engine.stream import BodyRecorder
from worldline.errors import ValueRefused
from worldline.model import canon
from worldline.model.effects import Effect, Mode
from worldline.store.vault import Vault

inside: ContextVar[str | None] = ContextVar("worldline_inside", default=None)
"""The call whose function runs in this context: what crosses inside it names it as its parent."""

STARTED = {"decision": "request", "action": "tool_call", "observation": "sample"}
FINISHED = {"decision": ("decision", "response"), "action": ("observation", "tool_result")}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What wants to cross.

    `kind` is `decision` (a model is asked), `action` (a tool runs) or `observation` (a sample of clock, randomness).
    `inputs` is the JSON text that makes the key, with `body` (raw bytes of a request, `key_body` where the key reads
    it differently). `facts` go into the started row; a lane is an agent, thread or task; `parent` is the outer call.
    """

    kind: str
    name: str
    inputs: Content
    body: bytes | None = None
    key_body: bytes | None = None
    effect: str | None = None
    idempotency_key: str | None = None
    lane: str = "main"
    parent: str | None = None
    facts: dict[str, Any] = {}


class Keyed(msgspec.Struct, frozen=True):
    """A call's key, and its inputs and body as the record may hold them (secrets replaced)."""

    key: str
    inputs: bytes
    body: bytes | None


def keyed(call: Call, vault: Vault) -> Keyed:
    """The key of a call: kind, name, canonical inputs and body, all after the vault."""
    inputs = redact_escaped(call.inputs.data, vault)
    digest = hashlib.sha256(canon.canonical(canon.parse(inputs)))
    body = vault.redact(call.body) if call.body is not None else None
    if body is not None:
        compared = vault.redact(call.key_body) if call.key_body is not None else body
        with suppress(ValueError):  # no JSON: the bytes themselves
            compared = canon.canonical(canon.parse(compared))
        digest.update(b"\x00" + compared)
    return Keyed(canon.op_key(call.kind, call.name, digest.digest()), inputs, body)


class Served(ABC):
    """The record has the answer: `data` is the finished row's data, `content` the value of a function's result."""

    data: Mapping[str, Any]
    call: str

    @abstractmethod
    def content(self) -> Content | None:
        """The recorded result of a function, or None where it failed (then `data["error"]` says how)."""

    @abstractmethod
    def pieces(self) -> list[tuple[bytes, bool]]:
        """The recorded body of a response: (bytes, whether a transfer chunk ends here)."""

    @abstractmethod
    def release(self) -> None:
        """Wait until the record's order lets this answer out (sooner finished, sooner served)."""


class Live(ABC):
    """Nothing is recorded for this call: go and do it, and say what came."""

    call: str

    @abstractmethod
    def encoded(self, encoding: str) -> None:
        """The body that will come has this content encoding (`gzip`, `br` ...): say so before the first piece."""

    @abstractmethod
    def chunk(self, data: bytes, ends_chunk: bool = True) -> None:
        """A piece of a streamed body came. Never blocks on the disk."""

    @abstractmethod
    def finish(self, data: Mapping[str, Any], result: Content | None = None) -> None:
        """The answer is whole. `data` goes into the finished row."""

    @abstractmethod
    def fail(self, error: Mapping[str, Any]) -> None:
        """It ended in an error, which a replay gives back."""

    @abstractmethod
    def abandon(self, why: str) -> None:
        """Nobody will know how it ended: the call stays *unknown*."""


class Boundary(Protocol):
    """Where crossings are decided: `mode` is `record` or `replay`."""

    mode: str

    def begin(self, call: Call) -> Served | Live:
        """Decide one crossing. Raises `Diverged` on a replay that has no such call."""

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Add a row that is no crossing (a marker, a permission, an observation); a replay checks nothing of it."""


class RecordBoundary:
    """Every crossing is live: its start is durable before it leaves."""

    mode = "record"

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._results: set[str] = set()  # tool results that some request has carried

    def begin(self, call: Call) -> LiveCall:
        """Write the started row (durable) and hand the call back to its caller."""
        known = keyed(call, self.recorder.vault)
        identifier = self.recorder.next_call()
        keys = {
            "call": identifier,
            "mode": str(Mode.LIVE),
            "key": known.key,
            "effect": call.effect,
            "idempotency_key": call.idempotency_key,
            "parent_id": call.parent,
        }
        data = {"name": call.name, **call.facts}
        if call.kind == "action":
            data["arguments"] = Content(known.inputs, call.inputs.media_type)
        elif call.kind == "decision":
            data["inputs"] = msgspec.json.decode(known.inputs)
            data |= request_facts(call.name, known.body or b"", self._results)
        request = (identifier, known.body) if known.body is not None else None
        # A sample (clock, randomness) has no effect outside: its one row is written when its value is known.
        if call.kind != "observation":
            self.recorder.append(call.kind, STARTED[call.kind], keys, data, call.lane, durable=True, request=request)
        return LiveCall(self.recorder, call, identifier, keys)

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Append a row that is no crossing. An outcome is also kept for the result."""
        self.recorder.append(kind, src, keys, data, lane, durable=kind == "permission")
        if (kind, src) == ("marker", "outcome"):
            self.recorder.outcome |= {key: value for key, value in data.items() if value is not None}


class LiveCall(Live):
    """A call under way in a recording."""

    def __init__(self, recorder: Recorder, call: Call, identifier: str, keys: Mapping[str, Any]) -> None:
        self.call = identifier
        self._recorder = recorder
        self._call = call
        self._keys = {"call": identifier, "mode": keys["mode"]}
        self._sample_keys = keys
        self._began = clock.monotonic_ns()
        self._body = BodyRecorder(recorder, self._keys, call.lane) if call.kind == "decision" else None

    def encoded(self, encoding: str) -> None:
        """Name the body's content encoding before its first piece."""
        assert self._body is not None, "only decisions stream"
        self._body.encoding = encoding

    def chunk(self, data: bytes, ends_chunk: bool = True) -> None:
        """Record a piece of the body."""
        assert self._body is not None, "only decisions stream"
        self._body.feed(data, ends_chunk)

    def finish(self, data: Mapping[str, Any], result: Content | None = None) -> None:
        """Write the finished row."""
        fields: dict[str, Any] = {**data}
        if self._body is not None:
            fields |= self._body.totals()
            fields |= response_facts(self._call.name, fields, self._body.readable())
        if result is not None:
            fields["result"] = result
        self._end(fields)

    def fail(self, error: Mapping[str, Any]) -> None:
        """Write the finished row of a call that failed."""
        totals = self._body.totals() if self._body is not None else {}
        self._end({"error": dict(error), **totals})

    def abandon(self, why: str) -> None:
        """Leave the call unfinished, and say why."""
        self._recorder.append("meta", "unknown", self._keys, {"name": self._call.name, "why": why}, self._call.lane)

    def _end(self, fields: dict[str, Any]) -> None:
        fields["elapsed_ns"] = clock.monotonic_ns() - self._began
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


def call(boundary: Boundary, crossing: Call, run: Callable[[], Any], scope: Mapping[str, Any] | None = None) -> Any:
    """Run a function through the door: `run` is called only where the record has no answer.

    `scope` maps names to the exception classes that a recorded failure may come back as. Raises what `run` raises, the
    recorded failure, or `Diverged`.
    """
    answer = boundary.begin(crossing)
    if isinstance(answer, Served):
        answer.release()
        return _deliver(answer, scope or {})
    mark = inside.set(answer.call)
    try:
        result = run()
    except Exception as error:
        answer.fail(describe(error))
        raise
    except BaseException as error:
        answer.abandon(f"interrupted by {type(error).__name__}")
        raise
    finally:
        inside.reset(mark)
    _finish(answer, result)
    return result


async def acall(
    boundary: Boundary, crossing: Call, run: Callable[[], Awaitable[Any]], scope: Mapping[str, Any] | None = None
) -> Any:
    """The async twin of `call`; the door's disk work happens in a thread."""
    answer = await asyncio.to_thread(boundary.begin, crossing)
    if isinstance(answer, Served):
        await asyncio.to_thread(answer.release)
        return _deliver(answer, scope or {})
    mark = inside.set(answer.call)
    try:
        result = await run()
    except Exception as error:
        await asyncio.to_thread(answer.fail, describe(error))
        raise
    except BaseException as error:
        answer.abandon(f"interrupted by {type(error).__name__}")
        raise
    finally:
        inside.reset(mark)
    await asyncio.to_thread(_finish, answer, result)
    return result


def _deliver(served: Served, scope: Mapping[str, Any]) -> Any:
    content = served.content()
    if content is None:
        raise revive(served.data["error"], scope)
    return content.value()


def _finish(live: Live, result: Any) -> None:
    """Record a result; one that no record can carry is declared, and the agent goes on with it."""
    try:
        content = Content.of(result)
    except ValueRefused as refused:
        live.finish({"unrecordable": {"path": refused.facts["path"], "type": refused.facts["type"]}})
        return
    live.finish({}, content)
