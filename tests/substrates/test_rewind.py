"""A rewind takes back what the agent did and nothing else; the undo takes that back, whatever came in between."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import MEMORY, require
from tests.substrates.trees import walked
from worldline.engine import rewind as rewinding
from worldline.engine.cadence import Cadence
from worldline.engine.checkpoints import Checkpoints
from worldline.engine.ownership import BEFORE, HOLDS, NO_FOLDER, REPOSITORY, SINCE
from worldline.engine.recorder import Recorder
from worldline.engine.rewind import Journal, Rewind, undo
from worldline.engine.spec import Spec, WorkspaceSpec
from worldline.engine.substrates.choose import substrate_of
from worldline.engine.substrates.materialise import Materialiser, remove
from worldline.engine.substrates.substrate import Policy
from worldline.errors import Busy, Ineligible, UnknownStep, UsageError
from worldline.store.recording import Recording


class Work:
    """An agent and somebody else in one workspace, and the run that keeps it."""

    def __init__(self, place: Path, substrate: str = "files") -> None:
        self.store, self.folder = place / "runs", place / "workspace"
        self.folder.mkdir()
        self.substrate = substrate
        self.recorder: Recorder
        self.step = 0

    def begin(self) -> None:
        self.recorder = Recorder(Spec(store=self.store, workspace=WorkspaceSpec(path=str(self.folder))))
        env = substrate_of(self.substrate, self.store).open(self.folder, Policy(store=self.store))
        self.points = Checkpoints(self.recorder, env, cadence=Cadence(every=1))

    def turn(self, agent: Callable[[], Any] = lambda: None, other: Callable[[], Any] = lambda: None) -> None:
        """One step: somebody works while the model thinks, then the agent's tools do."""
        self.points.take(self.step)
        other()
        self.step += 1
        self.points.take(self.step, by="outside", only_changed=True)
        agent()

    def end(self) -> Recording:
        self.points.take(self.step, only_changed=True)
        self.recorder.seal()
        return Recording(self.recorder.attempt)

    def write(self, path: str, text: str) -> int:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        return (self.folder / path).write_text(text)

    def read(self, path: str) -> str:
        return (self.folder / path).read_text()


@pytest.fixture
def work(quick: Path) -> Work:
    work = Work(quick)
    work.write("mine.py", "mine\n")
    work.write("shared.py", "one\n")
    work.write("old/kept.py", "kept\n")
    work.begin()
    return work


def reasons(journal: Journal) -> dict[str, str]:
    return {str(left.path): left.why for left in journal.kept}


def test_only_what_the_agent_did_goes_back_and_the_undo_brings_it_again(work: Work) -> None:
    work.turn(lambda: work.write("shared.py", "agent 0\n"))
    before = walked(work.folder)

    def agent() -> None:
        work.write("shared.py", "agent 1\n")
        work.write("new/made.py", "made\n")
        shutil.rmtree(work.folder / "old")
        (work.folder / "mine.py").rename(work.folder / "moved.py")

    work.turn(agent, lambda: work.write("notes.txt", "by hand\n"))
    run = work.end()
    work.write("untracked.txt", "by hand, later\n")
    after = walked(work.folder)
    found = Rewind(run, "step:1")
    assert walked(work.folder) == after, "a look touches nothing"
    journal = found.act()
    now = walked(work.folder)
    theirs = {b"notes.txt", b"untracked.txt"}
    assert {path: entry for path, entry in now.items() if path not in theirs} == before
    assert {path: now[path] for path in theirs} == {path: after[path] for path in theirs}
    assert {(b.path, b.action) for b in journal.changes} >= {("new/made.py", "remove"), ("old/kept.py", "bring back")}
    undo(work.store)
    assert walked(work.folder) == after
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(work.store)


def test_what_somebody_changed_stays_and_is_named(work: Work) -> None:
    work.turn(
        lambda: [work.write(name, f"agent in {name}\n") for name in ("shared.py", "since.py", "gone.py", "meant.py")]
    )
    work.turn(other=lambda: work.write("shared.py", "by hand, over the agent's\n"))
    work.turn(lambda: work.write("folder/agents.py", "agent\n"))
    run = work.end()
    work.write("since.py", "by hand, later\n")
    work.write("folder/theirs.py", "theirs\n")
    (work.folder / "gone.py").unlink()
    found = Rewind(run, "step:0").act()
    assert reasons(found) == {"shared.py": BEFORE.format(step=1), "since.py": SINCE, "folder": HOLDS}
    assert work.read("shared.py") == "by hand, over the agent's\n" and work.read("since.py") == "by hand, later\n"
    assert work.read("folder/theirs.py") == "theirs\n" and not (work.folder / "folder" / "agents.py").exists()
    assert not (work.folder / "meant.py").exists() and not (work.folder / "gone.py").exists()


