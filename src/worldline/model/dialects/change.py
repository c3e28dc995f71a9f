"""One change of what a model is asked, made in the bytes of a request: another model, another prompt, another result.

A fork changes one thing and leaves all else as the agent sent it: the texts of messages that are not changed keep their
bytes, so that a branch shares them with its parent. The same change of the same bytes gives the same bytes: a replay of
the branch makes it again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from worldline.model.dialects.foreign import flatten, obj, string
from worldline.model.dialects.gemini import ROUTE
from worldline.model.dialects.gemini_change import change_gemini
from worldline.model.dialects.reading import DIALECTS

_ARRAYS = {"openai.chat": "messages", "openai.responses": "input", "anthropic.messages": "messages"}
_FIELDS: dict[str, dict[str, str | None]] = {
    "openai.responses": {"max_tokens": "max_output_tokens", "reasoning_effort": None},
    "anthropic.messages": {"seed": None},
}
"""What a common name is called on a route; None for a thing that the route does not have."""

COMMON_FIELDS = (
    *("model", "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "seed"),
    *("stop", "stop_sequences", "tool_choice", "reasoning_effort", "reasoning", "thinking", "response_format", "text"),
    *("presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "parallel_tool_calls", "service_tier"),
    *("verbosity", "instructions", "metadata", "generationConfig"),
)
"""What people set in requests of the providers, by the names that their documentation has."""

_THOUGHTS = ("thinking", "redacted_thinking")
_raw_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class Change(msgspec.Struct, frozen=True):
    """What is changed. `fields` are set at the top of the request; `system` is the text of the system prompt.

    `users` replaces the texts of user messages: pairs of what they were and are now. `results` gives tool results by
    the id of their call. `sampling_seed` is set where a route has such a field. A request whose model is changed loses
    the reasoning that only the old model can read.
    """

    fields: dict[str, Any] = {}
    system: str | None = None
    users: list[list[str]] = []
    results: dict[str, Any] = {}
    sampling_seed: int | None = None

    def __bool__(self) -> bool:
        given = self.system is not None or self.sampling_seed is not None
        return bool(given or self.fields or self.users or self.results)

    def then(self, other: Change) -> Change:
        """Both: this one first."""
        return Change(
            {**self.fields, **other.fields},
            self.system if other.system is None else other.system,
            [*self.users, *other.users],
            {**self.results, **other.results},
            self.sampling_seed if other.sampling_seed is None else other.sampling_seed,
        )


def can_change(route: str) -> bool:
    """Whether requests of this route can be changed."""
    return route in _ARRAYS or route == ROUTE


def change_request(route: str, body: bytes, change: Change) -> tuple[bytes, list[str]]:
    """The changed request and what was changed in it; the same bytes where nothing was.

    Raises `ValueError` for a route or a body in which the change cannot be made.
    """
    if not change:
        return body, []
    if not can_change(route):
        raise ValueError(f"requests of {route} cannot be changed, only those of {', '.join((*_ARRAYS, ROUTE))}")
    try:
        parts = {name: bytes(raw) for name, raw in _raw_object.decode(body).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the request is no JSON object: {error}") from None
    if route == ROUTE:
        return _joined(body, parts, change_gemini(parts, change))
    done = _set(route, parts, change)
    done += _messages(route, parts, change)
    if change.system is not None:
        done += _system(route, parts, change.system)
    return _joined(body, parts, done)


def _joined(body: bytes, parts: dict[str, bytes], done: list[str]) -> tuple[bytes, list[str]]:
    """The request of its members, where something was done to them."""
    if not done:
        return body, []
    return b"{" + b",".join(_encode(name) + b":" + raw for name, raw in parts.items()) + b"}", done


def fields_of(body: bytes) -> list[str]:
    """The names at the top of a request; none of one that is no JSON object."""
    return list(_parts(body))


def held_at_provider(body: bytes) -> str | None:
    """The name of the field with which a request leans on state that goes on at the provider: a conversation."""
    found = _parts(body).get("conversation")
    return None if found is None or bytes(found) == b"null" else "conversation"


def _parts(body: bytes) -> dict[str, msgspec.Raw]:
    """What stands at the top of a request; nothing in one that is no JSON object."""
    try:
        return _raw_object.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def user_prompt(route: str, body: bytes) -> str | None:
    """The text of the last message of the user in a request, as `Change.users` would name it."""
    dialect = DIALECTS.get(route)
    if dialect is None:
        return None
    return dialect.ask(obj(msgspec.json.decode(body))).last_user


def _set(route: str, parts: dict[str, bytes], change: Change) -> list[str]:
    done, fields = list[str](), dict(change.fields)
    if change.sampling_seed is not None and route == "openai.chat":
        fields.setdefault("seed", change.sampling_seed)
    for name, value in fields.items():
        field = _FIELDS.get(route, {}).get(name, name)
        if field is None:
            raise ValueError(f"a request of {route} has no {name}")
        if field == "max_tokens" and "max_completion_tokens" in parts:
            field = "max_completion_tokens"
        encoded = _encode(value)
        if parts.get(field) != encoded:
            if field == "model":
                done += _without_reasoning(route, parts)
            parts[field] = encoded
            done.append(name)
    return done


def _without_reasoning(route: str, parts: dict[str, bytes]) -> list[str]:
    """Take out the reasoning that is signed or encrypted for the old model: whole pieces, never a half of a pair."""
    array, dropped = _ARRAYS[route], 0
    if array not in parts or parts[array][:1] != b"[":
        return []
    kept = []
    for raw in _raw_list.decode(parts[array]):
        item: dict[str, object] = obj(msgspec.json.decode(raw))
        if route == "openai.responses" and item.get("type") == "reasoning":
            dropped += 1
            continue
        content = item.get("content")
        if route == "anthropic.messages" and isinstance(content, list):
            said: list[object] = [block for block in content if obj(block).get("type") not in _THOUGHTS]
            if len(said) < len(content):
                dropped += len(content) - len(said)
                if said:
                    kept.append(_encode({**item, "content": said}))
                continue
        kept.append(bytes(raw))
    if not dropped:
        return []
    if route == "openai.responses":  # an item that names its reasoning by its id is refused without it
        kept = [_without_id(raw) for raw in kept]
    parts[array] = b"[" + b",".join(kept) + b"]"
    return [f"reasoning x{dropped}"]


def _without_id(raw: bytes) -> bytes:
    item = obj(msgspec.json.decode(raw))
    if item.get("type") == "function_call" or item.get("role") == "assistant":
        return _encode({name: value for name, value in item.items() if name != "id"})
    return raw


def _messages(route: str, parts: dict[str, bytes], change: Change) -> list[str]:
    array, done = _ARRAYS[route], list[str]()
    raw = parts.get(array)
    if raw is None or not (change.users or change.results):
        return []
    if raw[:1] == b'"':  # the input of Responses may be the user's text itself
        text = now = string(msgspec.json.decode(raw))
        for was, becomes in change.users:
            now = becomes if now == was else now
        if now != text:
            parts[array] = _encode(now)
            done.append("user prompt")
        return done
    items = [bytes(item) for item in _raw_list.decode(raw)]
    for place, item in enumerate(items):
        message = obj(msgspec.json.decode(item))
        changed = _message(route, message, change, done)
        if changed is not message:
            items[place] = _encode(changed)
    if done:
        parts[array] = b"[" + b",".join(items) + b"]"
    return list(dict.fromkeys(done))


def _message(route: str, message: dict[str, object], change: Change, done: list[str]) -> dict[str, object]:
    if message.get("role") == "user":
        for was, now in change.users:
            message = _said(route, message, was, now, done)
    for holder, name in (("tool_call_id", "content"), ("call_id", "output")):
        call = message.get(holder)
        if isinstance(call, str) and call in change.results and name in message:
            done.append(f"result of {call}")
            message = {**message, name: _as_text(change.results[call])}
    content = message.get("content")
    if isinstance(content, list) and change.results:
        blocks = [_block(block, change, done) for block in content]
        if any(new is not old for new, old in zip(blocks, content, strict=True)):
            message = {**message, "content": blocks}
    return message


def _block(block: object, change: Change, done: list[str]) -> object:
    body = obj(block)
    call = body.get("tool_use_id")
    if not isinstance(call, str) or call not in change.results:
        return block
    done.append(f"result of {call}")
    return {**body, "content": _as_text(change.results[call])}


def _said(route: str, message: dict[str, object], was: str, now: str, done: list[str]) -> dict[str, object]:
    """The message with its text replaced, where that is what it was; tool results beside the text stay."""
    content = message.get("content")
    results: list[object] = []
    if isinstance(content, list):
        results = [part for part in content if _is_result(part)]
        content = [part for part in content if not _is_result(part)]
    if was == now or flatten(content) != was:
        return message
    done.append("user prompt")
    if isinstance(content, str):
        return {**message, "content": now}
    kind = "input_text" if route == "openai.responses" else "text"
    return {**message, "content": [*results, {"type": kind, "text": now}]}


def _is_result(part: object) -> bool:
    return string(obj(part).get("type")).endswith("tool_result")


def _system(route: str, parts: dict[str, bytes], text: str) -> list[str]:
    said = _encode(text)
    if route == "anthropic.messages" or "instructions" in parts:
        field = "system" if route == "anthropic.messages" else "instructions"
        if parts.get(field) == said:
            return []
        parts[field] = said
        return ["system prompt"]
    array = _ARRAYS[route]
    items = [bytes(item) for item in _raw_list.decode(parts[array])] if parts.get(array, b"")[:1] == b"[" else None
    if items is not None:
        for place, item in enumerate(items):
            message = obj(msgspec.json.decode(item))
            if message.get("role") in ("system", "developer"):
                if message.get("content") == text:
                    return []
                items[place] = _encode({**message, "content": text})
                parts[array] = b"[" + b",".join(items) + b"]"
                return ["system prompt"]
    if route == "openai.responses":
        parts["instructions"] = said
    else:
        parts[array] = b"[" + b",".join([_encode({"role": "system", "content": text}), *(items or [])]) + b"]"
    return ["system prompt"]


def _as_text(result: Any) -> str:
    return result if isinstance(result, str) else _encode(result).decode("utf-8")
