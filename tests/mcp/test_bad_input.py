"""Servers that die, babble, say nothing or will not go, and clients that do the same: one clear error, nothing lost."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from tests.mcp.pipe import pipe
from worldline.engine.exchanges import Exchange
from worldline.model.events import Event
from worldline.run import Run
from worldline.store.catalog import find

GONE = -32000


def recorded() -> Run:
    return Run(find("latest", Path(".worldline/runs")))


def calls(run: Run) -> dict[str, Exchange]:
    return {each.name: each for each in run.cassette.exchanges}


def rows(run: Run, name: str) -> list[Event]:
    return [row for row in run.events() if row.name == name]


async def test_a_server_that_dies_in_a_call_is_an_error_of_that_call_and_its_code_is_said() -> None:
    async with pipe() as client:
        await client.hello()
        told = await client.call("die")
        assert told == {"code": GONE, "message": "bare ended with 3 before it answered"}
        assert await client.line() is None
        assert await client.close() == 4
        assert b"bare ended with 3" in client.err
    run = recorded()
    assert run.disposition == "complete"
    assert run.outcome == "failed"
    assert calls(run)["die"].data["error"]["type"] == "ServerEnded"


async def test_what_is_no_message_is_answered_or_shown_and_everything_else_goes_on() -> None:
    async with pipe("--max-message", "1") as client:
        await client.hello()
        for data, code in (
            (b"{broken\n", -32700),
            (b'{"jsonrpc":"1.0"}\n', -32600),
            (b"[]\n", -32600),
            (b"1\n", -32600),
        ):
            await client.raw(data)
            told = await client.line()
            assert (told["id"], told["error"]["code"]) == (None, code), data
        await client.raw(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (1 << 20) + b'"}\n')
        assert "more than 1,048,576 bytes" in (await client.line())["error"]["message"]
        assert await client.call("garbage") == "ok"
        assert (
            await client.call("echo", odd=["\ud800", 2**70, 1.0]) == '{"odd": ["\\ud800", 1180591620717411303424, 1.0]}'
        )
        assert await client.close() == 0
        assert client.err.count(b"no message of MCP") == 3
    assert next(row.data["value"] for row in rows(recorded(), "observation/mcp_stray")) == "Starting up..."


async def test_an_oversized_message_of_the_server_ends_it_with_one_error_for_whoever_waits() -> None:
    async with pipe("--max-message", "1") as client:
        await client.hello()
        waiting = await client.begin("tools/call", name="silent", arguments={})
        told = await client.call("huge")
        assert told["message"] == "bare sent a message of more than 1,048,576 bytes"
        assert [line["id"] for line in client.others] == [waiting]
        assert await client.close() == 4


async def test_a_call_that_is_never_answered_can_be_cancelled_and_the_next_one_is_answered() -> None:
    async with pipe() as client:
        await client.hello()
        waiting = await client.begin("tools/call", name="silent", arguments={})
        await client.say("notifications/cancelled", requestId=waiting, reason="enough")
        assert await client.call("echo") == "{}"
        assert await client.close() == 0
    silent = calls(recorded())["silent"]
    assert silent.given_up == "cancelled by the client: enough"


async def test_a_client_that_goes_with_a_call_under_way_leaves_it_unknown_and_nothing_running() -> None:
    async with pipe() as client:
        await client.hello()
        await client.begin("tools/call", name="silent", arguments={})
        child = int(await client.call("stubborn"))
        server, watched = os.getpgid(child), os.pidfd_open(child)
        client.process.stdin.close()
        client.process.terminate()  # as SDKs do after a while
        assert await client.close() in (0, 143)  # whichever it heard of first
    assert select.select([watched], [], [], 60)[0], "a child of the server was left running"
    os.close(watched)
    with pytest.raises(ProcessLookupError):  # the server was waited for, too
        os.kill(server, 0)
    run = recorded()
    assert run.disposition in ("complete", "partial")
    assert calls(run)["silent"].given_up is not None


async def test_a_signal_ends_the_proxy_and_its_server_and_seals_what_there_is() -> None:
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        async with pipe() as client:
            await client.hello()
            await client.begin("tools/call", name="silent", arguments={})
            assert await client.call("echo") == "{}"
            client.process.send_signal(number)
            assert await client.close() == code
        run = recorded()
        assert run.disposition == "partial"
        assert run.verify().ok


async def test_a_server_that_cannot_be_started_and_a_run_that_is_gone_are_one_line(tmp_path: Path) -> None:
    async with pipe(server=("no-such-program",)) as client:
        assert await client.close() == 4
        assert client.err == b"worldline: cannot start 'no-such-program': no such command\n"
    async with pipe(WORLDLINE_URL="http://127.0.0.1:1/gone/") as client:
        assert await client.close() == 4
        assert client.err.startswith(b"worldline: cannot reach the run at WORLDLINE_URL")
    assert not (tmp_path / ".worldline").exists(), "a recording without a crossing leaves no trace"


async def test_all_that_was_asked_before_the_client_closed_its_end_is_answered() -> None:
    async with pipe() as client:
        for number in range(5):
            await client.begin("tools/call", name="echo", arguments={"n": number})
        client.process.stdin.close()
        got = [await client.line() for _ in range(5)]
        assert [told["id"] for told in got] == [1, 2, 3, 4, 5]
        assert await client.close() == 0
    assert recorded().disposition == "complete"