def test_a_file_whose_folder_went_is_not_brought_back_elsewhere(work: Work) -> None:
    work.turn(lambda: (work.folder / "old" / "kept.py").unlink())
    run = work.end()
    (work.folder / "old").rmdir()
    work.write("old", "a file of somebody's\n")
    assert reasons(Rewind(run, "step:0").act()) == {"old/kept.py": NO_FOLDER}
    assert work.read("old") == "a file of somebody's\n"


def test_the_undo_keeps_what_somebody_changed_since_the_rewind(work: Work) -> None:
    work.turn(lambda: [work.write("shared.py", "agent\n"), work.write("mine.py", "agent\n")])
    run = work.end()
    Rewind(run, "step:0").act()
    work.write("shared.py", "after the rewind\n")
    assert reasons(undo(work.store)) == {"shared.py": SINCE}
    assert (work.read("shared.py"), work.read("mine.py")) == ("after the rewind\n", "agent\n")


def test_files_that_a_program_has_open_are_not_taken_from_it(work: Work) -> None:
    work.turn(lambda: work.write("shared.py", "agent\n"))
    run = work.end()
    program = "import sys; f = open(sys.argv[1]); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program, work.folder / "shared.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as editor:
        assert editor.stdout is not None and editor.stdout.readline()
        with pytest.raises(Busy) as refused:
            Rewind(run, "step:0").act()
        assert refused.value.facts["pids"] == [editor.pid] and work.read("shared.py") == "agent\n"
        Rewind(run, "step:0").act(force=True)
        assert work.read("shared.py") == "one\n"
        editor.communicate(b"\n")


