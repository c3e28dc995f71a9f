"""The tools of a live branch: carries out what the gate decides, and writes down what became of each call.

One that runs is recorded as any call. One that does not is recorded too, with the mode `mock`: what was given in its
place, or that it was refused and why. Decisions of rules and of people are `permission` rows.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from worldline.engine.asking import GRANTED, Request
from worldline.engine.boundary import RecordBoundary
from worldline.engine.content import Content
from worldline.engine.crossing import Call, Keyed, Live, Served
from worldline.engine.failure import describe
from worldline.engine.gate import ALLOW, DERIVED_KEY, KEY_FIRED, LIVE, MOCK, REFUSE, UNDER_WAY, Fate, Fired, Gate
from worldline.engine.order import at_once
from worldline.errors import EffectRefused, OutcomeUnknown, PolicyFailed, WorldlineError
from worldline.model.effects import Effect, Mode
from worldline.store import layout
from worldline.store.seal import alone

BUILT_IN = "built-in"  # the policy that refuses where no rule says anything


class Counts(msgspec.Struct):
    """How model calls and tool calls of a branch were answered: from the record, live, by a mock, or refused."""

    prefix: int = 0
    live: int = 0
    mocked: int = 0
    refused: int = 0


class LiveTools:
    """Decides and carries out tool calls of one branch. `elsewhere` looks up what its relatives let happen."""

    def __init__(
        self,
        door: RecordBoundary,
        gate: Gate,
        counts: Counts,
        elsewhere: Callable[[str], Fired | None],
        allow_repeat: bool,
    ) -> None:
        self._door = door
        self._recorder = door.recorder
        self._gate = gate
        self._counts = counts
        self._elsewhere = elsewhere
        self._allow_repeat = allow_repeat
        self._lock = threading.Lock()

    def begin(self, call: Call) -> Served | Live:
        """The fate of a tool call, carried out. Raises what recording raises."""
        recorder = self._recorder
        known = self._door.known(call)
        declared = call.idempotency_key and recorder.vault.redact_text(call.idempotency_key)
        identifier = recorder.next_call(known.key)
        with self._alone(declared), self._lock:
            fate = self._gate.decide(call, known.key, declared)
            if fate.kind in (LIVE, MOCK, REFUSE):
                return self._carry_out(call, known, fate, identifier)
        granted = self._ask(call, known, fate, identifier)
        with self._alone(declared), self._lock:
            fate = self._answered(fate, granted, declared)
            return self._carry_out(call, known, fate, identifier)

    def _alone(self, declared: str | None) -> AbstractContextManager[Any]:
        """Who lets an effect happen that others may, too, looks and begins before any other does."""
        store = layout.homes(self._recorder.run_directory)[-1]
        return alone(store) if declared else nullcontext()

    def _answered(self, asked: Fate, granted: bool, declared: str | None) -> Fate:
        """The fate of a call about which somebody was asked: meanwhile its effect may have happened elsewhere."""
        if not granted:
            return msgspec.structs.replace(asked, kind=REFUSE, why="it was asked for and not granted")
        if declared and not asked.unknown and not self._allow_repeat and (fired := self._elsewhere(declared)):
            return (
                Fate(kind=MOCK, why=KEY_FIRED, fired=fired)
                if fired.ended
                else Fate(kind=REFUSE, why=UNDER_WAY, unknown=True)
            )
        return msgspec.structs.replace(asked, kind=LIVE, ruling=None)  # not by a rule: somebody said so

    def _ask(self, call: Call, known: Keyed, fate: Fate, identifier: str) -> bool:
        ruling = fate.ruling
        assert ruling is not None, "only a rule asks"
        facts = {
            "tool": call.name,
            "arguments": msgspec.json.decode(known.inputs),
            "idempotency_key": call.idempotency_key,
            "policy": ruling.policy,
            "rule": ruling.rule,
            "why": fate.why,
        }
        timeout = max(ruling.timeout, 0.001)  # nobody can answer in no time
        request = Request(id=identifier, lane=call.lane, capability=_capability(call), facts=facts, timeout=timeout)
        return self._door.asks.ask(request).decision == GRANTED

    def _carry_out(self, call: Call, known: Keyed, fate: Fate, identifier: str) -> Served | Live:
        if fate.kind == LIVE:
            self._counts.live += 1
            if fate.ruling is not None and fate.ruling.decision == ALLOW:
                self._permission("auto_approved", call, fate, identifier)
            return self._door.started(self._with_key(call, identifier), known, Mode.LIVE, identifier)
        live = self._door.started(call, known, Mode.MOCK, identifier)
        if fate.kind == REFUSE:
            self._counts.refused += 1
            self._permission("denied", call, fate, identifier)
            error = describe(_refusal(call, fate))
            live.fail(error)
            return Given(identifier, error, None)
        self._counts.mocked += 1
        return self._mock(live, fate, identifier)

    def _mock(self, live: Live, fate: Fate, identifier: str) -> Served:
        """Give a recorded result, or a rule's; it stands in the record as what it is."""
        if fate.fired is None:
            assert fate.ruling is not None, "a mock is recorded, or a rule's"
            content = Content.of(fate.ruling.value)
            live.finish({"mocked": fate.why}, content)
            return Given(identifier, None, content)
        exchange, recording = fate.fired.exchange, fate.fired.recording
        if "error" in exchange.data:
            live.fail(exchange.data["error"])
            return Given(identifier, exchange.data["error"], None)
        content = Content(*recording.encoded(exchange.data.get("result")))
        live.finish({"mocked": f"{fate.why}: {recording.run_id}, {exchange.call}"}, content)
        return Given(identifier, None, content)

    def _with_key(self, call: Call, identifier: str) -> Call:
        """An effect without a key of the user's gets one of this call of this branch."""
        if call.idempotency_key is not None or call.effect != Effect.SIDE_EFFECTING:
            return call
        recorder = self._recorder
        named = f"{recorder.run}/{recorder.attempt_id}/{recorder.log.seq}/{identifier}"
        key = DERIVED_KEY + hashlib.sha256(named.encode()).hexdigest()[:32]
        return msgspec.structs.replace(call, idempotency_key=key)

    def _permission(self, src: str, call: Call, fate: Fate, identifier: str) -> None:
        ruling = fate.ruling
        facts = {
            "tool": call.name,
            "policy": ruling.policy if ruling else BUILT_IN,
            "rule": ruling.rule if ruling else "effects",
            "by": "policy",
            "why": fate.why,
        }
        data = {"capability": _capability(call), "facts": Content.of(facts)}
        self._recorder.append("permission", src, {"parent_id": identifier}, data, call.lane, durable=True)


