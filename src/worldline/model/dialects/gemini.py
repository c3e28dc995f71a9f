"""Gemini's generateContent: contents are lists of parts, and an answer streams as whole small answers.

The URL names the model and says whether the answer streams: as server-sent events, or as one JSON array. Older models
give calls no ids, and some clients drop or invent them. A call without one is named by its tool, the second of the same
answer `NAME#2`; a result without one belongs to the first call of its name that waits. Requests may spell fields in
camel case or in snake case.
"""

from __future__ import annotations

import re
from collections import Counter

from worldline.model.dialects.assembly import Assembly
from worldline.model.dialects.dialect import Body, Dialect
from worldline.model.dialects.foreign import array, dump, flatten, integer, name, number, obj, objects, string
from worldline.model.dialects.shapes import Ask, Runner, ToolResult, ToolUse, Usage

ROUTE = "gemini.generate"

_CAPITAL = re.compile("[A-Z]")
_AT_PROVIDER = {"executableCode": "code_execution", "toolCall": "provider_tool"}
"""Parts that the provider runs itself, and what they are called where they have no name."""


def field(body: Body, camel: str) -> object:
    """A field by its name in camel case, or where that is missing in snake case."""
    if camel in body:
        return body[camel]
    return body.get(_CAPITAL.sub(lambda letter: "_" + letter.group().lower(), camel))


def parts(content: Body) -> list[Body]:
    """The parts of a content."""
    return [obj(part) for part in array(content.get("parts"))]


def said(content: Body) -> str:
    """What the parts of a content say; thoughts, calls and results are left out, media are `[media]`."""
    return "\n".join(text for part in parts(content) if (text := _words(part)) is not None)


def _words(part: Body) -> str | None:
    if part.get("thought") or field(part, "functionCall") or field(part, "functionResponse"):
        return None
    if isinstance(part.get("text"), str):
        return string(part["text"])
    return "[media]" if field(part, "inlineData") or field(part, "fileData") else None


def _ask(body: Body) -> Ask:
    config = obj(field(body, "generationConfig"))
    contents = [obj(content) for content in array(body.get("contents"))]
    users = [words for content in contents if content.get("role") in ("user", None) and (words := said(content))]
    uses, results = _crossed(contents)
    return Ask(
        temperature=number(config.get("temperature")),
        top_p=number(field(config, "topP")),
        max_tokens=integer(field(config, "maxOutputTokens")),
        seed=integer(config.get("seed")),
        tool_names=tuple(_tools(obj(tool)) for tool in array(body.get("tools"))),
        tool_uses=tuple(uses),
        tool_results=tuple(results),
        roles=tuple(string(content.get("role")) or "user" for content in contents),
        last_user=users[-1] if users else None,
    )


def _tools(tool: Body) -> str:
    """The names of one entry of the tools: its functions, or the built-in tool that it is."""
    declared = [name(function.get("name")) or "" for _, function in objects(field(tool, "functionDeclarations"))]
    return ", ".join(declared) or next(iter(tool), "")


def _crossed(contents: list[Body]) -> tuple[list[ToolUse], list[ToolResult]]:
    """The calls and the results that a history holds. What waits for its result is of the latest turn of the model."""
    uses, results = list[ToolUse](), list[ToolResult]()
    waiting, called, answered = list[ToolUse](), Counter[str](), Counter[str]()
    for place, content in enumerate(contents):
        for index, part in enumerate(parts(content)):
            if use := _call(part, called):
                if answered:  # another turn of the model has begun
                    waiting, called, answered = [], Counter(), Counter()
                    use = _call(part, called) or use
                uses.append(use)
                waiting.append(use)
            elif response := obj(field(part, "functionResponse")):
                key = "functionResponse" if "functionResponse" in part else "function_response"
                found = _answers(response, waiting, answered)
                path = f"$.contents[{place}].parts[{index}].{key}.response"
                results.append(ToolResult(found, _text(response.get("response")), path, string(response.get("name"))))
    return uses, results


def _answers(response: Body, waiting: list[ToolUse], answered: Counter[str]) -> str:
    """The id of the call that a result belongs to."""
    tool, given = string(response.get("name")), name(response.get("id"))
    answered[tool] += 1
    alike = [use for use in waiting if (use.id == given if given else use.name == tool)]
    for use in alike[:1]:
        waiting.remove(use)
        return use.id
    return given or _made(tool, answered[tool])


