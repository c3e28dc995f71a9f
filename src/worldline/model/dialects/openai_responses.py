"""OpenAI Responses: an answer is a list of typed items, and a stream sends each of them in fragments and then whole.

Whole items win over fragments, and the items of the final response over both, as in OpenAI's own clients. Items
that the provider runs itself (web search, code interpreter, MCP) are tool uses with the runner `provider`.
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
from worldline.model.dialects.shapes import Ask, Runner, ToolResult, ToolUse, Usage

_CALLS: dict[str, tuple[Runner, tuple[str, ...]]] = {
    "function_call": ("client", ("arguments",)),
    "custom_tool_call": ("client", ("input",)),
    "computer_call": ("client", ("actions", "action")),
    "local_shell_call": ("client", ("action",)),
    "shell_call": ("client", ("action",)),
    "apply_patch_call": ("client", ("operation",)),
    "mcp_call": ("provider", ("arguments",)),
    "web_search_call": ("provider", ("action",)),
    "file_search_call": ("provider", ("queries",)),
    "code_interpreter_call": ("provider", ("code",)),
    "image_generation_call": ("provider", ("revised_prompt",)),
    "tool_search_call": ("provider", ("arguments",)),
    "mcp_approval_request": ("approval", ("arguments",)),
}
"""Item type: who runs the call, and the fields that may hold its arguments."""

_FRAGMENTS: dict[str, tuple[Kind, str]] = {
    "response.output_text": ("text", "text"),
    "response.refusal": ("text", "refusal"),
    "response.reasoning_summary_text": ("reasoning", "text"),
    "response.reasoning_text": ("reasoning", "text"),
    "response.function_call_arguments": ("tool", "arguments"),
    "response.mcp_call_arguments": ("tool", "arguments"),
    "response.custom_tool_call_input": ("tool", "input"),
}
"""Event type without `.delta` or `.done`: what grows, and the field of the `.done` event that holds all of it."""


def _ask(body: Body) -> Ask:
    given = body.get("input")
    items = [obj(item) for item in array(given)]
    if isinstance(given, str):
        items = [{"role": "user", "content": given}]
    users = [flatten(item.get("content")) for item in items if item.get("role") == "user"]
    conversation = body.get("conversation")
    return Ask(
        model=name(body.get("model")),
        stream=body.get("stream") is True,
        temperature=number(body.get("temperature")),
        top_p=number(body.get("top_p")),
        max_tokens=integer(body.get("max_output_tokens")),
        tool_names=tuple(tool_name(tool) for tool in array(body.get("tools"))),
        tool_uses=tuple(use for item in items if (use := _call(item))),
        tool_results=tuple(_results(items)),
        roles=tuple(name(item.get("role")) or string(item.get("type")) for item in items),
        last_user=users[-1] if users else None,
        server_held=(name(body.get("previous_response_id")) or name(conversation) or name(obj(conversation).get("id"))),
    )


def _results(items: list[Body]) -> Iterator[ToolResult]:
    for place, item in enumerate(items):
        kind = string(item.get("type"))
        if kind.endswith("_output") or (kind == "mcp_call" and item.get("output") is not None):
            call = name(item.get("call_id")) or string(item.get("id"))
            yield ToolResult(call, flatten(item.get("output")), f"$.input[{place}].output")


def _call(item: Body) -> ToolUse | None:
    kind = string(item.get("type"))
    if kind not in _CALLS:
        return None
    runner, fields = _CALLS[kind]
    if obj(item.get("environment")).get("type") == "container_reference":
        runner = "provider"
    arguments = next((item[field] for field in fields if item.get(field)), "")
    return ToolUse(
        id=name(item.get("call_id")) or string(item.get("id")),
        name=name(item.get("name")) or kind.removesuffix("_call"),
        arguments=arguments if isinstance(arguments, str) else dump(arguments),
        runner=runner,
    )


def _event(assembly: Assembly, event: Body) -> None:
    kind = string(event.get("type"))
    stem, _, phase = kind.rpartition(".")
    if "response" in event:
        _answer(assembly, obj(event["response"]))
    elif kind in ("response.output_item.added", "response.output_item.done"):
        _read_item(assembly, _output(event), obj(event.get("item")))
    elif kind == "error" or event.get("error"):
        assembly.fail(error_text(event.get("error") or event))
    elif stem in _FRAGMENTS and phase in ("delta", "done"):
        grows, field = _FRAGMENTS[stem]
        part = integer(event.get("summary_index" if "summary" in stem else "content_index"))
        block = assembly.block(_key(_output(event), grows, stem, part or 0), grows)
        if phase == "delta":
            block.add(string(event.get("delta")))
        else:
            block.settle(string(event.get(field)))


def _output(event: Body) -> int:
    return integer(event.get("output_index")) or 0


def _key(output: int, grows: Kind, stem: str, part: int) -> tuple[object, ...]:
    """Where a block lives: tool calls by their item, other parts by list (summary or content) and index within it."""
    return (output,) if grows == "tool" else (output, "summary" in stem, part)


def _answer(assembly: Assembly, response: Body) -> None:
    """Take a response object: the whole answer, or a snapshot within a stream."""
    assembly.model = name(response.get("model")) or assembly.model
    assembly.response_id = name(response.get("id")) or assembly.response_id
    assembly.usage = _usage(obj(response.get("usage"))) or assembly.usage
    for place, item in objects(response.get("output")):
        _read_item(assembly, place, item)
    status = string(response.get("status"))
    if response.get("error"):
        assembly.fail(error_text(response["error"]))
    elif status in ("failed", "cancelled"):
        assembly.fail(f"the response {'failed' if status == 'failed' else 'was cancelled'}")
    elif status in ("completed", "incomplete"):
        reason = name(obj(response.get("incomplete_details")).get("reason"))
        assembly.finish[0] = reason or status
        assembly.ended = True


def _read_item(assembly: Assembly, output: int, item: Body) -> None:
    if use := _call(item):
        key = _key(output, "tool", "", 0)
        block = assembly.block(key, "tool", call_id=use.id, name=use.name, runner=use.runner)
        block.settle(use.arguments)
        return
    kind: Kind = "reasoning" if item.get("type") == "reasoning" else "text"
    for field in ("summary", "content"):
        for place, part in objects(item.get(field)):
            text = string(part.get("text")) or string(part.get("refusal"))
            assembly.block(_key(output, kind, field, place), kind).settle(text)


def _usage(usage: Body) -> Usage | None:
    if not usage:
        return None
    read = obj(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=integer(usage.get("input_tokens")),
        output_tokens=integer(usage.get("output_tokens")),
        cache_read=integer(read.get("cached_tokens")),
        cache_write=integer(read.get("cache_write_tokens")),
        reasoning=integer(obj(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )


DIALECT = Dialect(route="openai.responses", ask=_ask, answer=_answer, event=_event)
RETRIEVED = Dialect(route="openai.responses.retrieve", ask=_ask, answer=_answer, event=_event)
"""An answer that went on in the background is fetched as the response object that it is."""
