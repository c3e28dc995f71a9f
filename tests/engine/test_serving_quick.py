"""A re-driven call takes the short way out where nothing holds it up, and gets what the long way would give."""

from __future__ import annotations

import random
import threading
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worldline
from tests.engine.recorded import action, recorder_in
from tests.engine.test_matcher import extension, named, recorded, spans
from tests.model.odd_values import ODD_NUMBERS, ODD_TEXTS, same, values
from worldline.engine.boundary import call
from worldline.engine.cassette import Answer, Cassette
from worldline.engine.matcher import Matcher
from worldline.engine.order import ThreadTurn
from worldline.engine.replay import ReplayBoundary
from worldline.errors import Ineligible
from worldline.store.recording import Recording


def nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


@settings(max_examples=6)
@given(st.lists(values, max_size=8))
def test_a_value_comes_out_as_it_does_by_way_of_its_text(drawn: list[Any]) -> None:
    results = [*ODD_TEXTS, *ODD_NUMBERS, nested(300), "large " * 9000, {"$blob": {"name": "no"}}, *drawn]
    with TemporaryDirectory() as name:
        recorder, boundary = recorder_in(Path(name))
        for number, result in enumerate(results):
            call(boundary, action("tool", {"n": number}), lambda result=result: result)  # type: ignore[misc]
        cassette = Cassette(Recording(recorder.seal()))
        order = Matcher(cassette, partial=False)
        for exchange, result in zip(cassette.exchanges, results, strict=True):
            answer = Answer(cassette, exchange, order)
            content = answer.content()
            assert content is not None
            assert same(answer.value(), content.value()) and same(answer.value(), result)
            assert answer.value() is not answer.value() or not isinstance(result, list | dict), "nobody shares it"


def test_a_result_that_no_record_could_carry_is_refused_by_either_way(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path)
    call(boundary, action("tool"), lambda: {1, 2})
    cassette = Cassette(Recording(recorder.seal()))
    answer = Answer(cassette, cassette.exchanges[0], Matcher(cassette, partial=False))
    for way in (answer.content, answer.value):
        with pytest.raises(Ineligible, match="set"):
            way()


def left(recording: Recording, order: list[int], distinct: int, short: bool) -> list[str]:
    """Ask in `order`, from one thread. Returns the calls in the order in which their answers left."""
    replay, gone = ReplayBoundary(recording), []
    for number in order:
        served = replay.begin(named(number, distinct))
        turn = ThreadTurn()
        if short and served.leaves():
            gone.append(served.call)
            assert served.leaves(), "what has left once has left"
            continue
        if not short and served.turn(turn).done():
            turn.wait()
            gone.append(served.call)
            continue
        waits: Future[None] = Future()
        waits.add_done_callback(lambda _, served=served: gone.append(served.call))  # type: ignore[misc]
        if not short:  # the turn that was asked for goes on in no thread: it is put off
            turn.add_done_callback(lambda _, waits=waits, turn=turn: (waits.set_result(None), turn.gone()))  # type: ignore[misc]
        else:
            served.turn(waits)
    return gone


@settings(max_examples=30)
@given(st.integers(1, 9), st.randoms(use_true_random=False))
def test_answers_leave_in_the_same_order_by_either_way(count: int, chance: random.Random) -> None:
    schedule = spans(chance, count)
    with TemporaryDirectory() as name:
        recording = recorded(Path(name), schedule, count)
        order = extension(chance, schedule)
        assert left(recording, order, count, True) == left(recording, order, count, False)


def test_an_answer_that_leaves_at_once_lets_go_of_those_that_wait_for_it(tmp_path: Path) -> None:
    recording = recorded(tmp_path, [(0, 2), (1, 3)], 2)  # both under way at once, the first ends first
    replay = ReplayBoundary(recording)
    second, first = replay.begin(named(1, 2)), replay.begin(named(0, 2))
    turn = ThreadTurn()
    assert not second.leaves()
    second.turn(turn)
    assert not turn.done() and not second.leaves(), "it waits for the one that ended before"
    assert first.leaves() and turn.done()
    assert replay.report().relaxed == 0


def test_one_thread_makes_nothing_to_wait_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @worldline.tool(effect="pure")
    def double(x: int) -> dict[str, int]:
        return {"twice": x * 2}

    def agent() -> None:
        for number in range(20):
            assert double(number % 5) == {"twice": number % 5 * 2}

    with worldline.record(tmp_path) as run:
        agent()
    assert run.path is not None
    monkeypatch.setattr(threading, "Timer", None)
    monkeypatch.setattr("worldline.engine.boundary.ThreadTurn", None)
    report = worldline.open(run.path).replay(agent)
    assert (report.verdict, report.served, report.relaxed) == ("equivalent", 20, 0)
