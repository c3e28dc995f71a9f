"""Requests and JSON answers of the three dialects become the same facts, by hand-written bodies of each wire."""

from __future__ import annotations

import json

import pytest

from worldline.model.dialects import (
    Ask,
    Decision,
    ToolResult,
    ToolUse,
    Usage,
    gen_ai_request,
    gen_ai_response,
    read_request,
    read_response,
    route,
    what_changed,
)

CHAT, RESPONSES, MESSAGES = "openai.chat", "openai.responses", "anthropic.messages"


def ask(route_name: str, body: object) -> Ask:
    found = read_request(route_name, json.dumps(body).encode())
    assert found is not None
    return found


def answer(route_name: str, body: object, status: int = 200) -> Decision:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    found = read_response(route_name, status, "application/json", raw)
    assert found is not None
    return found


def stream(route_name: str, *payloads: object, end: bytes = b"") -> Decision:
    body = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads) + end
    found = read_response(route_name, 200, "text/event-stream; charset=utf-8", body)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("method", "path", "name", "tail"),
    [
        ("POST", "/v1/chat/completions", CHAT, "/chat/completions"),
        ("POST", "/openai/deployments/x/chat/completions?api-version=1", CHAT, "/chat/completions"),
        ("post", "/chat/completions/", CHAT, "/chat/completions"),
        ("GET", "/v1/chat/completions", "http", "/v1/chat/completions"),
        ("POST", "/v1/completions", "openai.completions", "/completions"),
        ("POST", "/v1/responses", RESPONSES, "/responses"),
        ("GET", "/v1/responses/resp_1?stream=true", "openai.responses.retrieve", "/responses/resp_1"),
        ("POST", "/anthropic/v1/messages?beta=true", MESSAGES, "/messages"),
        ("POST", "/v1/messages/count_tokens", "anthropic.count_tokens", "/messages/count_tokens"),
        ("POST", "/v1/threads/t_1/messages", "openai.threads.messages", "/threads/t_1/messages"),
        ("POST", "/v1/embeddings", "openai.embeddings", "/embeddings"),
        ("GET", "/v1/models/gpt-5", "openai.models", "/models/gpt-5"),
        (
            "POST",
            "/v1beta/models/gemini-2:streamGenerateContent?alt=sse",
            "gemini.generate",
            "/models/gemini-2:streamGenerateContent",
        ),
        ("POST", "/upload?x=1", "http", "/upload"),
        ("POST", "/mychat/completionsX", "http", "/mychat/completionsX"),
        ("POST", "", "http", ""),
    ],
)
def test_an_endpoint_is_known_by_the_tail_of_its_path(method: str, path: str, name: str, tail: str) -> None:
    found = route(method, path)
    assert (found.name, found.tail) == (name, tail)


CHAT_REQUEST = {
    "model": "gpt-5",
    "stream": True,
    "temperature": 0,
    "max_tokens": 5,
    "max_completion_tokens": 900,
    "seed": 7,
    "tools": [
        {
            "type": "function",
            "function": {"name": "lookup_order", "description": "d", "parameters": {"type": "object"}},
        },
        {"type": "custom", "custom": {"name": "shell"}},
    ],
    "messages": [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "refund"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_7",
                    "type": "function",
                    "function": {"name": "lookup_order", "arguments": '{"order": 812}'},
                },
                {"id": "call_8", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_7", "content": "lamp"},
        {
            "role": "tool",
            "tool_call_id": "call_8",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
    ],
}

MESSAGES_REQUEST = {
    "model": "claude",
    "max_tokens": 100,
    "system": "be kind",
    "tools": [{"name": "lookup_order", "input_schema": {}}, {"type": "web_search_20250305", "name": "web_search"}],
    "messages": [
        {"role": "user", "content": "refund"},
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srv_1",
                    "content": [{"type": "web_search_result", "url": "u"}],
                },
                {"type": "tool_use", "id": "toolu_1", "name": "lookup_order", "input": {"order": 812}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "lamp"}, {"type": "image", "source": {}}],
                }
            ],
        },
    ],
}

