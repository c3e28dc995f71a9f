"""The clerk's model, and the command line around the clerk: recorded, forked and resumed in processes of their own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.terminal import Ended, environment, worldline
from tests.fork.outside import Outside
from worldline.cli.resume_verb import settled
from worldline.engine.fork_point import fork_point, resume_point
from worldline.engine.plan import plan_of
from worldline.engine.replay import ReplayReport
from worldline.policy.rules import Rules, read_rules
from worldline.run import ForkReport, fork_report
from worldline.seams import process
from worldline.seams.branch import BranchResult, BranchSession, replicate
from worldline.seams.session import ReplaySession
from worldline.store.catalog import find
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

AGENTS = Path(__file__).parent / "agents"
SHOP = (sys.executable, str(AGENTS / "shop.py"))


def clerk(ask: Ask) -> Reply:
    """Looks, mails, refunds, answers; another model mails somebody else and refunds another sum."""
    said = sum(message["role"] == "assistant" for message in ask.messages)
    other = ask.model == "other"
    turns = [
        Say("I look.", [ToolCall("look", {"order": 812}, "call_look")]),
        Say(
            "I mail.",
            [ToolCall("mail", {"to": "eve@x.invalid" if other else "bob@x.invalid", "text": "ok"}, "call_mail")],
        ),
        Say("I refund.", [ToolCall("refund", {"order": 812, "cents": 7 if other else 64}, "call_refund")]),
        Say(f"Done: {ask.tool_results[0][1] if ask.tool_results else '-'}"),
    ]
    return turns[min(said, 3)]


class Desk:
    """A store, a provider and the world outside, with the verbs that are run against them.

    The program is always a process of its own; the verb around it is one where `verb` runs it, and this one else.
    """

    def __init__(self, folder: Path, provider: Provider, outside: Outside, program: tuple[str, ...] = SHOP) -> None:
        self.store = folder / ".worldline" / "runs"
        self.provider = provider
        self.outside = outside
        self.program = program
        self.run = ""

    def environment(self, **more: str) -> dict[str, str]:
        return environment(self.provider, **self.outside.environment, **more)

    def record(self, **more: str) -> str:
        """Record the program; the run's id."""
        worldline("record", "--out", self.store, "--task", "shop", "--", *self.program, env=self.environment(**more))
        return self.newest()

    def newest(self) -> str:
        return max(path.name for path in self.store.iterdir() if path.name.startswith("run_"))

    def verb(self, *words: str | Path, **more: str) -> Ended:
        """Run a verb on the store, the program behind it."""
        return worldline(*words, "--store", self.store, "--", *self.program, env=self.environment(**more))

    def recording(self, run: str) -> Recording:
        return find(run, self.store)

    def fork(
        self, run: str, at: str, *, n: int = 1, rules: str = "", env: dict[str, str] | None = None, **plan: Any
    ) -> ForkReport:
        """Fork a run; what came of it. `rules` is the TOML of a policy."""
        point = fork_point(self.recording(run), plan_of({"at": at, **plan}))
        surroundings, policy = self.environment(**(env or {})), policy_of(rules)
        results = replicate(n, lambda: BranchSession(point, surroundings, policy), self.drive)
        return fork_report(results, point)

    def resume(self, run: str, **more: str) -> BranchResult:
        point = resume_point(settled(self.recording(run)))
        return self.drive(BranchSession(point, self.environment(**more), Rules()))

    def drive(self, branch: BranchSession) -> BranchResult:
        """Run the program in a branch, to its end; what it says goes to the branch's result."""
        boundary = branch.boundary

        def tick() -> str | None:
            return str(boundary.failure) if boundary.failure else None

        ended = process.run(self.program, branch.environment, subprocess.DEVNULL, tick)
        return branch.close(ended.outcome())

    def replay(self, run: str, **more: str) -> ReplayReport:
        """Replay a run with its program."""
        session = ReplaySession(self.recording(run), self.environment(**more))
        ended = process.run(self.program, session.environment(), subprocess.DEVNULL)
        return session.close(ended.code)

    def digest(self, run: str) -> str:
        return digest(self.store / run)


def policy_of(rules: str) -> Rules:
    path = Path("policy.toml")
    path.write_text(rules)
    return read_rules(path)


def only(report: ForkReport) -> BranchResult:
    (branch,) = report.branches
    return branch


def counts(branch: BranchResult) -> tuple[int, int, int, int]:
    """(served, live, mocked, refused)"""
    return branch.prefix, branch.live, branch.mocked, branch.refused


def digest(folder: Path) -> str:
    """A digest over every file of a directory: names, bytes, times of change."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        found.update(f"{path.relative_to(folder)} {state.st_mtime_ns} {state.st_size}".encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()
