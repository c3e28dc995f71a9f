"""Asks each line of its standard list in a conversation of its own, over plain HTTP: no SDK, no tools.

Arguments: the questions, in which $NAME is a variable's value. What HEADERS (JSON) holds goes with every request, and
QUERY behind its path.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request

BASE = os.environ["OPENAI_BASE_URL"]
KEY = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
HEADERS = {**KEY, **json.loads(os.environ.get("HEADERS", "{}"))}


def ask(question: str) -> str:
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": question}]})
    url = f"{BASE}/chat/completions{os.environ.get('QUERY', '')}"
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), HEADERS)) as response:
        events = [line[6:] for line in response.read().decode().split("\n") if line.startswith("data: {")]
    deltas = [choice["delta"] for event in events for choice in json.loads(event)["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


for question in sys.argv[1:]:
    print(ask(os.path.expandvars(question)), flush=True)
