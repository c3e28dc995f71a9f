"""A branch works on files as they were at its fork, at the same path; the run's own stay as they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from examples.coding_world import FILES, make, script
from tests.conftest import MEMORY
from tests.fork.shop import digest
from worldline.engine.checkpoints import checkpoints_of
from worldline.engine.lineage import opened
from worldline.seams import within
from worldline.store.recording import Recording
from worldline.testing.provider import Provider

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENT, WITH_STATE = (str(EXAMPLES / name) for name in ("coding_agent.py", "coding_agent_with_state.py"))
LIGHT = str(Path(__file__).parent / "agents" / "light_coder.py")
BETTER = ("--set", "model=gpt-4.1")


class Project:
    """A folder, a store and a provider; `worldline` runs a verb in the folder."""

    def __init__(self, place: Path, provider: Provider) -> None:
        self.folder, self.store, self.provider = place / "project", place / "runs", provider
        make(self.folder)
        (self.folder / "mine.txt").write_text("the user's own\n")
        self.environment = {
            **os.environ,
            "OPENAI_BASE_URL": provider.openai_url,
            "OPENAI_API_KEY": "sk-demo-" + "0123456789" * 2,
            "WORLDLINE_STORE": str(self.store),
        }

    def worldline(self, *words: str, code: int = 0) -> Any:
        ran = subprocess.run(
            [sys.executable, "-m", "worldline", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=420,
        )
        assert ran.returncode == code, ran.stderr
        return json.loads(ran.stdout) if "--json" in words else ran.stdout + ran.stderr

    def record(self, agent: str, *more: str) -> Recording:
        self.worldline("record", "--workspace", ".", *more, "--", sys.executable, agent, code=1)
        return wl.open("latest", self.store).recording

    def asked(self, last: int) -> list[Any]:
        """The conversations of the last requests, without the ids of calls, which a provider draws anew."""
        return [_without_ids(json.loads(each.body)["messages"]) for each in self.provider.requests[-last:]]

    def fork(self, run: Recording, *words: str, agent: str = AGENT, code: int = 0) -> dict[str, Any]:
        asked = len(self.provider.requests)
        report: dict[str, Any] = self.worldline(
            "fork", run.run_id, *words, "--json", "--", sys.executable, agent, code=code
        )
        report["asked"] = len(self.provider.requests) - asked
        return report


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_ids(inner) for name, inner in value.items() if name not in ("id", "tool_call_id")}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture
def project(quick: Path) -> Iterator[Project]:
    with Provider(script) as provider:
        yield Project(quick, provider)


@pytest.fixture(scope="module")
def light() -> Iterator[tuple[Project, Recording]]:
    """The light agent, recorded once; its run and its folder stay as they are, and that is checked."""
    with Provider(script) as provider, tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        project = Project(Path(place), provider)
        run = project.record(LIGHT)
        before = digest(project.folder), digest(run.run_directory)
        yield project, run
        assert (digest(project.folder), digest(run.run_directory)) == before, "a fork wrote into its parent's"


def test_a_coding_agent_goes_on_in_its_workspace_as_it_was(project: Project) -> None:
    """Tools that nobody serves run again in the branch's own folder; what they leave is what they left."""
    run = project.record(AGENT)
    kept = checkpoints_of(run)
    assert [point.step for point in kept if point.by is None] == [0, 1, 2, 3, 4] and kept[0].seq < kept[-1].seq
    folder, before = digest(project.folder), digest(run.run_directory)
    assert "Two  Words" not in (project.folder / "test_slug.py").read_text(), "the run took it out of the test"
    report = project.fork(run, "--at", "step:2", "--tools", "run", *BETTER)
    (branch,) = report["branches"]
    assert (branch["outcome"], branch["prefix"], branch["live"], report["asked"]) == ("succeeded", 2, 3, 3)
    assert report["substrate"] == "files" and report["degraded"] is None
    own = Path(branch["workspace"])
    assert (own / "test_slug.py").read_text() == FILES["test_slug.py"] and (own / "mine.txt").is_file()
    assert ".join(" in (own / "slug.py").read_text() and "looked at" in (own / "notes.txt").read_text()
    assert digest(project.folder) == folder and digest(run.run_directory) == before, "the run's own is untouched"
    asked = project.asked(1)[0][0]["content"]
    if within.why_not() is None:
        assert f"You work in {project.folder}." in asked, "it sees its folder at the same path"
    made = opened(wl.open(branch["run"], project.store).recording)
    steps = [point.step for point in checkpoints_of(made) if point.by is None]
    assert steps == [0, 1, 2, 2, 3, 4], "the branch keeps its own steps, numbered on"


def test_an_agent_with_a_state_is_given_it_back_and_both_routes_end_alike(project: Project) -> None:
    run = project.record(WITH_STATE)
    ends = []
    for route, served in (("--restore",), 0), (("--tools", "run"), 2):
        report = project.fork(run, "--at", "step:2", *route, *BETTER, agent=WITH_STATE)
        (branch,) = report["branches"]
        assert (branch["prefix"], report["asked"]) == (served, 3), "restored, nothing before is driven again"
        files = {path.name: path.read_bytes() for path in Path(branch["workspace"]).iterdir()}
        assert files["notes.txt"].count(b"looked at") == 1
        ends.append((branch["outcome"], files, project.asked(3)))
    assert ends[0] == ends[1]