RESPONSES_REQUEST = {
    "model": "gpt-5",
    "max_output_tokens": 50,
    "previous_response_id": "resp_0",
    "tools": [
        {"type": "function", "name": "lookup_order", "parameters": {}},
        {"type": "web_search"},
        {"type": "mcp", "server_label": "zip1"},
    ],
    "input": [
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": [{"type": "input_text", "text": "refund"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "call_7", "name": "lookup_order", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_7", "output": "lamp"},
        {"type": "custom_tool_call_output", "call_id": "call_8", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "mcp_call", "id": "mcp_1", "name": "shorten", "arguments": "{}", "output": "zip"},
    ],
}


def test_a_chat_request_is_read() -> None:
    found = ask(CHAT, CHAT_REQUEST)
    assert (found.model, found.stream, found.temperature, found.top_p) == ("gpt-5", True, 0, None)
    assert (found.max_tokens, found.seed) == (900, 7)
    assert found.tool_names == ("lookup_order", "shell")
    assert found.roles == ("system", "user", "assistant", "tool", "tool")
    assert found.last_user == "refund\n[image]"
    assert found.tool_uses[1] == ToolUse("call_8", "shell", "ls")
    assert found.tool_results == (
        ToolResult("call_7", "lamp", "$.messages[3].content"),
        ToolResult("call_8", "a\nb", "$.messages[4].content"),
    )


def test_a_messages_request_is_read() -> None:
    found = ask(MESSAGES, MESSAGES_REQUEST)
    assert found.roles == ("user", "assistant", "user")
    assert found.last_user == "refund", "a message that only brings results is not a user speaking"
    assert found.tool_names == ("lookup_order", "web_search")
    assert [(use.id, use.runner) for use in found.tool_uses] == [("srv_1", "provider"), ("toolu_1", "client")]
    assert found.tool_results == (
        ToolResult("srv_1", '{"type":"web_search_result","url":"u"}', "$.messages[1].content[1].content"),
        ToolResult("toolu_1", "lamp\n[image]", "$.messages[2].content[0].content"),
    )


def test_a_responses_request_is_read() -> None:
    found = ask(RESPONSES, RESPONSES_REQUEST)
    assert found.roles[:4] == ("developer", "user", "reasoning", "function_call")
    assert found.server_held == "resp_0"
    assert found.tool_names == ("lookup_order", "web_search", "zip1")
    assert found.max_tokens == 50
    assert [(result.id, result.content, result.path) for result in found.tool_results] == [
        ("call_7", "lamp", "$.input[4].output"),
        ("call_8", "ok", "$.input[5].output"),
        ("mcp_1", "zip", "$.input[6].output"),
    ]
    assert ask(RESPONSES, {"input": "hi", "conversation": {"id": "conv_1"}}).server_held == "conv_1"
    assert ask(RESPONSES, {"input": "hi"}).last_user == "hi"


def test_a_legacy_function_is_known_by_its_name() -> None:
    call = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    found = ask(
        CHAT, {"functions": [{"name": "f"}], "messages": [call, {"role": "function", "name": "f", "content": "1"}]}
    )
    assert found.tool_names == ("f",)
    assert found.tool_uses[0].id == found.tool_results[0].id == "f"
    chunks = [
        {"choices": [{"index": 0, "delta": {"function_call": part}}]} for part in ({"name": "f"}, {"arguments": "{}"})
    ]
    assert stream(CHAT, *chunks).tool_uses == (ToolUse("f", "f", "{}"),)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a":' * 5000 + b"1" + b"}" * 5000])
def test_a_body_that_is_no_json_object_asks_nothing(body: bytes) -> None:
    assert read_request(CHAT, body) is None


def test_an_unknown_route_is_not_read() -> None:
    assert read_request("http", b"{}") is None
    assert read_response("openai.embeddings", 200, "application/json", b"{}") is None
    assert what_changed("http", b"{}", b"{}", "$.model") is None


def test_the_first_choice_speaks_and_all_choices_call() -> None:
    def call(name: str) -> dict[str, object]:
        return {"id": f"call_{name}", "function": {"name": name, "arguments": "{}"}}

    body = {
        "id": "c1",
        "model": "m",
        "usage": None,
        "choices": [
            {"index": 1, "message": {"content": "second", "tool_calls": [call("b")]}, "finish_reason": "tool_calls"},
            {
                "index": 0,
                "message": {"content": "first", "reasoning_content": "why", "tool_calls": [call("a")]},
                "finish_reason": "stop",
            },
        ],
    }
    found = answer(CHAT, body)
    assert (found.text, found.reasoning, found.finish_reasons, found.usage) == (
        "first",
        "why",
        ("stop", "tool_calls"),
        None,
    )
    assert {use.name for use in found.tool_uses} == {"a", "b"}
    assert found.complete


