"""Anthropic Messages: content is a list of typed blocks, and results travel back inside user messages.

Tools that the provider runs (`server_tool_use`, `mcp_tool_use`) are tool uses with the runner `provider`. Redacted
thinking has nothing to read and leaves no reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator

from worldline.model.dialects.assembly import Assembly, Kind
from worldline.model.dialects.dialect import Body, Dialect, tool_name
from worldline.model.dialects.foreign import (
    array,
    dump,
    error_text,
    flatten,
    integer,
    name,
    number,
    obj,
    objects,
    string,
)
from worldline.model.dialects.shapes import Ask, ToolResult, ToolUse, Usage

_DELTAS: dict[str, tuple[Kind, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("reasoning", "thinking"),
    "input_json_delta": ("tool", "partial_json"),
}
"""Delta type: what grows, and the field of its fragment. Signatures and citations are not part of what was said."""


def _ask(body: Body) -> Ask:
    messages = [obj(message) for message in array(body.get("messages"))]
    users = [said for message in messages if message.get("role") == "user" and (said := _said(message))]
    return Ask(
        model=name(body.get("model")),
        stream=body.get("stream") is True,
        temperature=number(body.get("temperature")),
        top_p=number(body.get("top_p")),
        max_tokens=integer(body.get("max_tokens")),
        tool_names=tuple(tool_name(tool) for tool in array(body.get("tools"))),
        tool_uses=tuple(
            use for message in messages for _, block in objects(message.get("content")) if (use := _call(block))
        ),
        tool_results=tuple(_results(messages)),
        roles=tuple(string(message.get("role")) for message in messages),
        last_user=users[-1] if users else None,
    )


def _said(message: Body) -> str:
    """What a user wrote, without the tool results that share the message."""
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if not string(obj(part).get("type")).endswith("tool_result")]
    return flatten(content)


def _results(messages: list[Body]) -> Iterator[ToolResult]:
    for place, message in enumerate(messages):
        for part, block in objects(message.get("content")):
            if string(block.get("type")).endswith("tool_result"):
                path = f"$.messages[{place}].content[{part}].content"
                yield ToolResult(string(block.get("tool_use_id")), flatten(block.get("content")), path)


def _call(block: Body) -> ToolUse | None:
    kind = string(block.get("type"))
    if not kind.endswith("tool_use"):
        return None
    return ToolUse(
        id=string(block.get("id")),
        name=string(block.get("name")),
        arguments=dump(block["input"]) if block.get("input") else "{}",
        runner="client" if kind == "tool_use" else "provider",
    )


def _answer(assembly: Assembly, message: Body) -> None:
    """Take a whole message, or the error object that came in its place."""
    if message.get("error"):
        assembly.fail(error_text(message["error"]))
    assembly.model = name(message.get("model"))
    assembly.response_id = name(message.get("id"))
    _count(assembly, message.get("usage"))
    for index, block in objects(message.get("content")):
        _begin(assembly, index, block)
        _end_block(assembly, index)
    _stop(assembly, message)
    assembly.ended = bool(assembly.finish)


def _event(assembly: Assembly, event: Body) -> None:
    kind = event.get("type")
    if kind == "message_start":
        assembly.restart()
        _answer(assembly, obj(event.get("message")))
        assembly.ended = False
    elif kind == "content_block_start":
        _begin(assembly, integer(event.get("index")), obj(event.get("content_block")))
    elif kind == "content_block_delta":
        _grow(assembly, integer(event.get("index")), obj(event.get("delta")))
    elif kind == "content_block_stop":
        _end_block(assembly, integer(event.get("index")))
    elif kind == "message_delta":
        _stop(assembly, obj(event.get("delta")))
        _count(assembly, event.get("usage"))
    elif kind == "message_stop":
        assembly.ended = True
    elif kind == "error":
        assembly.fail(error_text(event.get("error")))


def _begin(assembly: Assembly, index: int | None, block: Body) -> None:
    if use := _call(block):
        begun = assembly.block(index, "tool", call_id=use.id, name=use.name, runner=use.runner)
        begun.fallback = use.arguments
    elif block.get("type") == "thinking":
        assembly.block(index, "reasoning").add(string(block.get("thinking")))
    elif block.get("type") == "text":
        assembly.block(index, "text").add(string(block.get("text")))


def _grow(assembly: Assembly, index: int | None, delta: Body) -> None:
    kind = string(delta.get("type"))
    if kind in _DELTAS:
        grows, field = _DELTAS[kind]
        assembly.block(index, grows).add(string(delta.get(field)))


def _end_block(assembly: Assembly, index: int | None) -> None:
    block = assembly.known(index)
    if block and not block.pieces:
        # No fragment came, so the arguments are those of the block's start: `{}`, or all of them at once.
        block.add(block.fallback)


def _stop(assembly: Assembly, holder: Body) -> None:
    if reason := name(holder.get("stop_reason")):
        assembly.finish[0] = reason


def _count(assembly: Assembly, usage: object) -> None:
    """Take counts that are running totals: a later one replaces an earlier one, and a missing one changes nothing."""
    assembly.counts.update({field: count for field, count in obj(usage).items() if count is not None})
    counts = assembly.counts
    if not counts:
        return
    uncached = integer(counts.get("input_tokens"))
    read = integer(counts.get("cache_read_input_tokens"))
    written = integer(counts.get("cache_creation_input_tokens"))
    assembly.usage = Usage(
        input_tokens=None if uncached is None else uncached + (read or 0) + (written or 0),
        output_tokens=integer(counts.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        reasoning=integer(obj(counts.get("output_tokens_details")).get("thinking_tokens")),
    )


DIALECT = Dialect(route="anthropic.messages", ask=_ask, answer=_answer, event=_event)
