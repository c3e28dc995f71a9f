"""The matcher: which recorded exchange answers this call, in which order may answers leave, and where did runs part?

Calls match by key, first in first out within a key. Between keys the record's *partial* order binds: an exchange may
be asked for only when all that finished before it started have been. So parallel calls may come in any order that the
record allows, and nothing else may.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from worldline.engine import clock
from worldline.engine.cassette import Cassette
from worldline.engine.crossing import Call, Keyed, RecordEnds
from worldline.engine.exchanges import Exchange
from worldline.engine.masking import Asked, Masking
from worldline.engine.masks import NONE
from worldline.engine.order import GRACE_SECONDS, FinishingOrder, at_once
from worldline.engine.proposing import proposed
from worldline.errors import Diverged, ReplayError
from worldline.model import canon
from worldline.model.dialects import read_request, what_changed
from worldline.model.masks import REQUEST, TOOL, Masks, as_it_was

CANDIDATES = 8
SHOWN = 500  # characters of a value that a divergence quotes
Differences = list[tuple[str, Any, Any]]  # JSON path, recorded, actual
Moved = Callable[[Exchange, Differences], None]


class Divergence(msgspec.Struct, frozen=True):
    """The first place where a replay and its record part.

    `kind`: `changed` (same call, other inputs; `path` is the JSON path), `unexpected` (no such call is left),
    `unconsumed` (the agent ended before this call), `order` (asked for before what the record has first), `context`
    (a request does not rebuild), `outcome` (the same calls, then another end). `seq` and `call` name the recorded
    crossing, or the last before an unexpected call. `masks` are proposals: they would leave out what looks volatile.
    """

    kind: str
    seq: int | None
    call: str | None
    path: str
    recorded: Any
    actual: Any
    name: str
    hint: str | None = None
    masks: list[str] = []


class Matcher:
    """Serves a cassette's exchanges once each. Safe from several threads.

    With `goes_on` the cassette is the prefix of a branch: once all of it was asked for, `find` has nothing to give.
    With `by_position` a call without its key gets the first answer left of its kind and name, and `moved` is told what
    differs. What `masks` name is left out of the comparison.
    """

    def __init__(
        self,
        cassette: Cassette,
        partial: bool,
        goes_on: bool = False,
        *,
        by_position: bool = False,
        moved: Moved | None = None,
        masks: Masks = NONE,
    ) -> None:
        self.cassette = cassette
        self.masking = Masking(masks, cassette)
        self.partial = partial
        self.goes_on = goes_on
        self.by_position = by_position
        self.moved = 0  # calls that another request's answer was given to, by its place
        self._on_moved = moved
        self.reached = -1  # the latest start among those that were asked for
        self.first: Divergence | None = None
        self.served = 0
        self._lock = threading.RLock()
        self._come = threading.Condition(self._lock)  # another call was asked for
        self._waiting = 0  # threads that wait for another call to be asked for first
        self._queues: dict[str, deque[Exchange]] = {}
        for exchange in cassette.exchanges:
            self._queues.setdefault(self.masking.key_of(exchange), deque()).append(exchange)
        self.optional = {exchange.call for exchange in _nested(cassette.exchanges)}
        required = [e for e in cassette.exchanges if e.call not in self.optional]
        self._by_start = required
        self._by_end = sorted((e for e in required if e.finished is not None), key=lambda e: e.end)
        self._taken: set[str] = set()
        self._first_untaken = 0
        # How an answer ended that its client broke off says when the client went, not when the answer was there.
        self._order = FinishingOrder([e for e in self._by_end if e.data.get("closed_by") != "client"])
        self._last: Exchange | None = None

    def take(self, call: Call, *known: Keyed) -> Exchange:
        """The exchange that answers `call`. Raises `Diverged`, or `RecordEnds` behind a partial recording's end.

        `known` are its keys: as it was asked, and as each fork of the lineage changes it.
        """
        exchange = self.find(call, *known)
        assert exchange is not None, "only what goes on has an end without a divergence"
        return exchange

    def find(self, call: Call, *known: Keyed) -> Exchange | None:
        """The same; None where all of a prefix was asked for, so that `call` is the first one behind it, or later."""
        deadline: int | None = None
        variants = [self.masking.asked(call, each) for each in known]
        with self._lock:
            while True:
                if self.goes_on and not self._owed():
                    return None
                asked = next((each for each in variants if self._queues.get(each.key)), None)
                queue = self._queues[asked.key] if asked is not None else None
                if not queue and self.by_position:
                    queue = self._in_place(call)
                if queue:
                    exchange, before = self._next(queue, asked)
                    if exchange.finished is None and not exchange.given_up and self.partial:
                        raise RecordEnds(f"{call.name} ({exchange.call}) was under way when the recording stopped")
                    if before is None:
                        break
                elif not self.goes_on:
                    raise self._no_match(call, known)
                deadline = deadline or clock.monotonic_ns() + int(GRACE_SECONDS * 1e9)
                left = deadline - clock.monotonic_ns()
                if left <= 0 and queue:
                    raise self._diverged(self._out_of_order(before or exchange, exchange))
                if left <= 0:
                    raise self._no_match(call, known)
                self._waiting += 1
                self._come.wait(left / 1e9)  # threads race, records do not: another may be about to ask for it
                self._waiting -= 1
            if queue[0] is exchange:
                queue.popleft()
            else:
                queue.remove(exchange)
            self._taken.add(exchange.call)
            self._last = exchange
            if asked is not None:
                self.masking.answered(exchange, asked)
            else:
                self.moved += 1
                if self._on_moved is not None:
                    self._on_moved(exchange, min((self._compare(exchange, each) for each in known), key=len))
            self.reached = max(self.reached, exchange.started)
            self.served += 1
            if self._waiting:
                self._come.notify_all()
            return exchange

    def _in_place(self, call: Call) -> deque[Exchange] | None:
        """The queue of the first exchange left that is of the call's kind and name."""
        left = (e for e in self._by_start if e.call not in self._taken)
        found = next((e for e in left if (e.kind, e.name) == (call.kind, call.name)), None)
        return self._queues[self.masking.key_of(found)] if found is not None else None

    def _owed(self) -> bool:
        """Whether something of a prefix was not asked for yet."""
        return self._untaken() is not None

    def turn(self, exchange: Exchange, into: Future[None] | None = None) -> Future[None]:
        """Done when the record's finishing order lets the answer out."""
        return at_once(into) if exchange.call in self.optional else self._order.turn(exchange, into)

    def leaves(self, exchange: Exchange) -> bool:
        """Let the answer out here and now where the order lets it; False where its turn is to be waited for."""
        return exchange.call in self.optional or self._order.leaves(exchange)

    def passed_over(self) -> list[str]:
        """The model calls that nobody asked for again and that are taken for a tool's own: by their time alone."""
        inferred = (e for e in self.cassette.exchanges if e.call in self.optional and e.parent is None)
        return [
            f"{e.name} ({e.call}) ran while a tool did and was not asked for again: taken for a part of the tool"
            for e in inferred
            if e.call not in self._taken
        ]

    @property
    def relaxed(self) -> int:
        """Answers that left in another order than recorded."""
        return self._order.relaxed

    def _next(self, queue: deque[Exchange], asked: Asked | None) -> tuple[Exchange, Exchange | None]:
        """The first that may come now; else the first, and what the record has finished before it started.

        Of several that are equal under masks the one that is equal without them comes first. One inside a tool comes
        last: its tool is served, so it seldom comes at all.
        """
        first = self._untaken()
        best: Exchange | None = None
        rank = 4
        for exchange in queue:
            if first is None or first.end >= exchange.started:
                other = asked is not None and exchange.key != asked.exact
                if (found := 2 * (exchange.call in self.optional) + other) < rank:
                    best, rank = exchange, found
                if rank == 0:
                    break
        return (best, None) if best is not None else (queue[0], first)

    def _untaken(self) -> Exchange | None:
        """The required exchange that finished first among those not yet asked for."""
        while self._first_untaken < len(self._by_end) and self._by_end[self._first_untaken].call in self._taken:
            self._first_untaken += 1
        return self._by_end[self._first_untaken] if self._first_untaken < len(self._by_end) else None

    def left(self) -> list[Exchange]:
        """The required exchanges that nobody asked for, in starting order; an unknown one may stay."""
        return [e for e in self._by_start if e.call not in self._taken and e.finished is not None]

    def end(self) -> None:
        """The agent ended: what it never asked for is the divergence, unless there was one before."""
        left = self.left()
        if self.first is None and left:
            first = left[0]
            recorded = f"{len(left)} recorded call" + ("s were" if len(left) > 1 else " was") + " never asked for"
            self.first = Divergence(
                "unconsumed", first.started, first.call, "$", recorded, "the agent ended", first.name
            )

    def _diverged(self, divergence: Divergence) -> Diverged:
        if self.first is None:
            self.first = divergence
        where = f"seq {divergence.seq}, {divergence.call}" if divergence.seq is not None else "after the record's end"
        message = f"diverged ({divergence.kind}) at {divergence.name}, {where}: {divergence.path}"
        return Diverged(message, **msgspec.structs.asdict(divergence))

    def _no_match(self, call: Call, variants: tuple[Keyed, ...]) -> ReplayError:
        known = variants[-1]
        left = self.left()
        if self.partial and not left:
            return RecordEnds(f"the recording stops before this call of {call.name}")
        candidates = [e for e in left if (e.kind, e.name) == (call.kind, call.name)][:CANDIDATES]
        if not candidates:
            last = self._last
            return self._diverged(
                Divergence(
                    "unexpected",
                    last.started if last else None,
                    last.call if last else None,
                    "$",
                    f"the record has {left[0].name} here" if left else "the record ends here",
                    self._asked(call, known),
                    call.name,
                )
            )
        compared = [
            (len(found := self._compare(e, each)), index, number, found)
            for index, e in enumerate(candidates)
            for number, each in enumerate(variants)
        ]
        _, index, number, found = min(compared, key=lambda item: item[:3])
        exchange, known = candidates[index], variants[number]
        path, recorded, actual = found[0] if found else ("$", "the recorded bytes", "other bytes")
        recorded, actual = quoted(recorded, actual)
        hint = self._hint(call, exchange, known, path)
        said = {mask.text for mask in self.masking.masks.all}
        masks = [mask for mask in proposed(call.kind, call.name, found) if mask not in said]
        return self._diverged(
            Divergence("changed", exchange.started, exchange.call, path, recorded, actual, call.name, hint, masks)
        )

    def _asked(self, call: Call, known: Keyed) -> Any:
        """What a call without a match asks for, in a few words where it asks a model."""
        ask = read_request(call.name, known.body) if known.body is not None else None
        if ask is None:
            return _shown(canon.parse(known.inputs))
        return _shown(f"{ask.model}: {ask.last_user}" if ask.last_user else str(ask.model))

    def _hint(self, call: Call, exchange: Exchange, known: Keyed, path: str) -> str | None:
        """What stands at `path`; and where that is the result of a tool that ran outside, the way to bring it in."""
        if known.body is None:
            return None
        hint = what_changed(call.name, self.cassette.request(exchange), known.body, path)
        manifest = self.cassette.recording.manifest
        outside = manifest.coverage.get("tools", {}).get("outside", {}) if manifest else {}
        if hint and any(hint.startswith(f"it is the result of {name} ") for name in outside):
            return f"{hint}, which ran outside the recording: wrap it with @worldline.tool"
        return hint

    def _compare(self, exchange: Exchange, known: Keyed) -> Differences:
        """The differences between what is asked and what was, the request's line first."""
        found = []
        inputs = canon.parse(known.inputs)
        if known.body is None:
            recorded = exchange.start_data.get("arguments", exchange.start_data.get("inputs"))
            recorded = self.cassette.recording.loaded(recorded)
            return self._counting(TOOL if exchange.kind == "action" else "", exchange.name, recorded, inputs)
        for path, recorded, actual in canon.differences(exchange.start_data.get("inputs", {}), inputs, "request"):
            found.append((path, recorded, actual))
        body = self.cassette.request(exchange)
        try:
            found += self._counting(REQUEST, exchange.name, canon.parse(body), canon.parse(known.body))
        except ValueError:
            if body != known.body:
                found.append(("$", body[:SHOWN].decode("latin-1"), known.body[:SHOWN].decode("latin-1")))
        return found

    def _counting(self, where: str, name: str, recorded: Any, actual: Any) -> Differences:
        """The differences between two documents that no mask leaves out, the values as they were."""
        one, other = (self.masking.without(where, name, each) for each in (recorded, actual))
        return [(path, as_it_was(a), as_it_was(b)) for path, a, b in canon.differences(one, other)]

    def _out_of_order(self, before: Exchange, exchange: Exchange) -> Divergence:
        return Divergence(
            "order",
            before.started,
            before.call,
            "$",
            f"{before.name} ({before.call}) finished before {exchange.name} ({exchange.call}) started",
            f"{exchange.name} ({exchange.call}) was asked for, and {before.call} was not",
            exchange.name,
        )


