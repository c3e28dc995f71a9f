"""Steps: what is counted while recording is what is folded afterwards, and each call stands where it belongs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.engine.recorded import action, decision, recorder_in
from worldline.engine.boundary import Live, RecordBoundary, call
from worldline.engine.recorder import Recorder
from worldline.engine.steps import Step, each_step, steps
from worldline.model.events import Event
from worldline.store.recording import Recording

lanes = st.sampled_from(["main", "a"])
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), lanes, st.sampled_from([b"1", b"2"]), st.booleans()),  # ... as a child of a tool?
        st.tuples(st.just("answer"), st.integers(0, 9), st.sampled_from(["ok", "429", "error", "cut", "unknown"])),
        st.tuples(st.just("step"), lanes, st.sampled_from(["begin", "end"])),
        st.tuples(st.just("tool"), lanes, st.booleans()),
        st.tuples(st.just("permission"), lanes),
    ),
    max_size=12,
)


def play(boundary: RecordBoundary, happened: list[tuple[Any, ...]]) -> None:
    under_way: list[Live] = []
    for word, *details in happened:
        match word:
            case "ask":
                lane, body, nested = details
                under_way.append(boundary.begin(decision(body, lane=lane, parent="c0" if nested else None)))
            case "answer" if under_way:
                live = under_way.pop(details[0] % len(under_way))
                finish(live, details[1])
            case "step":
                boundary.note("marker", "step", details[0], {}, {"phase": details[1], "name": "n"})
            case "tool":
                tool = boundary.begin(action("t", lane=details[0]))
                if details[1]:
                    tool.finish({})
            case "permission":
                boundary.note("permission", "granted", details[0], {}, {"capability": "x"})


def finish(live: Live, how: str) -> None:
    whole = {"reason": "", "headers": [], "framing": "length", "complete": True}
    match how:
        case "ok" | "429":
            live.finish({"status": 200 if how == "ok" else 429, **whole})
        case "error":
            live.fail({"type": "upstream", "kind": "refused", "message": "no"})
        case "cut":
            live.finish({"status": 200, **whole, "complete": False, "closed_by": "upstream"})
        case _:
            live.abandon("nobody knows")


@settings(max_examples=80)
@given(happenings)
@example([("step", "main", "end"), ("step", "main", "begin"), ("ask", "main", b"1", False)])
@example([("tool", "main", True), ("ask", "main", b"1", False)])
@example([("ask", "main", b"1", False), ("answer", 0, "429"), ("step", "main", "begin"), ("ask", "main", b"1", False)])
@example([("step", "main", "begin"), ("step", "main", "begin"), ("step", "main", "end"), ("ask", "main", b"1", False)])
def test_steps_counted_are_steps_folded(happened: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as name:
        recorder, boundary = recorder_in(Path(name))
        play(boundary, happened)
        folded = steps(Recording(recorder.attempt))
        assert recorder.tally.counter.steps == len(folded)
        assert [step.index for step in folded] == list(range(len(folded)))
        assert [step.seq for step in folded] == sorted({step.seq for step in folded})
        own = [word for word, *rest in happened if word == "ask" and not rest[2]]
        assert sum(len(step.decisions) for step in folded) == sum(step.attempts for step in folded) == len(own)
        assert recorder.tally.decisions == len(own)
        tools = [call for step in folded for call in step.calls]
        assert sum(recorder.tally.recorded.values()) == len(tools)
        recorder.close()


def ask(messages: list[Any]) -> Any:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return decision(body, "openai.chat")


def say(
    boundary: RecordBoundary, messages: list[Any], text: str, calls: Iterable[tuple[str, str, str]] = (), **data: Any
) -> None:
    live = boundary.begin(ask(messages))
    uses = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
    message = {"role": "assistant", "content": text, **({"tool_calls": uses} if uses else {})}
    body = {"id": "r", "model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3}}  # fmt: skip
    live.chunk(json.dumps(body).encode())
    live.finish({"status": 200, "headers": [["content-type", "application/json"]], "complete": True, **data})


def folded(recorder: Recorder) -> list[Step]:
    return steps(Recording(recorder.attempt))


def result(call: str, text: str) -> dict[str, str]:
    return {"role": "tool", "tool_call_id": call, "content": text}


def test_calls_go_to_the_step_that_asked_for_them_whoever_ran_them(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    asked = [
        ("c1", "read", '{"p": 1}'),
        ("c2", "read", '{"p": 2}'),
        ("c3", "bash", '{"c": "ls"}'),
        ("c4", "never", "{}"),
    ]
    say(boundary, ["hi"], "I look.", asked)
    for place in (2, 1):  # in another order than asked for: found by their arguments
        boundary.begin(action("read", {"p": place})).finish({}, None)
    boundary.begin(action("extra"))
    say(boundary, ["hi", result("c1", "one"), result("c3", "files")], "Done.")
    first, last = folded(recorder)
    assert [(call.id, call.name, call.ran, call.result) for call in first.calls] == [
        ("c1", "read", "recorded", None),
        ("c2", "read", "recorded", None),
        ("c3", "bash", "outside", "files"),
        ("c4", "never", "unanswered", None),
        (None, "extra", "unknown", None),
    ]
    assert first.calls[0].seq is not None and first.calls[1].seq is not None and first.calls[0].seq > first.calls[1].seq
    assert (first.text, first.model, first.input_tokens, first.output_tokens) == ("I look.", "m-1", 7, 3)
    assert (last.text, last.calls) == ("Done.", [])
    assert recorder.tally.outside() == {"bash": 1}
    recorder.close()


def test_retries_are_one_step_and_another_request_is_another(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    for status in (500, 429):
        boundary.begin(ask(["hi"])).finish({"status": status, "headers": []})
    boundary.begin(ask(["hi"])).fail({"type": "upstream", "kind": "broken", "message": "gone"})
    say(boundary, ["hi"], "at last")
    say(boundary, ["hi"], "asked again, after it had worked: no retry")
    boundary.begin(ask(["hi"])).finish({"status": 500, "headers": []})
    say(boundary, ["other"], "another request after a failure")
    found = folded(recorder)
    assert [(step.attempts, step.text[:7], step.error) for step in found] == [
        (4, "at last", None),
        (1, "asked a", None),
        (1, "", found[2].error),
        (1, "another", None),
    ]
    assert recorder.tally.counter.steps == 4
    recorder.close()


def test_explicit_steps_hold_all_that_happens_in_them_in_their_lane(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    boundary.note("marker", "step", "main", {}, {"phase": "begin", "name": "plan"})
    say(boundary, ["a"], "one")
    say(boundary, ["b"], "two")
    boundary.begin(decision(b"{}", lane="side")).finish({"status": 200, "headers": []})
    boundary.begin(action("t")).finish({})
    boundary.note("permission", "denied", "main", {}, {"capability": "net"})
    boundary.note("marker", "step", "main", {}, {"phase": "end", "name": "plan"})
    say(boundary, ["c"], "after")
    plan, side, after = folded(recorder)
    assert (plan.name, len(plan.decisions), [call.name for call in plan.calls]) == ("plan", 2, ["t"])
    assert [permission["src"] for permission in plan.permissions] == ["denied"]
    assert (side.lane, side.name, after.text) == ("side", None, "after")
    recorder.close()


class Watched(Recording):
    """A recording that counts the rows that were read of it."""

    rows = 0

    def events(self) -> Iterator[Event]:
        for event in super().events():
            self.rows += 1
            yield event


def test_a_step_is_there_as_soon_as_it_is_over_and_no_row_behind_that_is_read(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    slow = boundary.begin(decision(b"1", lane="slow"))
    for number in range(5):
        say(boundary, [{"role": "user", "content": str(number)}], f"answer {number}")
    slow.finish({"status": 200, "headers": [], "complete": True})
    watched = Watched(recorder.attempt)
    each = each_step(watched)
    slow_step, first = next(each), next(each)
    assert (slow_step.lane, slow_step.status, first.text) == ("slow", 200, "answer 0")
    assert watched.rows == recorder.log.seq, "the first is over only at the end, and the second waits for it"
    assert [step.text for step in each] == [f"answer {number}" for number in range(1, 5)]
    assert [step.index for step in steps(Recording(recorder.attempt))] == list(range(6))
    recorder.close()

    recorder, boundary = recorder_in(tmp_path)
    for number in range(5):
        say(boundary, [{"role": "user", "content": str(number)}], f"answer {number}")
    watched = Watched(recorder.attempt)
    assert next(each_step(watched)).text == "answer 0"
    assert watched.rows == 4, "the header, a request, its answer, and the request that begins the next"
    recorder.close()


def test_behind_a_step_that_is_never_over_only_some_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.engine.steps.HELD", 3)
    recorder, boundary = recorder_in(tmp_path)
    boundary.begin(decision(b"1", lane="slow"))
    for number in range(9):
        say(boundary, [{"role": "user", "content": str(number)}], f"answer {number}")
    watched = Watched(recorder.attempt)
    each = each_step(watched)
    assert next(each).lane == "slow" and watched.rows < recorder.log.seq / 2
    assert [step.text for step in each] == [f"answer {number}" for number in range(9)]
    recorder.close()


def test_of_a_long_result_only_the_beginning_is_read_where_that_is_enough(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    results = ['umlaut ü and " quotes \\ and \U0001f600 ' * 4000, {"page": "x" * 90_000}, "short"]
    for number, value in enumerate(results):
        call(boundary, action("read", {"page": number}), lambda value=value: value)
    recording = Recording(recorder.attempt)
    for most in range(1000, 1012):  # wherever a character or an escape is cut
        (step,) = each_step(recording, most)
        text, page, short = step.calls
        assert text.result is not None and results[0].startswith(text.result)
        assert most - 20 < len(json.dumps(text.result, ensure_ascii=False).encode()) <= most + 1
        assert text.size is not None and text.size > 100_000
        assert page.result == json.dumps({"page": "x" * 90_000}, separators=(",", ":"))[:most]
        assert (short.result, short.size) == ("short", None)
    (whole,) = steps(recording)
    assert (whole.calls[0].result, whole.calls[0].size) == (results[0], None)
    recorder.close()
