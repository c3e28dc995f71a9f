"""A study names the step, alike on every executor, keeps what went well, and refuses what it cannot answer."""

from __future__ import annotations

import json
import math
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.attribution.conftest import Stores
from tests.attribution.line import AGENT, COMMAND, CULPRIT
from tests.cli.terminal import environment, worldline
from worldline.analysis.attribution.asking import Do, Draw, LocateOptions
from worldline.errors import Ineligible, NoVerdict, UsageError
from worldline.store.recording import Recording
from worldline.store.studies.folder import rollouts
from worldline.store.studies.journal import DRAWN, read_journal
from worldline.study.attributing import Study
from worldline.study.opening import Options, opened_study, prepare
from worldline.testing.provider import Provider
from worldline.view.shown import Shown
from worldline.view.studied import studied

QUICK = LocateOptions(checks=2, batch=8, fresh=12, cap=16)
FEW: dict[str, Any] = {"budget": wl.Budget(rollouts=8), "options": QUICK}


def test_the_culprit_is_named_and_processes_answer_as_the_inline_executor_to_the_bit(stores: Stores) -> None:
    run = stores.run("a")
    inline = wl.attribute(run, AGENT, "outcome", executor="inline", options=QUICK)
    spread = wl.attribute(stores.run("b"), AGENT, "outcome", executor="processes", flight=2, options=QUICK)
    assert _text(spread) == _text(inline)
    assert (inline.verdict, inline.step, inline.interval) == ("decisive", CULPRIT, (CULPRIT, CULPRIT + 1))
    assert inline.ci is not None and inline.ci[0] > 0
    assert f"Step {CULPRIT} cost" in inline.sentence
    kept = [rescue for rescue in inline.answer["rescued"] if rescue["run"]]
    assert kept and all(rescue["action"] == f"good work at {CULPRIT}" for rescue in kept)
    rescued = wl.open(str(inline.folder / kept[0]["run"]))
    assert rescued.outcome == "succeeded" and len(rescued.steps) == 4, "a kept rollout opens with its whole lineage"
    assert rescued.verify().ok
    _the_panel_shows(run, inline, kept[0]["run"])


def _the_panel_shows(run: wl.Run, study: Study, rescued: str) -> None:
    """`r/<id>/study`, in the shape that the page reads: the curve stands at the end of the last step that was held."""
    shown = studied(run.recording)
    assert shown is not None and shown["verdict"] == study.verdict
    assert [point["i"] for point in shown["curve"]] == [point["at"] - 1 for point in study.answer["curve"]]
    (drop,) = shown["certified"]
    assert drop["step"] == CULPRIT and drop["lo"] > 0
    assert shown["rescued"]["run"] == rescued and 0 < shown["rescued"]["rate"] <= 1
    panel = Shown([run.recording], None, threading.Event())
    assert panel.run(rescued).recording().run_id == rescued, "the panel opens it beside the run"
    assert studied(Recording(study.folder / rescued)) is None


def test_a_rollout_is_a_run_that_no_list_shows_and_most_are_not_kept(stores: Stores) -> None:
    run = stores.run()
    study = wl.attribute(run, AGENT, "outcome", executor="inline", **FEW)
    store = run.recording.run_directory.parent
    assert [path.name for path in store.iterdir() if path.name.startswith("run_")] == [run.id]
    drawn = [entry for entry in read_journal(study.folder).entries if entry.what == DRAWN]
    assert len(drawn) == 8 + QUICK.checks
    assert 0 < len(rollouts(study.folder)) < 5
    assert not (study.folder / ".scratch").exists()


