"""No effect happens twice: not over a crash and its resume, not over forks, replicas and the same fork again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.fork.outside import Outside
from tests.fork.shop import Desk, clerk, counts, only
from worldline.errors import Ineligible
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Fail, Provider, Reply

ALLOW = '[[policy.rule]]\ntool = "*"\ndecision = "allow"\n'
AGAIN = '[[policy.rule]]\ntool = "refund"\noutcome = "unknown"\ndecision = "allow"\n'
ONCE = (["/refund/812/64"], ["bob@x.invalid"])


def size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_crash_after_the_effect_and_before_its_end_is_unknown_and_stays_so(desk: Desk) -> None:
    run = desk.record(DIE="refund")
    assert desk.outside.did == ONCE
    ended = desk.verb("resume", run, "--json")
    resumed = ended.json
    assert (ended.code, [resumed[word] for word in ("prefix", "live", "refused")]) == (0, [5, 1, 1])
    assert resumed["unknown"] == ["refund (c5)"] and "whether it happened is unknown" in ended.err
    assert "OutcomeUnknown: refund was not run" in ended.err and desk.outside.did == ONCE

    recording = desk.recording(run)
    continues, parent = recording.header.data["continues"], recording.header.data["parent"]
    assert continues["run"] == parent["run"] == run and recording.published is not None
    assert desk.replay(run).verdict == "equivalent"

    before = size(desk.store)
    for _ in range(3):
        again = desk.resume(run)
        assert (again.outcome, again.prefix, again.path) == ("nothing_new", 7, str(recording.path))
    assert size(desk.store) == before, "what has nothing new to say adds nothing"

    fork = only(desk.fork(run, "step:2"))
    assert (fork.refused, desk.outside.did) == (1, ONCE), "on a branch it is unknown, too"
    fork = only(desk.fork(run, "step:2", rules=ALLOW))
    assert (fork.refused, desk.outside.did) == (1, ONCE), "a rule that does not speak of unknown outcomes means none"
    fork = only(desk.fork(run, "step:2", rules=AGAIN))
    assert (fork.refused, desk.outside.posted) == (0, ONCE[0] * 2), "only who says so has it twice"


def test_a_crash_behind_the_effect_s_end_serves_it(tmp_path: Path) -> None:
    """Killed while the model is asked what comes next: the mail's result was durable before, and is served."""
    release, asked = threading.Event(), threading.Event()

    async def holding(ask: Ask) -> Reply:
        if ask.tool_results and "sent" in ask.tool_results[0][1] and not asked.is_set():
            asked.set()
            await in_thread(release.wait, 30)
        return clerk(ask)

    with Outside() as outside, Provider(holding) as provider:
        desk = Desk(tmp_path, provider, outside)
        words = [sys.executable, "-m", "worldline", "record", "--out", str(desk.store), "--", *desk.program]
        with subprocess.Popen(
            words, env=desk.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as recorder:
            came = asked.wait(60)
            os.killpg(recorder.pid, signal.SIGKILL)
        release.set()
        assert came and outside.did == ([], ["bob@x.invalid"])
        run = desk.newest()
        with pytest.raises(Ineligible, match=r"not sealed: `worldline reconcile`"):
            desk.fork(run, "step:1")
        resumed = desk.resume(run)
        assert (resumed.outcome, resumed.unknown) == ("succeeded", ["openai.chat (c4)"])
        assert counts(resumed) == (4, 3, 0, 0), "the model is asked again; the refund is the run's own and happens"
        assert outside.did == ONCE
        assert desk.resume(run).outcome == "nothing_new" and outside.did == ONCE


def test_model_calls_that_failed_a_run_are_made_again_when_it_is_resumed(tmp_path: Path) -> None:
    """A provider that is overloaded ends the run; once it is well the run goes on, and nothing before happens again."""
    well = threading.Event()

    def overloaded(ask: Ask) -> Reply:
        return clerk(ask) if well.is_set() or "sent" not in str(ask.tool_results) else Fail(529)

    with Outside() as outside, Provider(overloaded) as provider:
        desk = Desk(tmp_path, provider, outside)
        run = desk.record()
        assert desk.recording(run).summary["outcome"] == "failed" and outside.did == ([], ["bob@x.invalid"])
        again = desk.resume(run)
        assert (counts(again), again.outcome) == ((4, 1, 0, 0), "failed"), "it is as ill as it was: that is recorded"
        well.set()
        ended = desk.verb("resume", run)
        goes_on = f"resuming {again.run[-4:]}, which goes on from {run[-4:]}, at the call that failed"
        assert goes_on in ended.err and "   4 calls served, 3 live" in ended.out
        assert outside.did == ONCE and desk.recording(desk.newest()).summary["outcome"] == "succeeded"
        assert desk.replay(desk.newest()).verdict == "equivalent"
        assert desk.resume(run).outcome == "nothing_new" and outside.did == ONCE, "what went on is what is resumed"


async def in_thread(wait: object, seconds: float) -> None:
    import asyncio

    await asyncio.to_thread(wait, seconds)  # type: ignore[arg-type]


def test_what_a_key_names_happens_once_in_the_whole_family(recorded: Desk) -> None:
    """Bob's mail is the parent's; Eve's is sent by the first of many branches that may, and by no other."""
    other = {"model": "other"}
    first = recorded.fork(recorded.run, "step:0", n=2, rules=ALLOW, set=other)
    assert [counts(branch) for branch in first.branches] == [(0, 7, 0, 0), (0, 6, 1, 0)]
    assert recorded.outside.mailed == ["eve@x.invalid"], "the second replica is given the first one's result"
    again = only(recorded.fork(recorded.run, "step:0", rules=ALLOW, set=other))
    of_fork = only(recorded.fork(again.run, "step:1", rules=ALLOW))
    back = only(recorded.fork(recorded.run, "step:1", rules=ALLOW))
    assert again.mocked == of_fork.mocked == back.mocked == 1
    assert recorded.outside.mailed == ["eve@x.invalid"], "bob's mail was the parent's, and is not sent by a branch"
    repeated = only(recorded.fork(recorded.run, "step:1", rules=ALLOW, allow_repeat=True))
    assert repeated.mocked == 0 and recorded.outside.mailed == ["eve@x.invalid", "bob@x.invalid"]


def test_forks_without_a_policy_replays_and_resumes_touch_nothing_outside(recorded: Desk) -> None:
    for number in (0, 3):
        recorded.fork(recorded.run, f"step:{number}")
    assert recorded.replay(recorded.run).equivalent
    assert recorded.resume(recorded.run).outcome == "nothing_new"
    assert recorded.outside.did == ([], [])
    keys = [
        (event.keys["idempotency_key"], event.keys["mode"])
        for path in recorded.store.iterdir()
        if path.name.startswith("run_")
        for event in Recording(path).events()
        if "idempotency_key" in event.keys
    ]
    derived = [key for key, _ in keys if key.startswith("wl:")]
    assert len(derived) == len(set(derived)), "a key that was derived for one call of one branch is of no other"
