"""pydantic-ai's own messages: model calls that no wire was heard of, as the bridge to that framework records them.

A request is `{model, settings, tools, messages}`, an answer the message of the model; both as the framework's own JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

from worldline.model.dialects.assembly import Assembly
from worldline.model.dialects.dialect import Body, Dialect, tool_name
from worldline.model.dialects.foreign import array, dump, flatten, integer, name, number, obj, string
from worldline.model.dialects.shapes import Ask, ToolResult, ToolUse, Usage

ROUTE = "pydantic_ai"


def _ask(body: Body) -> Ask:
    parts = list(_parts(body))
    settings = obj(body.get("settings"))
    users = [flatten(part.get("content")) for _, part in parts if part.get("part_kind") == "user-prompt"]
    return Ask(
        model=name(body.get("model")),
        temperature=number(settings.get("temperature")),
        top_p=number(settings.get("top_p")),
        max_tokens=integer(settings.get("max_tokens")),
        seed=integer(settings.get("seed")),
        tool_names=tuple(tool_name(tool) for tool in array(body.get("tools"))),
        tool_uses=tuple(_use(part) for _, part in parts if part.get("part_kind") == "tool-call"),
        tool_results=tuple(
            ToolResult(string(part.get("tool_call_id")), _text(part.get("content")), f"{path}.content")
            for path, part in parts
            if part.get("part_kind") in ("tool-return", "retry-prompt") and part.get("tool_call_id")
        ),
        roles=tuple(string(obj(message).get("kind")) for message in array(body.get("messages"))),
        last_user=users[-1] if users else None,
    )


def _parts(body: Body) -> Iterator[tuple[str, Body]]:
    for place, message in enumerate(array(body.get("messages"))):
        for index, part in enumerate(array(obj(message).get("parts"))):
            yield f"$.messages[{place}].parts[{index}]", obj(part)


def _use(part: Body) -> ToolUse:
    return ToolUse(string(part.get("tool_call_id")), string(part.get("tool_name")), _text(part.get("args")))


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else dump(value)


def _answer(assembly: Assembly, body: Body) -> None:
    assembly.model = name(body.get("model_name"))
    assembly.response_id = name(body.get("provider_response_id"))
    for index, given in enumerate(array(body.get("parts"))):
        part = obj(given)
        match part.get("part_kind"):
            case "text":
                assembly.block(index, "text").add(string(part.get("content")))
            case "thinking":
                assembly.block(index, "reasoning").add(string(part.get("content")))
            case "tool-call":
                use = _use(part)
                assembly.block(index, "tool", call_id=use.id, name=use.name).add(use.arguments)
    usage = obj(body.get("usage"))
    assembly.usage = Usage(
        input_tokens=integer(usage.get("input_tokens")),
        output_tokens=integer(usage.get("output_tokens")),
        cache_read=integer(usage.get("cache_read_tokens")),
        cache_write=integer(usage.get("cache_write_tokens")),
        reasoning=integer(usage.get("output_reasoning_tokens")),
    )
    assembly.finish[0] = name(body.get("finish_reason")) or ""
    assembly.ended = True


DIALECT = Dialect(route=ROUTE, ask=_ask, answer=_answer, event=_answer)
