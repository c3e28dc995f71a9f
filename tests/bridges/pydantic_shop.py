"""Agents of pydantic-ai for the tests of its bridge, made anew in each run as programs make them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.exceptions import ModelAPIError, ModelRetry, ToolFailed
from pydantic_ai.messages import BinaryContent, ModelResponse, TextPart, ToolCallPart, ToolReturn
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_core import to_jsonable_python

import worldline as wl
from worldline.seams.bridges.pydantic_ai import Worldline

RAN: list[str] = []


class Shop:
    """A clerk with three tools, whose model is at `base`."""

    def __init__(self, base: str | Callable[[Any], str], **tools: Any) -> None:
        self.base = base
        self.tools = {"stock": "pure", **tools}
        self.result: Any = None

    def agent(self, model: Any) -> Any:
        agent = Agent(model, deps_type=str, capabilities=[Worldline(tools=self.tools)])

        @agent.tool_plain
        def stock(item: str) -> dict[str, Any]:
            RAN.append(f"stock {item}")
            return {"item": item, "pieces": 2}

        @agent.tool_plain
        @wl.tool(effect="pure")
        async def price(item: str, currency: str = "EUR") -> str:
            RAN.append(f"price {item}")
            return f"49 {currency}"

        @agent.tool
        def send_mail(context: RunContext[str], to: str) -> str:
            RAN.append(f"mail {to}")
            return f"{context.deps} mailed {to}"

        return agent

    def model(self, run: Any) -> Any:
        base = self.base if isinstance(self.base, str) else self.base(run)
        return OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=base, api_key="none"))

    async def main(self, run: Any) -> Any:
        async with self.agent(self.model(run)) as agent:
            return await agent.run("hello", deps="ann")

    def __call__(self) -> None:
        with wl.record("runs") as run:
            self.result = asyncio.run(self.main(run))


class Function:
    """An agent whose model is a function: nothing of it goes over a wire."""

    def __init__(self, answer: Callable[..., Any], stream: Any = None) -> None:
        self.answer = answer
        self.stream = stream
        self.within: Any = nullcontext  # what is around it, given the run
        self.asked = 0
        self.result: Any = None

    def model(self) -> Any:
        def answered(messages: list[Any], info: Any) -> Any:
            self.asked += 1
            return self.answer(messages)

        return FunctionModel(answered, stream_function=self.stream)

    def agent(self) -> Any:
        return Agent(
            self.model(), name="fn", capabilities=[Worldline(tools={"look": "pure"})], instructions="Be brief."
        )

    def __call__(self) -> None:
        with wl.record("runs") as run, self.within(run):
            self.result = asyncio.run(self.agent().run("hello"))


class Thing(BaseModel):
    """What `look` is given, and `fields` returns."""

    name: str
    size: int


class Looking(Function):
    """Its tools return and raise what the framework has forms of its own for."""

    def agent(self) -> Any:
        agent = super().agent()

        @agent.tool_plain
        def look(at: Thing) -> str:
            RAN.append(at.name)
            if at.name == "retry":
                raise ModelRetry("look again")
            if at.name == "fail":
                raise ToolFailed("nothing there")
            return f"{at.name} {at.size}"

        @agent.tool_plain
        def picture() -> BinaryContent:
            RAN.append("picture")
            return BinaryContent(b"\x89PNG", media_type="image/png")

        @agent.tool_plain
        def both() -> ToolReturn:
            RAN.append("both")
            return ToolReturn("short", content=["long", BinaryContent(b"\x89PNG", media_type="image/png")])

        @agent.tool_plain
        def fields() -> Thing:
            RAN.append("fields")
            return Thing(name="b", size=2)

        return agent


def saying(text: str) -> Function:
    """An agent that says this."""
    return Function(lambda messages: ModelResponse(parts=[TextPart(text)]))


class Several(Shop):
    """A clerk whose first model never answers, and is none that a wire could be heard of."""

    def model(self, run: Any) -> Any:
        def broken(messages: list[Any]) -> Any:
            raise ModelAPIError("fn", "not today")

        return FallbackModel(Function(broken).model(), super().model(run))


class Asking(Function):
    """An agent one of whose tools asks another agent."""

    def __init__(self, other: Function) -> None:
        super().__init__(lambda messages: ModelResponse(parts=[self.says(messages)]))
        self.other = other

    @staticmethod
    def says(messages: list[Any]) -> Any:
        return TextPart("done") if len(messages) > 1 else ToolCallPart("research", {})

    def agent(self) -> Any:
        agent = super().agent()

        @agent.tool_plain
        async def research() -> str:
            RAN.append("research")
            return str((await self.other.agent().run("look")).output)

        return agent


def contents(result: Any) -> list[Any]:
    """What the parts of all messages hold, as a model is told it."""
    return [
        to_jsonable_python(getattr(part, "content", None), bytes_mode="base64")
        for message in result.all_messages()
        for part in message.parts
    ]
