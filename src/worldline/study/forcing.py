"""Interventions of single steps: `hold` serves a step again, `force` gives another action in its place, `mock` another
observation, `remove` no action at all. What a step is drawn anew with is `set` in the plan of the fork.

A held step is served where its own request comes again; where the history before it is another, it is not: then the
model is asked, and that is counted. A forced action is written as the provider of that route would say it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from worldline.analysis.attribution.asking import Do, Draw
from worldline.engine.cassette import Cassette
from worldline.engine.content import Content
from worldline.engine.crossing import Call, Keyed
from worldline.engine.exchanges import Exchange
from worldline.engine.lineage import opened
from worldline.engine.steering import Answered
from worldline.engine.steps import Step
from worldline.errors import UnknownStep, UsageError
from worldline.run import Run
from worldline.testing.provider.routes import answer_to, spoken
from worldline.testing.provider.script import Say, ToolCall

CHANGES = ("resample", "force", "mock", "remove", "set")
_DROPPED = (
    "body",
    "pieces",
    "chunks",
    "body_sha256",
    "body_size",
    "body_pieces",
    "first_ns",
    "elapsed_ns",
    "tool_uses",
)


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent's model does at a step: it says `text` and calls tools. The value of a `force`."""

    text: str = ""
    calls: list[ActionCall] = []

    def as_json(self) -> str:
        """As a `Do` carries it."""
        return msgspec.json.encode(self).decode()


class ActionCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call of an action."""

    name: str
    arguments: dict[str, Any] = {}


def read_action(value: Any) -> Action:
    """An action as a user or a journal gives it. Raises `UsageError` with what it must look like."""
    try:
        if isinstance(value, str):
            return msgspec.json.decode(value, type=Action) if value.lstrip().startswith("{") else Action(value)
        return msgspec.convert(value, Action)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            'an action is {"text": "...", "calls": [{"name": "...", "arguments": {...}}]}, or the text alone: '
            + str(error)
        ) from None


def action_at(step: Step) -> Action:
    """What was done at a recorded step."""
    calls = []
    for call in step.calls:
        try:
            arguments = msgspec.json.decode(call.arguments.encode("utf-8", "surrogatepass"))
        except (msgspec.DecodeError, UnicodeDecodeError):
            arguments = {"input": call.arguments}
        calls.append(ActionCall(call.name, arguments if isinstance(arguments, dict) else {"input": arguments}))
    return Action(step.text or "", calls)


def first_changed(draw: Draw) -> int:
    """The first step that a draw does not hold as it was."""
    return min([draw.at, *(do.step for do in draw.do if do.kind in CHANGES)])


def plan_at(run: Run, draw: Draw, base: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of the fork that a draw is. Raises `UsageError` for an intervention that cannot be made there."""
    first = first_changed(draw)
    if first >= len(run.steps):
        raise UnknownStep.among(first, range(len(run.steps)))
    fields = dict(base.get("set", {}))
    for do in draw.do:
        if do.kind != "set":
            continue
        if do.step != first:
            raise UsageError(f"requests can be changed from the fork on (step {first}), not from step {do.step}")
        name, mark, value = do.value.partition("=")
        if not (name and mark):
            raise UsageError(f"what is set is NAME=VALUE, not {do.value!r}")
        try:
            fields[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            fields[name] = value
    return {**base, "at": f"step:{first}", "set": fields}


def refuse_unwritable(run: Run, steps: Sequence[int]) -> None:
    """Raise `UsageError` for a step of `run` whose action nobody can write: no model is asked there, or one of an API
    whose answers have no such form here."""
    exchanges = Cassette(opened(run.recording)).exchanges
    for index in steps:
        asked = set(run.steps[index].decisions)
        names = sorted({exchange.name for exchange in exchanges if exchange.call in asked})
        if not names:
            raise UsageError(f"step {index} asks no model: there is no action to put another in its place", step=index)
        if bad := [name for name in names if name not in spoken()]:
            known = ", ".join(spoken())
            raise UsageError(
                f"step {index} asks {bad[0]}, whose answers cannot be written, so no action can be forced there; those "
                f"of {known} can",
                step=index,
                name=bad[0],
            )


class Forcing:
    """The steering of one draw. Safe from several threads."""

    def __init__(self, run: Run, draw: Draw, first: int) -> None:
        self._lock = threading.Lock()
        self._steps = run.steps
        self._do: dict[int, Do] = {do.step: do for do in draw.do if do.kind in ("force", "remove", "mock")}
        changed = {do.step for do in draw.do if do.kind in CHANGES and do.kind != "mock"}  # its action stays
        held = {do.step for do in draw.do if do.kind == "hold"} | set(range(first, draw.at))
        self._cassette = Cassette(opened(run.recording))
        self._held: dict[int, list[Exchange]] = {step: self._decisions(step) for step in held - changed}
        self._given: set[int] = set()

    def _decisions(self, index: int) -> list[Exchange]:
        calls = set(self._steps[index].decisions) if index < len(self._steps) else set()
        return [e for e in self._cassette.exchanges if e.call in calls and e.finished is not None]

    def decision(self, step: int, call: Call, known: Keyed) -> Answered | None:
        """The answer of a forced, removed or held step."""
        with self._lock:
            do = self._do.get(step)
            if do is not None and do.kind in ("force", "remove") and step not in self._given:
                self._given.add(step)
                action = read_action(do.value) if do.kind == "force" else Action()
                return written(call, action, f"{do.kind}d at step {step}")
            waiting = self._held.get(step, [])
            exchange = next((e for e in waiting if e.key == known.key), None)
            if exchange is None:
                return None
            waiting.remove(exchange)
        head = {name: value for name, value in exchange.data.items() if name not in _DROPPED and "." not in name}
        return Answered(head, [piece for piece, _ in self._cassette.pieces(exchange)], f"held: step {step}")

    def action(self, step: int, call: Call, known: Keyed) -> Content | None:
        """The result of a mocked step."""
        do = self._do.get(step)
        if do is None or do.kind != "mock":
            return None
        try:
            value = msgspec.json.decode(do.value)
        except msgspec.DecodeError:
            value = do.value
        if isinstance(value, dict) and set(value) == {"tool", "result"}:
            return Content.of(value["result"]) if value["tool"] == call.name else None
        return Content.of(value)


def written(call: Call, action: Action, why: str) -> Answered:
    """An action as the provider of the call's route says it. Raises `UsageError` for a route that has no such form."""
    said = Say(action.text, [ToolCall(each.name, each.arguments) for each in action.calls], usage=(0, 0))
    answer = answer_to(call.name, call.body or b"", said)
    if answer is None:
        raise UsageError(
            f"an answer of {call.name} cannot be written, so no action can be forced there", name=call.name
        )
    head: dict[str, Any] = {
        "status": answer.status,
        "reason": "OK",
        "headers": [[name, value] for name, value in answer.headers if name == "Content-Type"],
        "framing": answer.framing,
    }
    if answer.framing == "length":
        head["length"] = sum(map(len, answer.pieces))
        head["headers"].append(["Content-Length", str(head["length"])])
    return Answered(head, list(answer.pieces), why)
