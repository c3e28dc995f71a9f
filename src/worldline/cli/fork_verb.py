"""`worldline fork RUN --at step:9 -- CMD`: serve what came before a step, change one thing, let the rest go live."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import click
import msgspec

from worldline.analysis.difference import compare
from worldline.cli import render
from worldline.cli.hints import name_of
from worldline.cli.options import (
    command_argument,
    json_option,
    mask_option,
    policy_option,
    recording_of,
    run_argument,
    store_option,
)
from worldline.engine.fork_point import fork_point
from worldline.engine.masks import masks_here
from worldline.engine.plan import Plan, plan_of, read_plan, read_prompt
from worldline.engine.restored import restoring
from worldline.errors import UsageError
from worldline.model.ids import short
from worldline.policy.rules import rules_here
from worldline.run import ForkReport, Run, fork_report, grader
from worldline.seams import process
from worldline.seams.branch import NOT_REPRODUCIBLE, BranchResult, BranchSession, differing_agent, replicate
from worldline.seams.environment import check_command, described_agent
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording

MOST_REPLICAS = 10_000
_OWN = ("n", "verifier", "policy", "workspace")  # what a plan's file may say that is no part of the plan itself


@click.command(
    epilog="""\b
Examples:
  worldline fork latest --at step:9 --set model=other -- python agent.py
  worldline fork 7f3a --at step:3 --edit call_7='{"amount": 20}' -- python agent.py
  worldline fork 7f3a --at step:0 --prompt-file prompt.txt -- python agent.py
  worldline fork 7f3a --at step:9 -n 5 --verifier grade.py:score -- python agent.py"""
)
@run_argument
@click.option("--at", metavar="STEP", help="The first step that happens anew: step:9; or a row: seq:88.")
@click.option("--set", "fields", multiple=True, metavar="NAME=VALUE", help="A field of live requests: model=other.")
@click.option(
    "--edit", "edits", multiple=True, metavar="CALL=JSON", help="Another result for a call of the step before."
)
@click.option("--prompt-file", metavar="FILE", help="Another system prompt; user:FILE for the user's last message.")
@click.option("--seed", type=click.Choice(["rotate"]), help="A seed of its own for each branch.")
@click.option(
    "--plan", "plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="All of this in a TOML file."
)
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the branch's workspace goes (new); a folder that is there: run in it as it stands.",
)
@click.option("-n", "replicas", type=click.IntRange(1, MOST_REPLICAS), help="How many branches.  [default: 1]")
@click.option("--verifier", metavar="WHO", help="Grade each: exit-code, outcome, or FILE.py:FUNCTION.")
@policy_option
@click.option("--allow-repeat", is_flag=True, help="Let effects happen again whose declared key happened before.")
@click.option(
    "--tools",
    type=click.Choice(["refuse", "run"]),
    help="Tools that ran outside the recording would run again: refuse, or let them.  [default: refuse]",
)
@click.option(
    "--restore",
    is_flag=True,
    help="Give the agent the state that it dumped at the step, in place of driving it there again.",
)
@click.option(
    "--agent",
    "same",
    type=click.Choice(["any", "same"]),
    default="any",
    show_default=True,
    help="any: another program than the recorded one is said; same: it is refused.",
)
@mask_option
@json_option
@store_option
@command_argument
def command(
    run: str,
    at: str | None,
    fields: tuple[str, ...],
    edits: tuple[str, ...],
    prompt_file: str | None,
    seed: str | None,
    plan: Path | None,
    workspace: Path | None,
    replicas: int | None,
    verifier: str | None,
    policy: Path | None,
    allow_repeat: bool,
    tools: str | None,
    restore: bool,
    same: str,
    mask: tuple[str, ...],
    as_json: bool,
    store: Path | None,
    command: tuple[str, ...],
) -> int:
    """Fork a run: what came before a step is served from its record, then the same agent goes on live.

    Everything before the step is answered as it was; an agent that asks for anything else is told where it differs, and
    nothing goes live. Behind it the model is asked anew. Tools with effects do not run unless a rule lets them: a
    recorded result is given, or the agent sees an error. The run that is forked is never written to. Exits with 1 where
    the steps before cannot be served to this command, 3 where the run cannot be forked.
    """
    said = read_plan(plan) if plan is not None else {}
    own = {name: said.pop(name) for name in _OWN if name in said}
    wanted = _plan(said, at, fields, edits, prompt_file, seed, allow_repeat, tools, restore, mask)
    recording = refuse_doubt(recording_of(run, store))
    with render.progress("verifying", recording.log_bytes) as bar:
        point = fork_point(recording, wanted, bar.update, masks_here())
    check_command(command)
    agent = described_agent(command)
    notes = [note] if (note := differing_agent(point, agent)) else []
    if notes and same == "same":
        raise UsageError(f"{notes[0]}; --agent any forks all the same")
    rules = rules_here(policy or (Path(own["policy"]) if "policy" in own else None))
    count = replicas or int(own.get("n", 1))
    workspace = workspace or (Path(own["workspace"]) if "workspace" in own else None)
    stands = workspace is not None and workspace.exists()
    if workspace is not None and not stands and restoring(point) is None:
        raise UsageError(f"no folder {workspace}, and the run kept no workspace that could be restored there")
    notes += point.doubts
    graded = grader(verifier or own["verifier"]) if verifier or "verifier" in own else None
    for note in notes:
        render.verdict("warn", note, err=True)

    def drive(branch: BranchSession) -> BranchResult:
        render.verdict("live", f"branch {short(branch.recorder.run)} of {short(recording.run_id)}", err=True)
        return drive_command(branch, command, as_json, workspace if stands else None)

    def tell(number: int, result: BranchResult) -> None:
        if not as_json:
            _say(recording, result, f"{number + 1} of {count}   " if count > 1 else "")

    numbers = itertools.count()

    def opens() -> BranchSession:
        number = next(numbers)
        new = workspace if count == 1 or workspace is None else workspace / str(number)
        place = {"as_it_stands": True} if stands else {"folder": new}
        return BranchSession(point, os.environ, rules, agent=agent, **place)

    results = replicate(
        count,
        opens,
        drive,
        None if graded is None else lambda made, result: graded(Run(made), result),
        tell,
    )
    report = fork_report(results, point, stands)
    report.notes = notes
    if as_json:
        render.emit_json(report.to_json())
    else:
        _conclude(report)
    return 1 if any(result.outcome == NOT_REPRODUCIBLE for result in results) else 0


def drive_command(
    branch: BranchSession, command: tuple[str, ...], as_json: bool, workspace: Path | None = None
) -> BranchResult:
    """Run a command in a branch, to its end. What cannot be served, and a recorder that broke, end it."""
    boundary, recorder = branch.boundary, branch.recorder

    def tick() -> str | None:
        found = boundary.failure or recorder.broken
        return str(found) if found else None

    words, folder = branch.launch(command)
    for note in branch.notes:
        render.verdict("warn", note, err=True)
    ended = process.run(words, branch.environment, process.stdout_beside(as_json), tick, workspace or folder)
    reason = f"interrupted by {ended.interrupted_by}" if ended.interrupted_by else None
    return branch.close(ended.outcome(), reason)


def _plan(
    said: dict[str, Any],
    at: str | None,
    fields: tuple[str, ...],
    edits: tuple[str, ...],
    prompt_file: str | None,
    seed: str | None,
    allow_repeat: bool,
    tools: str | None,
    restore: bool,
    mask: tuple[str, ...],
) -> Plan:
    """The plan of a file, and what the command line says of it."""
    plan = dict(said)
    plan["set"] = {**plan.get("set", {}), **dict(_pair(pair, "--set", strict=False) for pair in fields)}
    plan["edit"] = {**plan.get("edit", {}), **dict(_pair(pair, "--edit", strict=True) for pair in edits)}
    if prompt_file is not None:
        role, mark, file = prompt_file.partition(":")
        path = Path(file if mark and role in ("system", "user") else prompt_file)
        try:
            plan["prompt"] = read_prompt(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--prompt-file {path}: {error}", path=str(path)) from None
        plan["prompt_role"] = "user" if mark and role == "user" else "system"
    plan["mask"] = [*plan.get("mask", []), *mask]
    given = {"at": at, "seed": seed, "tools": tools, "allow_repeat": allow_repeat or None, "restore": restore or None}
    return plan_of({**plan, **{name: value for name, value in given.items() if value is not None}})


def _pair(text: str, option: str, strict: bool) -> tuple[str, Any]:
    """NAME=VALUE, the value as JSON; what is none is text, where that will do."""
    name, mark, value = text.partition("=")
    if not (name and mark):
        raise UsageError(f"{option} takes NAME=VALUE, not {text!r}")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        if strict:
            raise UsageError(f"{option} {name}: its value is no JSON: {error}") from None
        return name, value


def _say(recording: Recording, result: BranchResult, number: str) -> None:
    if result.outcome == NOT_REPRODUCIBLE:
        found = result.divergence or {}
        render.verdict("failed", f"{number}NOT_REPRODUCIBLE   {found.get('kind')} at {found.get('name')}")
        render.line(f"  {found.get('path')}")
        render.line(f"  - {found.get('recorded')}", cut=True)
        render.line(f"  + {found.get('actual')}", cut=True)
        if found.get("hint"):
            render.line(f"  {found['hint']}")
        if found.get("kind") == "unconsumed" and result.exit:
            render.line(f"  the command ended with {result.exit}, before it had come to the fork")
        render.volatile(found.get("masks", []))
        render.masks(result.masks, result.masked)
        render.line("  nothing went live, and the run is as it was")
        return
    mark = "ok" if result.outcome == "succeeded" else "failed"
    counts = f"{render.counted(result.prefix, 'call')} served, {result.live} live"
    effects = f", {result.mocked} mocked" if result.mocked else ""
    effects += f", {result.refused} refused" if result.refused else ""
    score = "" if result.score is None else f"   score {result.score:g}"
    render.verdict(mark, f"{number}branch {short(result.run)}   {counts}{effects}   {result.outcome}{score}")
    if result.error:
        render.line(f"  {result.error}", cut=True)
    render.masks(result.masks, result.masked)
    if result.workspace:
        render.line(f"  its files: {result.workspace}")
    if not number:
        branch = Recording(result.path)
        parent, name = name_of(recording), name_of(branch)
        render.line(f"  {_first_difference(recording, branch)}worldline diff {parent} {name}")
        render.line(f"  worldline show {name}    worldline view {name}    worldline tree {parent}")


def _first_difference(parent: Recording, branch: Recording) -> str:
    """Where a branch parts from its parent, in words; nothing where finding out would be work for a while."""
    if parent.log_bytes + branch.log_bytes > render.LONG_WORK_BYTES:
        return ""
    parted = compare(parent, branch).first_divergence
    if parted is None:
        return "no difference   "
    return render.first_difference(parted, (short(parent.run_id), short(branch.run_id))) + "   "


def _conclude(report: ForkReport) -> None:
    if report.degraded:
        render.verdict("warn", report.degraded)
    rates = report.pass_at_k
    if rates is None:
        return
    render.line(f"  {rates.passed} of {rates.n} passed")
    for rate in dict.fromkeys([rates.rates[0], rates.rates[-1]]):
        at, hat = _interval(rate.pass_at, rate.pass_at_interval), _interval(rate.pass_hat, rate.pass_hat_interval)
        render.line(f"  pass@{rate.k} {at}   pass^{rate.k} {hat}")


def _interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"
