"""Records itself: a wrapped tool, the OpenAI SDK wrapped in process. Under `worldline record` it joins that run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from openai import OpenAI

import worldline as wl

TOOLS: Any = [{"type": "function", "function": {"name": "lookup_order", "parameters": {"type": "object"}}}]


@wl.tool(effect="pure")
def lookup_order(order: int) -> str:
    with Path("ran.txt").open("a") as file:
        file.write(f"{order}\n")
    return f"order {order}: lamp, 2 pieces"


with wl.record("own", task="joined") as run:
    client = run.wrap(OpenAI()) if os.environ.get("WRAP", "1") == "1" else OpenAI()
    messages: list[Any] = [{"role": "user", "content": "Where are orders 812 and 813?"}]
    first = client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS).choices[0].message
    messages.append(first.model_dump(include={"role", "content", "tool_calls"}))
    for call in first.tool_calls or ():
        result = lookup_order(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        run.permission("granted", "read_only", by="a rule")
    run.permission("denied", "irreversible_external", policy="money-over-50")
    print(client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS).choices[0].message.content)
    print(run.now().isoformat(), run.rng().random())
    run.outcome("succeeded", reward=0.5)
