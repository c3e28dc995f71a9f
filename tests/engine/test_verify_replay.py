"""A replay that is to count as evidence: by another process than the writer, of what was sealed and published."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from worldline.engine.replay import PROJECTION
from worldline.errors import VerifierIsWriter

AGENT = """
import worldline as wl

@wl.tool(effect="side_effecting")
def pay(n):
    print("PAID", n)
    return n + 1

def agent(amount=4):
    return pay(amount)
"""
RECORD = """
from agent import agent
import worldline as wl
with wl.record("runs", task="pay"):
    agent()
"""
VERIFY = """
import json, sys
from agent import agent
import worldline as wl
report = wl.open("latest", "runs").verify_replay(lambda: agent(int(sys.argv[1])))
print(json.dumps(report.to_json()))
"""


def python(source: str, *words: str) -> str:
    ran = subprocess.run([sys.executable, "-c", source, *words], capture_output=True, text=True, check=True)
    return ran.stdout


def verified(amount: int = 4) -> dict[str, Any]:
    said = python(VERIFY, str(amount))
    assert "PAID" not in said
    report: dict[str, Any] = json.loads(said)
    return report


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The attempt directory of a run that another process recorded and published."""
    (tmp_path / "agent.py").write_text(AGENT)
    assert python(RECORD) == "PAID 4\n"
    (attempt,) = (tmp_path / "runs").glob("run_*/trajectory/attempts/*")
    return attempt


def test_another_process_verifies_a_replay(recorded: Path) -> None:
    report = verified()
    assert (report["verdict"], report["strict"], report["served"], report["live"]) == ("equivalent", True, 1, 0)
    assert report["projection"] == PROJECTION == "worldline/1"
    other = verified(5)
    assert (other["verdict"], other["divergence"]["kind"], other["strict"]) == ("diverged", "changed", True)


def test_the_writer_cannot_verify_its_own_replay() -> None:
    @wl.tool
    def look() -> int:
        return 1

    with wl.record("runs", task="look") as run:
        look()
    own = wl.open("latest", "runs")
    assert run is not None and own.replay(look).equivalent
    with pytest.raises(VerifierIsWriter, match="another one") as refused:
        own.verify_replay(look)
    assert refused.value.exit_code == 3 and refused.value.facts["reasons"]
    child = os.fork()
    if child == 0:  # what was forked from the writer is no other
        try:
            own.verify_replay(look)
        except VerifierIsWriter:
            os._exit(7)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def result_of(attempt: Path) -> Path:
    return next(attempt.parents[2].glob("*.json"))


def copied(attempt: Path) -> None:
    shutil.copytree("runs", "copy")
    shutil.rmtree("runs")
    shutil.move("copy", "runs")


CASES: dict[str, tuple[Callable[[Path], object], str]] = {
    "unsealed": (lambda a: ((a / "manifest.json").unlink(), result_of(a).unlink()), "not sealed"),
    "copied": (copied, "is a copy"),
    "published gone": (lambda a: result_of(a).unlink(), "gone from the run's directory"),
    "published another": (lambda a: (result_of(a).unlink(), result_of_text(a)), "not this attempt's"),
    "a row changed": (
        lambda a: (p := next((a / "chunks").iterdir())).write_bytes(p.read_bytes().replace(b'"n":4', b'"n":5')),
        "does not verify",
    ),
}


def result_of_text(attempt: Path) -> None:
    (attempt.parents[2] / "pay.json").write_text("{}\n")


@pytest.mark.parametrize("name", CASES)
def test_only_a_sealed_attempt_that_published_is_eligible(name: str, recorded: Path) -> None:
    change, reason = CASES[name]
    change(recorded)
    command = [sys.executable, "-m", "worldline", "replay", str(recorded), "--strict", "--json"]
    ran = subprocess.run([*command, "--", "true"], capture_output=True, text=True, check=False)
    report = json.loads(ran.stdout)
    assert (ran.returncode, report["verdict"], report["strict"]) == (3, "ineligible", True), report
    assert reason in " ".join(report["reasons"])


def test_the_verb_verifies_and_refuses_a_partial_recording(recorded: Path) -> None:
    (Path("again.py")).write_text("from agent import agent\nimport worldline\nwith worldline.record():\n    agent()\n")
    command = [sys.executable, "-m", "worldline", "replay", str(recorded), "--strict", "--json"]
    ran = subprocess.run([*command, "--", sys.executable, "again.py"], capture_output=True, text=True, check=False)
    report = json.loads(ran.stdout)
    assert (ran.returncode, report["verdict"], report["served"], report["strict"]) == (0, "equivalent", 1, True)
    assert "PAID" not in ran.stdout + ran.stderr
    refused = subprocess.run([*command, "--tools", "run", "--", "true"], capture_output=True, text=True, check=False)
    assert refused.returncode == 64
    partial = "from worldline.engine.recorder import *\nRecorder(Spec(store=Path('left'))).seal('partial', 'stopped')"
    python(partial)
    command[4] = "left/" + os.listdir("left")[0]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 3 and "without publishing" in ran.stdout
