"""A replay may come in any order that the record's partial order allows, and in no other; answers leave as they did."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import worldline
from tests.engine.recorded import action, answer, decision, recorder_in
from worldline.engine import matcher
from worldline.engine.boundary import Call, Live, Served, call
from worldline.engine.content import Content
from worldline.engine.masks import masks_given
from worldline.engine.replay import ReplayBoundary
from worldline.errors import Diverged
from worldline.store.recording import Recording

Span = tuple[int, int]  # when a call started and when it finished


@pytest.fixture(autouse=True, scope="module")
def wrong_orders_are_told_at_once() -> Iterator[None]:
    """Each test asks from one thread: nobody else could come while it waits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher, "GRACE_SECONDS", 0)
        yield


def spans(chance: random.Random, count: int) -> list[Span]:
    """A random schedule of `count` calls that overlap in parts."""
    happened, open_calls, started, found = 0, [], 0, {}
    while len(found) < count or open_calls:
        if started < count and (not open_calls or chance.random() < 0.5):
            open_calls.append((started, happened))
            found[started] = (happened, -1)
            started += 1
        else:
            name, start = open_calls.pop(chance.randrange(len(open_calls)))
            found[name] = (start, happened)
        happened += 1
    return [found[name] for name in range(count)]


def named(number: int, distinct: int) -> Call:
    return action(f"t{number % 3}", {"n": number % distinct}, lane=f"l{number}")


def recorded(store: Path, schedule: list[Span], distinct: int) -> Recording:
    recorder, boundary = recorder_in(store)
    live: dict[int, Live] = {}
    for _, number, starts in sorted(
        [(start, n, True) for n, (start, _) in enumerate(schedule)]
        + [(end, n, False) for n, (_, end) in enumerate(schedule)]
    ):
        if starts:
            begun = boundary.begin(named(number, distinct))
            assert isinstance(begun, Live)
            live[number] = begun
        else:
            live[number].finish({}, Content.of(f"answer {number}"))
    return Recording(recorder.seal())


def extension(chance: random.Random, schedule: list[Span]) -> list[int]:
    """A random order in which each call comes after all that had finished before it started."""
    left, order = set(range(len(schedule))), []
    while left:
        free = [n for n in sorted(left) if not any(schedule[m][1] < schedule[n][0] for m in left)]
        order.append(chance.choice(free))
        left.remove(order[-1])
    return order


def replayed(replay: ReplayBoundary, order: list[int], distinct: int) -> list[int]:
    """Ask in `order`. Returns the numbers of the answers in the order in which they left."""
    left: list[int] = []
    for number in order:
        served = replay.begin(named(number, distinct))
        assert isinstance(served, Served)
        content = served.content()
        assert content is not None
        came = int(content.value().removeprefix("answer "))
        assert came % distinct == number % distinct
        turn: Future[None] = Future()
        turn.add_done_callback(lambda _, came=came: left.append(came))  # type: ignore[misc]
        served.turn(turn)
    return left


@settings(max_examples=40)
@given(st.integers(1, 9), st.randoms(use_true_random=False))
def test_any_order_that_the_record_allows_is_equivalent(count: int, chance: random.Random) -> None:
    schedule = spans(chance, count)
    with TemporaryDirectory() as name:
        recording = recorded(Path(name), schedule, distinct=count)
        for _ in range(4):
            replay = ReplayBoundary(recording)
            left = replayed(replay, extension(chance, schedule), count)
            assert left == sorted(range(count), key=lambda n: schedule[n][1]), "they leave in the finishing order"
            report = replay.report()
            assert (report.verdict, report.served, report.relaxed) == ("equivalent", count, 0)


@settings(max_examples=40)
@given(st.integers(2, 9), st.randoms(use_true_random=False))
def test_any_other_order_is_a_divergence_at_the_first_call_too_early(count: int, chance: random.Random) -> None:
    schedule = spans(chance, count)
    order = list(range(count))
    chance.shuffle(order)
    early = [n for at, n in enumerate(order) if any(schedule[m][1] < schedule[n][0] for m in order[at + 1 :])]
    assume(early)
    with TemporaryDirectory() as name:
        replay = ReplayBoundary(recorded(Path(name), schedule, distinct=count))
        with pytest.raises(Diverged) as found:
            replayed(replay, order, count)
        report = replay.report()
    assert report.verdict == "diverged" and report.divergence is not None
    assert report.divergence.kind == "order" == found.value.facts["kind"]
    assert report.divergence.name == f"t{early[0] % 3}"
    assert report.served == order.index(early[0])


@settings(max_examples=30)
@given(st.integers(2, 9), st.integers(1, 3), st.randoms(use_true_random=False))
def test_within_a_key_the_first_recorded_comes_first(count: int, distinct: int, chance: random.Random) -> None:
    schedule = spans(chance, count)
    with TemporaryDirectory() as name:
        replay = ReplayBoundary(recorded(Path(name), schedule, distinct))
        taken = []
        for number in range(count):
            served = replay.begin(action(f"t{number % 3}", {"n": number % distinct}))
            content = served.content()
            assert content is not None
            taken.append(content.value())
        assert taken == [f"answer {number}" for number in range(count)]
        assert replay.report().equivalent


