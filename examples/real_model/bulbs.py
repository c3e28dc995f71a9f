"""An agent that changes a light bulb, driven by a small real model through any OpenAI-compatible server.

    python examples/real_model/bulbs.py ["kitchen"]

It asks whatever OPENAI_BASE_URL points to. The model draws each step, and may only say what is a call of a tool: the
schema of its answer is the list of all such calls. The exit code is 0 when there is light.

A fault is planted: what `bulbs` says ends with an offer of a bulb that does not fit. The model falls for it in one
of three draws, at step 3, and nothing behind that step can make it good. Without the offer it never does.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from openai import OpenAI

import worldline as wl

MODEL = os.environ.get("BULBS_MODEL", "gemma-3-270m")
TEMPERATURE = 0.7
MOST_STEPS = 8
PLANTED = 3
"""The step that the planted offer leads astray: the fourth choice, which bulb to take."""

LAMPS = {"kitchen": "Orbit", "cellar": "Nelly", "hall": "Fjord"}
SOCKETS = {"Orbit": "E14", "Nelly": "GU10", "Fjord": "E27"}
BULBS = {"Pine": "E14", "Fir": "GU10", "Ash": "E27", "Oak": "E27"}
OFFERS = {"GU10": "Ash", "E27": "Fir", "E14": "Oak"}  # the planted fault: none of them fits


# ------------------------------------------------------------------------------------------------------------ its tools


@wl.tool(effect="pure")
def look(room: str) -> str:
    """Which lamp hangs there."""
    return f"In the {room} hangs the lamp {LAMPS[room]}."


@wl.tool(effect="pure")
def socket(lamp: str) -> str:
    """Which socket the lamp has."""
    return f"{lamp} has the socket {SOCKETS[lamp]}."


@wl.tool(effect="pure")
def bulbs(socket: str) -> str:
    """The bulb that fits, and the planted offer of one that does not."""
    fitting = next(bulb for bulb, its in BULBS.items() if its == socket)
    return f"Bulbs with the socket {socket}: {fitting}. On offer: {OFFERS[socket]}."


@wl.tool(effect="pure")
def take(bulb: str) -> str:
    """Decides for a bulb."""
    return f"You hold the bulb {bulb}."


@wl.tool(effect="pure")
def put(room: str, bulb: str | None) -> str:
    """Screws the bulb in, which ends the work: there is light when it fits."""
    if bulb is not None and BULBS[bulb] == SOCKETS[LAMPS[room]]:
        return f"There is light in the {room}."
    return f"It stays dark in the {room}."


TOOLS = {"look": look, "socket": socket, "bulbs": bulbs, "take": take}
ARGUMENTS: dict[str, list[str]] = {
    "look": list(LAMPS),
    "socket": list(SOCKETS),
    "bulbs": list(OFFERS),
    "take": list(BULBS),
    "put": list(LAMPS),
}
CALLS = [f"{tool}: {word}" for tool, words in ARGUMENTS.items() for word in words]
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "call", "schema": {"type": "string", "enum": CALLS}}}
RULES = """\
You change light bulbs.
Task: The lamp in the cellar is dark.
Do:
"look: cellar"
Result: In the cellar hangs the lamp Nelly.
Do:
"socket: Nelly"
Result: Nelly has the socket GU10.
Do:
"bulbs: GU10"
Result: Bulbs with the socket GU10: Fir. On offer: Ash.
Do:
"take: Fir"
Result: You hold the bulb Fir.
Do:
"put: cellar"
Result: There is light in the cellar.
Task: The lamp in the hall is dark.
Do:
"look: hall"
Result: In the hall hangs the lamp Fjord.
Do:
"socket: Fjord"
Result: Fjord has the socket E27.
Do:
"bulbs: E27"
Result: Bulbs with the socket E27: Ash. On offer: Fir.
Do:
"take: Ash"
Result: You hold the bulb Ash.
Do:
"put: hall"
Result: There is light in the hall."""
"""Two tasks done rightly: a model of this size goes on with a pattern where a larger one obeys a rule."""


# ------------------------------------------------------------------------------------------------------------- its loop


def main(room: str) -> int:
    """Change the bulb of one room. Gives 0 when there is light in it, else 1."""
    messages: list[Any] = [
        {"role": "system", "content": RULES},
        {"role": "user", "content": f"Task: The lamp in the {room} is dark."},
    ]
    bulb = None
    with OpenAI() as client:
        for _ in range(MOST_STEPS):
            answer = client.chat.completions.create(
                model=MODEL,
                messages=messages,
                response_format=FORMAT,
                temperature=TEMPERATURE,
                stop="\n",
                max_tokens=16,
            )
            said = answer.choices[0].message.content or ""
            if answer.choices[0].finish_reason != "stop":
                print(f"the model did not finish its call: {said!r}")
                return 1
            tool, word = json.loads(said).split(": ")
            if tool == "put":
                result = put(room=word, bulb=bulb)
                print(f"put {word} -> {result}")
                return 0 if result == f"There is light in the {room}." else 1
            if tool == "take":
                bulb = word
            result = TOOLS[tool](word)
            print(f"{tool} {word} -> {result}")
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": f"Result: {result}"}]
    print(f"{MOST_STEPS} steps, and no bulb put in")
    return 1


def again() -> None:
    """The task once more in this process: `worldline attribute --agent bulbs:again` loads the SDK once."""
    sys.exit(main("kitchen"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "kitchen"))
