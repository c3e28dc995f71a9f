"""Forking from the panel: the very command that somebody would type, started without a shell; and the graph of it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.catalog import runs
from worldline.store.recording import Recording
from worldline.testing.provider import Provider, Say

PROGRAM = (sys.executable, "-m", "worldline")
AGENT = """
import json, os, urllib.request
for turn in range(3):
    asked = {"model": "m-1", "messages": [{"role": "user", "content": f"turn {turn}"}]}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer test-key"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(asked).encode(), headers)
    print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
"""


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A run that `worldline record` made of a command; and the URL of a provider that answers its forks."""
    folder = tmp_path_factory.mktemp("forked")
    (folder / "agent.py").write_text(AGENT)
    with Provider(lambda ask: Say(f"answer {ask.n}")) as provider:
        environment = {**os.environ, "OPENAI_BASE_URL": provider.openai_url}
        command = [*PROGRAM, "record", "--task", "three turns", "--", sys.executable, "agent.py"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
        yield folder, provider.openai_url


@pytest.fixture
def recorded(once: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That run, in the default store of the folder in which the test runs."""
    folder, url = once
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (run,) = runs(tmp_path / ".worldline" / "runs")
    return run


def test_the_command_is_shown_and_with_a_word_started_and_followed(panel: Any, recorded: Path) -> None:
    serve = panel(recorded, program=PROGRAM)
    assert serve.get("api/session").json["features"]["fork"] is True
    target = f"r/{serve.ids[0]}/fork"
    body = {"at": "step:1", "set": {"model": "m 2;$(id)", "temperature": 0.5}}
    shown = serve.post(target, body).json
    words = shlex.split(shown["command"])
    assert words[:5] == ["worldline", "fork", recorded.name[-4:], "--at", "step:1"]
    assert words[5:9] == ["--set", "model=m 2;$(id)", "--set", "temperature=0.5"]
    assert words[9:] == ["--", sys.executable, "agent.py"]
    assert runs(recorded.parent) == [recorded], "nothing is started before somebody confirms it"
    started = serve.post(target, {**body, "confirm": True}).json
    assert started["run"] is not None, started
    with serve.live(f"r/{started['run']}/live?from=0") as events:
        events.to_the_end()
    assert events.states[-1] == "ended"
    assert json.loads(events.rows[0])["data"]["parent"]["run"] == recorded.name
    assert any(b'"m 2;$(id)"' in row for row in events.rows), "what was set went to the provider as it was"
    for one in (serve.ids[0], started["run"]):
        nodes = {node["run"]: node for node in serve.get(f"r/{one}/tree").json["nodes"]}
        assert set(nodes) == {recorded.name, started["run"]}
        branch = nodes[started["run"]]
        assert (branch["parent"], branch["at_step"], branch["live"]) == (recorded.name, 1, False)
        assert branch["at_seq"] >= 0 and "model" in branch["change"] and branch["label"]
        assert nodes[recorded.name]["parent"] is None and nodes[recorded.name]["outcome"] == "succeeded"


def test_a_fork_that_fails_says_why(panel: Any, recorded: Path) -> None:
    serve = panel(recorded, program=PROGRAM)
    got = serve.post(f"r/{serve.ids[0]}/fork", {"at": "step:99", "confirm": True}).json
    assert got["run"] is None and got["exit"] != 0 and "99" in got["said"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"at": "step:x"},
        {"at": "step:1; rm -rf /"},
        {"at": 3},
        {"at": "step:1", "set": ["model"]},
        {"at": "step:1", "set": {"--edit": "x"}},
        {"at": "step:1", "set": {"a=b": "x"}},
        {"at": "step:1", "set": {"model": "a\0b"}},
        {"at": "step:1", "set": {f"f{n}": n for n in range(60)}},
    ],
)
def test_what_is_no_fork_is_refused(panel: Any, sealed: Path, body: dict[str, Any]) -> None:
    serve = panel(sealed, program=PROGRAM)
    assert serve.post(f"r/{serve.ids[0]}/fork", {**body, "confirm": True}).status == 400


def test_what_cannot_be_started_from_here_says_what_to_do(panel: Any, sealed: Path, tmp_path: Path) -> None:
    pack(Recording(sealed), tmp_path / "run.skn")
    bundle = PackedRecording(str(tmp_path / "run.skn"))
    for serve, why in (
        (panel(sealed), "cannot fork"),
        (panel(sealed, program=PROGRAM), "inside a program"),
        (panel(bundle, program=PROGRAM), "bundle"),
    ):
        got = serve.post(f"r/{serve.ids[0]}/fork", {"at": "step:1", "confirm": True}).json
        assert got["missing"] == "fork" and why in got["why"]
        assert got["command"].endswith("-- CMD") and "run" not in got


def test_a_program_that_is_not_there_is_said_to_be_missing(panel: Any, recorded: Path) -> None:
    serve = panel(recorded, program=("/nowhere/worldline",))
    got = serve.post(f"r/{serve.ids[0]}/fork", {"at": "step:1", "confirm": True}).json
    assert got["run"] is None and "cannot be started" in got["why"]


def test_what_was_started_ends_with_the_panel(panel: Any, recorded: Path, tmp_path: Path) -> None:
    """Nothing goes on unseen: a fork that still runs is told to end, and seals what it has."""
    (tmp_path / "agent.py").write_text(AGENT + "import time\ntime.sleep(600)\n")
    serve = panel(recorded, program=PROGRAM)
    started = serve.post(f"r/{serve.ids[0]}/fork", {"at": "step:1", "confirm": True}).json
    assert started["run"] is not None, started
    with serve.live(f"r/{started['run']}/live?from=0") as events:
        events.until(lambda e: any(b'"decision","src":"response"' in row for row in e.rows))
    serve.server.routes.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(started["pid"], 0)
    assert Recording(recorded.parent / started["run"]).disposition == "partial"


def test_a_run_without_a_family_stands_alone(panel: Any, sealed: Path) -> None:
    serve = panel(sealed)
    (node,) = serve.run("tree").json["nodes"]
    assert (node["run"], node["parent"], node["at_step"]) == (serve.ids[0], None, None)
