"""A change of a request changes what it says and nothing else: every other message keeps its bytes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.chain import cut
from worldline.model.dialects.change import Change, change_request

CHAT, RESPONSES, CLAUDE = "openai.chat", "openai.responses", "anthropic.messages"
TEXT = st.text(max_size=12)


def chat(*messages: Any, **more: Any) -> bytes:
    return json.dumps({"model": "gpt-5", "messages": list(messages), **more}).encode()


SYSTEM = {"role": "system", "content": "be careful"}
USER = {"role": "user", "content": "refund"}
RESULT = {"role": "tool", "tool_call_id": "call_7", "content": "paid"}


def changed(route: str, body: bytes, **change: Any) -> tuple[dict[str, Any], list[str]]:
    data, done = change_request(route, body, Change(**change))
    return json.loads(data), done


def test_fields_have_their_route_s_own_name() -> None:
    told, done = changed(CHAT, chat(USER, max_completion_tokens=9), fields={"model": "b", "max_tokens": 3})
    assert (told["model"], told["max_completion_tokens"], done) == ("b", 3, ["model", "max_tokens"])
    told, _ = changed(RESPONSES, b'{"model":"a","input":"hi"}', fields={"max_tokens": 3})
    assert told["max_output_tokens"] == 3
    with pytest.raises(ValueError, match="has no seed"):
        changed(CLAUDE, b'{"model":"a","messages":[]}', fields={"seed": 1})


def test_a_seed_for_sampling_is_left_out_where_there_is_none() -> None:
    assert changed(CHAT, chat(USER), sampling_seed=7)[0]["seed"] == 7
    assert changed(CLAUDE, b'{"model":"a","messages":[]}', sampling_seed=7) == ({"model": "a", "messages": []}, [])


def test_what_is_as_wanted_already_keeps_its_bytes() -> None:
    body = b'{ "model" : "gpt-5", "messages" : [ {"role":"user","content":"refund"} ] }'
    assert change_request(CHAT, body, Change(fields={"model": "gpt-5"})) == (body, [])


def test_prompts() -> None:
    told, done = changed(CHAT, chat(SYSTEM, USER), system="be bold", users=[["refund", "cancel"]])
    assert [m["content"] for m in told["messages"]] == ["be bold", "cancel"]
    assert done == ["user prompt", "system prompt"]
    assert changed(CHAT, chat(USER), system="be bold")[0]["messages"][0] == {"role": "system", "content": "be bold"}
    assert changed(CLAUDE, b'{"system":[{"type":"text","text":"a"}],"messages":[]}', system="b")[0]["system"] == "b"
    assert changed(RESPONSES, b'{"input":"hi","instructions":"a"}', system="b")[0]["instructions"] == "b"
    assert changed(RESPONSES, b'{"input":"hi"}', users=[["hi", "ho"]]) == ({"input": "ho"}, ["user prompt"])


def test_a_user_s_words_beside_tool_results_change_and_the_results_stay() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "paid"}
    body = {"messages": [{"role": "user", "content": [result, {"type": "text", "text": "refund"}]}]}
    told, _ = changed(CLAUDE, json.dumps(body).encode(), users=[["refund", "cancel"]])
    assert told["messages"][0]["content"] == [result, {"type": "text", "text": "cancel"}]


def test_results_of_tools_by_the_id_of_their_call() -> None:
    told, done = changed(CHAT, chat(SYSTEM, RESULT), results={"call_7": {"amount": 20}})
    assert (told["messages"][1]["content"], done) == ('{"amount":20}', ["result of call_7"])
    body = {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}]}
    assert (
        changed(CLAUDE, json.dumps(body).encode(), results={"t1": "y"})[0]["messages"][0]["content"][0]["content"]
        == "y"
    )
    item = {"type": "function_call_output", "call_id": "f1", "output": "x"}
    assert (
        changed(RESPONSES, json.dumps({"input": [item]}).encode(), results={"f1": "y"})[0]["input"][0]["output"] == "y"
    )


def test_another_model_is_not_given_reasoning_that_only_the_old_one_can_read() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]
    body = json.dumps({"model": "a", "input": items}).encode()
    told, done = changed(RESPONSES, body, fields={"model": "b"})
    assert [list(item) for item in told["input"]] == [["type", "call_id", "name", "arguments"]]
    assert done == ["reasoning x1", "model"]
    thought = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    said = {"role": "assistant", "content": [thought, {"type": "text", "text": "yes"}]}
    body = json.dumps({"model": "a", "messages": [USER, said]}).encode()
    told, _ = changed(CLAUDE, body, fields={"model": "b"})
    assert told["messages"][1]["content"] == [{"type": "text", "text": "yes"}]
    same, _ = changed(CLAUDE, body, fields={"temperature": 0})
    assert same["messages"][1]["content"][0] == thought, "the same model keeps them"


@given(st.lists(TEXT, max_size=4), st.integers(0, 3), TEXT)
def test_every_other_message_keeps_its_bytes(texts: list[str], which: int, now: str) -> None:
    messages = [{"role": "user", "content": f"{number} {text}"} for number, text in enumerate(texts)]
    body = chat(SYSTEM, *messages)
    was = f"{which} {texts[which]}" if which < len(texts) else "nobody said this"
    after, done = change_request(CHAT, body, Change(users=[[was, now]]))
    (before_array,), (after_array,) = cut(body).arrays, cut(after).arrays
    differing = [n for n, (a, b) in enumerate(zip(before_array.elements, after_array.elements, strict=True)) if a != b]
    assert differing == ([which + 1] if done else []) and bool(done) == (which < len(texts) and was != now)
    assert change_request(CHAT, body, Change(users=[[was, now]]))[0] == after, "the same again"


@given(TEXT, TEXT, TEXT)
def test_two_changes_one_after_the_other_are_one(model: str, first: str, second: str) -> None:
    one, other = Change(fields={"model": model}, users=[["refund", first]]), Change(system="s", users=[[first, second]])
    both = change_request(CHAT, chat(SYSTEM, USER), one.then(other))[0]
    after = change_request(CHAT, change_request(CHAT, chat(SYSTEM, USER), one)[0], other)[0]
    assert json.loads(both) == json.loads(after)


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"\xff", b'{"messages": 3}', b'{"messages": "x"}', b'{"messages":[1,null]}']
)
def test_a_body_that_is_none_is_refused_or_left_alone(body: bytes) -> None:
    with suppress(ValueError):
        assert change_request(CHAT, body, Change(users=[["a", "b"]], results={"c": 1}))[0] == body