def test_the_same_question_is_answered_from_the_journal(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stores.run()
    first = wl.attribute(run, AGENT, "outcome", executor="inline", **FEW)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")  # nothing can be drawn any more
    again = wl.attribute(run, AGENT, "outcome", executor="inline", **FEW)
    assert _text(again) == _text(first) and again.id == first.id


def test_async_agents_draw_as_tasks(stores: Stores) -> None:
    study = wl.attribute(
        stores.run(), "tests.attribution.agents.reader:work", "outcome", executor="tasks", flight=4, **FEW
    )
    inline = wl.attribute(stores.run("b"), "tests.attribution.agents.reader:work", "outcome", executor="inline", **FEW)
    assert _text(study) == _text(inline)
    assert study.answer["diverged"] == 0 and study.answer["undefined"] == 0


def test_the_runs_own_chance_follows_from_the_seed_in_a_command_as_in_a_function(tmp_path: Path) -> None:
    program = (sys.executable, str(Path(__file__).parent / "agents" / "dice.py"))
    store = tmp_path / "runs"
    while worldline("record", "--out", store, "--", *program).code == 0:
        pass
    run = wl.open("latest", store)
    few: dict[str, Any] = {"budget": wl.Budget(rollouts=6), "options": LocateOptions(checks=1, batch=6)}
    in_commands = wl.attribute(run, program, "exit-code", flight=2, **few)
    in_process = wl.attribute(run, "tests.attribution.agents.dice:throw", "outcome", executor="inline", **few)
    drawn = [_outcomes(study) for study in (in_commands, in_process)]
    assert drawn[0] == drawn[1] and set(drawn[0]) == {True, False}
    other = wl.attribute(run, "tests.attribution.agents.dice:throw", "outcome", executor="inline", root=1, **few)
    assert _outcomes(other) != drawn[0], "another seed, another chance"


def _outcomes(study: Study) -> list[bool]:
    entries = [entry.data for entry in read_journal(study.folder).entries if entry.what == DRAWN]
    drawn = sorted((said["draw"]["k"], said["outcome"]["success"]) for said in entries if said["draw"]["at"] == 0)
    return [success for _, success in drawn]


@pytest.mark.parametrize("kept", [True, False], ids=["restored", "copied"])
def test_rollouts_work_in_folders_of_their_own(
    kept: bool, line_provider: Provider, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKER_BOOK", "book.txt")
    work = tmp_path / "work"
    work.mkdir()
    (work / "readme.txt").write_text("a folder")
    store = tmp_path / "runs"
    keeping = ["--workspace", "."] if kept else []
    monkeypatch.chdir(work)
    surroundings = environment(line_provider, WORKER_BOOK="book.txt")
    worldline("record", "--out", store, *keeping, "--", *COMMAND, env=surroundings)
    if not kept:
        (work / "book.txt").unlink()
    here = {path.name: path.read_bytes() for path in work.iterdir()}
    few: dict[str, Any] = {"budget": wl.Budget(rollouts=4), "options": LocateOptions(checks=1, batch=4), "flight": 2}
    place = {} if kept else {"workspace": work}
    study = wl.attribute(wl.open("latest", store), COMMAND, "exit-code", **few, **place)
    assert _outcomes(study).count(True) >= 2, "each found no book, or the one of its own past"
    assert {path.name: path.read_bytes() for path in work.iterdir()} == here
    spares = store / ".snapshots" / "spares"
    assert not kept or list(spares.iterdir()), "the next rollout's folder is made of this one's"
    assert not (study.folder / ".scratch").exists() or not list((study.folder / ".scratch").rglob("book.txt"))


# ------------------------------------------------------------------------------------------------------- interventions


def _draw(run: wl.Run, *draws: Draw, agent: str = AGENT, **more: Any) -> list[Any]:
    opening = prepare(run, agent, "outcome", Options(executor="inline", keep=True, **more), wl.Budget())
    with opened_study(opening, "attribute", {"method": "by hand"}) as study:
        return study.conduct.draw(list(draws))


def test_a_forced_action_stands_in_the_record_as_what_it_is(stores: Stores) -> None:
    run = stores.run()
    good, bad, removed = _draw(
        run,
        Draw(CULPRIT, 0, "", (Do(CULPRIT, "force", json.dumps({"text": "good work, they said"})),)),
        Draw(CULPRIT, 0, "", (Do(CULPRIT, "force", json.dumps({"text": "bad work again"})),)),
        Draw(CULPRIT, 0, "", (Do(CULPRIT, "remove"),)),
    )
    assert (good.success, bad.success, removed.success) == (True, False, True)
    folder = next((run.recording.run_directory.parent / "studies").glob("study_*"))
    branch = wl.open(str(folder / good.run))
    assert branch.steps[CULPRIT].text == "good work, they said"
    assert next(event.keys.get("mode") for event in branch.events() if event.name == "decision/request") == "mock"


def test_a_step_behind_one_that_was_drawn_anew_is_held_where_its_request_comes_again(stores: Stores) -> None:
    run = stores.run()
    (same,) = _draw(run, Draw(4, 0, "", (Do(3, "resample"),)))
    assert same.live_steps == 1 and same.success is False
    first = [Draw(CULPRIT, k, "shared", (Do(2, "hold"), Do(3, "hold"))) for k in range(8)]
    outcomes = _draw(run, *first)
    assert {outcome.success for outcome in outcomes} == {True, False}, "an answer that differs unbinds what follows"


def test_draws_that_share_a_stream_share_their_chance(stores: Stores) -> None:
    pairs = [(Draw(0, k, "shared"), Draw(CULPRIT, k, "shared")) for k in range(8)]
    outcomes = _draw(stores.run(), *(draw for pair in pairs for draw in pair))
    assert [o.success for o in outcomes[::2]] == [o.success for o in outcomes[1::2]]
    assert {o.success for o in outcomes} == {True, False}


def test_by_position_the_held_steps_of_an_agent_that_changed_are_served_in_their_order(
    stores: Stores, line_provider: Provider
) -> None:
    asked = len(line_provider.requests)
    bad, good = _draw(
        stores.run(),
        Draw(CULPRIT + 1, 0),
        Draw(CULPRIT, 0),
        agent="tests.attribution.agents.changed:reworded",
        plan={"match": "position"},
    )
    assert (bad.success, bad.live_steps, good.live_steps) == (False, 2, 3), "the bad answer was held"
    assert len(line_provider.requests) == asked + 5


def test_under_masks_the_held_steps_of_an_agent_that_asks_otherwise_are_found_again(stores: Stores) -> None:
    run, reworded = stores.run(), "tests.attribution.agents.changed:reworded"
    identity = prepare(run, reworded, "outcome", Options(), wl.Budget()).setting.identity(run)
    assert "mask" not in identity["plan"]  # studies of before there were masks go on
    Path("worldline.toml").write_text("[matching]\nmask = ['$.messages[0].content']\n")
    opening = prepare(run, reworded, "outcome", Options(), wl.Budget())
    assert opening.notes == ["held steps are matched under a mask: $.messages[0].content"]
    bad, good, whole = _draw(run, Draw(CULPRIT + 1, 0), Draw(CULPRIT, 0), Draw(len(run.steps), 0), agent=reworded)
    assert (bad.success, bad.live_steps, good.live_steps) == (False, 2, 3), "the bad answer was held"
    assert (whole.success, whole.diverged) == (False, False)
    words = ("latest", "--store", run.path.parent.parent, "--verifier", "outcome", "--agent", reworded)
    for verb in ("attribute", "repair", "ab"):
        assert worldline(verb, *words, "--mask", "$").code == 64


# ------------------------------------------------------------------------------------------------------------ bad input


def raises(run: wl.Run) -> float:
    raise ValueError("no such column")


def says_nothing_of_use(run: wl.Run) -> float:
    return math.nan


def hangs(run: wl.Run) -> float:
    threading.Event().wait(60)
    return 1.0


@pytest.mark.parametrize(
    ("verifier", "error", "told"),
    [
        (raises, NoVerdict, "raised ValueError: no such column"),
        (says_nothing_of_use, NoVerdict, "a number from 0 to 1, not nan"),
        (hangs, NoVerdict, "said nothing within 0.1 s"),
        ("nosuch.py:score", UsageError, "no verifier 'nosuch.py:score'"),
        ("nosuch:score", UsageError, "no function 'nosuch:score'"),
    ],
)
def test_a_verifier_that_cannot_judge_is_one_error_before_anything_is_drawn(
    stores: Stores, verifier: Any, error: type[Exception], told: str
) -> None:
    run = stores.run()
    with pytest.raises(error, match=told):
        wl.attribute(run, AGENT, verifier, executor="inline", verifier_timeout=0.1)
    assert not (run.recording.run_directory.parent / "studies").exists()


def breaks_on_branches(run: wl.Run) -> float:
    if "studies" in str(run.path):
        raise OSError("its table is away")
    return 0.0


def hangs_on_branches(run: wl.Run) -> float:
    return hangs(run) if "studies" in str(run.path) else 0.0


def says_nothing_of_branches(run: wl.Run) -> float:
    return math.nan if "studies" in str(run.path) else 0.0


@pytest.mark.parametrize(
    ("verifier", "told"),
    [
        (breaks_on_branches, "its table is away"),
        (hangs_on_branches, "said nothing within 0.1 s"),
        (says_nothing_of_branches, "a number from 0 to 1, not nan"),
    ],
)
def test_rollouts_without_a_verdict_are_undefined_after_three_tries(stores: Stores, verifier: Any, told: str) -> None:
    few: dict[str, Any] = {"options": QUICK, "budget": wl.Budget(rollouts=2), "verifier_timeout": 0.1}
    study = wl.attribute(stores.run(), AGENT, verifier, executor="inline", **few)
    assert (study.verdict, study.answer["undefined"]) == ("budget", 2)
    drawn = [e.data for e in read_journal(study.folder).entries if e.what == DRAWN and e.data["draw"]["at"] == 0]
    assert {said["tries"] for said in drawn} == {3}
    assert all(told in said["outcome"]["why"] for said in drawn)


def test_an_agent_that_changed_is_not_reproducible_and_nothing_is_drawn(stores: Stores) -> None:
    few = wl.Budget(rollouts=4)  # were they drawn, each would be tried three times in vain
    study = wl.attribute(
        stores.run(), "tests.attribution.agents.changed:work", "outcome", executor="inline", budget=few
    )
    assert study.verdict == "not-reproducible" and study.answer["rollouts"] == 0
    assert "$.messages" in study.answer["why"]


def test_a_run_that_did_not_fail_and_one_without_steps_are_refused(stores: Stores, tmp_path: Path) -> None:
    run = stores.run()
    with pytest.raises(Ineligible, match="did not fail"):
        wl.attribute(run, AGENT, lambda run: 1.0, executor="inline")
    with wl.record(tmp_path / "empty", task="nothing") as empty:
        empty.outcome("failed")
    assert empty.path is not None
    with pytest.raises(Ineligible, match="no steps"):
        wl.attribute(wl.open(empty.path), AGENT, "outcome", executor="inline")


def test_a_budget_of_nothing_is_a_verdict_with_the_whole_interval(stores: Stores) -> None:
    study = wl.attribute(stores.run(), AGENT, "outcome", executor="inline", budget=wl.Budget(rollouts=0))
    assert (study.verdict, study.interval, study.answer["stopped"]) == ("budget", (0, 4), "rollouts")
    with pytest.raises(UsageError, match="price"):
        wl.attribute(stores.run("b"), AGENT, "outcome", budget=wl.Budget(money=1.0))


def test_a_provider_that_is_away_makes_rollouts_undefined_not_failed(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stores.run()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    study = wl.attribute(run, AGENT, "outcome", executor="inline", options=QUICK, budget=wl.Budget(rollouts=3))
    assert study.answer["undefined"] == 3
    why = {
        e.data["outcome"]["why"]
        for e in read_journal(study.folder).entries
        if e.what == DRAWN and e.data["draw"]["at"] == 0
    }
    assert len(why) == 1 and "the provider could not be reached" in why.pop()


def _text(study: Study) -> str:
    return json.dumps(study.to_json())
