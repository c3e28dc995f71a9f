"""Graphs of LangGraph for the tests of its bridge. `python -m tests.bridges.graphs STORE` runs one that is killed."""

from __future__ import annotations

import operator
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

import worldline as wl
from worldline.seams.bridges.langgraph import WorldlineSaver

RAN: list[str] = []
CONFIG: Any = {"configurable": {"thread_id": "order-812"}}


__all__ = ["Command", "InMemorySaver", "Send", "WorldlineSaver"]


class Note(BaseModel):
    """A class of the agent's own in its state."""

    text: str


class State(TypedDict):
    """What the graph knows."""

    messages: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]
    note: Note | None


def graph(saver: WorldlineSaver | None, mail: Callable[[], str]) -> Any:
    """Looks in two places at once, mails, and says what came of it."""
    builder = StateGraph(State)

    def look(place: str) -> Callable[[State], dict[str, Any]]:
        def looked(state: State) -> dict[str, Any]:
            RAN.append(f"look {place}")
            return {"seen": [place]}

        return looked

    def mailed(state: State) -> dict[str, Any]:
        RAN.append("mail")
        return {"messages": [AIMessage(mail())], "note": Note(text="mailed")}

    def done(state: State) -> dict[str, Any]:
        RAN.append("done")
        return {"messages": [HumanMessage(f"{sorted(state['seen'])} {state['note']!r}")]}

    for place in ("shelf", "cellar"):
        builder.add_node(place, look(place))
        builder.add_edge(START, place)
        builder.add_edge(place, "mail")
    builder.add_node("mail", mailed)
    builder.add_node("done", done)
    builder.add_edge("mail", "done")
    builder.add_edge("done", END)
    return builder.compile(checkpointer=saver)


def asking(saver: WorldlineSaver) -> Any:
    """Asks a person in the midst of a node, and sends what they said to other nodes."""
    builder = StateGraph(State)

    def ask(state: State) -> Command[Any]:
        RAN.append("ask")
        answer = interrupt({"question": "which order?"})
        return Command(goto=[Send("fetch", {"order": order}) for order in answer], update={"seen": ["asked"]})

    def fetch(sent: Any) -> dict[str, Any]:
        RAN.append(f"fetch {sent['order']}")
        return {"seen": [f"order {sent['order']}"]}

    builder.add_node("ask", ask)
    builder.add_node("fetch", fetch)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


async def conformance() -> Any:
    """LangGraph's own suite over the saver, within a run; its report."""

    @checkpointer_test(name="WorldlineSaver")
    async def saver() -> AsyncIterator[Any]:
        yield WorldlineSaver()

    async with wl.record("conformance"):
        return await validate(saver, capabilities={"put", "put_writes", "get_tuple", "list", "delete_thread"})


def killed(store: str) -> None:
    """Record a graph whose process is killed in the midst of its mail."""

    def mail() -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return "never"

    with wl.record(store):
        graph(WorldlineSaver(types=[Note]), mail).invoke({"messages": ["hello"]}, CONFIG, durability="sync")


if __name__ == "__main__":
    killed(str(Path(sys.argv[1])))
