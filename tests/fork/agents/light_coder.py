"""The coding agent of the examples without an SDK, which takes seconds to import; the same script plays its model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any


def ask(messages: list[Any]) -> Any:
    body = json.dumps({"model": "gpt-4.1-mini", "messages": messages}).encode()
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return json.load(answer)["choices"][0]["message"]


messages: list[Any] = [{"role": "user", "content": f"Make the test pass in {Path.cwd()}."}]
while calls := (answer := ask(messages)).get("tool_calls"):
    messages.append({"role": "assistant", "content": answer["content"], "tool_calls": calls})
    for call in calls:
        command = json.loads(call["function"]["arguments"])["command"].replace("python3 -B", "cat")
        said = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": said.stdout})
sys.exit(".join(" not in Path("slug.py").read_text())
