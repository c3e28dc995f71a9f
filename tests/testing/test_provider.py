"""To the real SDKs the provider is one; it lives in a thread or a process, and is gone when stopped."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.testing.sdk_calls import (
    ASKED,
    ASYNC,
    KEY,
    SYNC,
    Told,
    chat,
    chat_stream,
    client_for,
    messages,
    messages_stream,
    of_chat,
    of_message,
    of_response,
    responses,
    responses_stream,
)
from worldline.errors import PortInUse
from worldline.testing.provider import Ask, Fail, Provider, Reply, Say, ToolCall

TEXT = "Zwei Lampen kosten 98,00 € – 灯が二つ 💡."
CALLS = (ToolCall("lookup", {"order": 812, "note": "ü€💡"}), ToolCall("ping"))
SCRIPTED = Say(TEXT, CALLS, usage=(17, 5))
EXPECTED: Told = (TEXT, [("lookup", {"order": 812, "note": "ü€💡"}), ("ping", {})], (17, 5))

FORMS = [
    Say(TEXT, CALLS, usage=(17, 5)),
    Say(TEXT, CALLS, usage=(17, 5), pieces="bytes:1", chunk=1),
    Say(TEXT, CALLS, usage=(17, 5), pieces="awkward", framing="close"),
    Say(TEXT, CALLS, usage=(17, 5), pieces="bytes:7", encoding="gzip"),
    Say(TEXT, CALLS, usage=(17, 5), pieces="events", encoding="deflate", framing="length"),
]


@pytest.mark.parametrize("form", FORMS, ids=["plain", "by-byte", "awkward-close", "gzip", "deflate-length"])
@pytest.mark.parametrize("call", SYNC, ids=lambda call: call.__name__)
def test_the_sync_sdks_understand_every_form(call: Callable[[Any], Told], form: Say) -> None:
    with Provider(lambda ask: form) as provider, client_for(call, provider) as client:
        assert call(client) == EXPECTED
        assert [request.method for request in provider.requests] == ["POST"]


@pytest.mark.parametrize("call", ASYNC, ids=lambda call: call.__name__)
async def test_the_async_sdks_understand_it(call: Callable[[Any], Any]) -> None:
    with Provider(lambda ask: SCRIPTED) as provider:
        async with client_for(call, provider, asynchronous=True) as client:
            assert await call(client) == EXPECTED


@pytest.mark.parametrize("call", SYNC, ids=lambda call: call.__name__)
def test_a_429_is_retried_and_the_script_sees_which_attempt_it_is(call: Callable[[Any], Told]) -> None:
    def script(ask: Ask) -> Reply:
        return SCRIPTED if ask.attempt == 1 else Fail(429, headers={"retry-after-ms": "1"})

    with Provider(script) as provider, client_for(call, provider, retries=1) as client:
        assert call(client) == EXPECTED
        assert len(provider.requests) == 2
        assert provider.requests[0].body == provider.requests[1].body


@pytest.mark.parametrize("call", [chat_stream, responses_stream, messages_stream], ids=lambda call: call.__name__)
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_an_abort_in_mid_stream_reaches_the_agent_as_an_error(call: Callable[[Any], Told], framing: Any) -> None:
    with (
        Provider(lambda ask: Say(TEXT, abort_after=4, framing=framing)) as provider,
        client_for(call, provider) as client,
        pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError, httpx2.TransportError)),
    ):
        call(client)


def test_errors_have_each_platforms_type_and_message() -> None:
    def script(ask: Ask) -> Reply:
        return Fail(529 if ask.api == "anthropic.messages" else 400, message="told so", type="some_type")

    with Provider(script) as provider:
        with client_for(chat, provider) as client, pytest.raises(openai.BadRequestError) as refused:
            chat(client)
        assert (refused.value.type, refused.value.code) == ("some_type", None)
        assert refused.value.request_id == "req_000000000000"
        with client_for(messages, provider) as client, pytest.raises(anthropic.APIStatusError) as overloaded:
            messages(client)
        assert overloaded.value.status_code == 529
        assert overloaded.value.body == {
            "type": "error",
            "error": {"type": "some_type", "message": "told so"},
            "request_id": "req_000000000001",
        }


@pytest.mark.parametrize("call", [chat, responses, messages], ids=lambda call: call.__name__)
def test_the_parrot_calls_tools_in_parallel_and_quotes_their_results(call: Callable[[Any], Told]) -> None:
    asked = 'call lookup {"order": 812}\nand\ncall ping'
    with Provider() as provider, client_for(call, provider) as client:
        if call is chat:
            first: Any = client.chat.completions.create(model="m", messages=[{"role": "user", "content": asked}])
            assert of_chat(first)[:2] == ("and", [("lookup", {"order": 812}), ("ping", {})])
            turn = first.choices[0].message
            results = [
                {"role": "tool", "tool_call_id": called.id, "content": f"result {n}\nüber"}
                for n, called in enumerate(turn.tool_calls)
            ]
            said = client.chat.completions.create(model="m", messages=[*ASKED, turn, *results])
            assert of_chat(said)[:2] == ("> result 0\n> über\n> result 1\n> über", [])
        elif call is responses:
            first = client.responses.create(model="m", input=asked)
            assert of_response(first)[:2] == ("and", [("lookup", {"order": 812}), ("ping", {})])
            results = [
                {"type": "function_call_output", "call_id": item.call_id, "output": f"result {n}"}
                for n, item in enumerate(item for item in first.output if item.type == "function_call")
            ]
            said = client.responses.create(model="m", input=[*ASKED, *first.output, *results])
            assert of_response(said)[:2] == ("> result 0\n> result 1", [])
        else:
            first = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": asked}])
            assert of_message(first)[:2] == ("and", [("lookup", {"order": 812}), ("ping", {})])
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": f"result {n}"}
                for n, block in enumerate(block for block in first.content if block.type == "tool_use")
            ]
            history: Any = [
                *ASKED,
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": results},
            ]
            said = client.messages.create(model="m", max_tokens=9, messages=history)
            assert of_message(said)[:2] == ("> result 0\n> result 1", [])


def test_stop_cuts_open_answers_and_refuses_new_connections() -> None:
    with Provider(lambda ask: Say(TEXT, delay=3600)) as provider:
        with client_for(chat, provider) as client:
            stream = client.chat.completions.create(model="m", messages=ASKED, stream=True)
            assert next(stream).choices[0].delta.role == "assistant"
            provider.stop()
            with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
                list(stream)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", provider.port))
        provider.stop()
    assert len(provider.requests) == 1


def test_stop_also_cuts_connections_that_came_a_moment_ago_and_sent_nothing() -> None:
    for _ in range(20):
        provider = Provider().start()
        waiting = [socket.create_connection(("127.0.0.1", provider.port), timeout=60) for _ in range(3)]
        provider.stop()
        for connection in waiting:
            # Reset, where the kernel had it but the provider had not yet accepted it.
            with connection, contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""


def test_an_async_script_can_hold_one_answer_until_another_call_has_come() -> None:
    second_came = asyncio.Event()

    async def script(ask: Ask) -> Reply:
        if ask.last_user == "first":
            await second_came.wait()
        else:
            second_came.set()
        return Say(ask.last_user)

    async def both(provider: Provider) -> list[str]:
        order: list[str] = []
        async with client_for(chat, provider, asynchronous=True) as client:

            async def ask(text: str) -> None:
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
                order.append(text)

            await asyncio.gather(ask("first"), ask("second"))
        return order

    with Provider(script) as provider:
        assert sorted(asyncio.run(both(provider))) == ["first", "second"]


def test_what_a_script_raises_is_a_500_to_the_agent_and_raised_when_the_provider_ends() -> None:
    def script(ask: Ask) -> Reply:
        raise LookupError("no line for this")

    with pytest.raises(LookupError, match="no line for this"), Provider(script) as provider:
        with (
            client_for(chat, provider, retries=2) as client,
            pytest.raises(openai.InternalServerError, match="no line"),
        ):
            chat(client)
        assert len(provider.requests) == 1, "a broken script is not worth a retry"


def test_a_taken_port_is_said() -> None:
    with Provider() as provider, pytest.raises(PortInUse, match=str(provider.port)):
        Provider(port=provider.port).start()


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_as_a_process_it_says_where_it_is_logs_and_ends_when_told(end: str, tmp_path: Any) -> None:
    (tmp_path / "lines.py").write_text(
        "from worldline.testing.provider import Say\n\ndef script(ask):\n    return Say('as scripted')\n"
    )
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "worldline.testing.provider", "--script", "lines:script", "--log", str(log)]
    with running(command, tmp_path) as process:
        urls = json.loads(process.stdout.readline())
        with openai.OpenAI(base_url=urls["openai"], api_key=KEY) as client:
            assert chat(client)[0] == "as scripted"
        if end == "stdin":
            process.stdin.close()
        else:
            process.terminate()
        assert process.wait(120) == 0
    [line] = map(json.loads, log.read_text().splitlines())
    assert json.loads(line["body"])["messages"] == ASKED
    assert KEY not in log.read_text()


def test_a_script_that_cannot_be_found_is_said_with_exit_code_64(tmp_path: Any) -> None:
    command = [sys.executable, "-m", "worldline.testing.provider", "--script", "nowhere:script"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 64
    assert "nowhere" in done.stderr and "Traceback" not in done.stderr


def running(command: list[str], where: Any) -> Any:
    return subprocess.Popen(command, cwd=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
