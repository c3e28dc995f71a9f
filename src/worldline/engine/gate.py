"""The gate of a live branch: does a tool run, is a recorded or made-up result given, is somebody asked, is it refused?

Model calls, samples and what is harmless to run again pass. A tool with effects outside runs only where a rule says so;
an effect that the user named by a key and that happened once never happens again; and of what nobody knows whether it
happened nothing runs again by itself. The gate decides and writes nothing: `engine.fork` carries it out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from worldline.engine.content import Content
from worldline.engine.crossing import Call
from worldline.engine.exchanges import Exchange
from worldline.model.effects import Capability, Effect
from worldline.store.recording import Recording

LIVE, MOCK, ASK, REFUSE = "live", "mock", "ask", "refuse"
ALLOW, DENY = "allow", "deny"
DECISIONS = (ALLOW, DENY, ASK, MOCK)
NEVER_BY_ITSELF = (Capability.TRUST_MUTATING, Capability.IRREVERSIBLE_EXTERNAL)
HARMLESS = (Effect.PURE, Effect.IDEMPOTENT)
DERIVED_KEY = "wl:"  # what begins a key that was derived for one call of one branch, and names no effect

NO_RESULT = "it has effects outside, and the record has no result of it"
KEY_FIRED = "the effect of its key happened already"
RECORDED_LATER = "the record has its result"
UNKNOWN = "it had started when the record broke off, and nobody knows whether it happened"
UNRECORDED = "the agent went on when its record broke off, and nobody knows whether it happened"
UNDER_WAY = "the effect of its key is under way, and nobody knows how it ends"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as rules see it. `unknown` says that it may have happened already."""

    tool: str
    effect: str | None
    capability: str | None
    arguments: Content
    idempotency_key: str | None
    unknown: bool = False


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says: `decision` is one of `DECISIONS`; `value` is a mock's result.

    `policy` and `rule` name where it stands; `timeout` is how many seconds somebody who is asked has; `failed` says why
    a rule could not be evaluated for this call, which then is denied.
    """

    decision: str
    policy: str
    rule: str
    value: Any = None
    timeout: float = 120.0
    failed: str | None = None


class PolicyEngine(Protocol):
    """Rules about tool calls on a live branch."""

    def rule(self, asked: Asked) -> Ruling | None:
        """The first ruling on a call, or None where no rule is about it."""


class Fired(msgspec.Struct, frozen=True):
    """An effect that is on record, and the recording that has it."""

    exchange: Exchange
    recording: Recording

    @property
    def ended(self) -> bool:
        """Whether there is a result that can be given again."""
        return self.exchange.finished is not None and "unrecordable" not in self.exchange.data

    @property
    def happened(self) -> bool:
        """Whether it went out: what was mocked or refused on another branch did not."""
        return self.exchange.mode == LIVE


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a call: `live`, `mock`, `ask` or `refuse`, and why.

    A mock gives what `fired` gave, or else the ruling's value. `unknown` marks a call that may have happened before.
    """

    kind: str
    why: str | None = None
    ruling: Ruling | None = None
    fired: Fired | None = None
    unknown: bool = False


class Gate:
    """Decides on the tool calls of one live branch. The caller holds a lock.

    `before` and `later` are the recorded calls of the parent up to the fork and behind it; `elsewhere` looks a declared
    key up among effects of this branch and its relatives. On a branch that `resumed` an interrupted run new effects are
    the run's own and happen; on any other they are refused unless a rule lets them. Where the run acted `unrecorded`
    behind the end of its record, an effect that is not on record may have happened: any of a resumed run, on another
    branch those with a declared key.
    """

    def __init__(
        self,
        policy: PolicyEngine,
        before: Iterable[Fired],
        later: Iterable[Fired],
        *,
        elsewhere: Callable[[str], Fired | None] = lambda key: None,
        allow_repeat: bool = False,
        resumed: bool = False,
        unrecorded: bool = False,
    ) -> None:
        self._policy = policy
        self._elsewhere = elsewhere
        self._allow_repeat = allow_repeat
        self._resumed = resumed
        self._unrecorded = unrecorded
        self._by_key: dict[str, Fired] = {}
        self._later: dict[str, deque[Fired]] = {}
        self._unknown: dict[str, deque[Fired]] = {}
        for fired in before:
            self._took_place(fired)
        for fired in later:
            self._took_place(fired)
            if fired.ended and (fired.happened or "error" not in fired.exchange.data):
                self._later.setdefault(fired.exchange.key, deque()).append(fired)

    def _took_place(self, fired: Fired) -> None:
        unknown = self._unknown.setdefault(fired.exchange.key, deque())
        if fired.exchange.finished is None and fired.exchange.given_up is None:
            unknown.append(fired)
        elif unknown and fired.happened and fired.ended:
            unknown.popleft()  # somebody let it happen again, and that it did is on record
        key = fired.exchange.idempotency_key
        if key is not None and fired.happened and not key.startswith(DERIVED_KEY):
            there = self._by_key.get(key)
            if there is None or (fired.ended and not there.ended):
                self._by_key[key] = fired

    def decide(self, call: Call, key: str, declared: str | None) -> Fate:
        """The fate of a tool call with this key, whose effect the user `declared` a key for, or not."""
        capability = call.facts.get("capability")
        guarded = call.effect not in HARMLESS or capability in NEVER_BY_ITSELF
        named = self._happened(declared)
        if (guarded or declared) and (why := self._doubt(key, named, declared)) is not None:
            return self._by_rule(call, declared, why, unknown=True) or Fate(kind=REFUSE, why=why, unknown=True)
        if named is not None and not self._allow_repeat:
            return Fate(kind=MOCK, why=KEY_FIRED, fired=named)
        if (by_rule := self._by_rule(call, declared, None)) is not None:
            return by_rule
        if not guarded or self._resumed:
            return Fate(kind=LIVE)
        if waiting := self._later.get(key):
            return Fate(kind=MOCK, why=RECORDED_LATER, fired=waiting.popleft())
        return Fate(kind=REFUSE, why=NO_RESULT)

    def _doubt(self, key: str, named: Fired | None, declared: str | None) -> str | None:
        """Why a call may have happened already; None where that is known."""
        if self._unknown.get(key):
            return UNKNOWN
        if named is not None:
            return None if named.ended else UNDER_WAY
        # A branch is told by its rules what may happen again; a key says that it must not.
        return UNRECORDED if self._unrecorded and (self._resumed or declared is not None) else None

    def _happened(self, declared: str | None) -> Fired | None:
        if declared is None:
            return None
        return self._by_key.get(declared) or self._elsewhere(declared)

    def _by_rule(self, call: Call, declared: str | None, why: str | None, unknown: bool = False) -> Fate | None:
        capability = call.facts.get("capability")
        ruling = self._policy.rule(
            Asked(
                tool=call.name,
                effect=call.effect,
                capability=capability,
                arguments=call.inputs,
                idempotency_key=declared,
                unknown=unknown,
            )
        )
        if ruling is None:
            return None
        kind = {ALLOW: LIVE, DENY: REFUSE, ASK: ASK, MOCK: MOCK}[ruling.decision]
        if kind == LIVE and capability in NEVER_BY_ITSELF:
            kind = ASK  # no rule lets these pass by itself: somebody has to say so
        if ruling.failed is not None:
            why = f"rule {ruling.rule} of {ruling.policy} cannot be evaluated: {ruling.failed}"
        return Fate(kind=kind, why=why or f"by rule {ruling.rule} of {ruling.policy}", ruling=ruling, unknown=unknown)
