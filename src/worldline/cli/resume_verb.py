"""`worldline resume RUN -- CMD`: serve what a run has done already, and go on where it broke off."""

from __future__ import annotations

import os
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.fork_verb import drive_command
from worldline.cli.options import (
    command_argument,
    json_option,
    mask_option,
    policy_option,
    recording_of,
    run_argument,
    store_option,
)
from worldline.engine.account import account
from worldline.engine.fork_point import continuation, resume_point
from worldline.engine.masks import crossing_masks, masks_here
from worldline.errors import UsageError, WorldlineError, WriterConflict
from worldline.model.ids import short
from worldline.policy.rules import rules_here
from worldline.seams.branch import NOT_REPRODUCIBLE, NOTHING_NEW, BranchResult, BranchSession
from worldline.seams.environment import check_command, described_agent
from worldline.store.bundle.packed import PackedRecording
from worldline.store.reconcile import reconcile, refuse_doubt
from worldline.store.recording import Recording


@click.command(
    epilog="""\b
Examples:
  worldline resume latest -- python agent.py
  worldline resume 7f3a --policy worldline.toml --json -- python agent.py"""
)
@run_argument
@policy_option
@click.option(
    "--tools",
    type=click.Choice(["refuse", "run"]),
    default="refuse",
    show_default=True,
    help="Tools that ran outside the recording would run again: refuse, or let them.",
)
@mask_option
@json_option
@store_option
@command_argument
def command(
    run: str,
    policy: Path | None,
    tools: str,
    mask: tuple[str, ...],
    as_json: bool,
    store: Path | None,
    command: tuple[str, ...],
) -> int:
    """Resume a run after a crash: its calls are answered from its record, then the agent goes on live.

    What a dead recorder left is sealed first, as `worldline reconcile` does. The next attempt holds only what is new;
    where nothing is, none is made. Model calls that failed at the end of a run that did not succeed are made again. A
    call that had started when the record broke off is never made again by itself: a tool with effects is refused with
    `OutcomeUnknown`, unless a rule with outcome = "unknown" says otherwise; so is any such call of a run that failed
    open and went on behind the end of its record. A run that was resumed before goes on from
    there. Exits with 1 where the record cannot be served to this command.
    """
    masks = (*masks_here(), *crossing_masks(mask))
    asked = recording_of(run, store)
    check_command(command)
    recording = settled(asked)
    with render.progress("verifying", recording.log_bytes) as bar:
        point = resume_point(recording, tools, bar.update, masks)
    branch = BranchSession(point, os.environ, rules_here(policy), agent=described_agent(command))
    name = short(recording.run_id)
    goes_on = f", which goes on from {short(asked.run_id)}," if asked.run_id != recording.run_id else ""
    render.verdict("live", f"resuming {name}{goes_on} at {point.at}", err=True)
    for lost in branch.boundary.unknown:
        render.verdict("warn", f"{lost.name} ({lost.call}) had started: whether it happened is unknown", err=True)
    try:
        result = drive_command(branch, command, as_json)
    except WorldlineError:
        branch.leave()
        raise
    if as_json:
        render.emit_json(result)
    else:
        _say(result, name)
    return 1 if result.outcome == NOT_REPRODUCIBLE else 0


def settled(recording: Recording) -> Recording:
    """The attempt of a run to go on from, sealed: the one that published, else the newest. Raises `WriterConflict`.

    A run that published can only go on as another one. Where it did, that one goes on: else what it did would be done
    a second time.
    """
    if isinstance(recording, PackedRecording):
        raise UsageError(f"a bundle cannot be resumed: {recording.way_in}")
    run = recording.run_directory
    if any(state.state == "live" for state in reconcile(run, account)):
        raise WriterConflict(f"{run} is being recorded; resume it when its recorder has ended", run=run.name)
    found = refuse_doubt(Recording(run))
    later = continuation(found)
    return found if later is None else settled(later)


def _say(result: BranchResult, name: str) -> None:
    if result.outcome == NOTHING_NEW:
        render.verdict("ok", f"nothing left to do   {result.prefix} calls served   {name} stands as it was")
        return
    if result.outcome == NOT_REPRODUCIBLE:
        found = result.divergence or {}
        render.verdict("failed", f"NOT_REPRODUCIBLE   {result.error}")
        render.line(f"  - {found.get('recorded')}", cut=True)
        render.line(f"  + {found.get('actual')}", cut=True)
        render.volatile(found.get("masks", []))
        render.masks(result.masks, result.masked)
        return
    mark = "ok" if result.outcome == "succeeded" else "failed"
    refused = f", {result.refused} refused" if result.refused else ""
    counts = f"{render.counted(result.prefix, 'call')} served, {result.live} live{refused}"
    render.verdict(mark, f"{short(result.run)}   {counts}   {result.outcome}")
    render.masks(result.masks, result.masked)
    render.line(f"  worldline show {short(result.run)}    worldline tree {short(result.run)}")
