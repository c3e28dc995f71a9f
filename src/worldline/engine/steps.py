"""Steps: thought, action, observation. Folded from the log, never stored.

A step is one decision (its retries merged), its tool calls, and the results found by call id in the next request.
Explicit `step` markers define the steps of their lane instead: everything inside one is that step. Steps are numbered
from 0, those of a branch on from where it left its parent; a step's stable id is the seq of its decision's start (or of
its marker).

The fold follows the log row by row, so that a first step is there before the log is read, and a long one is never held.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from worldline.engine.excerpts import Excerpts
from worldline.engine.exchanges import Exchange, fold
from worldline.engine.facts import response_decision
from worldline.engine.stream import KEPT
from worldline.engine.tally import StepCounter, failed_response
from worldline.errors import Damaged, UnknownStep
from worldline.model.dialects import Decision
from worldline.model.events import Event
from worldline.store.recording import Recording

HELD = 1000  # steps that wait for one before them to be over
OPEN_CALLS = 4096  # calls that a model asked for and nobody answered; of more the oldest are given up


class ToolCall(msgspec.Struct):
    """One tool call of a step. `arguments` is JSON text, `result` text; of a cut one `size` is the whole, in bytes.

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
    size: int | None = None


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
    lost: str | None = None  # why the answer cannot be read, where it cannot: it may have been a good one
    attempts: int = 0
    decisions: list[str] = []
    calls: list[ToolCall] = []
    permissions: list[dict[str, Any]] = []


def steps(recording: Recording) -> list[Step]:
    """All steps of a recording, in order, with all that is in them."""
    return list(each_step(recording))


def each_step(recording: Recording, most: int | None = None) -> Iterator[Step]:
    """The steps in order, each as soon as it is over: the next of its lane has begun, and what it started has ended.

    Behind one that is never over at most `HELD` others wait. With `most` a result is cut there (bytes), and a long
    answer is read to 8 MiB. Reading stops where the caller stops.
    """
    return _Fold(Excerpts(recording, most)).steps()


def the_step(recording: Recording, number: int, most: int | None = None) -> Step:
    """The step of that number; what stands behind it is not read. `most` as in `each_step`. Raises `UnknownStep`."""
    count = first = 0
    for step in each_step(recording, most):
        if step.index == number:
            return step
        first = first if count else step.index
        count += 1
    raise UnknownStep.among(number, range(first, first + count))


def step_at(found: Iterable[Step], seq: int) -> int | None:
    """The number of the step in which a row stands, of those found; None before the first."""
    return max((step.index for step in found if step.seq <= seq), default=None)


class _OpenCalls:
    """Calls that a model asked for and nobody answered yet."""

    def __init__(self) -> None:
        self._calls: dict[int, ToolCall] = {}
        self._by_id: dict[str, int] = {}
        self._by_name: dict[str, dict[int, ToolCall]] = defaultdict(dict)
        self._next = 0

    def add(self, call: ToolCall) -> None:
        """A model asked for it."""
        if len(self._calls) == OPEN_CALLS:
            self.close(next(iter(self._calls.values())))
        self._calls[self._next] = self._by_name[call.name][self._next] = call
        self._by_id[str(call.id)] = self._next
        self._next += 1

    def close(self, call: ToolCall) -> None:
        """It is answered, or given up."""
        number = next(number for number, found in self._by_name[call.name].items() if found is call)
        del self._calls[number], self._by_name[call.name][number]
        if self._by_id.get(str(call.id)) == number:
            del self._by_id[str(call.id)]

    def asked_as(self, identifier: str) -> ToolCall | None:
        """The call of this id."""
        number = self._by_id.get(identifier)
        return None if number is None else self._calls[number]

    def run_as(self, name: str, inputs: Any) -> ToolCall | None:
        """The call that a tool's run answers: with the same arguments, else the first of its name."""
        named = self._by_name.get(name, {}).values()
        return next((call for call in named if _same_arguments(call.arguments, inputs)), next(iter(named), None))


