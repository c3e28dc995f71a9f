"""One change of a Gemini request: settings stand in `generationConfig`, and the model in the URL, out of reach here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from worldline.model.dialects.dialect import Body
from worldline.model.dialects.foreign import array, obj, objects
from worldline.model.dialects.gemini import field, parts, said

if TYPE_CHECKING:
    from worldline.model.dialects.change import Change

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "stop": "stopSequences",
}
"""What a common name is called in the configuration of a request."""

_encode = msgspec.json.Encoder().encode


def change_gemini(parts_of_body: dict[str, bytes], change: Change) -> list[str]:
    """Make the change in the members of a request; what was changed. Raises `ValueError` where it cannot be made."""
    done = _set(parts_of_body, change)
    done += _contents(parts_of_body, change)
    if change.system is not None:
        key = "system_instruction" if "system_instruction" in parts_of_body else "systemInstruction"
        encoded = _encode({"parts": [{"text": change.system}]})
        if _text(parts_of_body.get(key)) != change.system:
            parts_of_body[key] = encoded
            done.append("system prompt")
    return done


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else said(obj(msgspec.json.decode(raw)))


def _set(body: dict[str, bytes], change: Change) -> list[str]:
    if not change.fields:
        return []
    key = "generation_config" if "generation_config" in body else "generationConfig"
    config, done = dict(obj(msgspec.json.decode(body.get(key, b"{}")))), list[str]()
    for name, value in change.fields.items():
        if name == "model":
            raise ValueError("the URL of a Gemini request names its model, so only the agent can ask another one")
        setting = _SETTINGS.get(name)
        if setting is None:
            raise ValueError(f"a request of gemini.generate has no {name}")
        if field(config, setting) != value:
            config = {other: old for other, old in config.items() if other != name} | {setting: value}
            done.append(name)
    if done:
        body[key] = _encode(config)
    return done


def _contents(body: dict[str, bytes], change: Change) -> list[str]:
    if "contents" not in body or not (change.users or change.results):
        return []
    raws, done = msgspec.json.decode(body["contents"], type=list[msgspec.Raw]), list[str]()
    contents = [bytes(raw) for raw in raws]
    for place, raw in enumerate(contents):
        content = obj(msgspec.json.decode(raw))
        changed = _results(_said(content, change, done), change, done)
        if changed is not content:
            contents[place] = _encode(changed)
    if done:
        body["contents"] = b"[" + b",".join(contents) + b"]"
    return list(dict.fromkeys(done))


def _said(content: Body, change: Change, done: list[str]) -> Body:
    """The content with its text replaced, where that is what it was; results beside the text stay."""
    for was, now in change.users:
        if content.get("role") in ("user", None) and was != now and said(content) == was:
            results: list[Any] = [part for part in parts(content) if field(part, "functionResponse")]
            content = {**content, "parts": [*results, {"text": now}]}
            done.append("user prompt")
    return content


def _results(content: Body, change: Change, done: list[str]) -> Body:
    """The content with the results replaced whose calls have an id on the wire: a name alone stands for many calls."""
    given, changed = array(content.get("parts")), False
    for place, part in objects(given):
        key = "functionResponse" if "functionResponse" in part else "function_response"
        response = obj(part.get(key))
        call = response.get("id")
        if isinstance(call, str) and call in change.results:
            value = change.results[call]
            new = value if isinstance(value, dict) else {"result": value}
            given = [*given[:place], {**part, key: {**response, "response": new}}, *given[place + 1 :]]
            done.append(f"result of {call}")
            changed = True
    return {**content, "parts": given} if changed else content
