"""One question to the provider through each API of the real SDKs, and what they made of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai

from worldline.testing.provider import Provider

KEY = "test-" + "key"
ASKED = [{"role": "user", "content": "refund #812"}]

Told = tuple[str, list[tuple[str, Any]], tuple[int, int]]
"""What an SDK made of an answer: the text, the calls by name and arguments, the usage."""


def chat(client: openai.OpenAI) -> Told:
    return of_chat(client.chat.completions.create(model="m", messages=ASKED))


def chat_stream(client: openai.OpenAI) -> Told:
    with client.chat.completions.stream(model="m", messages=ASKED, stream_options={"include_usage": True}) as stream:
        deltas = "".join(event.delta for event in stream if event.type == "content.delta")
        told = of_chat(stream.get_final_completion())
    assert deltas == told[0]
    return told


def responses(client: openai.OpenAI) -> Told:
    return of_response(client.responses.create(model="m", input="refund #812"))


def responses_stream(client: openai.OpenAI) -> Told:
    with client.responses.stream(model="m", input="refund #812") as stream:
        events = list(stream)
        told = of_response(stream.get_final_response())
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == told[0]
    return told


def messages(client: anthropic.Anthropic) -> Told:
    return of_message(client.messages.create(model="m", max_tokens=99, messages=ASKED))


def messages_stream(client: anthropic.Anthropic) -> Told:
    with client.messages.stream(model="m", max_tokens=99, messages=ASKED) as stream:
        deltas = "".join(stream.text_stream)
        told = of_message(stream.get_final_message())
    assert deltas == told[0]
    return told


async def chat_async(client: openai.AsyncOpenAI) -> Told:
    return of_chat(await client.chat.completions.create(model="m", messages=ASKED))


async def chat_stream_async(client: openai.AsyncOpenAI) -> Told:
    options: Any = {"include_usage": True}
    async with client.chat.completions.stream(model="m", messages=ASKED, stream_options=options) as stream:
        return of_chat(await stream.get_final_completion())


async def responses_async(client: openai.AsyncOpenAI) -> Told:
    return of_response(await client.responses.create(model="m", input="refund #812"))


async def responses_stream_async(client: openai.AsyncOpenAI) -> Told:
    async with client.responses.stream(model="m", input="refund #812") as stream:
        return of_response(await stream.get_final_response())


async def messages_async(client: anthropic.AsyncAnthropic) -> Told:
    return of_message(await client.messages.create(model="m", max_tokens=99, messages=ASKED))


async def messages_stream_async(client: anthropic.AsyncAnthropic) -> Told:
    async with client.messages.stream(model="m", max_tokens=99, messages=ASKED) as stream:
        return of_message(await stream.get_final_message())


def of_chat(completion: Any) -> Told:
    [choice] = completion.choices
    assert choice.finish_reason == ("tool_calls" if choice.message.tool_calls else "stop")
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls or []]
    return choice.message.content, calls, (completion.usage.prompt_tokens, completion.usage.completion_tokens)


def of_response(response: Any) -> Told:
    assert response.status == "completed"
    calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
    return response.output_text, calls, (response.usage.input_tokens, response.usage.output_tokens)


def of_message(message: Any) -> Told:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    assert message.stop_reason == ("tool_use" if calls else "end_turn")
    return text, calls, (message.usage.input_tokens, message.usage.output_tokens)


SYNC = [chat, chat_stream, responses, responses_stream, messages, messages_stream]
ASYNC = [
    chat_async,
    chat_stream_async,
    responses_async,
    responses_stream_async,
    messages_async,
    messages_stream_async,
]


def client_for(call: Callable[[Any], Any], provider: Provider, *, asynchronous: bool = False, retries: int = 0) -> Any:
    if call.__name__.startswith("messages"):
        made = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
        return made(base_url=provider.anthropic_url, api_key=KEY, max_retries=retries)
    maker = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    return maker(base_url=provider.openai_url, api_key=KEY, max_retries=retries)
