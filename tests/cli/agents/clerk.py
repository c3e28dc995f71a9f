"""A clerk on the OpenAI SDK: looks two orders up with a local tool that nothing wraps, answers, then sums up."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI

MODEL = "gpt-5"
ORDERS = {812: "order 812: lamp, 2 pieces", 813: "order 813: shade, 1 piece"}
PARAMETERS = {"type": "object", "properties": {"order": {"type": "integer"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "lookup_order", "parameters": PARAMETERS}}]


def lookup_order(order: int) -> str:
    return ORDERS[order]


def say(client: OpenAI, messages: list[Any], text: str) -> None:
    messages.append({"role": "user", "content": text})
    while True:
        with client.chat.completions.stream(
            model=MODEL, messages=messages, tools=TOOLS, stream_options={"include_usage": True}
        ) as stream:
            message = stream.get_final_completion().choices[0].message
        print(f"clerk: {message.content}", flush=True)
        calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls or ()]
        messages.append({"role": "assistant", "content": message.content} | ({"tool_calls": calls} if calls else {}))
        if not calls:
            return
        for call in message.tool_calls or ():
            result = lookup_order(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main() -> None:
    messages: list[Any] = [{"role": "system", "content": "You are a careful clerk."}]
    with OpenAI() as client:
        say(client, messages, "Where are orders 812 and 813?")
        say(client, messages, "Now a summary.")


main()
