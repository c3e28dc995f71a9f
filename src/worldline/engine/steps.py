"""Steps: thought, action, observation. Folded from the log, never stored.

A step is one decision (its retries merged), its tool calls, and the results found by call id in the next request.
Explicit `step` markers define the steps of their lane instead: everything inside one is that step. Steps are numbered
from 0; a step's stable id is the seq of its decision's start (or of its marker).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from worldline.engine.cassette import Cassette, Exchange, rebuild
from worldline.engine.facts import response_decision
from worldline.engine.tally import StepCounter, failed_response
from worldline.errors import Damaged
from worldline.model.dialects import Decision, read_request
from worldline.store.recording import Recording


class ToolCall(msgspec.Struct):
    """One tool call of a step. `arguments` is JSON text, `result` text.

    `ran` says where: `recorded` (through the door), `outside` (its result came back, nothing of ours ran it),
    `unknown` (started, no end on record), or `unanswered`.
    """

    id: str | None
    name: str
    arguments: str
    ran: str
    result: str | None = None
    error: str | None = None
    seq: int | None = None
    effect: str | None = None
    seconds: float | None = None


class Step(msgspec.Struct):
    """One step. Times in seconds (`at` since the run began), tokens as the provider counted them."""

    index: int
    seq: int
    lane: str
    at: float
    name: str | None = None
    model: str | None = None
    text: str = ""
    reasoning: str = ""
    finish: list[str] = []
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    status: int | None = None
    error: str | None = None
    attempts: int = 0
    decisions: list[str] = []
    calls: list[ToolCall] = []
    permissions: list[dict[str, Any]] = []


def steps(cassette: Cassette) -> list[Step]:
    """All steps of a recording, in order."""
    return _Fold(cassette).steps()


class _Fold:
    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._counter = StepCounter()
        self._steps: list[Step] = []
        self._explicit: dict[str, list[Step]] = defaultdict(list)
        self._current: dict[str, Step] = {}
        self._asked: dict[str, ToolCall] = {}

    def steps(self) -> list[Step]:
        items: list[tuple[int, Any]] = [(note.seq, note) for note in self._cassette.notes]
        for exchange in self._cassette.exchanges:
            items.append((exchange.started, exchange))
            if exchange.kind == "decision" and exchange.finished is not None:
                items.append((exchange.finished, (exchange,)))
        for _, item in sorted(items, key=lambda pair: pair[0]):
            match item:
                case Exchange(kind="decision"):
                    self._decision(item)
                case Exchange(kind="action"):
                    self._action(item)
                case (Exchange() as exchange,):
                    self._counter.response(exchange.call, failed_response(exchange.data))
                    self._answer(exchange)
                case Exchange():
                    pass
                case note:
                    self._note(note)
        self._results()
        return self._steps

    def _open(self, seq: int, lane: str, t: int, name: str | None = None) -> Step:
        step = Step(len(self._steps), seq, lane, t / 1e9, name, finish=[], decisions=[], calls=[], permissions=[])
        self._steps.append(step)
        self._current[lane] = step
        return step

    def _note(self, note: Any) -> None:
        if note.kind == "permission":
            if step := self._current.get(note.lane):
                step.permissions.append({"src": note.src, "seq": note.seq, **note.data})
        elif note.src == "step":
            begins = note.data.get("phase") == "begin"
            if begins:
                outer = self._explicit[note.lane]
                step = outer[-1] if outer else self._open(note.seq, note.lane, note.t, note.data.get("name"))
                outer.append(step)
            elif self._explicit[note.lane]:
                self._explicit[note.lane].pop()
            self._counter.marker(note.lane, begins)

    def _decision(self, exchange: Exchange) -> None:
        if exchange.parent is not None:
            return
        opens = self._counter.request(exchange.lane, exchange.call, exchange.key)
        explicit = self._explicit[exchange.lane]
        step = self._open(exchange.started, exchange.lane, exchange.start_t) if opens and not explicit else None
        step = step or (explicit[-1] if explicit else self._current[exchange.lane])
        step.decisions.append(exchange.call)
        step.attempts += 1

    def _answer(self, exchange: Exchange) -> None:
        step = next((s for s in reversed(self._steps) if exchange.call in s.decisions), None)
        if step is None:
            return
        data = exchange.data
        elapsed = data.get("elapsed_ns", 0) / 1e9
        step.seconds = round((step.seconds or 0.0) + elapsed, 6)
        step.status = data.get("status")
        if "error" in data:
            step.error = str(data["error"].get("message"))
            return
        try:
            body = self._cassette.readable(exchange)
        except Damaged as error:
            step.error = str(error)
            return
        decision = response_decision(exchange.name, data, body) or Decision()
        step.error = decision.error or (None if data.get("complete", True) else data.get("why", "the answer broke off"))
        step.model = decision.model or exchange.start_data.get("gen_ai.request.model")
        step.text, step.reasoning = decision.text, decision.reasoning
        step.finish = list(decision.finish_reasons)
        step.input_tokens = data.get("gen_ai.usage.input_tokens")
        step.output_tokens = data.get("gen_ai.usage.output_tokens")
        for use in decision.tool_uses:
            call = ToolCall(use.id, use.name, use.arguments, "unanswered" if use.runner == "client" else use.runner)
            self._asked[use.id] = call
            step.calls.append(call)

    def _action(self, exchange: Exchange) -> None:
        """A tool that ran through the door: the call of the model that it answers, or one of its own."""
        step = self._current.get(exchange.lane) or (self._steps[-1] if self._steps else None)
        if step is None:
            step = self._open(exchange.started, exchange.lane, exchange.start_t)
            self._counter.action()
        try:
            inputs = self._cassette.inputs(exchange)
        except Damaged:
            inputs = None  # the call is found by its name; its text below says what is wrong
        open_calls = [c for s in self._steps for c in s.calls if c.name == exchange.name and c.seq is None]
        call = next(
            (c for c in open_calls if _same_arguments(c.arguments, inputs)), open_calls[0] if open_calls else None
        )
        if call is None:
            arguments = _text(self._cassette.recording, exchange.start_data.get("arguments", {}))
            call = ToolCall(None, exchange.name, arguments, "recorded")
            step.calls.append(call)
        call.seq, call.effect = exchange.started, exchange.effect
        call.ran = "unknown" if exchange.finished is None else "recorded"
        if "error" in exchange.data:
            call.error = f"{exchange.data['error'].get('type')}: {exchange.data['error'].get('message')}"
        elif "result" in exchange.data:
            call.result = _text(self._cassette.recording, exchange.data["result"])
        elif lost := exchange.data.get("unrecordable"):
            call.error = f"its result is not in the record: {lost['type']} at {lost['path']}"
        if "elapsed_ns" in exchange.data:
            call.seconds = exchange.data["elapsed_ns"] / 1e9

    def _results(self) -> None:
        """Results that came back in a request although the door never saw their tool."""
        open_calls = {key: call for key, call in self._asked.items() if call.ran == "unanswered"}
        if not open_calls:
            return
        for call, body, met in rebuild(self._cassette.recording):
            ask = read_request(self._cassette.by_call[call].name, body) if met else None
            for result in ask.tool_results if ask else ():
                if result.id in open_calls:
                    found = open_calls.pop(result.id)
                    found.ran, found.result = "outside", result.content


def _same_arguments(text: str, inputs: Any) -> bool:
    try:
        return bool(msgspec.json.decode(text.encode()) == inputs)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False


def _text(recording: Recording, form: Any) -> str:
    """A recorded value as text: its own where it is one, else JSON as the record has it, with its escapes."""
    try:
        data, _ = recording.encoded(form)
    except Damaged as error:
        return f"({error})"
    value = msgspec.json.decode(data)
    return value if isinstance(value, str) else data.decode("utf-8")
