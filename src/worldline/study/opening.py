"""Opening a study: everything that can be refused is refused here, before a rollout is spent; then its journal opens.

A study's id follows from what it asks. The same question asked again goes on with what its journal has; a larger budget
is no other question.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.attribution.asking import Budget, RecordedSteps
from worldline.engine import clock
from worldline.engine.executors.executor import Executor, Work
from worldline.engine.executors.inline import Inline
from worldline.engine.executors.processes import Processes
from worldline.engine.executors.tasks import Tasks
from worldline.engine.fork_point import fork_point
from worldline.engine.masks import masks_here
from worldline.engine.plan import plan_of
from worldline.errors import Ineligible, UsageError
from worldline.policy.rules import FILE, rules_here
from worldline.run import Run
from worldline.seams.branch import differing_agent
from worldline.store import layout
from worldline.store.blobs import sweep_pool
from worldline.store.bundle.packed import PackedRecording
from worldline.store.studies import folder as studies
from worldline.store.studies.journal import FORMAT, OPENED, Journal
from worldline.study.agents import agent_of
from worldline.study.conduct import Conduct, Price, Tell
from worldline.study.recorded import recorded_steps, seeded
from worldline.study.rollout import Rollouts
from worldline.study.setting import LIMIT_SECONDS, Setting, identity_digest
from worldline.study.verifying import Verifier, recorded_end

EXECUTORS = ("processes", "inline", "tasks")
BY_POSITION = "held steps are matched by their order, so what was held may have answered something else"
SLACK_SECONDS = 60.0  # for what is not the agent's or the verifier's; then the process of a rollout is killed


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How rollouts are carried out, whatever they are for.

    `executor` is `processes`, `inline` or `tasks`, `flight` how many run at once. `plan` is what each changes besides
    (`set`, `tools`, `allow_repeat`, `mask`), `policy` a file of rules about tools with effects. A rollout works in a
    copy of the folder `workspace`, and in copies of the folders that the variables `copies` name. It may take `limit`
    seconds, then it is undefined. `price` is what a million tokens cost. `keep` keeps every rollout. `root` is the seed
    of all chance.
    """

    executor: str = "processes"
    flight: int | None = None
    threshold: float = 1.0
    verifier_timeout: float = 60.0
    plan: dict[str, Any] = {}
    policy: Path | None = None
    workspace: Path | None = None
    copies: tuple[str, ...] = ()
    secrets: dict[str, str] = {}
    limit: float = LIMIT_SECONDS
    price: float | None = None
    keep: bool = False
    root: int = 0

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise UsageError(f"an executor is one of {', '.join(EXECUTORS)}, not {self.executor!r}")
        if self.flight is not None and self.flight < 1:
            raise UsageError(f"at least 1 rollout runs at once, not {self.flight}")
        if not self.limit > 0:
            raise UsageError(f"a rollout takes a number of seconds above 0, not {self.limit!r}")


@dataclass(frozen=True)
class Opening:
    """A study before it begins: what it is about, and what was found out without a rollout."""

    run: Run
    setting: Setting
    steps: RecordedSteps
    score: float
    notes: list[str]
    options: Options
    budget: Budget


def prepare(
    run: Run,
    agent: Any,
    verifier: Any,
    options: Options,
    budget: Budget,
    *,
    must_have_failed: bool = True,
    prior: str | None = None,
) -> Opening:
    """Check a study. Raises `UsageError`, `Ineligible`, `NoVerdict`, `LineageBroken` or `CommandNotFound`."""
    if isinstance(run.recording, PackedRecording):
        reason = f"it is a bundle, and rollouts find their parent in its store: {run.recording.way_in}"
        raise Ineligible(reason, reasons=[reason])
    if budget.money is not None and options.price is None:
        raise UsageError("a budget of money needs a price: say what a million tokens cost (--price 2.50)")
    if here := [mask.text for mask in masks_here() if not mask.of_steps]:
        plan_of(options.plan)  # what is given is judged by itself
        plan = {**options.plan, "mask": list(dict.fromkeys([*options.plan.get("mask", ()), *here]))}
        options = msgspec.structs.replace(options, plan=plan)
    if run.recording.manifest is None:
        plan_of(options.plan)
        fork_point(run.recording, plan_of({**options.plan, "at": "step:0"}))  # says what is to be done about it
    judge = Verifier(verifier, options.threshold, options.verifier_timeout)
    judge.loaded()
    score = judge.score(run, recorded_end(run))
    steps = recorded_steps(run, failed=not judge.passes(score), prior=prior)
    if must_have_failed:
        steps.failed()
    elif not run.steps:
        raise Ineligible("the run has no steps: there is nothing to fork at", reasons=["no steps"])
    driven = agent_of(agent)
    policy = options.policy if options.policy is not None else Path(FILE) if Path(FILE).is_file() else None
    if policy is not None:
        rules_here(policy)
    point = fork_point(run.recording, plan_of({**options.plan, "at": "step:0"}))
    notes = [note] if (note := differing_agent(point, driven.described())) else []
    if options.plan.get("match") == "position":
        notes.append(BY_POSITION)
    if masks := [mask.text for mask in point.masks.all]:
        notes.append(f"held steps are matched under {'a mask' if len(masks) == 1 else 'masks'}: {', '.join(masks)}")
    setting = Setting(
        attempt=run.recording.attempt.absolute(),
        folder=Path(),
        agent=driven,
        verifier=judge,
        root=options.root,
        plan=seeded(run, dict(options.plan)),
        policy=policy.absolute() if policy is not None else None,
        workspace=options.workspace,
        copies=options.copies,
        secrets=dict(options.secrets),
        limit=options.limit,
        keep=options.keep,
        alone=options.executor != "tasks",
    )
    return Opening(run, setting, steps, score, notes, options, budget)