class _Fold:
    def __init__(self, read: Excerpts) -> None:
        self._read = read
        self._counter = StepCounter()
        self._count = self._branch = 0
        self._last: Step | None = None
        self._explicit: dict[str, list[Step]] = defaultdict(list)
        self._current: dict[str, Step] = {}
        self._open_calls = _OpenCalls()
        self._under_way: dict[str, Exchange] = {}
        self._places: dict[str, tuple[Step, ToolCall | None]] = {}  # of exchanges under way
        self._running: dict[int, int] = defaultdict(int)  # exchanges under way of each step
        self._came: dict[str, int] = defaultdict(int)  # bytes of the answers under way
        self._waiting: deque[Step] = deque()

    def steps(self) -> Iterator[Step]:
        for event in self._read.recording.events():
            self._row(event)
            while self._waiting and (len(self._waiting) > HELD or self._is_over(self._waiting[0])):
                yield self._waiting.popleft()
        yield from self._waiting

    def _is_over(self, step: Step) -> bool:
        ended = not self._running.get(step.index) and step not in self._explicit.get(step.lane, ())
        if ended and step is not self._current.get(step.lane) and step is not self._last:
            self._running.pop(step.index, None)
            return True
        return False

    def _row(self, event: Event) -> None:
        if event.call is None:
            if event.kind in ("marker", "permission"):
                self._note(event)
            elif event.name == "snapshot_ref/branch":  # its steps are numbered on from where it left its parent
                self._count = self._branch = _count(event.data.get("step")) or 0
            return
        exchange = fold(event, self._under_way, self._read.opened)
        if exchange is None:
            return
        if exchange.started == event.seq and exchange.kind == "decision":
            self._asked(exchange, event)
        elif exchange.started == event.seq and exchange.kind == "action":
            self._action(exchange)
        elif event.name == "decision/chunk":
            self._chunk(exchange)
        if exchange.finished == event.seq:
            self._ended(exchange)
        elif event.name == "meta/unknown" and exchange.call in self._places:
            self._running[self._places[exchange.call][0].index] -= 1

    def _chunk(self, exchange: Exchange) -> None:
        """Of a long answer only its beginning is kept: more than that nobody reads."""
        body = exchange.chunks[-1].get("body")
        self._came[exchange.call] += len(body) if isinstance(body, str) else 1
        if self._came[exchange.call] > KEPT:
            exchange.chunks.pop()

    def _ended(self, exchange: Exchange) -> None:
        del self._under_way[exchange.call]
        self._came.pop(exchange.call, None)
        step, call = self._places.pop(exchange.call, (None, None))
        if exchange.kind == "decision":
            self._counter.response(exchange.call, failed_response(exchange.data))
        if step is None:
            return
        if exchange.given_up is None:
            self._running[step.index] -= 1
        if call is not None:
            self._result(call, exchange)
        else:
            self._answer(step, exchange)

    def _open(self, seq: int, lane: str, t: int, name: str | None = None) -> Step:
        step = Step(self._count, seq, lane, t / 1e9, name, finish=[], decisions=[], calls=[], permissions=[])
        self._count += 1
        self._waiting.append(step)
        self._current[lane] = self._last = step
        return step

    def _note(self, row: Event) -> None:
        data = self._read.opened(row)
        if row.kind == "permission":
            if step := self._current.get(row.lane):
                step.permissions.append({"src": row.src, "seq": row.seq, **data})
        elif row.src == "step":
            begins = data.get("phase") == "begin"
            if begins:
                outer = self._explicit[row.lane]
                step = outer[-1] if outer else self._open(row.seq, row.lane, row.t, _word(data.get("name")))
                outer.append(step)
            elif self._explicit[row.lane]:
                self._explicit[row.lane].pop()
            self._counter.marker(row.lane, begins)

    def _asked(self, exchange: Exchange, row: Event) -> None:
        """A model is asked: what came back of tools since is in its request, and it may open a step."""
        self._results(exchange, row)
        if exchange.parent is not None:
            return
        opens = self._counter.request(exchange.lane, exchange.call, exchange.key)
        explicit = self._explicit[exchange.lane]
        step = self._open(exchange.started, exchange.lane, exchange.start_t) if opens and not explicit else None
        step = step or (explicit[-1] if explicit else self._current[exchange.lane])
        step.decisions.append(exchange.call)
        step.attempts += 1
        self._begun(exchange, step, None)

    def _begun(self, exchange: Exchange, step: Step, call: ToolCall | None) -> None:
        self._places[exchange.call] = (step, call)
        self._running[step.index] += 1

    def _results(self, exchange: Exchange, row: Event) -> None:
        """Results that came back in a request although the door never saw their tool."""
        fresh = exchange.start_data.get("results", ())
        if not any(self._open_calls.asked_as(identifier) for identifier in fresh):
            return
        carried = list(self._read.results(exchange.name, row.data.get("body")))
        told = {result.id: result for result in carried}  # of several under one id the last is the new one
        for identifier in reversed(fresh):
            call = self._open_calls.asked_as(identifier)
            result = told.get(identifier) if call is not None else None
            if call is not None and result is None:  # its client dropped the call's id, or made one up
                result = next((each for each in reversed(carried) if each.name and each.name == call.name), None)
            if call is not None and result is not None:
                carried.remove(result)
                call.ran, (call.result, call.size) = "outside", self._read.cut(result.content)
                self._open_calls.close(call)

    def _answer(self, step: Step, exchange: Exchange) -> None:
        data = exchange.data
        elapsed = data.get("elapsed_ns", 0) / 1e9
        step.seconds = round((step.seconds or 0.0) + elapsed, 6)
        step.status = data.get("status")
        if "error" in data:
            step.error = str(data["error"].get("message"))
            return
        step.model = _word(data.get("gen_ai.response.model") or exchange.start_data.get("gen_ai.request.model"))
        step.input_tokens = _count(data.get("gen_ai.usage.input_tokens"))
        step.output_tokens = _count(data.get("gen_ai.usage.output_tokens"))
        try:
            body = self._read.answer(exchange)
        except Damaged as error:
            step.lost = str(error)
            return
        decision = response_decision(exchange.name, data, body) or Decision()
        # A client may hang up behind the last event, before the body's own end: the answer says that it is whole.
        whole = data.get("complete", True) or decision.finish_reasons
        step.error = decision.error or (None if whole else data.get("why", "the answer broke off"))
        step.model = decision.model or step.model
        step.text, step.reasoning = decision.text, decision.reasoning
        step.finish = list(decision.finish_reasons)
        for use in decision.tool_uses:
            call = ToolCall(use.id, use.name, use.arguments, "unanswered" if use.runner == "client" else use.runner)
            step.calls.append(call)
            if use.runner == "client":
                self._open_calls.add(call)

    def _action(self, exchange: Exchange) -> None:
        """A tool that runs through the door: the call of the model that it answers, or one of its own."""
        step = self._current.get(exchange.lane) or self._last
        if step is None:
            if self._count == self._branch > 0:  # it goes on with the step that was under way
                self._count -= 1
            step = self._open(exchange.started, exchange.lane, exchange.start_t)
            self._counter.action()
        arguments = exchange.start_data.get("arguments", {})
        call = self._open_calls.run_as(exchange.name, self._read.value(arguments))
        if call is None:
            call = ToolCall(None, exchange.name, self._read.text(arguments).text, "recorded")
            step.calls.append(call)
        else:
            self._open_calls.close(call)
        call.seq, call.effect, call.ran = exchange.started, exchange.effect, "unknown"
        self._begun(exchange, step, call)

    def _result(self, call: ToolCall, exchange: Exchange) -> None:
        """How the run of a tool ended."""
        data = exchange.data
        call.ran = "recorded"
        if "error" in data:
            call.error = f"{data['error'].get('type')}: {data['error'].get('message')}"
        elif "result" in data:
            call.result, call.size = self._read.text(data["result"])
        elif lost := data.get("unrecordable"):
            call.error = f"its result is not in the record: {lost['type']} at {lost['path']}"
        if "elapsed_ns" in data:
            call.seconds = data["elapsed_ns"] / 1e9


def _word(value: Any) -> str | None:
    """A name that an agent or a provider gave: as text, whatever it was."""
    return None if value is None else str(value)


def _count(value: Any) -> int | None:
    """A count that a provider gave, where it is one."""
    return value if isinstance(value, int) else None


def _same_arguments(text: str, inputs: Any) -> bool:
    try:
        return bool(msgspec.json.decode(text.encode()) == inputs)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
