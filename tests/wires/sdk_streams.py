"""One streamed question through each streaming call of the real SDKs, and every event that the caller was given."""

from __future__ import annotations

from typing import Any, Protocol

import anthropic
import openai

TEXT = "Zwei Lampen kosten 98,00 € – 灯が二つ 💡."
ASKED: Any = [{"role": "user", "content": "refund #812"}]
Dumps = list[dict[str, Any]]


class Sdks(Protocol):
    """Where the clients come from: a `Wire`, or clients that are wrapped in process."""

    def openai(self) -> openai.OpenAI: ...

    def async_openai(self) -> openai.AsyncOpenAI: ...

    def anthropic(self) -> anthropic.Anthropic: ...

    def async_anthropic(self) -> anthropic.AsyncAnthropic: ...


def as_data(model: Any) -> dict[str, Any]:
    """What an SDK's object holds; the stream helpers put refined types where the fields name plainer ones."""
    return model.model_dump(mode="json", warnings=False)


def dumped(events: Any) -> Dumps:
    return [as_data(event) for event in events]


def chat_create(sdks: Sdks) -> Dumps:
    with sdks.openai() as client:
        return dumped(client.chat.completions.create(model="m", messages=ASKED, stream=True))


def chat_helper(sdks: Sdks) -> Dumps:
    with sdks.openai() as client, client.chat.completions.stream(model="m", messages=ASKED) as stream:
        return [*dumped(stream), as_data(stream.get_final_completion())]


def responses_create(sdks: Sdks) -> Dumps:
    with sdks.openai() as client:
        return dumped(client.responses.create(model="m", input="refund #812", stream=True))


def responses_helper(sdks: Sdks) -> Dumps:
    with sdks.openai() as client, client.responses.stream(model="m", input="refund #812") as stream:
        return [*dumped(stream), as_data(stream.get_final_response())]


def messages_create(sdks: Sdks) -> Dumps:
    with sdks.anthropic() as client:
        return dumped(client.messages.create(model="m", max_tokens=99, messages=ASKED, stream=True))


def messages_helper(sdks: Sdks) -> Dumps:
    with sdks.anthropic() as client, client.messages.stream(model="m", max_tokens=99, messages=ASKED) as stream:
        return [*dumped(stream), as_data(stream.get_final_message())]


async def chat_create_async(sdks: Sdks) -> Dumps:
    async with sdks.async_openai() as client:
        stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
        return dumped([event async for event in stream])


async def chat_helper_async(sdks: Sdks) -> Dumps:
    async with sdks.async_openai() as client, client.chat.completions.stream(model="m", messages=ASKED) as stream:
        events = dumped([event async for event in stream])
        return [*events, as_data(await stream.get_final_completion())]


async def responses_create_async(sdks: Sdks) -> Dumps:
    async with sdks.async_openai() as client:
        stream = await client.responses.create(model="m", input="refund #812", stream=True)
        return dumped([event async for event in stream])


async def responses_helper_async(sdks: Sdks) -> Dumps:
    async with sdks.async_openai() as client, client.responses.stream(model="m", input="refund #812") as stream:
        events = dumped([event async for event in stream])
        return [*events, as_data(await stream.get_final_response())]


async def messages_create_async(sdks: Sdks) -> Dumps:
    async with sdks.async_anthropic() as client:
        stream = await client.messages.create(model="m", max_tokens=99, messages=ASKED, stream=True)
        return dumped([event async for event in stream])


async def messages_helper_async(sdks: Sdks) -> Dumps:
    async with sdks.async_anthropic() as client:
        asking = client.messages.stream(model="m", max_tokens=99, messages=ASKED)
        async with asking as stream:
            events = dumped([event async for event in stream])
            return [*events, as_data(await stream.get_final_message())]


STREAMS = [
    chat_create,
    chat_helper,
    responses_create,
    responses_helper,
    messages_create,
    messages_helper,
    chat_create_async,
    chat_helper_async,
    responses_create_async,
    responses_helper_async,
    messages_create_async,
    messages_helper_async,
]
