"""One agent in every dialect, streamed and not, by the providers' own SDKs: it asks what to pay, pays, and tells.

It ends well where the model says so in the end; without a call it pays nothing and fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai

import worldline as wl

TASK = "refund #812"
SCHEMA = {"type": "object", "properties": {"cents": {"type": "integer"}}}


@wl.tool(effect="pure")
def pay(cents: int) -> int:
    return cents


def _on_record(client: Any) -> Any:
    run = wl.current()
    assert run is not None
    return run.wrap(client)


def _ends(told: str) -> None:
    if "well" not in told:
        raise SystemExit(f"it told: {told}")


def _paid(arguments: dict[str, Any]) -> str:
    return str(pay(**arguments))


def chat(stream: bool = False) -> None:
    with _on_record(openai.OpenAI(max_retries=0)) as client:
        messages: list[Any] = [{"role": "user", "content": TASK}]
        tools: Any = [{"type": "function", "function": {"name": "pay", "parameters": SCHEMA}}]

        def ask() -> Any:
            if not stream:
                return client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
            with client.chat.completions.stream(model="m", messages=messages, tools=tools) as events:
                return events.get_final_completion().choices[0].message

        said = ask()
        messages.append(said.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in said.tool_calls or ():
            result = _paid(json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        _ends(ask().content or "")


def responses(stream: bool = False) -> None:
    with _on_record(openai.OpenAI(max_retries=0)) as client:
        items: list[Any] = [{"role": "user", "content": TASK}]
        tools: Any = [{"type": "function", "name": "pay", "parameters": SCHEMA, "strict": False}]

        def ask() -> Any:
            if not stream:
                return client.responses.create(model="m", input=items, tools=tools)
            with client.responses.stream(model="m", input=items, tools=tools) as events:
                return events.get_final_response()

        said = ask()
        for item in said.output:
            items.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
            if item.type == "function_call":
                result = _paid(json.loads(item.arguments))
                items.append({"type": "function_call_output", "call_id": item.call_id, "output": result})
        _ends(ask().output_text)


def messages(stream: bool = False) -> None:
    with _on_record(anthropic.Anthropic(max_retries=0)) as client:
        turns: list[Any] = [{"role": "user", "content": TASK}]
        tools: Any = [{"name": "pay", "input_schema": SCHEMA}]

        def ask() -> Any:
            if not stream:
                return client.messages.create(model="m", max_tokens=99, messages=turns, tools=tools)
            with client.messages.stream(model="m", max_tokens=99, messages=turns, tools=tools) as events:
                return events.get_final_message()

        said = ask()
        turns.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in said.content]})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": _paid(block.input)}
            for block in said.content
            if block.type == "tool_use"
        ]
        turns.append({"role": "user", "content": results or "and?"})
        _ends("".join(block.text for block in ask().content if block.type == "text"))


DIALECTS: dict[str, Callable[[], None]] = {
    "openai.chat": chat,
    "openai.chat streamed": lambda: chat(stream=True),
    "openai.responses": responses,
    "openai.responses streamed": lambda: responses(stream=True),
    "anthropic.messages": messages,
    "anthropic.messages streamed": lambda: messages(stream=True),
}
