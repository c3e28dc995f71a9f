"""From a request to an answer: which API it is for, whether the provider accepts it, and what the script replies."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from worldline.errors import UsageError
from worldline.testing.provider import (
    anthropic_messages,
    anthropic_platform,
    gemini_generate,
    gemini_platform,
    openai_chat,
    openai_platform,
    openai_responses,
)
from worldline.testing.provider.dialect import Dialect, Platform
from worldline.testing.provider.script import Ask, Delivery, Fail, Framing, Headers, Raw, Reply, Say, Script
from worldline.testing.provider.stable import Mint
from worldline.testing.provider.wire import cut, encode

_APIS: dict[str, tuple[Dialect, Platform]] = {
    openai_chat.PATH: (openai_chat, openai_platform),
    openai_responses.PATH: (openai_responses, openai_platform),
    anthropic_messages.PATH: (anthropic_messages, anthropic_platform),
    gemini_generate.PATH: (gemini_generate, gemini_platform),
}
_MODELS = ("/v1/models", "/v1beta/models")
_JSON = "application/json"
_EVENT_STREAM = "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Request:
    """A request as it came: `path` with its query, `headers` in order and case, `body` as bytes.

    `connection` is the 0-based number of the TCP connection it came on.
    """

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int

    @cached_property
    def json(self) -> Any:
        """The body parsed as JSON, or None where it is not JSON or nested too deeply."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def header(self) -> dict[str, str]:
        """Headers by lower-case name; the last of a name wins."""
        return {name.lower(): value for name, value in self.headers}


@dataclass(frozen=True)
class Answer:
    """What to send and how. `delivery` holds the script's wishes; framing is decided here."""

    status: int
    headers: list[tuple[str, str]]
    pieces: list[bytes]
    framing: Framing
    delivery: Delivery


class Routes:
    """Answers requests and remembers them.

    `requests` is everything seen, in order of arrival; `failures` what scripts raised. `on_request` is called with
    each request before it is answered.
    """

    def __init__(self, script: Script, on_request: Callable[[Request], None] | None = None) -> None:
        self.requests: list[Request] = []
        self.failures: list[Exception] = []
        self._script = script
        self._on_request = on_request
        self._attempts: Counter[str] = Counter()

    async def respond(self, request: Request) -> Answer:
        """The answer to `request`; whatever goes wrong in the script becomes a 500 that SDKs do not retry."""
        n = len(self.requests)
        self.requests.append(request)
        if self._on_request is not None:
            self._on_request(request)
        path = request.path.partition("?")[0]
        platform = _platform_of(path, request)
        if request.header.get("upgrade", "").lower() == "websocket":
            upgrade = {"Upgrade": "HTTP/1.1", "Connection": "close"}
            return _failed(Fail(426, message="WebSocket is not offered here; use HTTP.", headers=upgrade), platform, n)
        if _api_of(path) in _APIS:
            return await self._speak(request, path, n)
        if any(path == listed or path.startswith(f"{listed}/") for listed in _MODELS):
            return _list_models(request, path, platform, n)
        if path == anthropic_messages.COUNT_PATH and request.method == "POST":
            return _count_tokens(request, platform, n)
        return _failed(Fail(404, message=f"Invalid URL ({request.method} {path})"), platform, n)

    async def _speak(self, request: Request, path: str, n: int) -> Answer:
        dialect, platform = _APIS[_api_of(path)]
        refusal = platform.refusal(request.header) or _refusal_of_call(request, dialect)
        if refusal is not None:
            return _failed(refusal, platform, n)
        attempt, mint = self._attempt_at(path, request.body)
        try:
            ask = _ask(request, dialect, n, attempt)
            reply = self._script(ask)
            if inspect.isawaitable(reply):
                reply = await reply
            return _shape(reply, ask, dialect, platform, mint)
        except Exception as error:  # noqa: BLE001  a script is anyone's code; `failures` keeps what it raised
            self.failures.append(error)
            fault = f"the provider's script failed: {type(error).__name__}: {error}"
            return _failed(Fail(500, "script_error", fault, {"x-should-retry": "false"}), platform, n)

    def _attempt_at(self, path: str, body: bytes) -> tuple[int, Mint]:
        key = Mint.for_request(path, body, 0).seed
        attempt = self._attempts[key]
        self._attempts[key] += 1
        return attempt, Mint.for_request(path, body, attempt)


def spoken() -> list[str]:
    """The APIs whose answers can be written for a request's body alone.

    Of Gemini it is the URL that says which model is asked and whether the answer streams.
    """
    return [dialect.API for path, (dialect, _) in _APIS.items() if path != gemini_generate.PATH]


