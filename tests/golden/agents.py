"""The small agents that the golden recordings hold: pure programs that a replay can run again.

They know nothing but the run that they are in, so that the same lines record and replay.
"""

from __future__ import annotations

import http.client
import json
import math
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

import worldline as wl
from worldline.testing.provider import Ask, Say, ToolCall

SECRET = "-".join(["golden", "hidden", "value", "4711"])  # made at run time, so that no file of ours holds it
MODEL = {"openai": "model-g", "anthropic": "model-h"}


class Refused(Exception):
    """What a tool of an agent raises."""


@wl.tool(effect="pure")
def stock(item: str) -> dict[str, Any]:
    """How many there are."""
    return {"item": item, "pieces": 2}


@wl.tool(effect="side_effecting", idempotency_key=lambda order, amount: f"refund-{order}")
def refund(order: int, amount: float) -> tuple[int, float]:
    """Give money back."""
    return order, amount


@wl.tool(effect="pure")
def odd() -> dict[str, Any]:
    """Everything that JSON cannot say."""
    return {
        "large": 2**64,
        "least": -(2**53),
        "floats": [math.nan, math.inf, -math.inf, -0.0, 1e300],
        "bytes": b"\x00\xff\n",
        "surrogate": "a\ud800z",
        "tuple": (1, ("two", None), []),
        "$key": {"$$key": True},
        "keys": {"b\udc80d": 1, "good": "\u2028 \u00e9 \U0001f600"},
    }


@wl.tool(effect="idempotent")
def fails(how: str) -> None:
    """Raise in one of three ways."""
    if how == "group":
        raise ExceptionGroup("both", [ValueError("one"), Refused("two", 2)])
    if how == "own":
        raise Refused("not today", {"code": 7})
    raise FileNotFoundError(2, "No such file or directory", "order.txt")


@wl.tool(effect="pure")
def report(lines: int) -> str:
    """A text of this many lines: a large one becomes a content of its own."""
    return "".join(f"{number:05d} a line of a long report, as tools return them\n" for number in range(lines))


@wl.tool(effect="pure")
def nested(depth: int) -> Any:
    """A value that is too deep for a row."""
    value: Any = ("bottom",)
    for _ in range(depth):
        value = [value]
    return value


@wl.tool(effect="pure")
def leak(text: str) -> str:
    """Give back what came, with the secret behind it."""
    return f"{text} {SECRET} and on"


def ask(provider: str, messages: list[dict[str, Any]], stream: bool = False, lane: str = "main", **more: Any) -> str:
    """Ask the model by plain HTTP through the run's proxy. Returns the body of the answer."""
    run = wl.current()
    assert run is not None
    base, path = run.proxy[provider], "/chat/completions" if provider == "openai" else "/v1/messages"
    body = {"model": MODEL[provider], "messages": messages, **({"stream": True} if stream else {}), **more}
    headers = {"Content-Type": "application/json", "User-Agent": "golden/1", "Authorization": "Bearer none"}
    headers |= {"Anthropic-Version": "2023-06-01", "X-Worldline-Lane": lane}
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.netloc)
    try:
        connection.request("POST", parts.path + path, json.dumps(body, ensure_ascii=False).encode(), headers)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def model(said: Ask) -> Say:
    """The provider's script."""
    if said.last_user.startswith("slowly") and not said.tool_results:
        return Say("Let me look \u2026", [ToolCall("stock", {"item": "lamp"}, id="call_golden1")], chunk=4, delay=0.06)
    if said.tool_results:
        return Say("There are zw\u00f6lf \U0001f4a1, almost: 2.", pieces="awkward", chunk=5)
    return Say(f"I heard: {said.last_user}", chunk=3)  # so that a secret comes in pieces


TOOLS = [{"type": "function", "function": {"name": "stock", "parameters": {"type": "object"}}}]


def conversation() -> None:
    """Two turns with a tool between them, everything else that a row can hold, and how it ended."""
    run = wl.current()
    assert run is not None
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You count lamps."},
        {"role": "user", "content": "slowly: how many lamps?"},
    ]
    with wl.step("count"):
        ask("openai", messages, stream=True, tools=TOOLS)
        found = stock("lamp")
        call = {"id": "call_golden1", "type": "function"}
        call["function"] = {"name": "stock", "arguments": '{"item": "lamp"}'}  # type: ignore[assignment]
        messages.append({"role": "assistant", "content": "Let me look \u2026", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "call_golden1", "content": json.dumps(found)})
        ask("openai", messages, stream=True, tools=TOOLS)
    wl.permission("granted", "refund", by="policy", limit=50)
    refund(812, 49.5)
    odd()
    for how in ("own", "group", "file"):
        try:
            fails(how)
        except Exception as error:  # noqa: BLE001 - an agent that goes on, whatever a tool does
            wl.observe(type(error).__name__, src="terminal", name="stderr")
    wl.now()
    wl.uuid()
    wl.rng()
    wl.outcome("succeeded", reward=0.5, done=True, refunds=1)


def short() -> None:
    """Few rows and two small contents."""
    stock("lamp")
    refund(812, 49.5)
    nested(120)
    nested(130)


def large() -> None:
    """Contents that are too large or too deep for a row, the same one twice."""
    report(700)
    report(700)
    nested(120)


def lanes() -> None:
    """Three threads at work at the same time, each in a lane of its own, all asking before one is answered."""
    run = wl.current()
    assert run is not None
    together = threading.Barrier(3)

    def work(name: str) -> None:
        with wl.lane(name):
            stock(name)
            together.wait()
            ask("anthropic", [{"role": "user", "content": f"{name} asks"}], lane=name, max_tokens=64)

    threads = [threading.Thread(target=run.bind(lambda name=name: work(name))) for name in ("left", "middle", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wordy() -> None:
    """Rows enough for several blocks of a bundle."""
    for number in range(22):
        report(500 + number)


def secretive() -> None:
    """A tool and a model that both say what must not be written."""
    leak("before")
    ask("openai", [{"role": "user", "content": f"say it: {SECRET}"}], stream=True)


AGENTS = {
    "short": short,
    "conversation": conversation,
    "large": large,
    "lanes": lanes,
    "secretive": secretive,
    "wordy": wordy,
}

if __name__ == "__main__":
    AGENTS[sys.argv[1]]()
