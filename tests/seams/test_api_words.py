"""The words of a running agent: steps, lanes, outcome, permissions, observations; each is found where one looks."""

from __future__ import annotations

import asyncio
import contextvars
import json
from pathlib import Path

import pytest

import worldline as wl
from tests.seams.agents.crossings import crossings, worldline
from worldline.errors import UsageError, ValueRefused
from worldline.testing.provider import Provider, Say


@wl.tool(effect="pure")
def look(what: str) -> str:
    return f"looked at {what}"


def opened(run: wl.ActiveRun) -> wl.Run:
    assert run.path is not None
    return wl.open(run.path)


def test_explicit_steps_hold_what_happens_in_them(tmp_path: Path) -> None:
    with wl.record(tmp_path, task="steps") as run:
        with run.step("plan"):
            look("a")
            with run.step("inner"):  # part of the outer one
                look("b")
        with wl.step():
            look("c")
    steps = opened(run).steps
    assert [(s.index, s.name, [c.result for c in s.calls]) for s in steps] == [
        (0, "plan", ["looked at a", "looked at b"]),
        (1, None, ["looked at c"]),
    ]
    assert opened(run).recording.summary["steps"] == 2


def test_a_step_that_an_exception_leaves_is_closed(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        with pytest.raises(KeyError), run.step("first"):
            raise KeyError("x")
        with run.step("second"):
            look("a")
    assert [(s.name, len(s.calls)) for s in opened(run).steps] == [("first", 0), ("second", 1)]


def test_model_calls_inside_an_explicit_step_are_one_step(tmp_path: Path) -> None:
    import openai

    with (
        Provider(lambda ask: Say(f"answer {ask.n}")) as provider,
        wl.record(tmp_path) as run,
        openai.OpenAI(base_url=provider.openai_url, api_key="test-" + "key") as plain,
        run.wrap(plain) as client,
    ):

        def ask(text: str) -> None:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])

        with run.step("both"):
            ask("one")
            ask("two")
        ask("three")
    steps = opened(run).steps
    assert [(s.name, len(s.decisions), s.text) for s in steps] == [("both", 2, "answer 1"), (None, 1, "answer 2")]


async def test_lanes_follow_tasks_and_end_with_their_block(tmp_path: Path) -> None:
    async def agent(run: wl.ActiveRun, name: str) -> None:
        with run.lane(name):
            for turn in range(3):
                with run.step(f"{name} {turn}"):
                    await asyncio.sleep(0)
                    look(f"{name} {turn}")

    async with wl.record(tmp_path) as run:
        await asyncio.gather(*(agent(run, f"sub-{n}") for n in range(3)))
        with run.lane("sub-0"):
            with run.lane("deeper"):
                look("deeper")
            look("sub-0 again")
        look("main")
    found = [(c.lane, c.arguments["what"]) for c in crossings(opened(run))]
    assert sorted(found[:9]) == [(f"sub-{n}", f"sub-{n} {turn}") for n in range(3) for turn in range(3)]
    assert found[9:] == [("deeper", "deeper"), ("sub-0", "sub-0 again"), ("main", "main")]
    explicit = [s for s in opened(run).steps if s.name]
    assert {(s.lane, s.name, len(s.calls)) for s in explicit[:9]} >= {("sub-1", "sub-1 2", 1)}
    assert all(s.name is not None and s.name.startswith(s.lane) for s in explicit)
    assert opened(run).replay(lambda: _lanes_again(agent)).equivalent


async def _lanes_again(agent) -> None:  # type: ignore[no-untyped-def]
    run = wl.current()
    assert run is not None
    await asyncio.gather(*(agent(run, f"sub-{n}") for n in range(3)))
    for what in ("deeper", "sub-0 again", "main"):
        look(what)


def test_each_lane_has_its_own_random_numbers_and_they_come_again(tmp_path: Path) -> None:
    def agent() -> list[float]:
        with wl.record(tmp_path) as run:
            drawn = [wl.rng().random(), wl.rng().random()]
            with run.lane("other"):
                drawn.append(wl.rng().random())
            assert run.rng() is wl.rng()
        recordings.append(run.path)
        return drawn

    recordings: list[Path | None] = []
    first = agent()
    again: list[list[float]] = []
    assert recordings[0] is not None
    assert wl.open(recordings[0]).replay(lambda: again.append(agent())).equivalent
    assert again == [first] and len(set(first)) == 3


