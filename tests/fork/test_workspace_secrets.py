"""A registered secret in the files of a workspace: no snapshot holds it, a branch still sees it, nothing loses it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import worldline as wl
from examples.coding_world import RIGHT
from tests.fork.test_workspaces import BETTER, LIGHT, Project
from worldline.engine.checkpoints import checkpoints_of
from worldline.seams import within
from worldline.store.secrets.forms import forms
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

TOKEN = "lamp-" + "token-7Qk93x-41" + "-nobodys"
REGISTERED = ("--secret-env", "SHOP_TOKEN")
COMMANDS = (
    "grep -c SHOP_TOKEN .env",
    "echo 'looked at slug.py' >> notes.txt",
    'eval "$WRITES"',
    RIGHT,
)


def script(ask: Ask) -> Reply:
    turn = sum(message["role"] == "assistant" for message in ask.messages)
    if turn < len(COMMANDS):
        return Say(f"Step {turn}.", [ToolCall("shell", {"command": COMMANDS[turn]})])
    return Say("The test passes.")


class Secretive(Project):
    """A project with a token in its `.env`."""

    def __init__(self, place: Path, provider: Provider) -> None:
        super().__init__(place, provider)
        self.dotenv = self.folder / ".env"
        self.dotenv.write_text(f"# of the shop\nSHOP_TOKEN={TOKEN}\n")
        self.environment |= {"SHOP_TOKEN": TOKEN, "WRITES": "true"}

    def leaks(self) -> list[str]:
        """Where below the store the token stands, as a text or in another form."""
        several = [form for form in forms(TOKEN) if len(form) >= 8]
        found = []
        for path in self.store.rglob("*"):
            data = os.fsencode(path.name) + (path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
            if any(form in data for form in several):
                found.append(str(path.relative_to(self.store)))
        return found

    def begin(self, *more: str, registered: tuple[str, ...] = REGISTERED) -> wl.Run:
        self.said = self.worldline(
            "record", "--workspace", ".", *registered, *more, "--", sys.executable, LIGHT, code=self.code
        )
        return wl.open("latest", self.store)

    code = 0


@pytest.fixture
def project(quick: Path) -> Iterator[Secretive]:
    with Provider(script) as provider:
        yield Secretive(quick, provider)


def test_a_token_in_a_file_is_in_no_snapshot_and_a_branch_sees_it(project: Secretive) -> None:
    dotenv = project.dotenv.read_bytes()
    run = project.begin()
    assert "not kept in any snapshot: .env (it holds SHOP_TOKEN)" in project.said
    assert project.leaks() == []
    kept = checkpoints_of(run.recording)
    assert len(kept) > 4
    note = {"path": ".env", "why": "not kept: it holds the secret SHOP_TOKEN", "secret": "SHOP_TOKEN"}
    assert all(note in point.ref.notes for point in kept)
    said = project.worldline("fork", "latest", "--at", "step:3", "--tools", "run", *BETTER, "--", sys.executable, LIGHT)
    if within.why_not() is None:
        assert "succeeded" in said and "5 served" not in said, said
        assert "the one of" in said and "as it is now, read-only" in said
        assert project.asked(1)[0][2]["content"] == "1\n", "the agent on the branch reads its token"
    else:
        assert "the branch is without .env" in said
    branch = wl.open("latest", project.store)
    assert all(note in point.ref.notes for point in checkpoints_of(branch.recording)), "its forks know it, too"
    assert project.leaks() == [] and project.dotenv.read_bytes() == dotenv


@pytest.mark.parametrize("known", [True, False], ids=["value given", "value not given"])
def test_rewind_and_undo_leave_what_holds_a_token_alone(project: Secretive, known: bool) -> None:
    """A file that came to hold it, one that always did, one in a folder that the agent made."""
    local = project.folder / "local.ini"
    local.write_text("token=\n")
    writes = "for f in local.ini made/new.ini; do mkdir -p made; echo token=$SHOP_TOKEN > $f; done; echo '#' >> .env"
    project.environment["WRITES"] = writes
    project.begin()
    held = {path: (project.folder / path).read_bytes() for path in (".env", "local.ini", "made/new.ini")}
    assert all(TOKEN.encode() in data for data in held.values()) and project.leaks() == []
    if not known:
        del project.environment["SHOP_TOKEN"]
    for words in (["rewind", "latest", "--to", "step:0"], ["undo"]):
        said = project.worldline(*words, "--json")
        changed = {each["path"] for each in said["changes"]}
        assert {"slug.py", "notes.txt"} <= changed and not changed & held.keys()
        if words[0] == "rewind":
            assert "looked" not in (project.folder / "notes.txt").read_text()
            assert {
                "path": "local.ini",
                "why": "it held the secret SHOP_TOKEN, so what it was is in no snapshot",
            } in said["kept"]
        assert {path: (project.folder / path).read_bytes() for path in held} == held
        assert project.leaks() == []
    assert "looked" in (project.folder / "notes.txt").read_text()


def test_a_secret_found_late_leaves_the_snapshots_with_its_run(project: Secretive) -> None:
    """Two runs in one folder, neither of which knew the token, a branch of one, a snapshot that nothing names."""
    (project.folder / "large.txt").write_text(f"{'x' * 3_000_000} {TOKEN}\n")
    first = project.begin(registered=())
    project.worldline("fork", "latest", "--at", "step:2", "--tools", "run", *BETTER, "--", sys.executable, LIGHT)
    branch = wl.open("latest", project.store)
    second = project.begin(registered=())
    names = sorted(name for name in (run.recording.run_id for run in (branch, second)))
    contain = ("contain", first.recording.run_id, "--secret-env", "SHOP_TOKEN")
    said = project.worldline(*contain)
    assert "snapshot " in said and "/.env" in said and TOKEN not in said
    assert f"contents with it are also in {', '.join(names)}: contain them, too" in said
    place = project.store.parent / "quarantine"
    taken = {path.stem for path in (project.store / ".snapshots" / "taken").iterdir()}
    assert taken == {point.ref.id for run in (branch, second) for point in checkpoints_of(run.recording)}
    for run in (branch, second):
        assert any(".snapshots/blobs" in leak for leak in project.leaks())
        said = project.worldline("contain", run.recording.run_id, "--secret-env", "SHOP_TOKEN")
    assert "contents with it" not in said and "need" not in said
    assert project.leaks() == [], "nor in the folder of the branch, nor among what all runs share"
    kept = [path.read_bytes() for path in place.rglob("*") if path.is_file()]
    assert sum(TOKEN.encode() in data for data in kept) >= 2, "the quarantine has it, for who wants to look"
    project.worldline("contain", first.recording.run_id, "--secret-env", "SHOP_TOKEN")
    again = project.begin()
    assert checkpoints_of(again.recording) and project.leaks() == [], "what was known of the folder is not believed"
