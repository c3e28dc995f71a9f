"""A clerk over plain HTTP: asks its model, runs the tools it is told to, and tells it what came of them.

Tools reach a real shop and a real mail server. `DIE=refund` ends the recorder and itself inside that tool.
"""

from __future__ import annotations

import json
import os
import signal
import smtplib
import sys
import urllib.request
from typing import Any

import worldline as wl

MESSAGES: list[Any] = [
    {"role": "system", "content": os.environ.get("PROMPT", "You are a careful clerk.")},
    {"role": "user", "content": "Refund order 812."},
]


def perhaps_die(tool: str) -> None:
    if os.environ.get("DIE") == tool:
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(9)


@wl.tool(effect="pure")
def look(order: int) -> str:
    return f"order {order}: lamp, 2 pieces"


@wl.tool(idempotency_key=lambda to, **_: f"mail:{to}")
def mail(to: str, text: str) -> str:
    with smtplib.SMTP("127.0.0.1", int(os.environ["MAIL_PORT"]), timeout=20) as server:
        server.sendmail("clerk@shop.invalid", [to], text)
    perhaps_die("mail")
    return f"sent to {to}"


@wl.tool
def refund(order: int, cents: int) -> str:
    request = urllib.request.Request(f"{os.environ['SHOP']}/refund/{order}/{cents}", b"", method="POST")
    with urllib.request.urlopen(request, timeout=40) as answer:
        said = answer.read().decode()
    perhaps_die("refund")
    return said


@wl.tool(effect="idempotent", capability="trust_mutating")
def trust(key: str) -> str:
    return f"trusts {key}"


TOOLS: dict[str, Any] = {tool.__name__: tool for tool in (look, mail, refund, trust)}


def ask() -> Any:
    body = json.dumps({"model": "gpt-5", "messages": MESSAGES}).encode()
    base = os.environ["OPENAI_BASE_URL"]
    request = urllib.request.Request(
        f"{base}/chat/completions", body, {"Content-Type": "application/json", "Authorization": "Bearer none"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]


def main() -> None:
    for _ in range(int(os.environ.get("TURNS", "12"))):
        message = ask()
        calls = message.get("tool_calls") or ()
        MESSAGES.append(
            {"role": "assistant", "content": message["content"], **({"tool_calls": calls} if calls else {})}
        )
        print(f"clerk: {message['content']}", flush=True)
        if not calls:
            return
        for call in calls:
            try:
                result = TOOLS[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            except wl.WorldlineError as error:
                result = f"{type(error).__name__}: {error}"
                print(result, file=sys.stderr, flush=True)
            MESSAGES.append({"role": "tool", "tool_call_id": call["id"], "content": result})


main()