def test_parallel_calls_that_a_compatible_server_numbers_alike_stay_apart() -> None:
    def chunk(**call: object) -> dict[str, object]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]}

    found = stream(
        CHAT,
        chunk(id="1", function={"name": "a", "arguments": "{"}),
        chunk(id="1", function={"name": "a", "arguments": "}"}),
        chunk(id="2", function={"name": "b", "arguments": {"x": 1}}),
    )
    assert found.tool_uses == (ToolUse("1", "a", "{}"), ToolUse("2", "b", '{"x":1}'))
    assert not found.complete


def test_a_refusal_is_what_the_model_says() -> None:
    assert answer(CHAT, {"choices": [{"message": {"content": None, "refusal": "no"}}]}).text == "no"
    said = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "no"}
    assert stream(RESPONSES, said).text == "no"


def test_a_responses_answer_is_read_by_its_items() -> None:
    found = answer(
        RESPONSES,
        {
            "id": "resp_1",
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": []},
                {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}},
                {"type": "custom_tool_call", "id": "ct", "call_id": "call_1", "name": "shell", "input": "ls"},
                {
                    "type": "message",
                    "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
                },
            ],
            "usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 2},
        },
    )
    assert (found.text, found.reasoning, found.complete) == ("ab", "hm", True)
    assert found.finish_reasons == ("max_output_tokens",)
    assert found.tool_uses == (
        ToolUse("ws_1", "web_search", '{"type":"search","query":"q"}', "provider"),
        ToolUse("call_1", "shell", "ls"),
    )
    assert found.usage == Usage(input_tokens=5, output_tokens=2, cache_read=4)


def test_a_responses_stream_without_its_final_items_keeps_the_fragments() -> None:
    found = stream(
        RESPONSES,
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "hm"},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "mcp_call", "id": "mcp_1", "name": "x"},
        },
        {"type": "response.mcp_call_arguments.delta", "output_index": 1, "delta": '{"a"'},
        {"type": "response.output_text.delta", "output_index": 2, "content_index": 0, "delta": "so"},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    )
    assert (found.reasoning, found.text) == ("hm", "so")
    assert found.tool_uses == (ToolUse("mcp_1", "x", '{"a"', "provider"),)


def test_anthropic_input_tokens_are_counted_with_the_cached_ones_and_never_twice() -> None:
    found = stream(
        MESSAGES,
        {
            "type": "message_start",
            "message": {
                "usage": {
                    "input_tokens": 3,
                    "cache_read_input_tokens": 100,
                    "cache_creation_input_tokens": 20,
                    "output_tokens": 1,
                }
            },
        },
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 9, "input_tokens": None},
        },
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    )
    assert found.usage == Usage(input_tokens=123, output_tokens=12, cache_read=100, cache_write=20)
    assert found.complete


def test_an_anthropic_call_without_arguments_has_an_empty_object_once_it_ended() -> None:
    begun = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    }
    assert stream(MESSAGES, begun).tool_uses[0].arguments == ""
    assert stream(MESSAGES, begun, {"type": "content_block_stop", "index": 0}).tool_uses[0].arguments == "{}"


def test_a_delta_for_a_block_that_never_began_is_kept() -> None:
    lost = {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "{"}}
    assert stream(MESSAGES, lost).tool_uses == (ToolUse("", "", "{"),)


@pytest.mark.parametrize(
    ("route_name", "payload"),
    [
        (CHAT, {"error": {"message": "slow down", "type": "overloaded"}}),
        (RESPONSES, {"type": "error", "code": "overloaded", "message": "slow down"}),
        (
            RESPONSES,
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "overloaded", "message": "slow down"}},
            },
        ),
        (MESSAGES, {"type": "error", "error": {"type": "overloaded", "message": "slow down"}}),
    ],
)
def test_an_error_within_a_stream_is_in_the_provider_s_words(route_name: str, payload: object) -> None:
    found = stream(route_name, payload)
    assert found.error == "overloaded: slow down"
    assert not found.complete