def test_a_repository_goes_back_whole_or_not_at_all(quick: Path) -> None:
    require("git", shutil.which("git"), "not installed")
    work = Work(quick)

    def git(*words: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        subprocess.run(["git", *who, *words], cwd=work.folder / "lib", check=True, capture_output=True)

    work.write("lib/a.py", "one\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    work.begin()
    before = walked(work.folder)

    def commits() -> None:
        work.write("lib/a.py", "agent\n")
        git("commit", "-q", "-a", "-m", "agent's")

    work.turn(commits)
    run = work.end()
    Rewind(run, "step:0").act()
    assert walked(work.folder) == before, "nobody else was in it, so it goes back"
    undo(work.store)
    git("branch", "theirs")  # stands on the agent's commit, and touches nothing that the agent did
    there = walked(work.folder / "lib" / ".git")
    assert reasons(Rewind(run, "step:0").act()) == {"lib/.git": REPOSITORY}
    assert work.read("lib/a.py") == "one\n" and walked(work.folder / "lib" / ".git") == there
    git("fsck", "--strict")


def test_a_rewind_that_was_killed_is_taken_back_like_any(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.turn(lambda: [work.write(f"made-{n}.py", "agent\n") for n in range(4)])
    work.turn(lambda: work.write("shared.py", "agent\n"))
    run = work.end()
    after = walked(work.folder)
    bring = Materialiser._bring

    def killed(self: Materialiser, *args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Materialiser, "_bring", killed)
    with pytest.raises(KeyboardInterrupt):
        Rewind(run, "step:0").act()
    assert walked(work.folder) != after
    monkeypatch.setattr(Materialiser, "_bring", bring)
    undo(work.store)
    assert walked(work.folder, times=False).keys() == after.keys()
    assert all((work.folder / f"made-{n}.py").read_text() == "agent\n" for n in range(4))


def test_what_cannot_be_gone_back_to_is_refused(work: Work, quick: Path) -> None:
    with pytest.raises(Ineligible, match="still being recorded"):
        Rewind(Recording(work.recorder.attempt), "step:0")
    work.turn(lambda: work.write("shared.py", "agent\n"))
    run = work.end()
    for wrong, error in (("step:9", UnknownStep), ("row:1", UsageError), ("seq:1", UsageError)):
        with pytest.raises(error):
            Rewind(run, wrong)
    with pytest.raises(UsageError):
        Rewind(run, "step:0", quick / "elsewhere")
    bare = Recorder(Spec(store=quick / "runs"))
    bare.seal()
    with pytest.raises(Ineligible, match="kept no workspace"):
        Rewind(Recording(bare.attempt), "step:0")
    assert work.read("shared.py") == "agent\n"


NAMES = st.sampled_from(["a", "b", "d/c", "d/e/f"])
WHO = st.sampled_from(["agent", "other"])
DOES = st.lists(st.lists(st.tuples(WHO, NAMES, st.booleans()), max_size=4), min_size=1, max_size=5)


@settings(max_examples=20)
@given(DOES, st.lists(st.tuples(NAMES, st.booleans()), max_size=2), st.data())
def test_every_file_is_as_its_own_history_says(
    turns: list[list[tuple[str, str, bool]]], later: list[tuple[str, bool]], data: st.DataObject
) -> None:
    """Whatever agent and others do to files: the last writes of one go back as long as they are the agent's."""
    place = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None, prefix="worldline-rewind-"))
    try:
        work = Work(place)
        history: dict[str, list[tuple[str, int, str | None]]] = {name: [] for name in ("a", "b", "d/c", "d/e/f")}
        count = iter(range(1000))

        def does(who: str, step: int, name: str, keeps: bool) -> bool:
            path = work.folder / name
            if not keeps and not path.exists():
                return False
            text = f"{who} {next(count)}\n" if keeps else None
            history[name].append((who, step, text))
            if text is None:
                path.unlink()
            else:
                work.write(name, text)
            return True

        work.begin()
        for step, acts in enumerate(turns):
            last = {(who, name): keeps for who, name, keeps in acts}  # of one in one step only the last counts
            work.turn(
                lambda step=step, last=last: [does(w, step, n, k) for (w, n), k in last.items() if w == "agent"],  # type: ignore[misc]
                lambda step=step, last=last: [does(w, step, n, k) for (w, n), k in last.items() if w == "other"],  # type: ignore[misc]
            )
        run = work.end()
        for name, keeps in later:
            does("other", len(turns), name, keeps)
        before = {name: text_of(work.folder / name) for name in history}
        to = data.draw(st.integers(0, len(turns) - 1))
        Rewind(run, f"step:{to}").act()
        for name, steps in history.items():
            while steps and steps[-1][0] == "agent" and steps[-1][1] >= to:
                steps.pop()
            assert text_of(work.folder / name) == (steps[-1][2] if steps else None), name
        undo(work.store)
        assert {name: text_of(work.folder / name) for name in history} == before
    finally:
        remove(place)


def text_of(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


def test_the_verbs_show_do_and_take_back(work: Work) -> None:
    work.turn(lambda: [work.write("shared.py", "agent\n"), work.write("made.py", "agent\n")])
    run = work.end()
    work.write("made.py", "by hand\n")

    def worldline(*words: str) -> str:
        argv = [sys.executable, "-m", "worldline", *words, "--store", str(work.store)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = worldline("rewind", run.run_id, "--to", "step:0", "--dry-run")
    assert "1 path would go back" in said and f"stays  made.py: {SINCE}" in said and work.read("shared.py") == "agent\n"
    report = json.loads(worldline("rewind", run.run_id, "--to", "step:0", "--json"))
    assert report["changes"] == [{"path": "shared.py", "action": "restore", "step": 0}]
    assert report["kept"] == [{"path": "made.py", "why": SINCE}] and work.read("shared.py") == "one\n"
    assert json.loads(worldline("undo", "--json"))["undoes"] == report["id"] and work.read("shared.py") == "agent\n"
    assert rewinding.journal_of(work.store, report["id"]).run == run.run_id


def test_with_git_nothing_that_git_ignores_is_touched(quick: Path) -> None:
    require("git", shutil.which("git"), "not installed")
    work = Work(quick, "git")
    work.write(".gitignore", "built/\n")
    work.write("built/out", "built\n")
    work.write("a.py", "one\n")
    os.chmod(work.folder / "a.py", 0o600)
    subprocess.run(["git", "init", "-q", work.folder], check=True)
    work.begin()
    work.turn(
        lambda: [work.write("a.py", "agent\n"), work.write("built/out", "agent\n"), work.write("new/b.py", "x\n")]
    )
    run = work.end()
    journal = Rewind(run, "step:0").act()
    assert {str(back.path) for back in journal.changes} == {"a.py", "new", "new/b.py"}
    assert work.read("a.py") == "one\n" and work.read("built/out") == "agent\n"