@dataclass(frozen=True)
class Open:
    """A study that is open: its id and folder, the journal, and who draws."""

    study: str
    folder: Path
    journal: Journal
    conduct: Conduct


@contextmanager
def opened_study(
    opening: Opening, kind: str, asked: dict[str, Any], tell: Tell = lambda progress: None
) -> Iterator[Open]:
    """Open the study that asks `asked`; its executor is closed at the end. Raises `WriterConflict`, `Damaged`."""
    run, options = opening.run, opening.options
    identity = identity_digest(opening.setting.identity(run))
    word = identity_digest({"identity": identity, "kind": kind, "asked": asked})
    started_ms = int(run.recording.header.data["t0_wall"]) // 1_000_000
    study = studies.derived_id(studies.PREFIX, started_ms, word)
    store = layout.homes(run.recording.run_directory)[-1]
    folder = studies.folder_of(store.absolute(), study)
    setting = replace(opening.setting, folder=folder)
    executor = executor_of(options, Rollouts(setting))
    try:
        with Journal(folder) as journal:
            if not journal.entries:
                said = {
                    "format": FORMAT,
                    "kind": kind,
                    "run": run.id,
                    "task": run.task,
                    "agent": setting.agent.described(),
                    "verifier": setting.verifier.name,
                    "identity": identity,
                    **asked,
                }
                journal.add(OPENED, msgspec.to_builtins(said, enc_hook=str), clock.wall_ns())
            conduct = Conduct(setting, identity, journal, executor, price=Price(options.price), tell=tell)
            yield Open(study, folder, journal, conduct)
    finally:
        executor.close()
        sweep_pool(store / layout.POOL)  # what only rollouts had that are gone


def executor_of(options: Options, work: Work) -> Executor:
    """The executor that the options name."""
    opens: dict[str, Callable[[], Executor]] = {
        "inline": lambda: Inline(work),
        "processes": lambda: Processes(work, options.flight, options.limit + options.verifier_timeout + SLACK_SECONDS),
        "tasks": lambda: Tasks(work, options.flight) if options.flight else Tasks(work),
    }
    return opens[options.executor]()


class Estimate(msgspec.Struct, frozen=True):
    """What a study may take before it starts: so many rollouts, and what so many would cost as recorded."""

    rollouts: int
    tokens: int
    seconds: float
    money: float | None


def estimate(opening: Opening, rollouts: int) -> Estimate:
    """The estimate for a number of rollouts: each makes half of the recorded run anew, on average over the prefixes."""
    summary = opening.run.recording.summary
    count = min(rollouts, rollouts if opening.budget.rollouts is None else opening.budget.rollouts)
    tokens = sum(int(value) for value in (summary.get("tokens") or {}).values()) * count // 2
    seconds = float(summary.get("seconds") or 0.0) * count / 2 / max(1, flight(opening.options))
    price = Price(opening.options.price)
    return Estimate(count, tokens, seconds, price.of(tokens) if opening.options.price is not None else None)


def flight(options: Options) -> int:
    """How many rollouts run at once."""
    if options.executor == "inline":
        return 1
    return options.flight or (16 if options.executor == "tasks" else os.cpu_count() or 1)
