"""The cassette: the exchanges of a recording, ready to be served. An exchange is one crossing, started and finished.

It is a fold over the log and holds what serving needs: keys, order, answers. Request bodies are rebuilt only when a
divergence has to be explained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

import msgspec

from worldline.engine.content import Content
from worldline.engine.crossing import Served
from worldline.engine.excerpts import decoded
from worldline.engine.exchanges import CONTENTS, Exchange, fold
from worldline.engine.messages import is_message
from worldline.engine.order import GRACE_SECONDS
from worldline.errors import Damaged, Ineligible
from worldline.model import fields
from worldline.model.chain import ContextReader, context_hash
from worldline.model.events import Event
from worldline.store.recording import Recording


class Cassette:
    """The exchanges of a recording, in starting order.

    Its rows are read at once; where `filled` is given as False, whoever reads them in a pass of its own gives each
    to `fold`.
    """

    def __init__(self, recording: Recording, *, filled: bool = True) -> None:
        self.recording = recording
        self.exchanges: list[Exchange] = []
        self.by_call: dict[str, Exchange] = {}
        self.notes: list[Event] = []  # markers and permissions, in order
        self.messages: list[Event] = []  # what servers told their clients beside answers
        self.last_seq = 0
        self._bodies: dict[str, bytes] | None = None
        for event in recording.events() if filled else ():
            self.fold(event)

    def fold(self, event: Event) -> None:
        """Take the next row. Raises `Damaged` where what it had no room for cannot be read."""
        self.last_seq = event.seq
        if event.call is None:
            if event.kind in ("marker", "permission"):
                self.notes.append(msgspec.structs.replace(event, data=self._opened(event)))
            elif is_message(event):
                self.messages.append(event)
            return
        exchange = fold(event, self.by_call, self._opened)
        if exchange is not None and exchange.started == event.seq:
            self.exchanges.append(exchange)

    def _opened(self, event: Event) -> dict[str, Any]:
        """A row's data, what its row had no room for read from its blob; contents stay where they are."""
        for value in event.data.values():
            if type(value) is dict and "$blob" in value:
                break
        else:
            return event.data  # its fields were judged when its row was read
        opened = {k: v if k in CONTENTS else self._loaded(k, v) for k, v in event.data.items()}
        if wrong := fields.unfit(event.name, opened):
            raise Damaged(f"row {event.seq}: {wrong} is of another kind than it can be", seq=event.seq)
        return opened

    def _loaded(self, name: str, value: Any) -> Any:
        try:
            return self.recording.loaded(value)
        except Damaged as lost:
            if name != "error":
                raise
            return {"type": "Unavailable", "message": str(lost)}  # that it failed is in the row, its words are not here

    def body(self, exchange: Exchange) -> bytes:
        """The recorded body of a response, whole."""
        parts = [self.recording.content(row["body"]) for row in (*exchange.chunks, exchange.data) if "body" in row]
        return b"".join(parts)

    def readable(self, exchange: Exchange) -> bytes:
        """The recorded body of a response with its content encoding undone, for those who read it as text."""
        return decoded(self.body(exchange), exchange.data)

    def pieces(self, exchange: Exchange) -> list[tuple[bytes, bool]]:
        """The recorded body of a response as its transfer chunks; a last piece without its border says False."""
        body, at, pieces = self.body(exchange), 0, []
        for row in (*exchange.chunks, exchange.data):
            for size, _ in self.recording.loaded(row.get("pieces", [])):
                pieces.append((body[at : at + size], True))
                at += size
        if at < len(body):
            pieces.append((body[at:], False))
        return pieces

    def inputs(self, exchange: Exchange) -> Any:
        """What the key was made of, as data: a tool's arguments, or a request's method, path and query."""
        data = exchange.start_data
        return self.recording.value(data["arguments"]) if "arguments" in data else data.get("inputs", {})

    def request(self, exchange: Exchange) -> bytes:
        """The body of a request, rebuilt from its context."""
        if self._bodies is None:
            self._bodies = {call: body for call, body, _ in rebuild(self.recording)}
        return self._bodies.get(exchange.call, b"")


class Order(Protocol):
    """Who knows in which order answers leave."""

    def turn(self, exchange: Exchange, into: Future[None] | None = None) -> Future[None]:
        """Done when the answer may leave."""

    def leaves(self, exchange: Exchange) -> bool:
        """Whether it has left at once."""


class Answer(Served):
    """A recorded exchange on its way out, in its `order`."""

    def __init__(self, cassette: Cassette, exchange: Exchange, order: Order) -> None:
        self.call = exchange.call
        self.exchange = exchange
        self.data: Mapping[str, Any] = exchange.data
        if exchange.finished is None:
            self.never_ended = f"{exchange.name} ({exchange.call}) has no end in the record: {exchange.given_up}"
        # A timeout of the agent runs from the start of its call: shorter, and the answer would come before it does.
        until = exchange.end_t or exchange.given_up_t or exchange.start_t
        self.patience = GRACE_SECONDS + max(0, until - exchange.start_t) / 1e9
        self._cassette = cassette
        self._order = order

    def content(self) -> Content | None:
        """The recorded result. Raises `Ineligible` where the record could not carry it."""
        if "error" in self.data:
            return None
        self._refuse_unrecordable()
        return Content(*self._cassette.recording.encoded(self.data.get("result")))

    def value(self) -> Any:
        """The value of the recorded result, without the way through its encoded form."""
        self._refuse_unrecordable()
        return self._cassette.recording.value(self.data.get("result"))

    def _refuse_unrecordable(self) -> None:
        if "unrecordable" in self.data:
            lost = self.data["unrecordable"]
            what = f"{lost['type']} at {lost['path']}"
            raise Ineligible(
                f"the result of {self.exchange.name} ({self.call}) is not in the record: {what}",
                reasons=[f"{self.exchange.name} returned {what}: return plain data"],
            )

    def pieces(self) -> list[tuple[bytes, bool]]:
        """The recorded body of a response."""
        return self._cassette.pieces(self.exchange)

    def turn(self, into: Future[None] | None = None) -> Future[None]:
        """Done when this answer may leave."""
        return self._order.turn(self.exchange, into)

    def leaves(self) -> bool:
        """Whether it may leave at once, and has."""
        return self._order.leaves(self.exchange)


def rebuild(recording: Recording) -> Iterator[tuple[str, bytes, bool]]:
    """Every request of a recording: (call, body, whether its `context_hash` is met). This is replay level 0.

    A request that builds on a damaged row or content has no body, and its hash is not met.
    """
    reader = ContextReader(recording.content, recording.loaded, recording.tier_key)
    for event in recording.events():
        if event.name != "decision/request" or "body" not in event.data:
            continue
        form = event.data["body"]
        if "$withheld" not in form:
            try:
                form = recording.loaded(form)
                if fields.unfit(event.name, {"body": form}) or "$withheld" in form:
                    raise ValueError("no form of a request")
                body, key = reader.rebuild(str(event.call), form), reader.key_of(form)
            except (ValueError, Damaged):
                yield str(event.call), b"", False
                continue
            yield str(event.call), body, context_hash(body, key) == form["context_hash"]
