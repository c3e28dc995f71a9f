"""OpenAI Responses on the wire: the `response` object, and the numbered events that build it item by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from worldline.testing.provider.dialect import Turn, are_objects, text_of, usage_of
from worldline.testing.provider.script import Api, Ask, Say
from worldline.testing.provider.stable import CREATED, Mint
from worldline.testing.provider.wire import argument_fragments, dump, event, words

API: Final[Api] = "openai.responses"
PATH: Final = "/v1/responses"

_OF_THE_MODEL = ("function_call", "reasoning")
"""Input items that repeat earlier output; results after the last of them are new."""


def missing(body: Mapping[str, Any]) -> str | None:
    """`model` and `input` are required."""
    if not body.get("model"):
        return "Missing required parameter: 'model'."
    if "input" not in body:
        return "Missing required parameter: 'input'."
    if isinstance(body["input"], str) or are_objects(body["input"]):
        return None
    return "Invalid type for 'input': expected a string or an array of objects."


def turn(body: Mapping[str, Any]) -> Turn:
    """Tool results are the `function_call_output` items after the last item that the model wrote."""
    given = body["input"]
    if isinstance(given, str):
        return Turn([{"role": "user", "content": given}], given, [])
    results: list[tuple[str, str]] = []
    for item in reversed(given):
        if item.get("role") == "assistant" or item.get("type") in _OF_THE_MODEL:
            break
        if item.get("type") == "function_call_output":
            results.append((str(item.get("call_id")), text_of(item.get("output"))))
    asked = (text_of(item.get("content")) for item in reversed(given) if item.get("role") == "user")
    return Turn(given, next(asked, ""), results[::-1])


def answer(say: Say, ask: Ask, mint: Mint) -> bytes:
    """A completed `response`, indented as the real service does."""
    items = _items(say, mint)
    return dump(_response(ask, mint, "completed", items, _usage(say, ask, items)), indent=2).encode()


def stream(say: Say, ask: Ask, mint: Mint) -> Iterator[bytes]:
    """`created`, `in_progress`, every item from `added` to `done`, `completed` with the whole response."""
    sequence = 0

    def numbered(kind: str, **fields: Any) -> bytes:
        nonlocal sequence
        data = {"type": kind, "sequence_number": sequence, **fields}
        sequence += 1
        return event(data, kind)

    yield numbered("response.created", response=_response(ask, mint, "in_progress", [], None))
    yield numbered("response.in_progress", response=_response(ask, mint, "in_progress", [], None))
    items = _items(say, mint)
    for index, item in enumerate(items):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            part = item["content"][0]
            opening = {**item, "status": "in_progress", "content": []}
            yield numbered("response.output_item.added", output_index=index, item=opening)
            place_in = {**place, "content_index": 0}
            yield numbered("response.content_part.added", **place_in, part={**part, "text": ""})
            for word in words(part["text"], say.chunk):
                yield numbered("response.output_text.delta", **place_in, delta=word, logprobs=[])
            yield numbered("response.output_text.done", **place_in, text=part["text"], logprobs=[])
            yield numbered("response.content_part.done", **place_in, part=part)
        else:
            opening = {**item, "status": "in_progress", "arguments": ""}
            yield numbered("response.output_item.added", output_index=index, item=opening)
            for fragment in argument_fragments(item["arguments"], say.chunk):
                yield numbered("response.function_call_arguments.delta", **place, delta=fragment)
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield numbered("response.function_call_arguments.done", **place, **done)
        yield numbered("response.output_item.done", output_index=index, item=item)
    whole = _response(ask, mint, "completed", items, _usage(say, ask, items))
    yield numbered("response.completed", response=whole)


def _items(say: Say, mint: Mint) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if say.text or not say.calls:
        part = {"type": "output_text", "text": say.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": mint.id("msg_"),
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    for index, call in enumerate(say.calls):
        items.append(
            {
                "id": mint.id("fc_", index),
                "type": "function_call",
                "status": "completed",
                "call_id": call.id or mint.id("call_", index),
                "name": call.name,
                "arguments": dump(dict(call.arguments)),
            }
        )
    return items


def _response(
    ask: Ask, mint: Mint, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None
) -> dict[str, Any]:
    body = ask.body
    return {
        "id": mint.id("resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": ask.model,
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": body.get("reasoning", {"effort": None, "summary": None}),
        "service_tier": "default",
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text", {"format": {"type": "text"}}),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": ask.tools,
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation", "disabled"),
        "usage": usage,
        "user": body.get("user"),
        "metadata": body.get("metadata", {}),
    }


def _usage(say: Say, ask: Ask, items: list[dict[str, Any]]) -> dict[str, Any]:
    asked, said = usage_of(say, ask, (item["arguments"] for item in items if item["type"] == "function_call"))
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + said,
    }
