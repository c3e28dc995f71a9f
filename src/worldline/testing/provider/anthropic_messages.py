"""Anthropic Messages on the wire: the `message` object, and the events that open, fill and close its blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from worldline.testing.provider.dialect import Turn, are_objects, text_of, usage_of
from worldline.testing.provider.script import Api, Ask, Say
from worldline.testing.provider.stable import Mint
from worldline.testing.provider.wire import argument_fragments, dump, event, words

API: Final[Api] = "anthropic.messages"
PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"


def missing(body: Mapping[str, Any]) -> str | None:
    """`model`, `max_tokens` and `messages` are required."""
    for name in ("model", "max_tokens", "messages"):
        if not body.get(name):
            return f"{name}: Field required"
    return None if are_objects(body["messages"]) else "messages: Input should be a valid list of objects"


def turn(body: Mapping[str, Any]) -> Turn:
    """Tool results are the `tool_result` blocks after the last message of the assistant."""
    messages: list[Any] = body["messages"]
    results: list[tuple[str, str]] = []
    for message in reversed(messages):
        if message.get("role") == "assistant":
            break
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        results[:0] = [
            (str(block.get("tool_use_id")), text_of(block.get("content")))
            for block in blocks
            if block.get("type") == "tool_result"
        ]
    asked = (text_of(message.get("content")) for message in reversed(messages) if message.get("role") == "user")
    # A message with nothing but tool results has no text of the user's.
    return Turn(messages, next((text for text in asked if text), ""), results)


def answer(say: Say, ask: Ask, mint: Mint) -> bytes:
    """A finished `message`."""
    asked, said = _tokens(say, ask)
    message = _message(ask, mint, _blocks(say, mint), asked, said)
    return dump(message | {"stop_reason": _stop_reason(say)}).encode()


def stream(say: Say, ask: Ask, mint: Mint) -> Iterator[bytes]:
    """`message_start`, every block from start to stop, `message_delta` with reason and usage, `message_stop`.

    A `ping` follows the first block's start, as the real service likes to send it.
    """
    asked, said = _tokens(say, ask)
    yield _event("message_start", message=_message(ask, mint, [], asked, 1))
    for index, block in enumerate(_blocks(say, mint)):
        if block["type"] == "text":
            opening = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in words(block["text"], say.chunk)]
        else:
            opening = {**block, "input": {}}
            # The first fragment is empty, and arguments without fields have no other.
            fragments = argument_fragments(dump(block["input"]), say.chunk) if block["input"] else []
            deltas = [{"type": "input_json_delta", "partial_json": text} for text in ["", *fragments]]
        yield _event("content_block_start", index=index, content_block=opening)
        if index == 0:
            yield _event("ping")
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": _stop_reason(say), "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage=_usage(asked, said))
    yield _event("message_stop")


def count(body: Mapping[str, Any]) -> bytes:
    """The answer of the token counter: four characters a token."""
    asked = len(str(body.get("messages"))) + len(str(body.get("tools") or []))
    return dump({"input_tokens": max(1, asked // 4)}).encode()


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def _blocks(say: Say, mint: Mint) -> list[dict[str, Any]]:
    text: list[dict[str, Any]] = [{"type": "text", "text": say.text}] if say.text else []
    calls = [
        {
            "type": "tool_use",
            "id": call.id or mint.id("toolu_", index),
            "name": call.name,
            "input": dict(call.arguments),
        }
        for index, call in enumerate(say.calls)
    ]
    return text + calls


def _message(ask: Ask, mint: Mint, blocks: list[dict[str, Any]], asked: int, said: int) -> dict[str, Any]:
    return {
        "model": ask.model,
        "id": mint.id("msg_"),
        "type": "message",
        "role": "assistant",
        "content": blocks,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(asked, said) | {"service_tier": "standard"},
    }


def _stop_reason(say: Say) -> str:
    return "tool_use" if say.calls else "end_turn"


def _tokens(say: Say, ask: Ask) -> tuple[int, int]:
    return usage_of(say, ask, (dump(dict(call.arguments)) for call in say.calls))


def _usage(asked: int, said: int) -> dict[str, Any]:
    return {
        "input_tokens": asked,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": said,
    }