class Given(Served):
    """The answer of a call that did not happen: a mock's result, or an error in its place."""

    def __init__(self, call: str, error: dict[str, Any] | None, content: Content | None) -> None:
        self.call = call
        self.data = {} if error is None else {"error": error}
        self._content = content

    def content(self) -> Content | None:
        """The result, or None where there is an error in its place."""
        return self._content

    def pieces(self) -> list[tuple[bytes, bool]]:
        """None: no model's answer is made up."""
        return []

    def turn(self, into: Future[None] | None = None) -> Future[None]:
        """At once: nothing came before it."""
        return at_once(into)

    def leaves(self) -> bool:
        """At once."""
        return True


def _capability(call: Call) -> str:
    return str(call.facts.get("capability") or call.effect or Effect.SIDE_EFFECTING)


def _refusal(call: Call, fate: Fate) -> WorldlineError:
    failed = fate.ruling is not None and fate.ruling.failed is not None
    kind = PolicyFailed if failed else OutcomeUnknown if fate.unknown else EffectRefused
    message = f"{call.name} was not run: {fate.why}"
    if fate.ruling is None:
        message += "; a rule of the policy can allow, ask or mock it"
    rule = f"{fate.ruling.policy}/{fate.ruling.rule}" if fate.ruling else f"{BUILT_IN}/effects"
    return kind(message, tool=call.name, why=fate.why, rule=rule)