def test_a_fork_of_a_fork_has_the_files_of_the_fork_and_gc_keeps_them_while_its_run_is_there(
    light: tuple[Project, Recording],
) -> None:
    project, run = light
    (first,) = project.fork(run, "--at", "step:2", "--tools", "run", *BETTER, agent=LIGHT)["branches"]
    made = wl.open(first["run"], project.store).recording
    report = project.fork(made, "--at", "step:3", "--tools", "run", agent=LIGHT)
    (second,) = report["branches"]
    assert second["outcome"] == "succeeded" and report["degraded"] is None, report
    assert ".join(" in (Path(second["workspace"]) / "slug.py").read_text()
    trash, workspaces = project.store.parent / "trash", project.store / ".workspaces"
    gone = wl.open(second["run"], project.store).recording.run_directory
    trash.mkdir()
    gone.rename(trash / gone.name)
    emptied = ("gc", str(project.store), "--empty-trash", "--json")
    assert [Path(each["path"]).name for each in project.worldline(*emptied)["workspaces"]] == [gone.name]
    assert (workspaces / gone.name).is_dir(), "without --now nothing is changed, and it may come back"
    assert "1 workspace of branches whose runs are gone" in project.worldline(*emptied[:-1])
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], cwd=workspaces / gone.name, stdin=subprocess.PIPE
    ) as stays:
        (kept,) = project.worldline(*emptied, "--now")["workspaces"]
        assert kept["kept"] == f"process {stays.pid} stands in it" and (workspaces / gone.name).is_dir()
        stays.communicate(b"\n")
    (dropped,) = project.worldline(*emptied, "--now")["workspaces"]
    assert dropped["kept"] is None and [path.name for path in workspaces.iterdir()] == [first["run"]]


def test_a_tool_that_leaves_other_files_ends_the_branch_with_their_paths(
    light: tuple[Project, Recording], tmp_path: Path
) -> None:
    """The shell writes where it stands; a helper script that draws by chance makes the second time differ."""
    project, run = light
    chance = project.folder / "chance.txt"
    kept = {path.name for path in (project.store / ".workspaces").glob("*")}
    real = shutil.which("sh")
    assert real is not None
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").write_text(f'#!{real}\necho $$ > chance.txt\nexec {real} "$@"\n')
    (tools / "sh").chmod(0o755)
    path = project.environment["PATH"]
    project.environment["PATH"] = f"{tools}:{path}"
    try:
        report = project.fork(run, "--at", "step:2", "--tools", "run", *BETTER, agent=LIGHT, code=1)
    finally:
        project.environment["PATH"] = path
    (branch,) = report["branches"]
    assert branch["outcome"] == "not_reproducible" and report["asked"] == 0, "nothing went live"
    assert branch["divergence"]["paths"] == ["chance.txt"] and branch["divergence"]["recorded"] == "nothing there"
    assert not chance.exists()
    assert {path.name for path in (project.store / ".workspaces").glob("*")} == kept, "no trace of it is left"


def test_where_a_path_of_its_own_cannot_be_had_the_recorded_one_is_masked(
    light: tuple[Project, Recording],
) -> None:
    """Without mount namespaces the agent sees another path, which of the prefix is no difference; that is said."""
    project, run = light
    blocked = "import worldline.seams.within as w; w.why_not = lambda: 'not here'\n"
    blocked += "from worldline.cli.main import main; main()"
    words = ["fork", run.run_id, "--at", "step:2", "--tools", "run", *BETTER, "--json", "--", sys.executable, LIGHT]
    ran = subprocess.run(
        [sys.executable, "-c", blocked, *words],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    (branch,) = json.loads(ran.stdout)["branches"]
    assert branch["outcome"] == "succeeded" and branch["prefix"] == 2
    assert "not at" in ran.stderr and "not here" in ran.stderr


@wl.tool(effect="idempotent")
def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return text


def agent() -> None:
    """Writes a file in each step, and reads the folder where it begins: all its tools are served on a branch."""
    with wl.record("../runs", task="write", workspace=".") as run:
        run.observe(sorted(path.name for path in Path().iterdir()), src="file")
        for number in range(4):
            with run.step():
                write(f"{number}.txt", f"{number} {wl.uuid()}")


def test_what_served_tools_had_done_is_there_though_none_ran(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (quick / "work").mkdir()
    monkeypatch.chdir(quick / "work")
    agent()
    run = wl.open("latest", "../runs")
    recorded = {path.name: path.read_text() for path in Path().iterdir()}
    (branch,) = run.fork(agent, at="step:2").branches
    own = {path.name: path.read_text() for path in Path(str(branch.workspace)).iterdir()}
    assert branch.prefix == 2 and set(own) == set(recorded)
    assert {name: own[name] == recorded[name] for name in own} == {f"{n}.txt": n < 2 for n in range(4)}
    assert {path.name: path.read_text() for path in Path().iterdir()} == recorded


@pytest.mark.parametrize("breaks", ["snapshot", "content"])
def test_a_workspace_that_is_gone_or_damaged_is_one_clear_error(
    light: tuple[Project, Recording], quick: Path, breaks: str
) -> None:
    recorded, run = light
    project = copy(recorded)
    project.store = shutil.copytree(recorded.store, quick / "runs", ignore=shutil.ignore_patterns(".contents"))
    project.environment = {**recorded.environment, "WORLDLINE_STORE": str(project.store)}
    before, runs = digest(run.run_directory), set(project.store.glob("run_*"))
    snapshots = project.store / ".snapshots"
    if breaks == "snapshot":
        shutil.rmtree(snapshots / "taken")
    else:
        for path in snapshots.glob("blobs/ordinary/*/*"):
            path.write_bytes(b"other")
    shutil.rmtree(snapshots / "spares", ignore_errors=True)
    said = project.worldline(
        "fork",
        run.run_id,
        "--at",
        "step:2",
        "--tools",
        "run",
        "--",
        sys.executable,
        AGENT,
        code=1 if breaks == "content" else 3,
    )
    assert "Traceback" not in said and ("snapshot" in said or "content" in said or "document" in said), said
    assert digest(run.run_directory) == before and set(project.store.glob("run_*")) == runs