def test_an_error_status_always_gives_an_error() -> None:
    assert (
        answer(MESSAGES, {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}, 429).error
        == "rate_limit_error: m"
    )
    assert answer(CHAT, b"", 503).error == "HTTP 503"
    page = answer(CHAT, b"<html>bad gateway</html>", 502)
    assert page.error is not None
    assert not page.complete


def test_a_mislabelled_body_is_read_for_what_it_is() -> None:
    said = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
    chunk = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    for content_type in ("application/json", "text/event-stream", ""):
        for body in (said, chunk):
            found = read_response(CHAT, 200, content_type, body)
            assert found is not None
            assert (found.text, found.complete) == ("hi", True)


def test_facts_become_opentelemetry_attributes_and_nothing_is_null() -> None:
    assert gen_ai_request(CHAT, ask(CHAT, CHAT_REQUEST)) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.request.seed": 7,
        "gen_ai.request.temperature": 0,
        "gen_ai.request.max_tokens": 900,
    }
    usage = Usage(input_tokens=10, output_tokens=4, cache_read=3, cache_write=2, reasoning=1)
    assert gen_ai_response(Decision(model="m", response_id="r", finish_reasons=("stop",), usage=usage)) == {
        "gen_ai.response.id": "r",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 1,
    }
    assert gen_ai_response(Decision()) == {}


@pytest.mark.parametrize(
    ("route_name", "request_body", "path", "sentence"),
    [
        (CHAT, CHAT_REQUEST, "$.messages[3].content", "it is the result of lookup_order (call_7)"),
        (CHAT, CHAT_REQUEST, "$.messages[4].content[1].text", "it is the result of shell (call_8)"),
        (CHAT, CHAT_REQUEST, "$.messages[0].content", "it is the system prompt"),
        (CHAT, CHAT_REQUEST, "$.messages[1].content[0].text", "it is message 1 (user)"),
        (CHAT, CHAT_REQUEST, "$.model", "it is the model"),
        (CHAT, CHAT_REQUEST, '$["model"]', "it is the model"),
        (CHAT, CHAT_REQUEST, "$.tools[0].function.parameters.type", "it is the schema of tool lookup_order"),
        (CHAT, CHAT_REQUEST, "$.tools[0].function.description", "it is the description of tool lookup_order"),
        (CHAT, CHAT_REQUEST, "$.unheard_of", None),
        (CHAT, CHAT_REQUEST, "$", None),
        (CHAT, CHAT_REQUEST, "not a path [", None),
        (
            MESSAGES,
            MESSAGES_REQUEST,
            "$.messages[2].content[0].content[0].text",
            "it is the result of lookup_order (toolu_1)",
        ),
        (MESSAGES, MESSAGES_REQUEST, "$.system", "it is the system prompt"),
        (MESSAGES, MESSAGES_REQUEST, "$.tools[0].input_schema", "it is the schema of tool lookup_order"),
        (RESPONSES, RESPONSES_REQUEST, "$.input[4].output", "it is the result of lookup_order (call_7)"),
        (RESPONSES, RESPONSES_REQUEST, "$.input[2].id", "it is message 2 (reasoning)"),
        (RESPONSES, RESPONSES_REQUEST, "$.input[0].content", "it is the system prompt"),
    ],
)
def test_a_path_is_explained_in_the_agent_s_terms(
    route_name: str, request_body: object, path: str, sentence: str | None
) -> None:
    raw = json.dumps(request_body).encode()
    assert what_changed(route_name, raw, raw, path) == sentence


def test_what_only_one_side_has_is_said() -> None:
    longer = json.dumps(CHAT_REQUEST).encode()
    shorter = json.dumps({**CHAT_REQUEST, "messages": CHAT_REQUEST["messages"][:2], "seed": None}).encode()  # type: ignore[index]
    assert (
        what_changed(CHAT, shorter, longer, "$.messages[2]")
        == "it is message 2 (assistant), which the recording does not have"
    )
    assert (
        what_changed(CHAT, longer, shorter, "$.messages[2]")
        == "it is message 2 (assistant), which only the recording has"
    )
    assert what_changed(CHAT, b"{}", longer, "$.seed") == "it is the seed, which the recording does not have"
