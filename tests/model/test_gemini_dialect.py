"""Gemini's generateContent, whole and streamed in both ways, cut and odd: what came is read, and nothing is raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.dialects import Decision, ToolUse, Usage, model_of, read_request, read_response
from worldline.model.dialects.change import Change, change_request, user_prompt

ROUTE = "gemini.generate"
CALL = {"functionCall": {"name": "pay", "args": {"cents": 5}}}
COUNTS = {
    "promptTokenCount": 7,
    "cachedContentTokenCount": 2,
    "candidatesTokenCount": 3,
    "thoughtsTokenCount": 4,
    "totalTokenCount": 14,
}


def candidate(*parts: Any, finish: str | None = None, index: int | None = 0) -> dict[str, Any]:
    said: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    return {**said, **({"finishReason": finish} if finish else {}), **({} if index is None else {"index": index})}


EVENTS: list[dict[str, Any]] = [
    {"candidates": [candidate({"text": "hm", "thought": True})], "usageMetadata": {"promptTokenCount": 7}},
    {"candidates": [candidate({"text": "I p"})], "modelVersion": "gemini-2.5-flash", "responseId": "r1"},
    {"candidates": [candidate({"text": "ay ü"}, CALL)]},
    {"candidates": [candidate({**CALL, "thoughtSignature": "c2ln"}, finish="STOP")], "usageMetadata": COUNTS},
]
WHOLE = {
    "candidates": [
        candidate({"text": "hm", "thought": True}, {"text": "I pay ü"}, CALL, CALL, finish="STOP", index=None)
    ],
    "usageMetadata": COUNTS,
    "modelVersion": "gemini-2.5-flash",
    "responseId": "r1",
}
SSE = b"".join(b"data: %b\r\n\r\n" % json.dumps(event).encode() for event in EVENTS)


def answer(body: Any, status: int = 200, kind: str = "application/json") -> Decision:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    decision = read_response(ROUTE, status, kind, raw)
    assert decision is not None
    return decision


@pytest.mark.parametrize("body", [WHOLE, EVENTS, SSE], ids=["whole", "array", "events"])
def test_an_answer_is_the_same_in_each_form(body: Any) -> None:
    assert answer(body) == Decision(
        model="gemini-2.5-flash",
        response_id="r1",
        text="I pay ü",
        reasoning="hm",
        tool_uses=(ToolUse("pay", "pay", '{"cents":5}'), ToolUse("pay#2", "pay", '{"cents":5}')),
        finish_reasons=("STOP",),
        usage=Usage(input_tokens=7, output_tokens=7, cache_read=2, reasoning=4),
        complete=True,
    )


def test_a_cut_answer_keeps_what_came() -> None:
    body = json.dumps(EVENTS).encode()
    for form, kind in ((SSE, "text/event-stream"), (body, "application/json")):
        for end in range(len(form)):
            cut = answer(form[:end], kind=kind)
            # Whether a text is a thought stands behind it: of one that was cut it is not known yet.
            assert "hmI pay ü".startswith(cut.reasoning + cut.text)
            assert [use.name for use in cut.tool_uses] in ([], ["pay"], ["pay"] * 2)
            assert not cut.complete or not form[end:].strip(), "the last event says that it was all"


@pytest.mark.parametrize(
    ("body", "status", "error", "text", "finish"),
    [
        ({}, 200, None, "", ()),
        ({"candidates": []}, 200, None, "", ()),
        ({"candidates": [None, 7, {}]}, 200, None, "", ()),
        ({"candidates": [{"finishReason": "SAFETY"}]}, 200, None, "", ("SAFETY",)),
        ({"candidates": [candidate({}, None, {"text": 3}, finish="STOP")]}, 200, None, "", ("STOP",)),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, 200, "the prompt was blocked: SAFETY", "", ()),
        ([{"error": {"code": 429, "message": "slow", "status": "BUSY"}}], 429, "BUSY: slow", "", ()),
        ({"error": {"code": 500, "message": "boom"}}, 500, "boom", "", ()),
        ({"error": "boom"}, 500, "boom", "", ()),
        (
            {
                "candidates": [
                    candidate({"text": "a"}, finish="STOP"),
                    candidate({"text": "b"}, finish="OTHER", index=1),
                ]
            },
            200,
            None,
            "a",
            ("STOP", "OTHER"),
        ),
    ],
)
def test_odd_answers(body: Any, status: int, error: str | None, text: str, finish: tuple[str, ...]) -> None:
    read = answer(body, status)
    assert (read.error, read.text, read.finish_reasons) == (error, text, finish)
    assert read.complete == (bool(finish) and error is None)


def request(*contents: Any, **fields: Any) -> bytes:
    return json.dumps({"contents": contents, **fields}).encode()


def told(response: Any, name: str = "pay", **more: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {"name": name, "response": response, **more}}]}


def test_results_find_their_calls_by_id_else_by_name_and_order() -> None:
    model = {"role": "model", "parts": [CALL, CALL, {"functionCall": {"name": "look", "id": "x1"}}]}
    both = {"role": "user", "parts": [*told({"result": "one"})["parts"], *told({"output": [2]})["parts"]]}
    ask = read_request(ROUTE, request({"parts": [{"text": "go"}]}, model, told("seen", "look", id="x1"), both))
    assert ask is not None
    assert [use.id for use in ask.tool_uses] == ["pay", "pay#2", "x1"]
    assert [(result.id, result.content) for result in ask.tool_results] == [
        ("x1", "seen"),
        ("pay", "one"),
        ("pay#2", '{"output":[2]}'),
    ]
    assert ask.tool_results[1].path == "$.contents[3].parts[0].functionResponse.response"
    assert (ask.roles, ask.last_user) == (("user", "model", "user", "user"), "go")
    # A new turn begins anew; a client that drops ids, or spells in snake case, is understood.
    dropped = {"role": "model", "parts": [{"function_call": {"name": "pay", "id": "x2"}}]}
    back = {"role": "function", "parts": [{"function_response": {"name": "pay", "response": {"result": "3"}}}]}
    ask = read_request(ROUTE, request(model, both, dropped, back, model, told({"result": "4"})))
    assert ask is not None and [result.id for result in ask.tool_results] == ["pay", "pay#2", "x2", "pay"]


def test_settings_the_system_prompt_texts_and_results_can_be_changed_and_a_model_cannot() -> None:
    model = {"role": "model", "parts": [{"functionCall": {"name": "pay", "id": "x1"}}]}
    body = request({"role": "user", "parts": [{"text": "go"}]}, model, told({"result": "paid"}, id="x1"))
    change = Change(
        {"temperature": 0, "max_tokens": 9}, system="be brief", users=[["go", "stay"]], results={"x1": "lost"}
    )
    changed, done = change_request(ROUTE, body, change)
    assert json.loads(changed) == {
        "contents": [{"role": "user", "parts": [{"text": "stay"}]}, model, told({"result": "lost"}, id="x1")],
        "generationConfig": {"temperature": 0, "maxOutputTokens": 9},
        "systemInstruction": {"parts": [{"text": "be brief"}]},
    }
    assert done == ["temperature", "max_tokens", "user prompt", "result of x1", "system prompt"]
    assert change_request(ROUTE, changed, change)[0] == changed, "made once it is made"
    assert user_prompt(ROUTE, body) == "go" and model_of(ROUTE, "/v1beta/models/gemini-x:generateContent") == "gemini-x"
    for fields in ({"model": "other"}, {"reasoning_effort": "low"}):
        with pytest.raises(ValueError, match=r"URL|has no"):
            change_request(ROUTE, body, Change(fields))


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["pay", "model", "STOP"])
names = st.sampled_from(
    [
        *("candidates", "content", "contents", "parts", "text", "functionCall", "function_response", "name", "id"),
        *("args", "response", "index", "finishReason", "usageMetadata", "promptTokenCount", "error", "promptFeedback"),
    ]
)
bodies = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4))


@given(bodies)
def test_nothing_is_raised_whatever_comes(body: Any) -> None:
    raw = json.dumps(body).encode()
    for given_body in (raw, b"data: " + raw + b"\n\n", json.dumps([body, WHOLE]).encode()):
        assert read_response(ROUTE, 200, "", given_body) is not None
    read_request(ROUTE, json.dumps({"contents": body, "tools": body, "generationConfig": body}).encode())
