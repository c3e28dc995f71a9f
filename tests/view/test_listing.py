"""The runs page: a thousand runs with their facets, found by words, and never said of a run what it was before."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.engine.recorded import action, decision, recorder_in
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store import listed
from worldline.store.forget.contain import contain
from worldline.store.recording import Recording
from worldline.view import listing
from worldline.view.facets import facets_of
from worldline.view.listing import Listing


@pytest.fixture(autouse=True)
def quick_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """What changed in the last tick of the file system's clock is kept by a later list; tests do not wait for it."""
    monkeypatch.setattr(listed, "_TICK", 0)
    monkeypatch.setattr(listing, "PATIENCE_SECONDS", 60.0)


def a_tick_later(store: Path) -> None:
    """Until the file system's clock shows a later time than what was sealed last: what is younger is not kept."""
    probe = store / "probe"
    probe.touch()
    first = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns == first:
        probe.touch()
    probe.unlink()


def rows_of(store: Path, **query: str) -> list[dict[str, Any]]:
    return list(Listing(store, threading.Event()).answer(query)["runs"])


def test_facets_are_what_stands_in_the_run(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path, task="find the lamp")
    used = {"prompt_tokens": 7, "completion_tokens": 3}
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for turn, status in enumerate((200, 400, 200)):
        said = {"role": "assistant", "content": "done", "tool_calls": [call] if turn == 0 else []}
        told = {"model": "m-1", "choices": [{"message": said}], "usage": used} if status == 200 else {"error": {}}
        asked = {"model": "m-1", "messages": [{"role": "user", "content": f"turn {turn}"}]}
        live = boundary.begin(decision(json.dumps(asked).encode(), "openai.chat"))
        live.chunk(json.dumps(told).encode())
        live.finish({"status": status, "reason": "", "headers": [], "framing": "length", "complete": True})
        word = "denied" if status == 400 else "granted"
        boundary.note("permission", word, "main", {}, {"capability": "net", "facts": {}})
    boundary.begin(action("mail")).finish({}, Content.of("sent"))
    recorder.outcome = {"outcome": "failed", "facts": {"cost": 0.25}}
    run = recorder.seal()
    (row,) = rows_of(tmp_path)
    steps = wl.open(run).steps
    bad = next(step.index for step in steps if (step.status or 0) >= 400)
    assert (row["task"], row["outcome"], row["disposition"]) == ("find the lamp", "failed", "complete")
    assert row["model"] == "m-1" and row["steps"] == len(steps) == 3
    assert row["tools"] == ["look", "mail"] and row["permissions"] == {"denied": 1, "granted": 2}
    assert row["trouble_step"] == bad == 1
    assert row["tokens"] == sum((s.input_tokens or 0) + (s.output_tokens or 0) for s in steps) == 20
    assert row["cost"] == 0.25 and row["error"] is None and row["parent"] is None and row["pending"] is False


@pytest.mark.parametrize(
    ("summary", "word"),
    [
        ({"error": "TimeoutError: it took too long"}, "TimeoutError"),
        ({"error": "shop.Refused"}, "shop.Refused"),
        ({"error": "it did not work: no"}, "error"),
        ({"exit": 3}, "exit 3"),
        ({"exit": 137, "signal": "SIGKILL"}, "SIGKILL"),
        ({"exit": 0}, None),
        ({}, None),
    ],
)
def test_how_a_run_failed_is_one_word(summary: dict[str, Any], word: str | None) -> None:
    from worldline.view.facets import error_class

    assert error_class(summary) == word


def a_run(store: Path, number: int) -> Recorder:
    recorder = Recorder(Spec(store=store, task=f"refund order #{number}"))
    boundary = RecordBoundary(recorder)
    tool = ("pay", "mail", "stock")[number % 3]
    live = boundary.begin(Call(kind="action", name=tool, inputs=Content.of({"n": number}), effect="pure"))
    live.finish({}, Content.of(number))
    if number % 4 == 0:
        boundary.note("permission", "denied", "main", {}, {"capability": tool, "facts": {}})
    recorder.outcome = (
        {"outcome": "failed", "error": "TimeoutError: x"} if number % 5 == 0 else {"outcome": "succeeded"}
    )
    return recorder


