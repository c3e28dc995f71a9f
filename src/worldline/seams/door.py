"""The door's server side: the verbs of `Boundary` for the other processes of a run, over HTTP on the proxy's port.

    begin  encoded  chunk  finish  fail  abandon  note  info  forks
    ask  answer                                                 of permissions
    restored                                                    the state that an agent goes on from
    heard  turn  left                                           of servers whose calls are served

Bodies are JSON. What the door refuses comes back as 409 with the error's class, message and facts, so that the caller
raises the same error as if it held the recorder itself.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Any

import msgspec

from worldline.engine.asking import Asking, Asks, Request
from worldline.engine.boundary import Boundary, Call, Live, RecordEnds, Served
from worldline.engine.content import Content
from worldline.engine.messages import Message
from worldline.engine.order import GRACE_SECONDS, ThreadTurn
from worldline.engine.threads import in_thread
from worldline.errors import UsageError, WorldlineError
from worldline.seams.way_out import WayOut
from worldline.store.recording import DEEP, JSON


class Door:
    """Answers the verbs for one boundary. `info` is what a joining process is told of its run.

    Whoever answers for a person has to know the word `answers`: the run's own URL, which the agent and its children
    have, is not enough.
    """

    def __init__(self, boundary: Boundary, info: Callable[[], dict[str, Any]], answers: str | None = None) -> None:
        self._answers = answers
        self._boundary = boundary
        self._info = info
        self._live: dict[str, Live] = {}
        self._held: dict[str, Served] = {}  # given to callers that wait for their turn themselves
        self._turns: dict[str, ThreadTurn] = {}  # those that have come and have not gone on
        self.way_out = WayOut()

    async def __call__(self, verb: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """The status and JSON answer of one verb."""
        try:
            ask = msgspec.json.decode(body or b"{}", type=dict[str, Any])
            if verb == "begin":
                return 200, await self._begin(ask)
            if verb == "ask":
                return 200, await self._ask(ask)
            if verb == "turn":
                await self._turn(ask["call"])
                return 200, {}
            return 200, await in_thread(self._answer, verb, ask)
        except WorldlineError as error:
            return 409, {"error": pack_error(error)}
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            return 400, {"error": pack_error(UsageError(f"not a request of the door: {error!r}"))}

    def _answer(self, verb: str, ask: dict[str, Any]) -> dict[str, Any]:
        match verb:
            case "info":
                return self._info()
            case "note":
                self._boundary.note(ask["kind"], ask["src"], ask["lane"], ask["keys"], unpack_fields(ask["data"]))
            case "encoded":
                self._live[ask["call"]].encoded(ask["encoding"])
            case "chunk":
                self._live[ask["call"]].chunk(base64.b64decode(ask["data"]), ask["ends_chunk"])
            case "finish":
                self._live.pop(ask["call"]).finish(unpack_fields(ask["data"]), unpack_content(ask.get("result")))
            case "fail":
                self._live.pop(ask["call"]).fail(ask["error"])
            case "abandon":
                self._live.pop(ask["call"]).abandon(ask["why"])
            case "forks":
                return {"forks": self._boundary.forks()}
            case "restored":
                found = self._boundary.restored()
                state = None if found is None else pack_content(Content.of(found.state))
                return {"schema": found and found.schema, "state": state}
            case "left":
                self._gone(ask["call"])
            case "heard":
                return {"messages": [_pack_message(each) for each in self._boundary.heard(ask["server"])]}
            case "answer":
                self._answer_request(ask)
            case _:
                raise UsageError(f"the door has no verb '{verb}'", verb=verb)
        return {}

    async def _ask(self, ask: dict[str, Any]) -> dict[str, Any]:
        content = unpack_content(ask.pop("facts"))
        if not isinstance(self._boundary, Asking) or content is None:
            raise UsageError("this run records nothing, so nobody can be asked in it")
        decision = await self._boundary.asks.ask_async(Request(**ask, facts=content.value()))
        return msgspec.structs.asdict(decision)

    def _answer_request(self, ask: dict[str, Any]) -> None:
        asks = self._boundary.asks if isinstance(self._boundary, Asking) else None
        word = str(ask["word"]).encode("utf-8", "surrogatepass")
        if not isinstance(asks, Asks) or self._answers is None or not compare_digest(word, self._answers.encode()):
            raise UsageError("whoever answers a request for permission must know the recorder's own word for it")
        reason = ask.get("reason")
        asks.answer(ask["seq"], ask["decision"], by=str(ask["by"]), via=ask.get("via"), reason=reason)

    async def _turn(self, call: str) -> None:
        """Return when the turn of a call has come. The next one's comes when its caller has gone on, or takes long."""
        answer, turn = self._held.pop(call), ThreadTurn()
        self._turns[call] = turn
        come = asyncio.wrap_future(turn)
        answer.turn(turn)
        await come
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._gone, call)

    def _gone(self, call: str) -> None:
        if (turn := self._turns.pop(call, None)) is not None:
            turn.gone()

    async def _begin(self, ask: dict[str, Any]) -> dict[str, Any]:
        waits = ask.pop("waits", True)
        answer = await in_thread(self._boundary.begin, unpack_call(ask))
        if isinstance(answer, Live):
            self._live[answer.call] = answer
            changed = answer.body and base64.b64encode(answer.body).decode("ascii")
            return {"live": answer.call, "body": changed, **({} if answer.seed is None else {"seed": answer.seed})}
        if not waits:
            self._held[answer.call] = answer
            return {"served": await in_thread(pack_served, answer), "never_ended": answer.never_ended}
        if answer.never_ended:
            await asyncio.sleep(answer.patience)  # in the record it was given up meanwhile
            raise RecordEnds(answer.never_ended)
        await self.way_out.wait(answer)
        return {"served": await in_thread(pack_served, answer)}