def _nested(exchanges: list[Exchange]) -> list[Exchange]:
    """Crossings inside a tool's own crossing: when the tool is served, they never come.

    Said by `parent`, or seen from the times: a decision that began and ended while a tool of its lane ran.
    """
    nested, tools = [], [e for e in exchanges if e.kind == "action" and e.finished is not None]
    for exchange in exchanges:
        inside = exchange.parent is not None or (
            exchange.kind == "decision"
            and any(t.lane == exchange.lane and t.started < exchange.started and exchange.end < t.end for t in tools)
        )
        if inside:
            nested.append(exchange)
    return nested


def quoted(recorded: Any, actual: Any) -> tuple[Any, Any]:
    """Both values short enough to quote; of two long texts the stretch in which they part."""
    if not (isinstance(recorded, str) and isinstance(actual, str)) or max(len(recorded), len(actual)) <= SHOWN:
        return _shown(recorded), _shown(actual)
    same = next((i for i, (a, b) in enumerate(zip(recorded, actual, strict=False)) if a != b), None)
    start = max(0, (min(len(recorded), len(actual)) if same is None else same) - SHOWN // 10)
    return _stretch(recorded, start), _stretch(actual, start)


def _stretch(text: str, start: int) -> str:
    end = start + SHOWN
    cut = f"… ({len(text):,} characters)" if end < len(text) or start else ""
    return ("…" if start else "") + text[start:end] + cut


def _shown(value: Any) -> Any:
    """A value short enough to quote; what is cut says so."""
    if value is canon.MISSING:
        return None
    if isinstance(value, str) and len(value) > SHOWN:
        return f"{value[:SHOWN]}… ({len(value):,} characters)"
    text = canon.canonical(value).decode("utf-8", "replace")
    if isinstance(value, dict | list) and len(text) > SHOWN:
        return f"{text[:SHOWN]}… ({len(text):,} characters)"
    return value if canon.is_plain(value) else text
