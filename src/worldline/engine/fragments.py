"""Which texts an event of a streamed answer says, in which channel, and which channels it ends; in every dialect.

A channel is one place of an answer that grows by fragments: the text of a choice, the arguments of one tool call.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

Path = tuple[str | int, ...]
Key = tuple[Hashable, ...]  # a channel; it begins with its group
Said = tuple[Key, Path, str]  # a channel, where its text stands in an event, and the text

_CHAT = frozenset(("content", "refusal", "reasoning_content", "reasoning", "thinking"))
_CALLS = frozenset(("tool_calls", "function_call"))
_BLOCK = ("text", "thinking", "partial_json")


def fragments(event: dict[str, Any]) -> list[Said]:
    """The texts by which an event makes an answer grow."""
    said: list[Said] = []
    kind, delta = event.get("type"), event.get("delta")
    if isinstance(kind, str) and isinstance(delta, str):  # OpenAI Responses
        places = [event.get(name) for name in ("content_index", "summary_index")]
        _say(said, (_hashable(event.get("output_index")), kind, *map(_hashable, places)), ("delta",), delta)
    elif kind == "content_block_delta" and isinstance(delta, dict):  # Anthropic Messages
        for name in _BLOCK:
            _say(said, (_hashable(event.get("index")), name), ("delta", name), delta.get(name))
    for place, choice in _objects(event.get("choices")):  # OpenAI Chat Completions
        delta = choice.get("delta")
        if isinstance(delta, dict):
            _chat(said, place, _hashable(choice.get("index", place)), delta)
    for place, candidate in _objects(event.get("candidates")):  # Gemini
        content = candidate.get("content")
        for part, words in _objects(content.get("parts") if isinstance(content, dict) else None):
            path = ("candidates", place, "content", "parts", part, "text")
            _say(said, (_hashable(candidate.get("index", place)), "text"), path, words.get("text"))
    return said


def _chat(said: list[Said], place: int, index: Hashable, delta: dict[str, Any]) -> None:
    for name, text in delta.items():
        if name in _CHAT:
            _say(said, (index, name), ("choices", place, "delta", name), text)
    if not delta.keys() & _CALLS:
        return
    for at, call in [*_objects(delta.get("tool_calls")), (None, {"function": delta.get("function_call")})]:
        for holder, name in (("function", "arguments"), ("custom", "input")):
            where: Path = ("tool_calls", at, holder) if at is not None else ("function_call",)
            text = call[holder].get(name) if isinstance(call.get(holder), dict) else None
            key = (index, "call", _hashable(call.get("index", at)), holder)
            _say(said, key, ("choices", place, "delta", *where, name), text)


def ended(event: dict[str, Any]) -> Iterator[Hashable]:
    """The groups of channels that say no more after this event."""
    kind = event.get("type")
    if kind == "content_block_stop":
        yield _hashable(event.get("index"))
    elif isinstance(kind, str) and kind.endswith(".done"):
        yield _hashable(event.get("output_index"))
    for place, choice in _objects(event.get("choices")):
        if choice.get("finish_reason"):
            yield _hashable(choice.get("index", place))
    for place, candidate in _objects(event.get("candidates")):
        if candidate.get("finishReason"):
            yield _hashable(candidate.get("index", place))


def _say(said: list[Said], key: Key, path: Path, text: object) -> None:
    if isinstance(text, str) and text:
        said.append((key, path, text))


def _objects(value: object) -> list[tuple[int, dict[str, Any]]]:
    return [(n, one) for n, one in enumerate(value) if isinstance(one, dict)] if isinstance(value, list) else []


def _hashable(value: object) -> Hashable:
    return value if isinstance(value, (int, str)) else str(value)
