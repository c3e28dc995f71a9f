"""Exports: the same run gives the same spans and entries, every crossing once, and never a word of what was said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.recorded import action, answer, decision, recorder_in
from worldline.engine.boundary import call
from worldline.engine.content import Content
from worldline.engine.export import decisions, network
from worldline.engine.export.crossings import Crossings
from worldline.model.events import encode_json
from worldline.store.recording import Recording

PROMPT, SAID, GIVEN, FOUND, BROKE = "what-was-asked", "what-was-said", "what-was-given", "what-was-found", "what-broke"
SECRET = "sesame-" + "open-" * 4
SENT = [["Content-Type", "application/json"], ["x-custom", "[withheld]"]]


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A chat, a tool that asks a model itself, a failing tool, a refused request, one that nobody ended, a sample."""
    recorder, boundary = recorder_in(
        tmp_path, task=PROMPT, agent={"name": "finder", "version": "3"}, secrets={"S": SECRET}
    )
    ask = encode_json({"model": "m-1", "seed": 7, "messages": [{"role": "user", "content": PROMPT}]})
    said = encode_json(
        {
            "id": "r1",
            "model": "m-1-0601",
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5},
        }
    )
    facts = {"path": "/v1/chat/completions", "headers": [["accept", "*/*"], ["authorization", "[withheld]"]]}
    answer(boundary, decision(ask, name="openai.chat", facts=facts), [said[:9], said[9:]], headers=SENT)

    def outer() -> str:
        answer(boundary, decision(b"{}", name="http", parent="c1"), [SAID.encode()])
        return FOUND

    call(boundary, action("look", {"at": GIVEN}), outer)

    def broken() -> None:
        raise ValueError(BROKE)

    with pytest.raises(ValueError, match=BROKE):
        call(boundary, action("drop"), broken)
    query = Content(
        encode_json({"method": "GET", "path": "/x", "query": [["q", "a b"], ["token", "[withheld]"], ["s", SECRET]]})
    )
    asked = boundary.begin(decision(b"", name="http"))
    asked.fail({"type": "upstream", "kind": "refused", "message": BROKE})
    unlike = decision(b"", name="http")
    answer(boundary, type(unlike)(kind="decision", name="http", inputs=query, body=b""), [b"no"], status=404)
    boundary.begin(action("never"))
    recorder.seal()
    return Recording(recorder.attempt)


def spans(recording: Recording) -> list[dict[str, Any]]:
    found = []
    for line in b"".join(decisions(recording)).splitlines():
        (resource,) = json.loads(line)["resourceSpans"]
        (scope,) = resource["scopeSpans"]
        (span,) = scope["spans"]
        found.append(span)
    return found


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]}


def test_every_call_is_one_span_of_one_trace_below_the_run_or_its_caller(recording: Recording) -> None:
    found = spans(recording)
    crossings = list(Crossings(recording))
    assert len(found) == len(crossings) + 1 == 8
    assert len({span["traceId"] for span in found}) == 1 and len({span["spanId"] for span in found}) == 8
    assert all(len(bytes.fromhex(span["traceId"])) == 16 and len(bytes.fromhex(span["spanId"])) == 8 for span in found)
    by_call = {attributes(span).get("worldline.call"): span for span in found}
    root = by_call[None]
    assert root["name"] == "invoke_agent finder" and "parentSpanId" not in root
    assert by_call["c2"]["parentSpanId"] == by_call["c1"]["spanId"]
    assert {by_call[c]["parentSpanId"] for c in ("c0", "c1", "c3", "c4", "c5", "c6")} == {root["spanId"]}
    for span in found:
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])


def test_spans_carry_the_conventions_names(recording: Recording) -> None:
    by_call = {attributes(span).get("worldline.call"): span for span in spans(recording)}
    chat = attributes(by_call["c0"])
    assert by_call["c0"]["name"] == "chat m-1" and by_call["c0"]["kind"] == 3
    assert chat["gen_ai.operation.name"] == "chat" and chat["gen_ai.provider.name"] == "openai"
    assert (chat["gen_ai.request.model"], chat["gen_ai.response.model"]) == ("m-1", "m-1-0601")
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == ("11", "5")
    assert (chat["gen_ai.request.seed"], chat["gen_ai.response.id"]) == ("7", "r1")
    assert chat["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "stop"}]}
    tool = attributes(by_call["c1"])
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.name"]) == ("execute_tool", "look")
    failures = {c: attributes(span)["error.type"] for c, span in by_call.items() if "status" in span}
    assert failures == {"c3": "ValueError", "c4": "refused", "c5": "404", "c6": "unknown"}


def test_network_entries_say_who_was_asked_what_and_how_it_ended(recording: Recording) -> None:
    entries = [json.loads(line) for line in b"".join(network(recording)).splitlines()]
    assert [entry["_call"] for entry in entries] == ["c0", "c2", "c4", "c5"]
    chat, _, refused, missing = entries
    assert chat["request"]["url"] == "/v1/chat/completions" and chat["request"]["method"] == "POST"
    assert chat["request"]["headers"][1] == {"name": "authorization", "value": "[withheld]"}
    assert chat["request"]["bodySize"] > 50 and chat["response"]["bodySize"] > 100
    assert chat["response"]["content"]["mimeType"] == "application/json"
    assert chat["timings"]["wait"] >= 0 and abs(sum(chat["timings"].values()) + 1 - chat["time"]) < 0.01
    assert refused["_error"] == "refused" and refused["response"]["status"] == 0 and not refused["_complete"]
    assert missing["response"]["status"] == 404
    assert missing["request"]["url"].startswith("/x?q=a+b&token=%5Bwithheld%5D&s=")


def test_exports_are_derived_and_say_nothing_that_was_said_given_or_held_back(recording: Recording) -> None:
    for export in (decisions, network):
        once, again = b"".join(export(recording)), b"".join(export(Recording(recording.attempt)))
        assert once == again
        for words in (PROMPT, SAID, GIVEN, FOUND, BROKE, SECRET):
            assert words.encode() not in once
