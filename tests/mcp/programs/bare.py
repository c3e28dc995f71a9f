"""An MCP server of a few lines, without any SDK: it does what it is told, also what no server should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

TOOLS = [
    {"name": "post", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "drop", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
]
held: list = []
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bare", "version": "1"}}


def say(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(identifier: object, tool: str, arguments: dict) -> None:
    if tool == "die":
        os._exit(3)
    if tool == "garbage":
        sys.stdout.write('Starting up...\n{"half":\n{"no": "message"}\n')
    if tool == "huge":
        sys.stdout.write("x" * (2 << 20) + "\n")
    if tool == "silent":
        return
    if tool == "hold":
        held.append(identifier)
        return
    if tool == "question":
        ask = {"messages": [{"role": "user", "content": {"type": "text", "text": "how many?"}}], "maxTokens": 5}
        say({"id": "q1", "method": "sampling/createMessage", "params": ask})
        answer = json.loads(sys.stdin.readline())
        arguments = answer.get("result") or answer["error"]
    if tool == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
        say({"id": identifier, "result": {"content": [{"type": "text", "text": str(child.pid)}]}})
        while True:
            signal.pause()
    text = "ok"
    if tool in ("post", "drop"):
        request = urllib.request.Request(f"{os.environ['SHOP']}/{tool}/{arguments.get('to', '')}", b"")
        with urllib.request.urlopen(request) as answer:
            text = answer.read().decode()
    if tool in ("echo", "question"):
        text = json.dumps(arguments)
    if tool == "tell":
        say({"method": "notifications/resources/updated", "params": {"uri": "a://b"}})
    say({"id": identifier, "result": {"content": [{"type": "text", "text": text}]}})
    if tool == "release":
        say({"id": held.pop(), "result": {"content": [{"type": "text", "text": "held"}]}})
    if tool == "later":
        say({"method": "notifications/resources/updated", "params": {"uri": "later://b"}})


for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            say({"id": message["id"], "result": HELLO})
        case "tools/list":
            say({"id": message["id"], "result": {"tools": TOOLS}})
        case "tools/call":
            call(message["id"], message["params"]["name"], message["params"].get("arguments", {}))
        case "ping" | "logging/setLevel":
            say({"id": message["id"], "result": {}})
        case "environment":
            say({"id": message["id"], "result": dict(os.environ)})
