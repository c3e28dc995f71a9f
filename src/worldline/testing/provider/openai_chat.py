"""OpenAI Chat Completions on the wire: `chat.completion`, and `chat.completion.chunk` events ending in `[DONE]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from worldline.testing.provider.dialect import Turn, are_objects, text_of, usage_of
from worldline.testing.provider.script import Api, Ask, Say
from worldline.testing.provider.stable import CREATED, FINGERPRINT, Mint
from worldline.testing.provider.wire import argument_fragments, dump, event, words

API: Final[Api] = "openai.chat"
PATH: Final = "/v1/chat/completions"


def missing(body: Mapping[str, Any]) -> str | None:
    """`model` and `messages` are required."""
    if not body.get("model"):
        return "you must provide a model parameter"
    if "messages" not in body:
        return "Missing required parameter: 'messages'."
    return None if are_objects(body["messages"]) else "Invalid type for 'messages': expected an array of objects."


def turn(body: Mapping[str, Any]) -> Turn:
    """Tool results are the `tool` messages after the last message of the assistant."""
    messages: list[Any] = body["messages"]
    results: list[tuple[str, str]] = []
    for message in reversed(messages):
        if message.get("role") == "assistant":
            break
        if message.get("role") == "tool":
            results.append((str(message.get("tool_call_id")), text_of(message.get("content"))))
    asked = (text_of(message.get("content")) for message in reversed(messages) if message.get("role") == "user")
    return Turn(messages, next(asked, ""), results[::-1])


def answer(say: Say, ask: Ask, mint: Mint) -> bytes:
    """A `chat.completion`, indented as the real service does."""
    calls = _calls(say, mint)
    message: dict[str, Any] = {"role": "assistant", "content": (say.text or None) if calls else say.text}
    if calls:
        message["tool_calls"] = calls
    message |= {"refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(say)}
    head = _head("chat.completion", ask, mint)
    tail = {"service_tier": "default", "system_fingerprint": FINGERPRINT}
    return dump({**head, "choices": [choice], "usage": _usage(say, ask, calls), **tail}, indent=2).encode()


def stream(say: Say, ask: Ask, mint: Mint) -> Iterator[bytes]:
    """The role, text deltas, every call's name and then its arguments in fragments, the finish reason, `[DONE]`.

    With `stream_options.include_usage` a chunk without choices carries the usage, and all others say `usage: null`.
    """
    counted = bool((ask.body.get("stream_options") or {}).get("include_usage"))
    head = _head("chat.completion.chunk", ask, mint) | {
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
    }
    no_usage = {"usage": None} if counted else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**head, "choices": [choice], **no_usage})

    yield chunk({"role": "assistant", "content": "" if say.text or not say.calls else None, "refusal": None})
    for word in words(say.text, say.chunk):
        yield chunk({"content": word})
    calls = _calls(say, mint)
    for index, call in enumerate(calls):
        function = call["function"]
        opening = {"name": function["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": opening}]})
        for fragment in argument_fragments(function["arguments"], say.chunk):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
    yield chunk({}, _finish(say))
    if counted:
        yield event({**head, "choices": [], "usage": _usage(say, ask, calls)})
    yield event("[DONE]")


def _head(kind: str, ask: Ask, mint: Mint) -> dict[str, Any]:
    return {"id": mint.id("chatcmpl-"), "object": kind, "created": CREATED, "model": ask.model}


def _calls(say: Say, mint: Mint) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id or mint.id("call_", index),
            "type": "function",
            "function": {"name": call.name, "arguments": dump(dict(call.arguments))},
        }
        for index, call in enumerate(say.calls)
    ]


def _finish(say: Say) -> str:
    return "tool_calls" if say.calls else "stop"


def _usage(say: Say, ask: Ask, calls: list[dict[str, Any]]) -> dict[str, Any]:
    asked, said = usage_of(say, ask, (call["function"]["arguments"] for call in calls))
    return {
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
