"""Gemini's generateContent on the wire: the URL names the model and says whether the answer streams.

A stream is one of server-sent events (`alt=sse`, as the SDKs ask for it), whatever the query says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from worldline.testing.provider.dialect import Turn, are_objects, usage_of
from worldline.testing.provider.script import Api, Ask, Say
from worldline.testing.provider.stable import Mint
from worldline.testing.provider.wire import dump, event, words

API: Final[Api] = "gemini.generate"
PATH: Final = "/v1beta/models/{model}:generateContent"

_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent)")


def called(path: str) -> tuple[str, bool] | None:
    """The model that a path names and whether the answer streams; None of another path."""
    match = _PATH.fullmatch(path)
    return None if match is None else (match[1], match[2].startswith("stream"))


def missing(body: Mapping[str, Any]) -> str | None:
    """`contents` is required."""
    if not are_objects(body.get("contents")) or not body["contents"]:
        return "* GenerateContentRequest.contents: contents is not specified"
    return None


def turn(body: Mapping[str, Any]) -> Turn:
    """Tool results are the function responses behind the last content of the model; ids are the names where none is."""
    contents: list[Any] = body["contents"]
    results: list[tuple[str, str]] = []
    for content in contents:
        if content.get("role") == "model":
            results = []
        for part in _parts(content):
            if isinstance(response := part.get("functionResponse"), dict):
                results.append((str(response.get("id") or response.get("name")), _text(response.get("response"))))
    asked = (text for content in reversed(contents) if content.get("role") == "user" and (text := _said(content)))
    return Turn(contents, next(asked, ""), results)


def answer(say: Say, ask: Ask, mint: Mint) -> bytes:
    """A whole answer, indented as the real service does."""
    parts = [*([{"text": say.text}] if say.text or not say.calls else []), *_calls(say)]
    return dump({**_event(parts, "STOP"), **_tail(say, ask, mint)}, indent=2).encode()


def stream(say: Say, ask: Ask, mint: Mint) -> Iterator[bytes]:
    """A small answer for every word and every call, the last one with the reason; there is no mark of the end."""
    parts = [{"text": word} for word in words(say.text, say.chunk)] + _calls(say)
    for number, part in enumerate(parts or [{"text": ""}], start=1):
        last = number >= len(parts)
        yield event({**_event([part], "STOP" if last else None), **_tail(say, ask, mint)})


def _event(parts: list[dict[str, Any]], finish: str | None) -> dict[str, Any]:
    ended = {} if finish is None else {"finishReason": finish}
    return {"candidates": [{"content": {"parts": parts, "role": "model"}, **ended, "index": 0}]}


def _calls(say: Say) -> list[dict[str, Any]]:
    """The calls, as older models make them: without an id, unless the script names one."""
    return [
        {"functionCall": {**({"id": call.id} if call.id else {}), "name": call.name, "args": dict(call.arguments)}}
        for call in say.calls
    ]


def _tail(say: Say, ask: Ask, mint: Mint) -> dict[str, Any]:
    asked, said = usage_of(say, ask, (dump(dict(call.arguments)) for call in say.calls))
    usage = {"promptTokenCount": asked, "candidatesTokenCount": said, "totalTokenCount": asked + said}
    return {"usageMetadata": usage, "modelVersion": ask.model, "responseId": mint.id("")}


def _parts(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = content.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _said(content: Mapping[str, Any]) -> str:
    return "".join(part["text"] for part in _parts(content) if isinstance(part.get("text"), str))


def _text(response: Any) -> str:
    if isinstance(response, dict) and len(response) == 1 and isinstance(only := next(iter(response.values())), str):
        return only
    return dump(response)