@given(st.integers(1, 6), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_whoever_stops_early_leaves_the_first_of_the_rest_unconsumed(
    count: int, kept: int, chance: random.Random
) -> None:
    assume(kept < count)
    schedule = spans(chance, count)
    with TemporaryDirectory() as name:
        replay = ReplayBoundary(recorded(Path(name), schedule, distinct=count))
        replayed(replay, list(range(kept)), count)
        divergence = replay.report().divergence
    assert divergence is not None and (divergence.kind, divergence.call) == ("unconsumed", f"c{kept}")


def test_a_changed_argument_names_its_path_among_several_candidates(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    for n in range(4):
        call(boundary, action("t", {"a": [n, {"b c": n}], "same": "x" * 600}), lambda: None)
    replay = ReplayBoundary(Recording(recorder.seal()))
    with pytest.raises(Diverged) as found:
        replay.begin(action("t", {"a": [2, {"b c": 9}], "same": "x" * 600}))
    facts = found.value.facts
    assert (facts["kind"], facts["call"], facts["path"], facts["recorded"], facts["actual"]) == (
        "changed", "c2", '$.a[1]["b c"]', 2, 9
    )  # fmt: skip


def test_what_a_tool_asked_for_inside_is_not_given_to_the_agent(tmp_path: Path) -> None:
    """A served tool does not run, so its own clock reading stays; the agent's next one is the agent's."""

    @worldline.tool(effect="pure")
    def looks_at_the_clock() -> str:
        return worldline.now().isoformat()

    said: list[Any] = []

    def agent() -> None:
        said.append((looks_at_the_clock(), worldline.now(), looks_at_the_clock(), worldline.now()))

    with worldline.record(tmp_path) as run:
        agent()
    report = worldline.open(run.path).replay(agent)
    assert report.equivalent, report.first_divergence
    assert said[0] == said[1]


def test_a_decision_that_overlaps_a_tool_may_come_though_it_looks_nested(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    tool = boundary.begin(action("slow"))
    answer(boundary, decision(b"[1]"), [b"first"])
    tool.finish({}, Content.of("t"))
    answer(boundary, decision(b"[1]"), [b"second"])
    recording = Recording(recorder.seal())
    for order in (["slow", "[1]", "[1]"], ["[1]", "slow", "[1]"]):
        replay = ReplayBoundary(recording)
        for what in order:
            replay.begin(action("slow") if what == "slow" else decision(what.encode()))
        assert replay.report().equivalent


def test_a_decision_beside_a_tool_that_does_not_come_again_is_named(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    tool = boundary.begin(action("slow"))
    asked = answer(boundary, decision(b"[1]"), [b"first"])
    tool.finish({}, Content.of("t"))
    replay = ReplayBoundary(Recording(recorder.seal()))
    replay.begin(action("slow"))
    report = replay.report()
    assert report.equivalent and [note for note in report.notes if f"({asked})" in note and "taken for a part" in note]


def test_a_failed_call_of_any_size_fails_again(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    message = "é" * 60_000

    def fails() -> None:
        raise KeyError(message, "\ud800", 2**80)

    for _ in range(2):
        with pytest.raises(KeyError):
            call(boundary, action("t"), fails)
    replay = ReplayBoundary(Recording(recorder.seal()))
    for _ in range(2):
        with pytest.raises(KeyError) as again:
            call(replay, action("t"), lambda: None)
        assert again.value.args == (message, "\ud800", 2**80)


def test_of_calls_that_are_alike_under_masks_the_same_one_answers_first_then_they_go_in_their_order(
    tmp_path: Path,
) -> None:
    def asked(trace: str) -> Call:
        return action("look", {"item": "lamp", "trace": trace}, lane=trace)

    recorder, boundary = recorder_in(tmp_path)
    live = [boundary.begin(asked(trace)) for trace in ("one", "two")]  # at once: they may come in any order
    for number, each in enumerate(live):
        assert isinstance(each, Live)
        each.finish({}, Content.of(number))
    recording = Recording(recorder.seal())
    for traces, answers in ((("two", "one"), [1, 0]), (("two", "new"), [1, 0]), (("new", "newer"), [0, 1])):
        replay = ReplayBoundary(recording, masks=masks_given("tool:look $.trace"))
        assert [replay.begin(asked(trace)).value() for trace in traces] == answers
        assert replay.report().verdict == "equivalent"
        with pytest.raises(Diverged):  # no answer is given twice
            replay.begin(asked("one"))
    with pytest.raises(Diverged):
        ReplayBoundary(recording).begin(asked("new"))