def answer_to(api: str, body: bytes, say: Say) -> Answer | None:
    """What a provider of this API sends that says `say` to a request; None for one that it does not know."""
    path = next((path for path, (dialect, _) in _APIS.items() if api == dialect.API and api in spoken()), None)
    request = Request("POST", path or "", [], body, 0)
    if path is None or not isinstance(request.json, dict):
        return None
    dialect, platform = _APIS[path]
    if dialect.missing(request.json) is not None:
        return None
    return _shape(say, _ask(request, dialect, 0, 0), dialect, platform, Mint.for_request(path, body, 0))


def _api_of(path: str) -> str:
    """The path of the API that a path belongs to; itself where it names no model."""
    return path if gemini_generate.called(path) is None else gemini_generate.PATH


def _platform_of(path: str, request: Request) -> Platform:
    if (api := _api_of(path)) in _APIS:
        return _APIS[api][1]
    if path.startswith("/v1beta/"):
        return gemini_platform
    anthropic = path == anthropic_messages.COUNT_PATH or "anthropic-version" in request.header
    return anthropic_platform if anthropic else openai_platform


def _refusal_of_call(request: Request, dialect: Dialect) -> Fail | None:
    if request.method != "POST":
        return Fail(405, message=f"Not allowed to {request.method} on {dialect.PATH}; use POST.")
    if not isinstance(request.json, dict):
        return Fail(400, message="We could not parse the JSON body of your request; it must be a JSON object.")
    missing = dialect.missing(request.json)
    return None if missing is None else Fail(400, message=missing)


def _ask(request: Request, dialect: Dialect, n: int, attempt: int) -> Ask:
    body: dict[str, Any] = request.json
    turn = dialect.turn(body)
    named = gemini_generate.called(request.path.partition("?")[0])
    model, stream = named or (str(body.get("model")), bool(body.get("stream")))
    return Ask(
        api=dialect.API,
        model=model,
        messages=turn.messages,
        tools=body.get("tools") or [],
        tool_results=turn.tool_results,
        last_user=turn.last_user,
        stream=stream,
        n=n,
        attempt=attempt,
        headers=request.header,
        body=body,
    )


def _shape(reply: Reply, ask: Ask, dialect: Dialect, platform: Platform, mint: Mint) -> Answer:
    match reply:
        case Raw():
            pieces = [bytes(piece) for piece in reply.pieces]
            return Answer(reply.status, _header_list(reply.headers), pieces, reply.framing or "chunked", reply)
        case Fail():
            return _failed(reply, platform, ask.n)
        case Say():
            events = list(dialect.stream(reply, ask, mint)) if ask.stream else [dialect.answer(reply, ask, mint)]
            headers = [("Content-Type", _EVENT_STREAM if ask.stream else _JSON), *platform.headers(ask.n)]
            if reply.encoding is not None:
                headers.append(("Content-Encoding", reply.encoding))
            pieces = cut(encode(events, reply.encoding), reply.pieces)
            return Answer(200, headers, pieces, reply.framing or ("chunked" if ask.stream else "length"), reply)
    raise UsageError(f"a script must return Say, Fail or Raw, not {type(reply).__name__}", api=ask.api)


def _failed(fail: Fail, platform: Platform, n: int) -> Answer:
    headers = [("Content-Type", _JSON), *platform.headers(n), *_header_list(fail.headers)]
    return Answer(fail.status, headers, [platform.error(fail, n)], fail.framing or "length", fail)


def _json(body: bytes, platform: Platform, n: int) -> Answer:
    return Answer(200, [("Content-Type", _JSON), *platform.headers(n)], [body], "length", Delivery())


def _list_models(request: Request, path: str, platform: Platform, n: int) -> Answer:
    refusal = platform.refusal(request.header)
    if refusal is None and request.method not in ("GET", "HEAD"):
        refusal = Fail(405, message=f"Not allowed to {request.method} on {path}; use GET.")
    if refusal is not None:
        return _failed(refusal, platform, n)
    name = path.partition("/models")[2].removeprefix("/") or None
    body = platform.models(name)
    return _json(body, platform, n) if body is not None else _failed(Fail(404), platform, n)


def _count_tokens(request: Request, platform: Platform, n: int) -> Answer:
    refusal = platform.refusal(request.header)
    if refusal is None and not isinstance(request.json, dict):
        refusal = Fail(400, message="The body must be a JSON object.")
    return (
        _failed(refusal, platform, n)
        if refusal is not None
        else _json(anthropic_messages.count(request.json), platform, n)
    )


def _header_list(headers: Headers) -> list[tuple[str, str]]:
    # Mapping is tested by its method, so that any mapping will do.
    return list(headers.items()) if hasattr(headers, "items") else list(headers)
