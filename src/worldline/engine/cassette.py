"""The cassette: the exchanges of a recording, ready to be served. An exchange is one crossing, started and finished.

It is a fold over the log and holds what serving needs: keys, order, answers. Request bodies are rebuilt only when a
divergence has to be explained.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import msgspec

from worldline.engine.boundary import Served
from worldline.engine.content import Content
from worldline.engine.order import GRACE_SECONDS
from worldline.engine.stream import DECODERS
from worldline.errors import Damaged, Ineligible
from worldline.model.chain import ContextReader, context_hash
from worldline.model.events import Event
from worldline.store.recording import Recording

CONTENTS = frozenset({"arguments", "result", "value", "facts", "body", "pieces"})  # read when they are asked for


class Exchange(msgspec.Struct):
    """One crossing of the record. `finished` is the seq of its finished row, None where its end is unknown."""

    call: str
    kind: str
    name: str
    key: str
    lane: str
    started: int
    parent: str | None
    start_data: dict[str, Any]
    start_t: int
    finished: int | None = None
    end_t: int | None = None
    data: dict[str, Any] = {}
    chunks: list[dict[str, Any]] = []
    instant: bool = False  # a sample: one row is both start and finish
    given_up: str | None = None  # why nobody waited for its end
    given_up_t: int | None = None
    effect: str | None = None

    @property
    def end(self) -> float:
        """Its place in the finishing order; an unknown one never finished."""
        return float("inf") if self.finished is None else self.finished


class Cassette:
    """The exchanges of a recording, in starting order."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.exchanges: list[Exchange] = []
        self.by_call: dict[str, Exchange] = {}
        self.notes: list[Event] = []  # markers and permissions, in order
        self.last_seq = 0
        self._bodies: dict[str, bytes] | None = None
        for event in recording.events():
            self._fold(event)

    def _fold(self, event: Event) -> None:
        self.last_seq = event.seq
        call = event.call
        if call is None:
            if event.kind in ("marker", "permission"):
                self.notes.append(msgspec.structs.replace(event, data=self._opened(event)))
            return
        if "key" in event.keys:
            instant = event.name == "observation/sample"
            exchange = Exchange(
                call=call,
                kind=event.kind,
                name=str(event.data.get("name")),
                key=event.keys["key"],
                lane=event.lane,
                started=event.seq,
                parent=event.keys.get("parent_id"),
                effect=event.keys.get("effect"),
                start_data=self._opened(event),
                start_t=event.t,
                chunks=[],
                instant=instant,
            )
            self.exchanges.append(exchange)
            self.by_call[call] = exchange
            if not instant:
                return
        if call not in self.by_call:  # its started row is damaged
            return
        exchange = self.by_call[call]
        if event.name == "decision/chunk":
            exchange.chunks.append(event.data)
        elif event.name == "meta/unknown":
            exchange.given_up, exchange.given_up_t = str(event.data.get("why")), event.t
        else:
            exchange.finished, exchange.end_t, exchange.data = event.seq, event.t, self._opened(event)

    def _opened(self, event: Event) -> dict[str, Any]:
        """A row's data, what its row had no room for read from its blob; contents stay where they are."""
        return {k: v if k in CONTENTS else self.recording.loaded(v) for k, v in event.data.items()}

    def body(self, exchange: Exchange) -> bytes:
        """The recorded body of a response, whole."""
        parts = [self.recording.content(row["body"]) for row in (*exchange.chunks, exchange.data) if "body" in row]
        return b"".join(parts)

    def readable(self, exchange: Exchange) -> bytes:
        """The recorded body of a response with its content encoding undone, for those who read it as text."""
        headers = exchange.data.get("headers", ())
        encoding = next((value for name, value in headers if name.lower() == "content-encoding"), "identity")
        body, decode = self.body(exchange), DECODERS.get(encoding.strip().lower())
        if decode is None or "decoded" in exchange.data:
            return body
        try:
            return decode(body)
        except zlib.error:
            return b""  # the recorder could not look into it either; the bytes as they came are `body`

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


class Answer(Served):
    """A recorded exchange on its way out. `turn` is given by the matcher, which knows the order."""

    def __init__(
        self, cassette: Cassette, exchange: Exchange, turn: Callable[[Exchange, Future[None] | None], Future[None]]
    ) -> None:
        self.call = exchange.call
        self.exchange = exchange
        self.data: Mapping[str, Any] = exchange.data
        if exchange.finished is None:
            self.never_ended = f"{exchange.name} ({exchange.call}) has no end in the record: {exchange.given_up}"
        # A timeout of the agent runs from the start of its call: shorter, and the answer would come before it does.
        until = exchange.end_t or exchange.given_up_t or exchange.start_t
        self.patience = GRACE_SECONDS + max(0, until - exchange.start_t) / 1e9
        self._cassette = cassette
        self._turn = turn

    def content(self) -> Content | None:
        """The recorded result. Raises `Ineligible` where the record could not carry it."""
        if "error" in self.data:
            return None
        if "unrecordable" in self.data:
            lost = self.data["unrecordable"]
            what = f"{lost['type']} at {lost['path']}"
            raise Ineligible(
                f"the result of {self.exchange.name} ({self.call}) is not in the record: {what}",
                reasons=[f"{self.exchange.name} returned {what}: return plain data"],
            )
        return Content(*self._cassette.recording.encoded(self.data.get("result")))

    def pieces(self) -> list[tuple[bytes, bool]]:
        """The recorded body of a response."""
        return self._cassette.pieces(self.exchange)

    def turn(self, into: Future[None] | None = None) -> Future[None]:
        """Done when this answer may leave."""
        return self._turn(self.exchange, into)


def rebuild(recording: Recording) -> Iterator[tuple[str, bytes, bool]]:
    """Every request of a recording: (call, body, whether its `context_hash` is met). This is replay level 0.

    A request that builds on a damaged row or content has no body, and its hash is not met.
    """
    reader = ContextReader(recording.content, recording.loaded)
    for event in recording.events():
        if event.name != "decision/request" or "body" not in event.data:
            continue
        form = recording.loaded(event.data["body"])
        if "context_hash" in form:
            try:
                body = reader.rebuild(str(event.call), form)
            except (ValueError, Damaged):
                body = b""
            yield str(event.call), body, context_hash(body) == form["context_hash"]
