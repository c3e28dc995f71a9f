"""Real streams give the facts that stand in them, and no cut, fragment border or hostile byte breaks the reading."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT, require
from worldline.model.dialects import Decision, ToolUse, Usage, read_request, read_response

CHAT, RESPONSES, MESSAGES = "openai.chat", "openai.responses", "anthropic.messages"
ROUTES = (CHAT, RESPONSES, MESSAGES)
SAMPLES = {
    "anthropic-mcp.sse": MESSAGES,
    "anthropic-parallel-tools.sse": MESSAGES,
    "anthropic-redacted-thinking.sse": MESSAGES,
    "openai-chat-0.sse": CHAT,
    "openai-chat-langchain.sse": CHAT,
    "openai-responses-text.sse": RESPONSES,
    "openai-responses-tool.sse": RESPONSES,
    "vercel-anthropic-spliced-message-start.chunks.txt": MESSAGES,
    "vercel-openai-error.1.chunks.txt": RESPONSES,
    "vercel-openai-mcp-approval.1.chunks.txt": RESPONSES,
}


@cache
def sample(name: str) -> bytes:
    """The stream as it was on the wire; the `chunks.txt` files have its payloads alone, one a line."""
    folder: Path = ROOT.parent / "shared" / "data" / "sse-streams"
    require("shared-data", folder.is_dir(), "no ../shared/data beside the checkout")
    body = (folder / name).read_bytes()
    if name.endswith(".chunks.txt"):
        return b"".join(b"data: " + line + b"\n\n" for line in body.splitlines())
    return body


def read(route_name: str, body: bytes, content_type: str = "text/event-stream") -> Decision:
    found = read_response(route_name, 200, content_type, body)
    assert found is not None
    return found


FACTS = {
    "anthropic-mcp.sse": Decision(
        model="claude-sonnet-4-5-20250929",
        response_id="msg_01Xf6SmUVY1mDrSwFc5RsY3n",
        tool_uses=(
            ToolUse(
                "mcptoolu_01FZmJ5UspaX5BB9uU339UT1",
                "ask_question",
                '{"repoName": "pydantic/pydantic-ai", "question": "What is this repository about? '
                'What are its main features and purpose?"}',
                "provider",
            ),
        ),
        finish_reasons=("end_turn",),
        usage=Usage(input_tokens=3042, output_tokens=354, cache_read=0, cache_write=0),
        complete=True,
    ),
    "anthropic-parallel-tools.sse": Decision(
        model="claude-sonnet-4-6",
        response_id="msg_01JqiwuyYfmoZBJx1GLkqxLf",
        text="I'll check both the current weather and time in New York simultaneously right away!",
        tool_uses=(
            ToolUse("toolu_01Mo5Ee5Yb7vrzaxSNS5DVuP", "get_weather", '{"location": "New York, NY"}'),
            ToolUse("toolu_01GDAGw1KUdi1DCPPprMKGHR", "get_time", '{"timezone": "America/New_York"}'),
        ),
        finish_reasons=("tool_use",),
        usage=Usage(input_tokens=721, output_tokens=113, cache_read=0, cache_write=0),
        complete=True,
    ),
    "anthropic-redacted-thinking.sse": Decision(
        model="claude-sonnet-4-5-20250929",
        response_id="msg_018XZkwvj9asBiffg3fXt88s",
        finish_reasons=("end_turn",),
        usage=Usage(input_tokens=92, output_tokens=189, cache_read=0, cache_write=0),
        complete=True,
    ),
    "openai-chat-0.sse": Decision(
        model="gpt-4o-mini-2024-07-18",
        response_id="chatcmpl-Dx0XpqH8w09uBXwq1zFGYdETjtnEl",
        tool_uses=(ToolUse("call_ZR5UUuTt3pf61kjwAJIYdVMj", "get_capital", '{"country":"UK"}'),),
        finish_reasons=("tool_calls",),
        usage=Usage(input_tokens=53, output_tokens=15, cache_read=0, reasoning=0),
        complete=True,
    ),
    "openai-chat-langchain.sse": Decision(
        model="gpt-3.5-turbo-0125",
        response_id="chatcmpl-9rD4cbxcufhWUCMSJ0LP0ZNuora53",
        text="Why couldn't the bicycle stand up by itself? It was two tired.",
        finish_reasons=("stop",),
        usage=Usage(input_tokens=18, output_tokens=15),
        complete=True,
    ),
    "openai-responses-text.sse": Decision(
        model="gpt-4o-2024-08-06",
        response_id="resp_67e554a21aa88191b65876ac5e5bbe0406c52f0e511c76ed",
        text="The capital of France is Paris.",
        finish_reasons=("completed",),
        usage=Usage(input_tokens=278, output_tokens=9, cache_read=0, reasoning=0),
        complete=True,
    ),
    "openai-responses-tool.sse": Decision(
        model="gpt-4o-2024-08-06",
        response_id="resp_67e554a155508191900ee113293c4c830794405d35281ae2",
        tool_uses=(ToolUse("call_kL0PCQV7M2WMoVX8V8OtYSAL", "get_capital", '{"country":"France"}'),),
        finish_reasons=("completed",),
        usage=Usage(input_tokens=255, output_tokens=16, cache_read=0, reasoning=0),
        complete=True,
    ),
    "vercel-anthropic-spliced-message-start.chunks.txt": Decision(
        model="claude-3-haiku-20240307",
        response_id="msg_second",
        reasoning="Let me call the tool.",
        tool_uses=(ToolUse("toolu_second", "test-tool", '{"value":"Sparkle Day"}'),),
        finish_reasons=("tool_use",),
        usage=Usage(input_tokens=17, output_tokens=65),
        complete=True,
    ),
    "vercel-openai-error.1.chunks.txt": Decision(
        model="gpt-5-nano-2025-08-07",
        response_id="resp_05500b38c2cd9bfc00691c7c9d222481a3b595421266dab424",
        error="insufficient_quota: You exceeded your current quota, please check your plan and billing details. For "
        "more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
    ),
    "vercel-openai-mcp-approval.1.chunks.txt": Decision(
        model="gpt-5-mini-2025-08-07",
        response_id="resp_04a97b4fce127879006949a837a3a48195b37f26ae73f550c0",
        tool_uses=(
            ToolUse(
                "mcpr_04a97b4fce127879006949a83ac9308195a7f7b69ea82e91fe",
                "create_short_url",
                '{"alias":"","description":"Shortened link for ai-sdk.dev","max_clicks":100,"password":"",'
                '"url":"https://ai-sdk.dev/"}',
                "approval",
            ),
        ),
        finish_reasons=("completed",),
        usage=Usage(input_tokens=422, output_tokens=48, cache_read=0, reasoning=0),
        complete=True,
    ),
}
LONG_TEXTS = {
    "anthropic-mcp.sse": ("**Pydantic-AI** is a framework for", "provider-specific complexities."),
    "anthropic-redacted-thinking.sse": ("I notice that you've sent what appears", "a legitimate task or question?"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_real_stream_is_read_to_the_facts_in_it(name: str) -> None:
    found, expected = read(SAMPLES[name], sample(name)), FACTS[name]
    for field in ("model", "response_id", "tool_uses", "finish_reasons", "usage", "complete", "error"):
        assert getattr(found, field) == getattr(expected, field), field
    if name in LONG_TEXTS:
        start, end = LONG_TEXTS[name]
        assert found.text.startswith(start)
        assert found.text.endswith(end)
    else:
        assert found.text == expected.text
    if name == "anthropic-mcp.sse":
        assert found.reasoning.startswith("The user is asking about the pydantic/pydantic-ai repository. They")
    else:
        assert found.reasoning == expected.reasoning


@given(name=st.sampled_from([name for name in SAMPLES if "spliced" not in name]), at=st.floats(0, 1))
def test_a_real_stream_cut_anywhere_keeps_a_prefix(name: str, at: float) -> None:
    body = sample(name)
    whole, part = read(SAMPLES[name], body), read(SAMPLES[name], body[: int(at * len(body))])
    assert whole.text.startswith(part.text)
    assert whole.reasoning.startswith(part.reasoning)
    for use, full in zip(part.tool_uses, whole.tool_uses, strict=False):
        assert (use.id, use.name) == (full.id, full.name)
        assert full.arguments.startswith(use.arguments)


FRAGMENTS = st.lists(
    st.text(max_size=6) | st.sampled_from(["\ud83d", "\ude00", "\u2028", "\x00", "\r\n\r\ndata: x\n\n", "[DONE]"]),
    max_size=8,
)


def joined(fragments: list[str]) -> str:
    """The text of the fragments, surrogate halves of neighbours paired."""
    return "".join(fragments).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def wire(route_name: str, fragments: list[str], *, ascii_only: bool) -> bytes:
    """A whole stream of the dialect that says the fragments."""
    payloads: list[dict[str, object]] = []
    if route_name == CHAT:
        payloads += [{"choices": [{"index": 0, "delta": {"content": part}}]} for part in fragments]
        payloads += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": {}}]
    elif route_name == RESPONSES:
        place = {"output_index": 0, "content_index": 0}
        payloads += [{"type": "response.output_text.delta", **place, "delta": part} for part in fragments]
        payloads += [{"type": "response.output_text.done", **place, "text": joined(fragments)}]
        payloads += [{"type": "response.completed", "response": {"status": "completed", "output": []}}]
    else:
        payloads += [{"type": "message_start", "message": {"content": []}}]
        payloads += [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
            for part in fragments
        ]
        payloads += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    texts = [json.dumps(payload, ensure_ascii=ascii_only) for payload in payloads]
    texts += ["[DONE]"] if route_name == CHAT else []
    return "".join(f"event: e\r\ndata: {text}\r\n\r\n" for text in texts).encode("utf-8", "replace")


@given(route_name=st.sampled_from(ROUTES), fragments=FRAGMENTS, at=st.floats(0, 1))
def test_any_stream_cut_at_any_byte_keeps_a_prefix_of_its_text(
    route_name: str, fragments: list[str], at: float
) -> None:
    body = wire(route_name, fragments, ascii_only=True)
    whole, part = read(route_name, body), read(route_name, body[: int(at * len(body))])
    assert whole.complete
    assert whole.text == joined(fragments)
    assert whole.text.startswith(part.text)


@pytest.mark.parametrize("route_name", ROUTES)
def test_every_cut_of_a_short_stream_keeps_a_prefix_and_only_the_end_is_complete(route_name: str) -> None:
    body = wire(route_name, ["é", "\U0001f600", "z"], ascii_only=False)
    parts = [read(route_name, body[:cut]) for cut in range(len(body) + 1)]
    assert all("é\U0001f600z".startswith(part.text) for part in parts)
    assert [part.complete for part in parts] == sorted(part.complete for part in parts), "complete stays complete"
    assert not parts[len(body) // 2].complete
    assert parts[-1].complete
    assert parts[-1].error is None


WHOLE = {
    CHAT: {
        "id": "c",
        "choices": [{"message": {"content": 'a\\"\n\U0001f600 end', "tool_calls": []}, "finish_reason": "stop"}],
        "model": "gpt-5",
        "usage": {"prompt_tokens": 1234, "completion_tokens": 56},
    },
    RESPONSES: {
        "id": "c",
        "model": "gpt-5",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": 'a\\"\n\U0001f600 end'}]}],
        "status": "completed",
        "usage": {"input_tokens": 1234, "output_tokens": 56},
    },
    MESSAGES: {
        "id": "c",
        "model": "gpt-5",
        "content": [{"type": "text", "text": 'a\\"\n\U0001f600 end'}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1234, "output_tokens": 56},
    },
}


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("route_name", ROUTES)
def test_every_cut_of_a_json_answer_keeps_only_what_is_sure(route_name: str, ascii_only: bool) -> None:
    body = json.dumps(WHOLE[route_name], ensure_ascii=ascii_only).encode()
    whole = read(route_name, body, "application/json")
    assert (whole.complete, whole.text) == (True, 'a\\"\n\U0001f600 end')
    texts = set()
    for cut in range(len(body)):
        part = read(route_name, body[:cut], "application/json")
        assert not part.complete
        assert part.error is None
        assert whole.text.startswith(part.text)
        assert part.model in (None, "gpt-5"), "half a name is no name"
        assert part.usage is None or part.usage.input_tokens in (None, 1234), "half a number is no number"
        texts.add(part.text)
    assert len(texts) > 5, "the beginning of a cut text is kept"


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(
        ["text", "tool_use", "thinking", "message", "function_call", "mcp_call", "reasoning", "user", "tool"]
    )
    | st.sampled_from(
        ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"]
    )
    | st.sampled_from(
        ["response.completed", "response.output_item.done", "response.output_text.delta", "error", "\ud800"]
    )
)
WORDS = st.sampled_from(
    [
        *("type", "index", "delta", "message", "content", "content_block", "text", "role", "choices"),
        *(
            "tool_calls",
            "function",
            "function_call",
            "arguments",
            "id",
            "name",
            "usage",
            "input_tokens",
            "prompt_tokens",
        ),
        *("error", "response", "output", "output_index", "item", "summary", "status", "model", "messages"),
        *(
            "input",
            "tools",
            "tool_use_id",
            "partial_json",
            "stop_reason",
            "finish_reason",
            "incomplete_details",
            "action",
            "environment",
        ),
    ]
)
HOSTILE = st.dictionaries(
    WORDS,
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5)),
    max_size=8,
)


@given(route_name=st.sampled_from(ROUTES), payloads=st.lists(HOSTILE, max_size=4))
def test_json_of_any_shape_never_raises(route_name: str, payloads: list[dict[str, object]]) -> None:
    texts = [json.dumps(payload).encode() for payload in payloads]
    read(route_name, b"".join(b"data: " + text + b"\n\n" for text in texts))
    for text in texts:
        read(route_name, text, "application/json")
        assert read_request(route_name, text) is not None


@given(
    route_name=st.sampled_from(ROUTES),
    body=st.binary(max_size=200),
    status=st.integers(100, 599),
    kind=st.text(max_size=5),
)
def test_bytes_of_any_kind_never_raise(route_name: str, body: bytes, status: int, kind: str) -> None:
    read_response(route_name, status, kind, body)
    read_response(route_name, status, "text/event-stream", b"data: " + body + b"\n\n")
    read_response(route_name, status, kind, b'{"choices":[' + body)
    read_request(route_name, body)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"[" * 5000 + b"]" * 5000, id="deep"),
        pytest.param(b"[" * 200_000, id="deep and open"),
        pytest.param(b"9" * 10_000, id="an integer that Python refuses to parse"),
        pytest.param(b"18446744073709551617", id="2^64 + 1"),
        pytest.param(b"NaN", id="not a number"),
        pytest.param(b"-Infinity", id="infinity"),
        pytest.param(b'"\\ud800"', id="a lone surrogate"),
        pytest.param(b'"\\u0000"', id="NUL"),
        pytest.param(b"\x00", id="a raw NUL"),
    ],
)
@pytest.mark.parametrize("route_name", ROUTES)
def test_a_hostile_value_hurts_nothing_around_it(route_name: str, value: bytes) -> None:
    good = wire(route_name, ["said"], ascii_only=True)
    bad = b'data: {"model":%b,"temperature":%b,"usage":{"input_tokens":%b,"prompt_tokens":%b}}\n\n' % ((value,) * 4)
    assert read(route_name, bad + good).text == "said"
    for body in (bad[6:-2], bad[6:40]):
        read(route_name, body, "application/json")
        read_request(route_name, body)


def test_lone_surrogates_are_kept_and_halves_are_joined() -> None:
    assert read(CHAT, wire(CHAT, ["a\ud83d", "\ude00b\ud800", "c"], ascii_only=True)).text == "a\U0001f600b\ud800c"
    begun = wire(CHAT, ["a\ud83d", "\ude00b"], ascii_only=True).split(b"\r\n\r\n")[0] + b"\r\n\r\n"
    assert read(CHAT, begun).text == "a", "half a character waits for its other half"


def test_numbers_that_no_reader_keeps_exactly_are_not_facts() -> None:
    counts = b'{"prompt_tokens": 18446744073709551617, "completion_tokens": 12.0}'
    found = read(CHAT, b'{"choices": [], "usage": %b}' % counts, "application/json")
    assert found.usage == Usage(input_tokens=None, output_tokens=12)
    absurd = read(
        CHAT, b'{"usage": {"prompt_tokens": %b, "completion_tokens": 1}}' % (b"9" * 10_000), "application/json"
    )
    assert (absurd.usage, absurd.error) == (Usage(input_tokens=None, output_tokens=1), None)
    found_ask = read_request(CHAT, b'{"temperature": NaN, "top_p": true, "seed": 1e999, "max_tokens": 4}')
    assert found_ask is not None
    assert (found_ask.temperature, found_ask.top_p, found_ask.seed, found_ask.max_tokens) == (None, None, None, 4)
