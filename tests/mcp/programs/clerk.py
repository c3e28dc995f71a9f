"""An agent with a model over HTTP and its tools over MCP, with the real SDK: `clerk.py SERVER...`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters


def think(messages: list, tools: list) -> dict:
    body = json.dumps({"model": os.environ.get("MODEL", "small"), "messages": messages, "tools": tools}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


async def work(server: StdioServerParameters) -> str:
    async with Client(server, mode="legacy") as client:
        listed = (await client.list_tools()).tools
        tools = [
            {"type": "function", "function": {"name": t.name, "parameters": t.input_schema}}
            for t in listed
            if t.name in ("look", "mail")
        ]
        messages: list = [{"role": "user", "content": "order 812"}]
        while True:
            said = think(messages, tools)
            messages.append(said)
            if not said.get("tool_calls"):
                return said["content"]
            for call in said["tool_calls"]:
                result = await client.call_tool(call["function"]["name"], json.loads(call["function"]["arguments"]))
                text = result.content[0].text
                print(f"{call['function']['name']}: {text}", flush=True)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    # As clients do: the server gets a few variables, so neither the run's address nor its proxies'.
    surroundings = {name: os.environ[name] for name in ("SHOP", "SHOP_STARTS") if name in os.environ}
    print(asyncio.run(work(StdioServerParameters(command=command, args=words, env=surroundings))))
