"""An agent without any SDK: a model over HTTP, and tools over a pipe to what its arguments start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request


def think(messages: list) -> dict:
    body = json.dumps({"model": "small", "messages": messages}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
ids = iter(range(1, 1000))


def ask(method: str, **params: object) -> dict:
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}) + "\n")
    server.stdin.flush()
    answer = json.loads(server.stdout.readline())
    return answer.get("result") or answer["error"]


ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "light", "version": "1"})
ask("tools/list")
messages: list = [{"role": "user", "content": "go"}]
while True:
    said = think(messages)
    messages.append(said)
    if not said.get("tool_calls"):
        break
    for call in said["tool_calls"]:
        given = json.loads(call["function"]["arguments"])
        result = ask("tools/call", name=call["function"]["name"], arguments=given)
        text = result["content"][0]["text"] if "content" in result else json.dumps(result)
        print(text, flush=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
server.stdin.close()
sys.exit(server.wait())