def test_the_outcome_is_what_the_agent_said_last(tmp_path: Path) -> None:
    with wl.record(tmp_path, task="graded") as run:
        run.outcome(done=False)
        wl.outcome("escalated", reward=-0.25, done=True, grader="unit tests", passed=3)
    found = opened(run)
    summary = found.recording.summary
    assert (found.outcome, summary["reward"], summary["done"]) == ("escalated", -0.25, True)
    [said] = [e.data for e in found.events() if e.name == "marker/outcome" and "facts" in e.data]
    assert said["facts"] == {"grader": "unit tests", "passed": 3}
    listed = json.loads(worldline("list", str(tmp_path), "--json").stdout)
    assert [(entry["task"], entry["outcome"]) for entry in listed] == [("graded", "escalated")]
    assert "escalated" in worldline("list", str(tmp_path)).stdout


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "1", 1j])
def test_a_reward_that_json_cannot_say_is_refused(tmp_path: Path, reward: object) -> None:
    with wl.record(tmp_path) as run, pytest.raises(UsageError, match="finite number"):
        run.outcome(reward=reward)  # type: ignore[arg-type]


def test_permissions_are_durable_and_stand_in_their_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    synced: list[int] = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(fd), real(fd))[1])
    with wl.record(tmp_path) as run:
        with run.step("pay"):
            look("the price")
            before = len(synced)
            run.observe("no need to wait for the disk", src="terminal")
            assert len(synced) == before
            wl.permission("requested", "irreversible_external", tool="refund", cents=4900)
            wl.permission("denied", "irreversible_external", by="policy")
            assert len(synced) == before + 2, "a permission must be on disk before anything rests on it"
        with pytest.raises(UsageError, match=r"granted.*not 'maybe'"):
            run.permission("maybe", "read_only")
    [step] = opened(run).steps
    assert [(p["src"], p["capability"], p["facts"]) for p in step.permissions] == [
        ("requested", "irreversible_external", {"tool": "refund", "cents": 4900}),
        ("denied", "irreversible_external", {"by": "policy"}),
    ]


def test_observations_keep_every_value_or_refuse_it(tmp_path: Path) -> None:
    value = {"screen": b"\x00\xff", "odd": "\ud800", "big": 2**80, "list": [1.5, None, ("t",)], "long": "y" * 200_000}
    with wl.record(tmp_path) as run:
        run.observe(value, src="window", name="login")
        wl.observe("text", src="file")
        with pytest.raises(UsageError):
            run.observe(1, src="No Word")
        with pytest.raises(ValueRefused) as refused:
            run.observe({"a": [object()]}, src="file")
        assert refused.value.facts["path"] == "$.a[0]"
    found = opened(run)
    rows = [e for e in found.events() if e.kind == "observation"]
    assert [(e.src, e.data["name"]) for e in rows] == [("window", "login"), ("file", None)]
    assert found.recording.value(rows[0].data["value"]) == value


def test_the_manifest_says_what_was_covered(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        look("a")
        look("b")
        wl.now()
        wl.uuid()
    manifest = opened(run).recording.manifest
    assert manifest is not None
    assert manifest.coverage == {
        "decision": {"recorded": 0, "capture": "full"},
        "tools": {"recorded": {"look": 2}, "outside": {}, "unrecordable": {}},
        "samples": {"recorded": 2},
        "losses": [],
    }


def test_without_a_run_every_word_is_silent_and_every_tool_plain(tmp_path: Path) -> None:
    def agent() -> str:
        with wl.step("x"):
            wl.observe(object(), src="anything")
            wl.permission("granted", "read_only")
            wl.outcome("succeeded")
            assert wl.now().tzinfo is not None and wl.uuid().version == 4 and 0 <= wl.rng().random() < 1
            return look("plain")

    assert wl.current() is None
    assert contextvars.Context().run(agent) == "looked at plain"
    assert not (tmp_path / ".worldline").exists()


def test_a_lane_is_told_apart_and_follows_the_context(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        with wl.lane("researcher"):
            wl.observe("seen", src="file")
            with wl.lane("its helper"):
                wl.observe("seen", src="file")
        wl.observe("seen", src="file")
    assert run.path is not None
    lanes = [event.lane for event in wl.open(run.path).events() if event.name == "observation/file"]
    assert lanes == ["researcher", "its helper", "main"]


def test_a_block_in_which_nothing_crossed_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with wl.record(tmp_path):
        pass
    assert "nothing crossed this recording: wrap the client" in caplog.text
    caplog.clear()
    with wl.record(tmp_path):
        wl.observe("seen", src="file")
    assert not caplog.text


def test_contents_that_were_not_captured_cannot_be_rebuilt_either(tmp_path: Path) -> None:
    with wl.record(tmp_path, capture="refs") as run:
        wl.observe("seen", src="file")
    assert run.path is not None
    report = wl.open(run.path).replay()
    assert report.verdict == "ineligible" and "--capture refs" in report.reasons[0]


def test_a_step_says_the_effect_of_its_tools_and_what_could_not_be_recorded(tmp_path: Path) -> None:
    @wl.tool(effect="pure")
    def odd() -> set[int]:
        return {1}

    with wl.record(tmp_path) as run:
        odd()
    assert run.path is not None
    (call,) = wl.open(run.path).steps[0].calls
    assert (call.effect, call.error) == ("pure", "its result is not in the record: a value of type set at $")