def _made(tool: str, number: int) -> str:
    return tool if number == 1 else f"{tool}#{number}"


def _text(response: object) -> str:
    """A result as text: the SDKs wrap what a function returned in an object of one field."""
    body = obj(response)
    if len(body) == 1 and isinstance(only := next(iter(body.values())), str):
        return only
    return flatten(response) if isinstance(response, str) else "" if response is None else dump(response)


def _call(part: Body, called: Counter[str]) -> ToolUse | None:
    """The call in a part. `called` counts the calls without ids of one turn, by name."""
    runner: Runner = "client"
    given = field(part, "functionCall")
    fallback = ""
    for key, what in _AT_PROVIDER.items():
        if not isinstance(given, dict) and isinstance(field(part, key), dict):
            given, fallback, runner = field(part, key), what, "provider"
    if not isinstance(given, dict):
        return None
    call = obj(given)
    tool = name(call.get("name")) or name(field(call, "toolType")) or fallback
    if not tool:  # it was cut before its name, or nobody can run it
        return None
    identifier = name(call.get("id"))
    if identifier is None:
        called[tool] += 1
        identifier = _made(tool, called[tool])
    arguments = call.get("args") if runner == "client" or "args" in call else call
    return ToolUse(identifier, tool, arguments if isinstance(arguments, str) else dump(arguments or {}), runner)


def _read(assembly: Assembly, body: Body) -> None:
    """Take a whole answer, or one event of a stream: they have the same fields."""
    if error := body.get("error"):
        assembly.fail(_error(error))
    assembly.model = name(field(body, "modelVersion")) or assembly.model
    assembly.response_id = name(field(body, "responseId")) or assembly.response_id
    _count(assembly, field(body, "usageMetadata"))
    for place, candidate in objects(body.get("candidates")):
        index = integer(candidate.get("index"))
        _candidate(assembly, place if index is None else index, candidate)
    if blocked := name(field(obj(field(body, "promptFeedback")), "blockReason")):
        assembly.fail(f"the prompt was blocked: {blocked}")


def _candidate(assembly: Assembly, index: int, candidate: Body) -> None:
    for part in parts(obj(candidate.get("content"))):
        if use := _call(part, assembly.called):
            key = ("call", assembly.calls)
            assembly.block(key, "tool", call_id=use.id, name=use.name, runner=use.runner).add(use.arguments)
            assembly.calls += 1
        elif index == 0:
            kind = "reasoning" if part.get("thought") else "text"
            assembly.block(kind, "reasoning" if part.get("thought") else "text").add(string(part.get("text")))
    assembly.finish[index] = name(field(candidate, "finishReason")) or assembly.finish.get(index, "")
    assembly.ended = all(assembly.finish.values())


def _error(error: object) -> str:
    """The words of an error: its status is a word, its code only the number of HTTP's."""
    body = obj(error)
    message, status = name(body.get("message")), name(body.get("status"))
    if message is None:
        return flatten(error)
    return f"{status}: {message}" if status else message


def _count(assembly: Assembly, usage: object) -> None:
    """Take counts that are running totals: a later one replaces an earlier one, and a missing one changes nothing."""
    given = obj(usage)
    for counted in _COUNTS:
        if (count := integer(field(given, counted))) is not None:
            assembly.counts[counted] = count
    counts = assembly.counts
    if not counts:
        return
    assembly.usage = Usage(
        input_tokens=_sum(counts, "promptTokenCount", "toolUsePromptTokenCount"),
        output_tokens=_sum(counts, "candidatesTokenCount", "thoughtsTokenCount"),
        cache_read=integer(counts.get("cachedContentTokenCount")),
        reasoning=integer(counts.get("thoughtsTokenCount")),
    )


_COUNTS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
)


def _sum(counts: Body, *fields: str) -> int | None:
    found = [count for each in fields if (count := integer(counts.get(each))) is not None]
    return sum(found) if found else None


def model_of(path: str) -> str | None:
    """The model that the path of a request names."""
    _, mark, rest = path.rpartition("/models/")
    return rest.partition(":")[0] or None if mark else None


DIALECT = Dialect(route=ROUTE, ask=_ask, answer=_read, event=_read, listed=True)
