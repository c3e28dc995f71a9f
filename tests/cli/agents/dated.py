"""A clerk over plain HTTP whose prompt carries the day and an id of its own, and whose tool is told the time.

`DAY` is the day it takes for today, `TONE` how it is. With `FAIL` it ends badly behind its first answer; with
`EXTRA` it says one thing more.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
import uuid
from typing import Any

import worldline as wl

DAY, TONE = os.environ["DAY"], os.environ.get("TONE", "careful")


@wl.tool(effect="pure")
def search(order: int, now: str) -> str:
    return f"order {order}: a lamp"


def ask(messages: list[Any]) -> str:
    asked = {"model": "gpt-5", "messages": messages, "metadata": {"trace_id": uuid.uuid4().hex}}
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(asked).encode(), headers)) as answer:
        said: str = json.load(answer)["choices"][0]["message"]["content"]
    return said


said: list[Any] = [{"role": "system", "content": f"You are a {TONE} clerk. Today is {DAY}, request {uuid.uuid4()}."}]
for order in (812, 813):
    found = search(order, f"{DAY}T09:{order % 60:02}:00Z")
    said.append({"role": "user", "content": f"{found}. Is it on its way, on {DAY}?"})
    if os.environ.get("EXTRA") and order == 813:
        said.append({"role": "user", "content": f"It is {DAY}."})
    said.append({"role": "assistant", "content": ask(said)})
    if os.environ.get("FAIL"):
        sys.exit(3)
print(said[-1]["content"].replace(DAY, "the day"))
