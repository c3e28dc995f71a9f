"""What one API must say about itself to be served, and what a platform's APIs share.

Every API is a module that fits `Dialect`; every company's conventions (credentials, headers, error shape, model list)
are a module that fits `Platform`. `routes` knows them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from worldline.testing.provider.script import Api, Ask, Fail, Say
from worldline.testing.provider.stable import Mint


@dataclass(frozen=True)
class Turn:
    """What a request's body says, in the view that `Ask` gives to scripts."""

    messages: list[Any]
    last_user: str
    tool_results: list[tuple[str, str]]


class Platform(Protocol):
    """The conventions of one company."""

    def headers(self, n: int) -> list[tuple[str, str]]:
        """The headers of every answer, for the n-th request."""

    def refusal(self, headers: Mapping[str, str]) -> Fail | None:
        """Why a request with these headers (lower-case names) is turned away, if it is."""

    def error(self, fail: Fail, n: int) -> bytes:
        """The body of an error."""

    def models(self, model: str | None) -> bytes | None:
        """The body of the model list, or of one model; None when there is no such model."""


class Dialect(Protocol):
    """One API: how to read its requests and write its answers."""

    @property
    def API(self) -> Api:
        """The API's name in `Ask.api`; a constant of the module."""

    @property
    def PATH(self) -> str:
        """The path it is served at; a constant of the module."""

    def missing(self, body: Mapping[str, Any]) -> str | None:
        """What the provider says about the first required field that is absent or malformed, if one is."""

    def turn(self, body: Mapping[str, Any]) -> Turn:
        """The request's messages and its newest turn."""

    def answer(self, say: Say, ask: Ask, mint: Mint) -> bytes:
        """The body of an answer that is not streamed."""

    def stream(self, say: Say, ask: Ask, mint: Mint) -> Iterable[bytes]:
        """The events of a streamed answer, one item each."""


def are_objects(value: Any) -> bool:
    """Whether `value` is a list of JSON objects."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts of which those with a `text` count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def usage_of(say: Say, ask: Ask, arguments: Iterable[str]) -> tuple[int, int]:
    """(input tokens, output tokens): the script's, or four characters a token."""
    if say.usage is not None:
        return say.usage
    asked = len(str(ask.messages)) + len(str(ask.tools))
    said = len(say.text) + sum(len(text) for text in arguments)
    return max(1, asked // 4), max(1, said // 4)