def pack_served(answer: Served) -> dict[str, Any]:
    """A recorded answer as the door's JSON: a response with its pieces, or a function's result or failure."""
    is_response = "complete" in answer.data
    pieces = answer.pieces() if is_response else []
    content = None if is_response or "error" in answer.data else answer.content()
    return {
        "call": answer.call,
        "data": dict(answer.data),
        "result": pack_content(content),
        "patience": answer.patience,
        "pieces": [[base64.b64encode(data).decode("ascii"), ends] for data, ends in pieces],
    }


def pack_call(call: Call) -> dict[str, Any]:
    """A call as the door's JSON."""
    packed: dict[str, Any] = msgspec.to_builtins(call, builtin_types=(bytes,))
    packed["inputs"] = pack_content(call.inputs)
    for name in ("body", "key_body"):
        value = packed[name]
        packed[name] = None if value is None else base64.b64encode(value).decode("ascii")
    return packed


def unpack_call(packed: Mapping[str, Any]) -> Call:
    """Undo `pack_call`."""
    fields = dict(packed)
    fields["inputs"] = unpack_content(fields["inputs"])
    for name in ("body", "key_body"):
        if fields.get(name) is not None:
            fields[name] = base64.b64decode(fields[name])
    return Call(**fields)


def pack_content(content: Content | None) -> dict[str, str] | None:
    """A content as the door's JSON carries it: JSON as text, files as base64."""
    if content is None:
        return None
    if content.media_type in (JSON, DEEP):
        return {"text": content.data.decode("utf-8"), "type": content.media_type}
    return {"b64": base64.b64encode(content.data).decode("ascii"), "type": content.media_type}


def unpack_content(packed: Mapping[str, str] | None) -> Content | None:
    """Undo `pack_content`."""
    if packed is None:
        return None
    data = base64.b64decode(packed["b64"]) if "b64" in packed else packed["text"].encode("utf-8")
    return Content(data, packed.get("type", JSON))


def _pack_message(message: Message) -> dict[str, Any]:
    return {**msgspec.structs.asdict(message), "content": pack_content(message.content)}


def pack_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """A row's data, its contents marked as such."""
    return {key: {"$content": pack_content(v)} if isinstance(v, Content) else v for key, v in data.items()}


def unpack_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `pack_fields`."""
    return {
        key: unpack_content(v["$content"]) if isinstance(v, dict) and "$content" in v else v for key, v in data.items()
    }


def pack_error(error: WorldlineError) -> dict[str, Any]:
    """An error of ours as data."""
    facts = {key: value for key, value in error.facts.items() if isinstance(value, str | int | list | dict | None)}
    return {"class": type(error).__name__, "message": str(error), "facts": msgspec.to_builtins(facts, enc_hook=str)}
