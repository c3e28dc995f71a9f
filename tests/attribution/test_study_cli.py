"""The verbs of studies, as processes: what they print, how they exit, and that nothing is lost when they are ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import worldline as wl
from tests.attribution.conftest import Stores
from tests.attribution.line import AGENT, COMMAND, CULPRIT, recorded
from tests.attribution.test_study import QUICK
from tests.cli.terminal import TIMEOUT, Ended
from tests.cli.terminal import worldline as run_worldline
from tests.conftest import ROOT
from worldline.store.studies.folder import studies
from worldline.store.studies.journal import DRAWN, JOURNAL, STOPPED, read_journal
from worldline.testing.provider import Provider

TOLD = ("verdict", "step", "interval", "drop", "ci", "certified", "rollouts", "curve")


def worldline(*words: str | Path) -> Ended:
    import os

    return run_worldline(*words, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_attribute_with_a_command_says_what_the_issue_promises(stores: Stores) -> None:
    store = stores.copy()
    few = ("--store", store, "--verifier", "exit-code", "--budget", "rollouts=8", "--flight", "2")
    ended = worldline("attribute", "latest", *few, "--json", "--", *COMMAND)
    assert ended.code == 2, ended.err
    assert set(TOLD) <= set(ended.json)
    assert (ended.json["verdict"], ended.json["interval"], ended.json["rollouts"]) == ("budget", [0, 4], 8)
    again = worldline("attribute", "latest", *few, "--", *COMMAND)
    assert "the cap on rollouts ended it; the same command goes on from here" in again.out
    listed = worldline("list", "--studies", "--store", store, "--json").json
    assert [(study["kind"], study["state"], study["rollouts"]) for study in listed] == [("attribute", "stopped", 8)]
    page = Path("report.html")
    assert worldline("report", "latest", "--store", store, "-o", page).code == 0
    assert "The budget ended before a step could be named" in page.read_text("utf-8")
    assert worldline("report", "latest", "--store", store, "-o", page).complaint.endswith("nothing is ever overwritten")


def test_repair_tries_what_is_proposed_and_ab_compares_from_one_checkpoint(stores: Stores) -> None:
    store = stores.copy()
    Path("propose.py").write_text('def propose(run, step):\n    return ["good work by hand", "bad work too"]\n')
    common = ("--store", store, "--verifier", "outcome", "--agent", AGENT, "--executor", "inline", "--json")
    words = ("repair", "latest", "--at", f"step:{CULPRIT}", "--candidates", "propose.py", "--pair", "pair.jsonl")
    fixed = worldline(*words, *common)
    assert fixed.code == 0, fixed.err
    pair = json.loads(Path("pair.jsonl").read_text())
    assert pair == fixed.json["pair"]
    assert (pair["rejected"][0]["text"], pair["chosen"][0]["text"]) == ("bad work at 1", "good work by hand")
    assert pair["success"][0] > 0.5
    arms = ("--arm", "as-is", "--arm", 'action={"text": "bad work, forced"}')
    compared = worldline("ab", "latest", "--at", f"step:{CULPRIT}", *arms, "-n", "10", "--triples", "t.jsonl", *common)
    assert compared.code == 0, compared.err
    (difference,) = compared.json["differences"]
    assert compared.json["verdict"] == "clear" and difference["ci"][0] > 0
    assert [arm["count"]["n"] for arm in compared.json["arms"]] == [10, 10]
    assert Path("t.jsonl").exists()
    for study, said in ((fixed.json, "good work by hand"), (compared.json, "“bad work, forced”")):
        page = Path(f"{study['kind']}.html")
        assert worldline("report", study["study"], "--store", store, "-o", page).code == 0
        assert study["sentence"].split(":")[0] in page.read_text("utf-8") and said in page.read_text("utf-8")


def test_several_failed_runs_of_one_task_name_the_step_that_is_weak_in_all(
    stores: Stores, line_provider: Provider
) -> None:
    store = stores.copy()
    both = [wl.open("latest", store), recorded(store, line_provider)]
    names = [run.id for run in both]
    words = ("--store", store, "--verifier", "outcome", "--agent", AGENT, "--executor", "inline")
    few = worldline("attribute", *names, *words, "--budget", "rollouts=2", "--json")
    assert few.code == 2 and set(few.json) == {"together", "studies"}
    assert (few.json["together"]["verdicts"], few.json["together"]["steps"]) == ({"budget": 2}, [])
    assert [study["run"] for study in few.json["studies"]] == names
    told = worldline("attribute", *names, *words, "--budget", "rollouts=2")
    assert "2 runs together   2 budget" in told.out and "-o report.html" in told.out.splitlines()[-1]
    assert "a run counts once" in worldline("attribute", names[0], names[0], *words).complaint

    studies = [wl.attribute(run, AGENT, "outcome", executor="inline", options=QUICK).id for run in both]
    weak = worldline("report", *studies, "--store", store, "-o", "weak.html", "--json").json["together"]
    (step,) = weak["steps"]
    assert (weak["verdicts"], step["culprit_in"], step["runs"]) == ({"decisive": 2}, 2, names)
    page = Path("weak.html").read_text("utf-8")
    assert "2 of 2 runs lose it at the same step" in page and all(name in page for name in (*names, *studies))


def test_by_position_a_command_that_changed_is_followed_too(stores: Stores) -> None:
    changed = ("--agent", "tests.attribution.agents.changed:reworded", "--executor", "inline", "--json")
    words = ("attribute", "latest", "--store", stores.copy(), "--verifier", "outcome", "--budget", "rollouts=2")
    by_key = worldline(*words, *changed)
    assert (by_key.code, by_key.json["verdict"], by_key.json["rollouts"]) == (1, "not-reproducible", 0)
    by_position = worldline(*words, *changed, "--match", "position")
    assert (by_position.code, by_position.json["verdict"], by_position.json["rollouts"]) == (2, "budget", 2)
    assert "matched by their order" in by_position.err and by_position.json["diverged"] == 0


def test_ended_by_a_signal_it_says_what_it_knows_and_loses_nothing(stores: Stores) -> None:
    store = stores.copy()
    words = ["attribute", "latest", "--store", str(store), "--verifier", "exit-code", "--flight", "1", "--json", "--"]
    import os

    child = subprocess.Popen(
        [sys.executable, "-m", "worldline", *words, *COMMAND],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while child.poll() is None and _lines(store) < 4:
            pass
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIMEOUT)
    finally:
        child.kill()
    assert child.returncode == 2, err
    answer = json.loads(out)
    assert (answer["stopped"], answer["interval"]) == ("interrupted", [0, 4])
    (folder,) = studies(store)
    entries = read_journal(folder).entries
    assert sum(entry.what == DRAWN for entry in entries) >= 3 and any(entry.what == STOPPED for entry in entries)


def _lines(store: Path) -> int:
    found = [folder / JOURNAL for folder in studies(store)]
    return found[0].read_bytes().count(b"\n") if found else 0


def test_bad_input_is_one_line(stores: Stores) -> None:
    store = stores.copy()
    base = ("attribute", "latest", "--store", store, "--verifier")
    assert "behind --, or --agent" in worldline(*base, "outcome").complaint
    assert "no verifier 'nosuch.py:x'" in worldline(*base, "nosuch.py:x", "--", *COMMAND).complaint
    assert "a budget is rollouts=N" in worldline(*base, "outcome", "--budget", "lots", "--", *COMMAND).complaint
    assert worldline(*base, "outcome", "--budget", "money=1", "--", *COMMAND).code == 64
    assert "no study 'nosuch'" in worldline("report", "nosuch", "--store", store).complaint
    ended = worldline("repair", "latest", "--store", store, "--at", "step:99", "--verifier", "outcome", "--", *COMMAND)
    assert ended.code == 64 and "no step 99" in ended.complaint
    assert not (store / "studies").exists()
