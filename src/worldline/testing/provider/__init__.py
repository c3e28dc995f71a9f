"""A model provider for tests, on loopback and without keys: the OpenAI, Anthropic and Gemini APIs, playing a script.

    from openai import OpenAI
    from worldline.testing.provider import Provider, Say, ToolCall

    def script(ask):
        if ask.tool_results:
            return Say("It is raining.")
        return Say(calls=[ToolCall("weather", {"city": "Oslo"})])

    with Provider(script) as provider:
        client = OpenAI(base_url=provider.openai_url, api_key="test")
        ...
    assert len(provider.requests) == 2

It is a real HTTP server, so that any SDK in any language works unchanged, and it can misbehave as real ones do: refuse,
stall, break off, compress, and cut its stream at any byte. Answers depend only on what was asked: there is no clock and
no chance in them. `python -m worldline.testing.provider` runs one as a process.
"""

from __future__ import annotations

from worldline.testing.provider.provider import Provider
from worldline.testing.provider.routes import Request
from worldline.testing.provider.script import Ask, Fail, Raw, Reply, Say, Script, ToolCall, parrot

__all__ = ["Ask", "Fail", "Provider", "Raw", "Reply", "Request", "Say", "Script", "ToolCall", "parrot"]
