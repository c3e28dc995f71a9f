"""Server-sent events of the three APIs through the real SDKs: recorded, then served with the provider gone.

What an SDK reads on the replay is what it read at the record, event for event; what stands on the wire is what the
provider sent, transfer chunk for transfer chunk, borders inside characters and inside `data:` included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.wires.drive import Wire, twice
from tests.wires.sdk_streams import (
    STREAMS,
    TEXT,
    Dumps,
    chat_create,
    messages_create,
    messages_helper,
    responses_create,
)
from tests.wires.tap import Seen
from worldline.testing.provider import Ask, Say, ToolCall

CALL = ToolCall("lookup", {"order": 812, "note": "ü€💡"})


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_is_served_event_for_event_and_chunk_for_chunk(stream: Callable[[Wire], Any]) -> None:
    done = twice(stream, lambda ask: Say(TEXT, [CALL], pieces="awkward"))
    done.assert_same()
    assert any(TEXT.split()[1] in str(event) for event in done.recorded)

    [upstream], [exchange] = done.upstream, done.exchanges
    assert any(not decodes(chunk) for chunk in upstream.chunks), "no border fell inside a character"
    assert any(chunk.endswith((b"\nda", b"\n\nda")) or chunk == b"da" for chunk in upstream.chunks), "none inside data:"
    assert done.cassette.body(exchange) == upstream.body
    assert done.cassette.pieces(exchange) == [(chunk, True) for chunk in upstream.chunks]


@pytest.mark.parametrize("pieces", ["bytes:1", "bytes:7", "whole", "events"])
def test_every_cut_of_a_stream_is_kept(pieces: str) -> None:
    done = twice(chat_create, lambda ask: Say("ü€💡", pieces=pieces))
    done.assert_same()
    assert [done.cassette.pieces(exchange) for exchange in done.exchanges] == borders(done.upstream)


def test_a_stream_longer_than_many_rows_keeps_every_border() -> None:
    text = "".join(f"{number} lamps and ☂; " for number in range(9000))
    done = twice(messages_create, lambda ask: Say(text, chunk=1000, pieces="bytes:1021"))
    done.assert_same()
    [exchange] = done.exchanges
    assert len(exchange.chunks) > 10, "the body went into one row"
    assert [done.cassette.pieces(exchange)] == borders(done.upstream)


def test_the_three_apis_interleaved_in_one_run_are_served_each_its_own() -> None:
    def script(ask: Ask) -> Say:
        return Say(f"{ask.api} {TEXT}", pieces="awkward")

    def agent(wire: Wire) -> list[Dumps]:
        return [stream(wire) for stream in (chat_create, messages_helper, responses_create, chat_create)]

    done = twice(agent, script)
    done.assert_same()
    assert [exchange.name for exchange in done.exchanges] == [
        "openai.chat",
        "anthropic.messages",
        "openai.responses",
        "openai.chat",
    ]


def decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def borders(answers: list[Seen]) -> list[list[tuple[bytes, bool]]]:
    return [[(chunk, True) for chunk in answer.chunks] for answer in answers]
