"""What a JSON path inside a model request means to the person who wrote the agent.

A divergence is found as a path, `$.messages[6].content`. This says what stands there: the result of a tool, the
system prompt, the schema of a tool.
"""

from __future__ import annotations

import re

from worldline.model.dialects.dialect import Body
from worldline.model.dialects.reading import DIALECTS, read_object
from worldline.model.dialects.shapes import Ask

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\['((?:[^'\\]|\\.)*)'\]")
_INDEX = 2
"""The group of `_STEP` that holds an array index."""

_FIELDS = {
    "model": "the model",
    "system": "the system prompt",
    "instructions": "the system prompt",
    "temperature": "the temperature",
    "top_p": "top_p",
    "seed": "the seed",
    "max_tokens": "the limit of output tokens",
    "max_completion_tokens": "the limit of output tokens",
    "max_output_tokens": "the limit of output tokens",
    "stream": "whether the answer is streamed",
    "tool_choice": "the choice of tools",
    "response_format": "the form asked of the answer",
    "text": "the form asked of the answer",
    "thinking": "the reasoning setting",
    "reasoning": "the reasoning setting",
    "reasoning_effort": "the reasoning setting",
    "previous_response_id": "the earlier response that this request continues",
    "conversation": "the conversation at the provider that this request continues",
    "systemInstruction": "the system prompt",
    "system_instruction": "the system prompt",
    "generationConfig": "the settings of the answer",
    "generation_config": "the settings of the answer",
    "toolConfig": "the choice of tools",
    "tool_config": "the choice of tools",
}

_SYSTEM_ROLES = ("system", "developer")


def what_changed(route_name: str, recorded_body: bytes, actual_body: bytes, path: str) -> str | None:
    """A sentence on what stands at `path` of a request, such as `it is the result of lookup_order (call_7)`.

    `path` is a JSON path from the root of the body, in dots and brackets. Names come from the actual body, or from
    the recorded one where only that has the place, and the sentence says so. None if there is nothing better to say
    than the path itself: an unknown route, a body that is not JSON, a field without a meaning of its own.
    """
    dialect, steps = DIALECTS.get(route_name), _steps(path)
    actual, recorded = read_object(actual_body), read_object(recorded_body)
    if dialect is None or not steps or actual is None or recorded is None:
        return None
    here = _meaning(actual, dialect.ask(actual), steps, path)
    there = _meaning(recorded, dialect.ask(recorded), steps, path)
    if here and there:
        return f"it is {here}"
    if here:
        return f"it is {here}, which the recording does not have"
    return f"it is {there}, which only the recording has" if there else None


def _steps(path: str) -> list[str | int]:
    """The steps of a path after its `$`; empty if it is the root or cannot be read."""
    steps: list[str | int] = []
    place = 1 if path.startswith("$") else 0
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            return []
        word = step.group(step.lastindex or 0)
        steps.append(int(word) if step.lastindex == _INDEX else word)
        place = step.end()
    return steps


def _meaning(body: Body, ask: Ask, steps: list[str | int], path: str) -> str | None:
    """What the request has at these steps, in words; None if it has nothing there or no words exist for it."""
    for result in ask.tool_results:
        if path == result.path or path.startswith((f"{result.path}.", f"{result.path}[")):
            return _result_of(ask, result.id)
    head, *rest = steps
    if head in ("messages", "input", "contents"):
        return _entry(ask, head, rest)
    if head in ("tools", "functions"):
        return _tool(ask, rest)
    return _FIELDS.get(str(head)) if head in body else None


def _result_of(ask: Ask, call: str) -> str:
    name = next((use.name for use in ask.tool_uses if use.id == call and use.name), None)
    if name is None:
        return f"the result of {call}" if call else "a tool's result"
    return f"the result of {name} ({call})" if name != call else f"the result of {name}"


def _entry(ask: Ask, head: str, rest: list[str | int]) -> str | None:
    if not rest:
        return "the input" if head == "input" else "the list of messages"
    place = rest[0]
    if not isinstance(place, int) or place >= len(ask.roles):
        return None
    role = ask.roles[place]
    if role in _SYSTEM_ROLES:
        return "the system prompt"
    return f"message {place} ({role})" if role else f"message {place}"


def _tool(ask: Ask, rest: list[str | int]) -> str | None:
    if not rest:
        return "the list of tools"
    place, *inside = rest
    if not isinstance(place, int) or place >= len(ask.tool_names):
        return None
    tool = f"tool {ask.tool_names[place] or place}"
    if not inside:
        return tool
    if inside in (["description"], ["function", "description"]):
        return f"the description of {tool}"
    return f"the schema of {tool}"
