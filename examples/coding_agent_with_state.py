"""The coding agent of `coding_agent.py` with a state that can be given back: a fork needs not drive it there again.

    python examples/coding_agent_with_state.py ["Make test_slug.py pass."]

`dump` and `load` are all that it takes. Each turn is a step whose checkpoint holds the folder and the conversation, and
a branch that restores goes on from both.
"""

from __future__ import annotations

import sys
from typing import Any

from coding_agent import Coder, verdict
from openai import OpenAI

import worldline as wl


class Kept(Coder):
    """A coder that says what it knows, and goes on from it."""

    schema = "coding-agent/1"

    def dump(self) -> Any:
        """The conversation so far."""
        return {"messages": self.messages}

    def load(self, state: Any) -> None:
        """Go on from a conversation."""
        self.messages = state["messages"]


def main(task: str) -> int:
    """Work on one task in the current folder, and judge it."""
    coder = Kept(task)
    with wl.record(task=task, workspace=".") as run, OpenAI() as client:
        run.restore(coder)
        goes_on = True
        while goes_on:
            with run.step(state=coder):
                goes_on = coder.turn(client)
        return verdict()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "Make test_slug.py pass."))
