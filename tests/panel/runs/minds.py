"""The model's part: a list of turns played by the real provider server, and the loop of an agent that asks it.

A turn names elements by role and name, as a person would; the reference is read out of what the agent was told last,
as a model does.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from openai import OpenAI

import worldline as wl
from worldline.engine.pictures import thumbnail
from worldline.store.bundle.pack import pack
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Reply, Say, Script, ToolCall

MODEL = "gpt-5-mini"
KEY = "sk-panel-" + "0123456789" * 2  # nobody's
USAGE: Any = {"include_usage": True}


class Turn(NamedTuple):
    """What the model says, and the one tool it asks for; without a tool it is done."""

    said: str
    tool: str | None = None
    arguments: Mapping[str, Any] = {}
    on: tuple[str, str] | None = None  # role and name of the element


def play(turns: Sequence[Turn]) -> Script:
    """A script that plays the turns in order, one for each answer the agent's history holds."""

    def script(ask: Ask) -> Reply:
        spoken = sum(message["role"] == "assistant" for message in ask.messages)
        turn = turns[min(spoken, len(turns) - 1)]
        if turn.tool is None:
            return Say(turn.said)
        arguments = dict(turn.arguments)
        if turn.on:
            seen = next(str(m["content"]) for m in reversed(ask.messages) if "[ref=" in str(m["content"]))
            arguments = {"ref": reference(seen, *turn.on), "role": turn.on[0], "name": turn.on[1], **arguments}
        return Say(turn.said, [ToolCall(turn.tool, arguments)])

    return script


def reference(seen: str, role: str, name: str) -> str:
    """The reference of an element in what the agent was shown; `e0` for one that is not there."""
    found = re.search(rf'- {role} "{re.escape(name)}"[^\n]*\[ref=(e\d+)\]', seen)
    return found[1] if found else "e0"


@contextmanager
def provided(script: Script) -> Iterator[None]:
    """A provider that plays the script; runs that begin meanwhile have it behind their proxy."""
    with Provider(script) as provider, mock.patch.dict(os.environ, {"OPENAI_BASE_URL": provider.openai_url}):
        yield


def client(wrapped: bool = False) -> OpenAI:
    """A client of the open run's proxy; or one whose calls are recorded in this process, in the lane they come from."""
    run = wl.current()
    assert run is not None
    openai = OpenAI(base_url=None if wrapped else run.proxy.openai, api_key=KEY)
    return run.wrap(openai) if wrapped else openai  # type: ignore[no-any-return]


def decide(openai: OpenAI, messages: list[Any], tools: Sequence[str], stream: bool = True, **options: Any) -> Any:
    """Ask the model once; the answer is added to the messages and returned."""
    asked: Any = {"model": MODEL, "messages": messages, "tools": [described(name) for name in tools], **options}
    if stream:
        with openai.chat.completions.stream(**asked, stream_options=USAGE) as events:
            message = events.get_final_completion().choices[0].message
    else:
        message = openai.chat.completions.create(**asked).choices[0].message
    turn: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        turn["tool_calls"] = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls]
    messages.append(turn)
    return message


def described(name: str) -> Any:
    """A tool as the model is told of it."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


def work(
    openai: OpenAI,
    messages: list[Any],
    tools: Mapping[str, Callable[..., Any]],
    told: Callable[[str, Any], str] = lambda name, result: json.dumps(result),
    stream: bool = True,
) -> str:
    """Let the model call tools until it has nothing more to do. Returns its last words; raises what a tool raises."""
    while True:
        message = decide(openai, messages, list(tools), stream, seed=41)
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = tools[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told(call.function.name, result)})


def bundled(run: Path, target: Path) -> Path:
    """A sealed run as a bundle with thumbnails."""
    return pack(Recording(run), target, thumbnail=thumbnail).path