@pytest.fixture
def thousand(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of a thousand runs: ten that were recorded, and copies of them under ids of their own."""
    store = quick / "runs"
    for number in range(10):
        a_run(store, number).seal()
    import shutil

    for number, run in enumerate(sorted(store.glob("run_*")) * 99):
        name = f"{run.name[:-4]}{number:04}"
        if not (store / name).exists():
            shutil.copytree(run, store / name, copy_function=_linked)
    return store


def _linked(source: str, target: str) -> None:
    import os

    os.link(source, target)


def test_a_thousand_runs_are_looked_through_once(thousand: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened are logs only the first time, and by another server never again."""
    looked: list[str] = []

    def counted(recording: Recording) -> Any:
        looked.append(recording.run_id)
        return facets_of(recording)

    monkeypatch.setattr(listing, "facets_of", counted)
    count = len(list(thousand.glob("run_*")))
    assert count >= 900
    first = Listing(thousand, threading.Event())
    one = first.answer({})
    assert one["total"] == len(one["runs"]) == count and one["pending"] == 0
    assert len(looked) == count
    assert first.answer({}) == one and len(looked) == count
    assert rows_of(thousand) == one["runs"]
    again = len(looked) - count
    assert again <= 10, "only what has another link to its result cannot be told by its stamps"
    cut = Listing(thousand, threading.Event()).answer({"limit": "3", "offset": "2"})
    assert cut["runs"] == one["runs"][2:5] and cut["total"] == count


def test_words_and_filters_find_runs(tmp_path: Path) -> None:
    for number in range(12):
        a_run(tmp_path, number).seal()

    def found(**query: str) -> set[int]:
        return {int(row["task"].rsplit("#", 1)[1]) for row in rows_of(tmp_path, **query)}

    assert found(q="refund") == set(range(12))
    assert found(q="ORDER #11") == {11}  # a number alone may stand in an id
    assert found(q="timeout") == {0, 5, 10} == found(error="TimeoutError") == found(outcome="failed")
    assert found(tool="mail") == {1, 4, 7, 10} == found(q="mail")
    assert found(permission="denied") == {0, 4, 8}
    assert found(permission="denied", q="timeout") == {0}
    assert found(q="nothing like it") == set()
    assert found(disposition="complete") == set(range(12))


def test_numbers_that_are_none_are_refused(panel: Any, tmp_path: Path) -> None:
    serve = panel(store=tmp_path)
    assert serve.get("api/runs").json == {"total": 0, "pending": 0, "runs": []}
    for query in ("limit=x", "offset=-1", "limit=99999999999"):
        assert serve.get(f"api/runs?{query}").status == 400


def test_a_run_that_goes_on_is_looked_at_again(panel: Any, writer: Any) -> None:
    serve = panel(store=writer.store)
    assert serve.get("api/runs").json["runs"][0]["permissions"] == {}
    writer.tell(ask={"capability": "pay", "timeout": 0.01})
    writer.heard("answer")
    (row,) = serve.get("api/runs").json["runs"]
    assert row["permissions"] == {"denied": 1, "requested": 1} and row["disposition"] == "running"
    writer.do("sealed", seal=True)
    assert serve.get("api/runs").json["runs"][0]["disposition"] == "complete"


def test_what_was_kept_of_a_contained_run_is_forgotten(tmp_path: Path) -> None:
    """The name of a tool may hold what must be forgotten."""
    recorder = Recorder(Spec(store=tmp_path))
    call = Call(kind="action", name="tell_hunter2_hunter2", inputs=Content.of({}), effect="pure")
    RecordBoundary(recorder).begin(call).finish({}, Content.of(1))
    run = recorder.seal().parent
    a_tick_later(tmp_path)
    assert rows_of(tmp_path)[0]["tools"] == ["tell_hunter2_hunter2"]
    assert b"hunter2" in (tmp_path / ".facets").read_bytes()
    contain(run, "TOKEN", "hunter2_hunter2", 1)
    assert not (tmp_path / ".facets").exists()
    assert rows_of(tmp_path)[0]["tools"] == []


def test_a_kept_line_that_is_not_what_was_written_is_none(tmp_path: Path) -> None:
    a_run(tmp_path, 1).seal()
    a_tick_later(tmp_path)
    right = rows_of(tmp_path)
    kept = tmp_path / ".facets"
    data = kept.read_bytes()
    for wrong in (data.replace(b"mail", b"evil"), data[:-3], b"", b"worldline-facets/1 00000000\n{}"):
        kept.write_bytes(wrong)
        assert rows_of(tmp_path) == right


def test_a_log_that_was_cut_by_its_length_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from worldline.view import facets

    run = a_run(tmp_path, 4).seal()
    assert not facets_of(Recording(run)).cut
    monkeypatch.setattr(facets, "MOST_BYTES", 100)
    assert facets_of(Recording(run)).cut
