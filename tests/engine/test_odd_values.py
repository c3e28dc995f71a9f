"""Odd values end to end through tools: recorded, shown, replayed, or refused with a typed error; never changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

import worldline
from tests.engine.recorded import action, recorder_in
from tests.model.odd_values import ODD_NUMBERS, ODD_TEXTS, same, values
from worldline.engine.boundary import call
from worldline.engine.content import Content
from worldline.engine.replay import ReplayBoundary
from worldline.errors import ValueRefused
from worldline.store.recording import Recording


def deep(levels: int) -> Any:
    value: Any = ["\ud800", float("-inf"), b"\0"]
    for level in range(levels):
        value = {"$k": value} if level % 2 else (value,)
    return value


ODD: list[Any] = [
    *ODD_TEXTS,
    *ODD_NUMBERS,
    b"",
    bytes(range(256)),
    (),
    [()],
    {"$int": "5", "\ud800": {"$b64": "x"}, "": None},
    [ODD_TEXTS, ODD_NUMBERS],
    "x" * 40_000 + "\ud800",
    {"k" * 40_000: b"\xff" * 40_000},
    [1] * 40_000,
    deep(5000),
]


def strict(text: str) -> Any:
    """JSON as every strict reader takes it."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    text.encode("utf-8")
    msgspec.json.decode(text.encode("utf-8"))
    return json.loads(text, parse_constant=refuse)


def show(path: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "worldline", "show", str(path), *arguments],
        capture_output=True,
        timeout=420,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8")


def test_tools_give_back_what_they_gave_and_show_shows_it(tmp_path: Path) -> None:
    ran: list[int] = []

    @worldline.tool(effect="pure")
    def echo(number: int, value: Any) -> Any:
        ran.append(number)
        return value

    came: list[list[Any]] = []

    def agent() -> None:
        came.append([echo(number, value) for number, value in enumerate(ODD)])

    with worldline.record(tmp_path) as run:
        agent()
    assert run.path is not None
    recorded = worldline.open(run.path)
    report = recorded.replay(agent)
    assert report.equivalent, report.first_divergence
    assert ran == list(range(len(ODD)))
    assert all(same(once, again) for once, again in zip(came[0], came[1], strict=True))
    assert all(same(once, value) for once, value in zip(came[0], ODD, strict=True))
    exchanges = recorded.cassette.exchanges
    assert all(
        same(recorded.cassette.inputs(exchange), {"number": number, "value": value})
        for number, (exchange, value) in enumerate(zip(exchanges, ODD, strict=True))
    )
    assert recorded.verify().ok
    (step,) = strict(show(run.path, "--json"))["steps"]
    assert len(step["calls"]) == len(ODD)
    for shown, value in zip(step["calls"], ODD, strict=True):
        assert shown["result"] == shown_as(value)
    assert "\ud800" not in show(run.path) and "\0" not in show(run.path, "--step", "0")


def shown_as(value: Any) -> str:
    """What `show` says of a value: text as it is, the rest in the record's own escapes."""
    content = Content.of(value)
    return value if isinstance(value, str) and not content.data.startswith(b"{") else content.data.decode()


@settings(max_examples=50)
@given(values)
def test_any_value_crosses_the_door_and_back(value: Any) -> None:
    with TemporaryDirectory() as name:
        recorder, boundary = recorder_in(Path(name))
        call(boundary, action("t", {"v": value}), lambda: value)
        replay = ReplayBoundary(Recording(recorder.seal()))
        assert same(call(replay, action("t", {"v": value}), lambda: 1 / 0), value)
        assert replay.report().equivalent


def test_what_no_record_carries_is_refused_before_the_tool_runs_and_declared_after(tmp_path: Path) -> None:
    ran: list[Any] = []

    @worldline.tool
    def odd(value: Any) -> Any:
        ran.append(value)
        return {"s": {1, 2}} if value == "set" else 10**5000

    def agent() -> None:
        assert odd("set") == {"s": {1, 2}}
        odd("int")

    with worldline.record(tmp_path) as run:
        agent()
        with pytest.raises(ValueRefused) as refused:
            odd([1, {"x": object()}])
    assert refused.value.facts["path"] == "$.value[1].x" and ran == ["set", "int"]
    assert run.path is not None
    recorded = worldline.open(run.path)
    assert [e.data["unrecordable"]["path"] for e in recorded.cassette.exchanges] == ["$.s", "$"]
    strict(show(run.path, "--json"))
    report = recorded.replay(agent)
    assert report.verdict == "ineligible" and ran == ["set", "int"]
    assert "set at $.s" in " ".join(report.reasons)


BIG = """
import tracemalloc, worldline
value = {value}
other = {value}

@worldline.tool(effect="pure")
def big():
    return value

def agent():
    assert big() == other

tracemalloc.start()
with worldline.record("runs") as run:
    agent()
_, recording = tracemalloc.get_traced_memory()
tracemalloc.reset_peak()
report = worldline.open(run.path).replay(agent)
assert report.equivalent, report
print(recording, tracemalloc.get_traced_memory()[1], run.path)
"""


@pytest.mark.parametrize(("value", "size"), [("'x' * 100_000_000", 100_000_000), ("b'\\xff' * 30_000_000", 30_000_000)])
def test_a_result_of_100_mb_costs_a_bounded_amount_of_memory(tmp_path: Path, value: str, size: int) -> None:
    script = tmp_path / "agent.py"
    script.write_text(BIG.format(value=value))
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=420, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    recording, replaying, path = done.stdout.decode().split()
    assert int(recording) < 4 * size and int(replaying) < 6 * size, (recording, replaying)
    assert strict(show(tmp_path / path, "--json"))["steps"]
