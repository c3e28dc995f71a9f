"""`wl.record()`: whatever leaves the block, the recording is sealed, says how it ended, and the exception goes on."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.seams.agents.crossings import crossings, program
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import SecretFound, SecretRefused, UsageError, ValueRefused

SECRET = "-".join(["hold", "this", "back", "4711"])


@wl.tool(effect="pure")
def echo(text: str) -> str:
    return f"{text} {SECRET}" if text == "leak" else text


@wl.tool(effect="pure")
async def nap() -> None:
    await asyncio.sleep(0)


def written(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())


def only(store: Path) -> wl.Run:
    [directory] = store.iterdir()
    return wl.open(directory)


def leave(how: str) -> None:
    echo("inside")
    match how:
        case "error":
            raise ValueError(f"could not, with {SECRET}")
        case "interrupt":
            raise KeyboardInterrupt
        case "exit 0":
            sys.exit(0)
        case "exit 3":
            sys.exit(3)


WAYS = {
    "well": (None, "complete", "succeeded"),
    "error": (ValueError, "complete", "failed"),
    "interrupt": (KeyboardInterrupt, "partial", "failed"),
    "exit 0": (SystemExit, "complete", "succeeded"),
    "exit 3": (SystemExit, "complete", "failed"),
}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("style", ["with", "async with"])
def test_however_the_block_is_left_the_recording_is_sealed(how: str, style: str, tmp_path: Path) -> None:
    error, disposition, outcome = WAYS[how]

    def block() -> None:
        with wl.record(tmp_path, task="leaving", secrets={SECRET}) as run:
            leave(how)
        assert run.path is not None

    async def async_block() -> None:
        async with wl.record(tmp_path, task="leaving", secrets={SECRET}):
            await nap()
            leave(how)

    def act() -> None:
        block() if style == "with" else asyncio.run(async_block())

    if error is None:
        act()
    else:
        with pytest.raises(error):
            act()
    run = only(tmp_path)
    assert (run.disposition, run.outcome, run.task) == (disposition, outcome, "leaving")
    assert run.verify().problems == []
    assert crossings(run)[-1].arguments == {"text": "inside"}
    assert SECRET.encode() not in written(tmp_path)
    if how == "error":
        assert run.recording.summary["error"] == "ValueError: could not, with [secret:secret-1]"
    assert wl.current() is None and "WORLDLINE_URL" not in os.environ


def test_the_path_names_the_published_result_and_opens(tmp_path: Path) -> None:
    recording = wl.record(tmp_path, task="Refund #812!")
    with recording as run:
        assert run.path is None, "nothing is published yet"
    assert run.path is not None and run.path.name == "refund-812.json" and run.path.is_file()
    assert wl.open(run.path).id == wl.open(run.run, tmp_path).id == run.run


def test_a_record_inside_a_record_joins_it(tmp_path: Path) -> None:
    with wl.record(tmp_path / "outer") as outer:
        echo("before")
        with wl.record(tmp_path / "inner") as inner:
            assert inner is outer
            echo("within")
        assert outer.path is None, "leaving the inner block must not seal the outer run"
        echo("after")
    assert not (tmp_path / "inner").exists()
    assert [c.arguments["text"] for c in crossings(only(tmp_path / "outer"))] == ["before", "within", "after"]


def test_one_after_the_other_are_two_runs(tmp_path: Path) -> None:
    for word in ("one", "two"):
        with wl.record(tmp_path):
            echo(word)
    first, second = sorted(tmp_path.iterdir())
    assert [c.arguments["text"] for p in (first, second) for c in crossings(p)] == ["one", "two"]


@pytest.mark.parametrize(
    ("secrets", "label"),
    [({SECRET}, "secret-1"), ([SECRET], "secret-1"), ({"SHOP": SECRET}, "SHOP")],
)
def test_secrets_by_value_or_by_label_never_reach_the_disk(secrets: Any, label: str, tmp_path: Path) -> None:
    with wl.record(tmp_path, task=f"use {SECRET}", secrets=secrets) as run:
        assert echo("leak") == f"leak {SECRET}", "the agent itself goes on with the real value"
        with run.lane(f"lane {SECRET}"), run.step(f"step {SECRET}"):
            run.observe({SECRET: [SECRET.encode()]}, src="terminal")
        run.permission("granted", "read_only", why=SECRET)
        run.outcome("succeeded", note=SECRET)
    assert SECRET.encode() not in written(tmp_path)
    assert f"[secret:{label}]".encode() in written(tmp_path)
    report = only(tmp_path).replay(lambda: echo("leak"), secrets={label: SECRET})
    assert report.equivalent
    assert only(tmp_path).replay(lambda: echo("leak")).equivalent, "a replay needs no secret"


def test_a_secret_takes_the_name_of_the_variable_that_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    with wl.record(tmp_path, secrets={SECRET}):
        echo("leak")
    assert only(tmp_path).recording.header.data["secrets"]["labels"] == ["SHOP_TOKEN"]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"secrets": {"short"}}, SecretRefused),
        ({"secrets": SECRET}, UsageError),
        ({"capture": "ref"}, UsageError),
        ({"policy": "block"}, UsageError),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    asked: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error), wl.record(tmp_path / "runs", **asked):
        raise AssertionError("the block must not run")
    assert not (tmp_path / "runs").exists()
    assert wl.current() is None


def test_under_stop_the_agent_sees_a_typed_error_and_what_is_sealed_is_clean(tmp_path: Path) -> None:
    with pytest.raises(SecretFound) as seen, wl.record(tmp_path, secrets={"SHOP": SECRET}, policy="stop"):
        echo("fine")
        try:
            echo("leak")
        except SecretFound:
            echo("an agent that goes on regardless records nothing more")
    assert seen.value.facts == {"label": "SHOP"} and SECRET not in str(seen.value)
    run = only(tmp_path)
    assert run.disposition == "sanitized-partial" and run.verify().problems == []
    assert [c.arguments["text"] for c in crossings(run)] == ["fine", "leak"]
    assert SECRET.encode() not in written(tmp_path)


def test_refs_keeps_no_content_and_says_that_it_cannot_replay(tmp_path: Path) -> None:
    with wl.record(tmp_path, capture="refs"):
        echo("the content of the call")
        wl.observe("the content of the screen", src="terminal")
    assert b"the content" not in written(tmp_path)
    report = only(tmp_path).replay(lambda: echo("the content of the call"))
    assert report.verdict == "ineligible" and "full" in report.reasons[0]


def test_a_block_may_be_left_in_another_context_than_it_was_entered(tmp_path: Path) -> None:
    """Async fixtures and generators do that; the run must be sealed all the same."""

    async def fixture() -> Any:
        async with wl.record(tmp_path):
            echo("set up")
            yield

    async def main() -> None:
        steps = fixture()
        await asyncio.create_task(steps.__anext__())
        with pytest.raises(StopAsyncIteration):
            await asyncio.create_task(steps.__anext__())

    asyncio.run(main())
    assert only(tmp_path).disposition == "complete"


def test_a_run_made_by_tests_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def origin(store: Path) -> object:
        return only(store).recording.header.data["origin"]

    with wl.record(tmp_path / "test"):
        echo("x")
    assert program("marking.py", str(tmp_path / "program of a test"), "x").returncode == 0
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with wl.record(tmp_path / "elsewhere"):
        echo("x")
    assert [origin(tmp_path / store) for store in ("test", "program of a test", "elsewhere")] == [
        "pytest",
        "pytest",
        None,
    ]


def test_the_default_store_is_below_the_working_directory(tmp_path: Path) -> None:
    with wl.record() as run:
        echo("x")
    assert run.path is not None and run.path.resolve().is_relative_to(tmp_path / ".worldline" / "runs")
    assert wl.open("latest").id == run.run


def test_importing_and_recording_patch_nothing(tmp_path: Path) -> None:
    import socket
    import threading

    things: list[Callable[..., Any]] = [threading.Thread.start, socket.socket.connect, socket.create_connection, open]
    before = [id(thing) for thing in things]
    with wl.record(tmp_path):
        now = [threading.Thread.start, socket.socket.connect, socket.create_connection, open]
        assert [id(thing) for thing in now] == before


def test_an_agent_that_changes_directory_is_sealed_where_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    for store in ("runs", None):
        monkeypatch.chdir(tmp_path)
        with wl.record(store, task="wander") as run:
            echo("before")
            os.chdir(tmp_path / "elsewhere")
            echo("after")
        recorded = wl.open(run.path)
        assert recorded.verify().ok and len(recorded.cassette.exchanges) == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_secret_in_a_session_or_in_the_reason_reaches_no_file(tmp_path: Path) -> None:
    with wl.record(tmp_path, session=f"of {SECRET}", secrets={"S": SECRET}) as run:
        echo("inside")
    assert SECRET.encode() not in written(tmp_path)
    assert wl.open(run.path).verify().ok
    recorder = Recorder(Spec(store=tmp_path / "other", secrets={"S": SECRET}))
    recorder.seal("partial", f"cannot start '{SECRET}'")
    assert SECRET.encode() not in written(tmp_path)


def test_a_recording_that_is_open_is_not_entered_again(tmp_path: Path) -> None:
    recording = wl.record(tmp_path)
    with recording as run:
        with pytest.raises(UsageError, match="open already"), recording:
            pass
        echo("still recorded")
    assert [exchange.name for exchange in wl.open(run.path).cassette.exchanges] == ["echo"]


def test_text_that_no_record_can_carry_is_refused_by_name(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        for word in (run.step, run.outcome, lambda text: run.observe(1, src="file", name=text)):
            with pytest.raises(ValueRefused):
                made = word("\ud800")
                if made is not None:
                    made.__enter__()
    with pytest.raises(ValueRefused):
        wl.record(tmp_path, agent={"tools": {1, 2}})
    with wl.record(tmp_path, agent={"seed": 2**70, "bias": float("nan")}) as run:
        echo("inside")
    assert wl.open(run.path).recording.header.data["agent"] == {"seed": {"$int": str(2**70)}, "bias": {"$f64": "nan"}}
