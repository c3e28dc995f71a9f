"""The substrate `git` keeps to its own refs and index: nothing of the user's repository is another one afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require
from worldline.engine.substrates.git import Git, GitEnv
from worldline.engine.substrates.substrate import Policy
from worldline.errors import StaleBase, SubstrateError, Unavailable
from worldline.testing.subject import contents


class Repo:
    """A repository of a user, with all that such a one has."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "project"
        self.store = self.folder / ".worldline" / "runs"
        self.store.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "user")
        self.git("config", "user.email", "user@localhost")
        self.git("config", "filter.shout.clean", f"touch {place}/filter-ran; tr a-z A-Z")
        self.git("config", "filter.shout.required", "true")
        self.git("config", "core.autocrlf", "true")
        self.write(".gitattributes", "*.txt text eol=crlf\n*.shout filter=shout\n*.id ident\n")
        self.write(".gitignore", "built/\n*.log\n")
        self.write("windows.txt", "one\r\ntwo\r\n")
        self.write("a.id", "$Id: mine $\n")
        self.write("src/main.py", "print(1)\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")
        for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
            hook = self.folder / ".git" / "hooks" / name
            hook.write_text(f"#!/bin/sh\ntouch {place}/hook-ran\n")
            hook.chmod(0o755)
        self.write("src/main.py", "print('stashed')\n")
        self.git("-c", "core.hooksPath=/dev/null", "stash", "-q")
        self.write("staged.py", "staged\n")
        self.git("-c", "core.hooksPath=/dev/null", "add", "staged.py")
        self.write("src/main.py", "print('by hand')\n")
        self.write("untracked.py", "untracked\n")
        self.write("loud.shout", "quiet\n")
        self.write("built/out", "built\n")
        self.write("noise.log", "noise\n")
        (place / "hook-ran").unlink(missing_ok=True)
        (place / "filter-ran").unlink(missing_ok=True)
        self.substrate = Git(self.store)
        self.env: GitEnv = self.substrate.open(self.folder, Policy(store=self.store))

    def git(self, *words: str) -> str:
        surroundings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(["git", *words], cwd=self.folder, env=surroundings, capture_output=True, check=True)
        return done.stdout.decode()

    def write(self, path: str, text: str) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())

    def users(self) -> dict[str, object]:
        """All that is the user's of the repository."""
        folder = self.folder / ".git"
        logs = {path.name: path.read_bytes() for path in (folder / "logs").rglob("*") if path.is_file()}
        return {
            "refs": [line for line in self.git("for-each-ref").splitlines() if "refs/worldline/" not in line],
            "head": (folder / "HEAD").read_text(),
            "index": (folder / "index").read_bytes(),
            "stash": self.git("stash", "list"),
            "logs": {name: log for name, log in logs.items() if not name.startswith("snap_")},
            "config": (folder / "config").read_bytes(),
            "status": self.git("status", "--porcelain", "--ignored"),
        }


@pytest.fixture
def repo(quick: Path) -> Repo:
    require("git", shutil.which("git"), "not installed")
    return Repo(quick)


def test_nothing_of_the_users_changes_over_many_snapshots_and_restores(repo: Repo, quick: Path) -> None:
    users, files = repo.users(), contents(repo.folder)
    first = repo.env.snapshot(0)
    for number in range(1, 6):
        repo.write(f"made-{number}.py", "made\n")
        repo.write("windows.txt", f"changed {number}\n")
        repo.env.snapshot(number)
    repo.env.restore(first)
    assert contents(repo.folder) == files
    assert repo.users() == users
    assert not (quick / "hook-ran").exists() and not (quick / "filter-ran").exists()
    assert len(repo.git("for-each-ref", "refs/worldline/").splitlines()) == 6
    repo.substrate.gc([first])
    assert repo.git("for-each-ref", "--format=%(refname)", "refs/worldline/").split() == [f"refs/worldline/{first.id}"]
    assert repo.users() == users


def test_contents_are_kept_to_the_byte_whatever_the_repository_declares(repo: Repo) -> None:
    ref = repo.env.snapshot(0)
    (branch,) = repo.substrate.fork(ref, 1, branch_seed="", identity="run")
    kept = contents(branch.root)
    assert kept == {
        path: each for path, each in contents(repo.folder).items() if path not in ("built/out", "noise.log")
    }
    assert kept["windows.txt"][2] == b"one\r\ntwo\r\n" and kept["loud.shout"][2] == b"quiet\n"
    assert kept["a.id"][2] == b"$Id: mine $\n"


def test_what_git_ignores_is_named_and_left_alone(repo: Repo) -> None:
    ref = repo.env.snapshot(0)
    assert {note["path"] for note in ref.notes} == {"built", "noise.log"}
    repo.write("built/out", "built again\n")
    repo.write("noise.log", "more noise\n")
    (repo.folder / "empty").mkdir()
    repo.write("src/main.py", "print('by the agent')\n")
    repo.env.restore(ref)
    assert (repo.folder / "src/main.py").read_text() == "print('by hand')\n"
    assert (repo.folder / "built/out").read_text() == "built again\n"
    assert (repo.folder / "noise.log").read_text() == "more noise\n" and (repo.folder / "empty").is_dir()


def test_a_repository_in_the_repository_is_named(repo: Repo) -> None:
    inner = repo.folder / "inner"
    subprocess.run(["git", "clone", "-q", repo.folder, inner], check=True, capture_output=True)
    ref = repo.env.snapshot(0)
    repo.substrate.export(ref)
    said = repo.substrate.files.record(ref).snapshot.notes
    assert {"path": "inner", "why": "not kept: a repository in the repository"} in said
    repo.write("src/main.py", "changed\n")
    repo.env.restore(ref)
    assert (inner / "src" / "main.py").is_file(), "a restore went into the other repository"


def test_a_lock_that_a_killed_git_left_stops_nobody(repo: Repo) -> None:
    repo.env.snapshot(0)
    (index,) = (repo.store / ".snapshots" / "git").glob("*.index")
    index.with_suffix(".index.lock").write_bytes(b"half")
    repo.write("src/main.py", "changed\n")
    first, second = repo.env.snapshot(1), repo.env.snapshot(2)
    assert repo.substrate.export(first) == repo.substrate.export(second)


def test_a_folder_that_is_no_repository_and_one_that_went_are_one_error(repo: Repo, quick: Path) -> None:
    ref = repo.env.snapshot(0)
    with pytest.raises(Unavailable, match="not the top"):
        repo.substrate.open(repo.folder / "src", repo.env.policy)
    (repo.folder / ".git").rename(quick / "gone")
    with pytest.raises(StaleBase):
        repo.substrate.export(ref)
    with pytest.raises((StaleBase, SubstrateError)):
        repo.env.snapshot(1)
