"""OpenAI Chat Completions, and the many servers that speak it: vLLM, OpenRouter, DeepSeek, Ollama, Gemini's twin.

A message (whole) and a delta (streamed) have the same fields, so one reader takes both. With several choices the
text is that of the first and the tool calls are those of all.
"""

from __future__ import annotations

from collections.abc import Iterator

from worldline.model.dialects.assembly import Assembly
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

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")


def _ask(body: Body) -> Ask:
    messages = [obj(message) for message in array(body.get("messages"))]
    users = [flatten(message.get("content")) for message in messages if message.get("role") == "user"]
    limit = integer(body.get("max_completion_tokens"))
    return Ask(
        model=name(body.get("model")),
        stream=body.get("stream") is True,
        temperature=number(body.get("temperature")),
        top_p=number(body.get("top_p")),
        max_tokens=integer(body.get("max_tokens")) if limit is None else limit,
        seed=integer(body.get("seed")),
        tool_names=tuple(tool_name(tool) for tool in array(body.get("tools")) or array(body.get("functions"))),
        tool_uses=tuple(use for message in messages for _, use in _calls(message)),
        tool_results=tuple(_results(messages)),
        roles=tuple(string(message.get("role")) for message in messages),
        last_user=users[-1] if users else None,
    )


def _results(messages: list[Body]) -> Iterator[ToolResult]:
    for place, message in enumerate(messages):
        answered = {"tool": "tool_call_id", "function": "name"}.get(string(message.get("role")))
        if answered:
            path = f"$.messages[{place}].content"
            yield ToolResult(string(message.get(answered)), flatten(message.get("content")), path)


def _calls(message: Body) -> Iterator[tuple[int, ToolUse]]:
    """The calls of a message or delta, each with the index by which its fragments find one another."""
    for place, call in objects(message.get("tool_calls")):
        function = obj(call.get("function")) or obj(call.get("custom"))
        index = integer(call.get("index"))
        arguments = _arguments(function.get("arguments", function.get("input")))
        use = ToolUse(string(call.get("id")), string(function.get("name")), arguments)
        yield place if index is None else index, use
    legacy = obj(message.get("function_call"))
    if legacy:
        called = string(legacy.get("name"))
        yield -1, ToolUse(called, called, _arguments(legacy.get("arguments")))


def _arguments(arguments: object) -> str:
    # Some compatible servers send the parsed object where OpenAI sends its text.
    return arguments if isinstance(arguments, str) else "" if arguments is None else dump(arguments)


def _read(assembly: Assembly, body: Body) -> None:
    """Take a completion or a chunk of one."""
    if body.get("error"):
        assembly.fail(error_text(body["error"]))
    assembly.model = name(body.get("model")) or assembly.model
    assembly.response_id = name(body.get("id")) or assembly.response_id
    if usage := body.get("usage"):
        assembly.usage = _usage(obj(usage)) or assembly.usage
    for place, choice in enumerate(array(body.get("choices"))):
        if isinstance(choice, dict):
            index = integer(choice.get("index"))
            _read_choice(assembly, place if index is None else index, choice)


def _read_choice(assembly: Assembly, index: int, choice: Body) -> None:
    message = obj(choice.get("delta")) or obj(choice.get("message"))
    if index == 0:
        for field in _REASONING_FIELDS:
            if reasoning := message.get(field):
                assembly.block("reasoning", "reasoning").add(flatten(reasoning, ""))
                break
        if content := message.get("content"):
            assembly.block("text", "text").add(flatten(content, ""))
        if refusal := message.get("refusal"):
            assembly.block("text", "text").add(string(refusal))
    if "tool_calls" in message or "function_call" in message:
        for place, use in _calls(message):
            assembly.block((index, place), "tool", call_id=use.id, name=use.name).add(use.arguments)
    assembly.finish[index] = name(choice.get("finish_reason")) or assembly.finish.get(index, "")
    # Not every compatible server sends `[DONE]`; an answer whose choices all gave their reason has ended too.
    assembly.ended = all(assembly.finish.values())


def _usage(usage: Body) -> Usage | None:
    if not usage:
        return None
    read = obj(usage.get("prompt_tokens_details"))
    cached = integer(read.get("cached_tokens"))
    return Usage(
        input_tokens=integer(usage.get("prompt_tokens")),
        output_tokens=integer(usage.get("completion_tokens")),
        cache_read=integer(usage.get("prompt_cache_hit_tokens")) if cached is None else cached,
        cache_write=integer(read.get("cache_write_tokens")),
        reasoning=integer(obj(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


DIALECT = Dialect(route="openai.chat", ask=_ask, answer=_read, event=_read, end_data="[DONE]")
