"""Agents of LangChain for the tests of its bridge: a model over the OpenAI SDK, tools, and an agent within a tool."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool

import worldline as wl
from worldline.seams.bridges.langchain import WorldlineHandler
from worldline.seams.lanes import lane

__all__ = ["GenericFakeChatModel", "lane"]
RAN: list[str] = []
ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}


class Chat(BaseChatModel):
    """A chat model whose calls go over the wire, through the client that it is given."""

    client: Any
    model: str = "gpt-5"

    @property
    def _llm_type(self) -> str:
        return "chat"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        said = self.client.chat.completions.create(model=self.model, messages=[wired(m) for m in messages])
        answer = said.choices[0].message
        calls = [
            {"name": call.function.name, "args": json.loads(call.function.arguments), "id": call.id}
            for call in answer.tool_calls or ()
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer.content or "", tool_calls=calls))])


class Silent(BaseChatModel):
    """A model that no wire is heard of; it answers once `until` is set."""

    until: Any

    @property
    def _llm_type(self) -> str:
        return "silent"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        assert self.until.wait(60)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("silent"))])


def wired(message: BaseMessage) -> dict[str, Any]:
    out: dict[str, Any] = {"role": ROLES[message.type], "content": message.content}
    if isinstance(message, ToolMessage):
        out["tool_call_id"] = message.tool_call_id
    if isinstance(message, AIMessage) and message.tool_calls:
        out["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
            }
            for call in message.tool_calls
        ]
    return out


def agent_of(model: Any, tools: list[BaseTool]) -> Any:
    """A chain that asks and runs tools until there is nothing left to run."""
    by_name = {each.name: each for each in tools}

    def loop(text: str, config: Any) -> str:
        messages: list[BaseMessage] = [HumanMessage(text)]
        while True:
            answer = model.invoke(messages, config)
            messages.append(answer)
            if not answer.tool_calls:
                return str(answer.content)
            for call in answer.tool_calls:
                try:
                    messages.append(by_name[call["name"]].invoke(call, config))
                except ValueError as error:
                    messages.append(ToolMessage(f"error: {error}", tool_call_id=call["id"]))

    return RunnableLambda(loop)


@tool
@wl.tool(effect="pure")
def stock(item: str) -> str:
    """How much there is."""
    RAN.append(f"stock {item}")
    return f"{item}: 2"


@tool
def mail(to: str) -> str:
    """Mail somebody."""
    RAN.append(f"mail {to}")
    if to == "nobody":
        raise ValueError("no address")
    return f"mailed {to}"


def research_of(model: Any) -> BaseTool:
    """A tool that is an agent."""

    @tool
    def research(question: str) -> str:
        """Ask another agent."""
        return str(agent_of(model, [stock]).invoke(question))

    return research


def run(chain: Any, text: str) -> str:
    return str(chain.invoke(text, {"callbacks": [WorldlineHandler()]}))


async def arun(chains: list[Any], text: str) -> list[str]:
    """Several chains of one loop at once, under one handler."""
    handler = WorldlineHandler()
    return list(await asyncio.gather(*(chain.ainvoke(text, {"callbacks": [handler]}) for chain in chains)))
