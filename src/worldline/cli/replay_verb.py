"""`worldline replay RUN [-- CMD]`: rebuild every context, or run the agent again with every crossing served."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.eligibility import require_attested
from worldline.engine.replay import ReplayReport, inspect
from worldline.engine.steps import steps
from worldline.errors import Ineligible
from worldline.seams import process
from worldline.seams.environment import check_command
from worldline.seams.session import ReplaySession
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording

DIVERGED, INELIGIBLE = 1, 3
CODES = {"equivalent": 0, "prefix-equivalent": 0, "diverged": DIVERGED, "ineligible": INELIGIBLE}


@click.command(
    epilog="""\b
Examples:
  worldline replay latest
  worldline replay 7f3a -- python agent.py
  worldline replay 7f3a --tools run --json -- python agent.py
  worldline replay 7f3a --strict -- python agent.py"""
)
@run_argument
@click.option(
    "--tools",
    type=click.Choice(["refuse", "run"]),
    default="refuse",
    show_default=True,
    help="Tools that ran outside the recording would run again: refuse the replay, or let them.",
)
@click.option(
    "--strict", is_flag=True, help="Replay as evidence: only a sealed attempt that published its result; no tools run."
)
@json_option
@store_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
def command(run: str, tools: str, strict: bool, as_json: bool, store: Path | None, command: tuple[str, ...]) -> int:
    """Replay a run. Nothing goes out: a call that the record does not have is refused.

    Without a command, every model request is rebuilt from the log and its hash compared. With one, the agent runs
    again and every crossing is served. Exits with 1 where it diverged, 3 where the record cannot be replayed.
    """
    recording = refuse_doubt(recording_of(run, store))
    child: process.Ended | None = None
    if strict and tools == "run":
        raise click.UsageError("--strict lets no tool run")
    if command:
        check_command(command)
    if strict and (reasons := _against(recording)):
        report = ReplayReport(verdict="ineligible", reasons=reasons)
    elif command:
        report, child = _redrive(recording, command, tools, as_json)
    else:
        report = inspect(recording)
    report.strict = strict
    if as_json:
        render.emit_json(report.to_json())
    else:
        _say(recording, report, child)
    return CODES[report.verdict]


def _against(recording: Recording) -> list[str]:
    try:
        require_attested(recording)
    except Ineligible as error:
        reasons: list[str] = error.facts["reasons"]
        return reasons
    return []


def _redrive(
    recording: Recording, command: tuple[str, ...], tools: str, as_json: bool
) -> tuple[ReplayReport, process.Ended | None]:
    try:
        with render.progress("verifying", recording.log_bytes) as bar:
            session = ReplaySession(recording, os.environ, tools=tools, watch=bar.update)
    except Ineligible as error:
        return ReplayReport(verdict="ineligible", reasons=error.facts["reasons"]), None
    ended: process.Ended | None = None
    try:
        ended = process.run(
            command, session.environment(alone=True), (sys.stderr or subprocess.DEVNULL) if as_json else None
        )
    finally:
        report = session.close(None if ended is None else ended.code)
    return report, ended


def _say(recording: Recording, report: ReplayReport, child: process.Ended | None) -> None:
    if report.verdict == "ineligible":
        render.verdict("failed", "ineligible")
        for reason in report.reasons:
            what, *ways = reason.split("; ")
            render.line(f"  {what}")
            for way in ways:
                render.line(f"    {way}")
        return
    if report.divergence is not None:
        _say_divergence(recording, report)
        return
    partial = "   (the record is partial)" if report.verdict == "prefix-equivalent" else ""
    if report.level == "L0":
        rebuilt = f"{render.counted(report.contexts, 'context')} rebuilt, all hashes met, nothing was run"
        render.verdict("ok", f"{report.verdict}   {rebuilt}{partial}")
        return
    served = f"{render.counted(report.served, 'exchange')} served, none passed on to a provider"
    render.verdict("ok", f"{report.verdict}   {served}   (projection {report.projection}){partial}")
    if child is not None and child.code:
        render.line(f"  the command ended with {child.code}, as recorded")
    for note in report.notes:
        render.line(f"  {note}")
    if report.relaxed:
        render.line(f"  {report.relaxed} concurrent answers left in another order than recorded")


def _say_divergence(recording: Recording, report: ReplayReport) -> None:
    found = report.divergence
    assert found is not None
    kind = "" if found.kind == "changed" else f" ({found.kind})"
    at = [step.index for step in steps(recording) if found.seq is not None and step.seq <= found.seq]
    where = f"step {at[-1]}, " if at else ""
    seq = f", seq {found.seq}, {found.call}" if found.seq is not None else ""
    render.verdict("failed", f"diverged{kind} at {where}{found.name}{seq}")
    if found.kind == "changed":
        render.line(f"  {found.path}")
        render.line(f"  - {_quoted(found.recorded)}", cut=True)
        render.line(f"  + {_quoted(found.actual)}", cut=True)
    else:  # words of ours, and perhaps the call that nobody expected
        render.line(f"  - {found.recorded}", cut=True)
        actual = found.actual if isinstance(found.actual, str) else _quoted(found.actual)
        render.line(f"  + {actual}", cut=True)
    if found.hint:
        render.line(f"  {found.hint}")
    render.line(f"  {render.counted(report.served, 'exchange')} served")
    for note in report.notes:
        render.line(f"  {note}")


def _quoted(value: Any) -> str:
    """A value as JSON, on one line."""
    return "(nothing)" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")
