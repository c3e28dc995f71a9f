"""`worldline replay RUN [-- CMD]`: rebuild every context, or run the agent again with every crossing served."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import click
import msgspec

from worldline.cli import render
from worldline.cli.options import json_option, mask_option, recording_of, run_argument, store_option
from worldline.cli.replay_all import own_command as words_of
from worldline.cli.replay_all import replay_all
from worldline.engine.calibrating import Calibration
from worldline.engine.eligibility import require_attested
from worldline.engine.masks import crossing_masks, masks_here
from worldline.engine.proposing import options
from worldline.engine.replay import ReplayReport, inspect
from worldline.engine.steps import step_at, steps
from worldline.errors import Ineligible
from worldline.model.masks import Mask
from worldline.seams import process
from worldline.seams.environment import check_command
from worldline.seams.session import ReplaySession
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording
from worldline.store.secrets.vault import Vault

DIVERGED, INELIGIBLE = 1, 3
LAST_BYTES, MOST_SAID = 64 << 10, 500  # of what a command said at its end: bytes, and characters that are shown
CODES = {"equivalent": 0, "prefix-equivalent": 0, "diverged": DIVERGED, "ineligible": INELIGIBLE}


@click.command(
    epilog="""\b
Examples:
  worldline replay latest
  worldline replay 7f3a -- python agent.py
  worldline replay 7f3a --tools run --json -- python agent.py
  worldline replay 7f3a --mask '$.messages[*].content=~\\d{4}-\\d\\d-\\d\\d' -- python agent.py
  worldline replay 7f3a --calibrate -- python agent.py
  worldline replay 7f3a --strict -- python agent.py
  worldline replay tests/runs --all --junit report.xml -- python agent.py"""
)
@run_argument
@click.option("--all", "every", is_flag=True, help="RUN is a folder: replay every run and bundle in it.")
@click.option("--own-command", is_flag=True, help="With --all: run what each was recorded with, in place of CMD.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --all: write what came of each as JUnit's XML.",
)
@click.option(
    "--tools",
    type=click.Choice(["refuse", "run"]),
    default="refuse",
    show_default=True,
    help="Tools that ran outside the recording would run again: refuse the replay, or let them.",
)
@mask_option
@click.option(
    "--calibrate",
    is_flag=True,
    help="No verdict: serve by position, and propose masks for what differs and looks volatile.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Replay as evidence: only a sealed attempt that published its result; no tools run, no masks.",
)
@json_option
@store_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
def command(
    run: str,
    every: bool,
    own_command: bool,
    junit: Path | None,
    tools: str,
    mask: tuple[str, ...],
    calibrate: bool,
    strict: bool,
    as_json: bool,
    store: Path | None,
    command: tuple[str, ...],
) -> int:
    """Replay a run. Nothing goes out: a call that the record does not have is refused.

    Without a command, every model request is rebuilt from the log and its hash compared. With one, the agent runs
    again and every crossing is served. Exits with 1 where it diverged, 3 where the record cannot be replayed. A
    calibration judges nothing: it exits with 0 when it was through. With --all every recording of a folder is replayed,
    and the worst of them is the exit code: 1 before 3. What the commands print is then left out.
    """
    if (own_command or junit) and not every:
        raise click.UsageError("--own-command and --junit go with --all")
    if every and (calibrate or (own_command and command)):
        raise click.UsageError("--all takes one command, or --own-command, and no --calibrate")
    if strict and tools == "run":
        raise click.UsageError("--strict lets no tool run")
    if strict and (mask or calibrate):
        raise click.UsageError("--strict compares everything: neither --mask nor --calibrate goes with it")
    if not (command or own_command) and (mask or calibrate):
        raise click.UsageError("--mask and --calibrate are about what an agent asks: give its command behind --")
    masks = None if strict else (*masks_here(), *crossing_masks(mask))
    if every:
        if command:
            check_command(command)

        def each(one: Recording) -> tuple[ReplayReport, process.Ended | None]:
            return _report(one, words_of(one) if own_command else command, tools, masks, strict, None)

        level = "L1" if command or own_command else "L0"
        came = replay_all(Path(run), each, junit, as_json, level)
        if came.interrupted_by is not None:
            return 128 + signal.Signals[came.interrupted_by]
        return DIVERGED if came.counts["diverged"] else INELIGIBLE if came.counts["ineligible"] else 0
    recording = refuse_doubt(recording_of(run, store))
    if command:
        check_command(command)
    if calibrate:
        return _calibrate(recording, command, tools, masks or (), as_json)
    report, child = _report(recording, command, tools, masks, strict, as_json)
    if as_json:
        render.emit_json(report.to_json())
    else:
        _say(recording, report, child)
    return CODES[report.verdict]


def _report(
    recording: Recording,
    command: tuple[str, ...],
    tools: str,
    masks: tuple[Mask, ...] | None,
    strict: bool,
    as_json: bool | None,
) -> tuple[ReplayReport, process.Ended | None]:
    """What comes of a replay, and how the command ended. With `as_json` None, nothing of what it prints is seen."""
    child: process.Ended | None = None
    if strict and (reasons := _against(recording)):
        report = ReplayReport(verdict="ineligible", reasons=reasons)
    elif command:
        report, child = _redrive(recording, command, tools, masks, as_json)
    else:
        report = inspect(recording)
    report.strict = strict
    return report, child


def _against(recording: Recording) -> list[str]:
    try:
        require_attested(recording)
    except Ineligible as error:
        reasons: list[str] = error.facts["reasons"]
        return reasons
    return []


def _redrive(
    recording: Recording, command: tuple[str, ...], tools: str, masks: tuple[Mask, ...] | None, as_json: bool | None
) -> tuple[ReplayReport, process.Ended | None]:
    try:
        session = _session(recording, tools, masks)
    except Ineligible as error:
        return ReplayReport(verdict="ineligible", reasons=error.facts["reasons"]), None
    ended: process.Ended | None = None
    with TemporaryFile() if as_json is None else nullcontext() as complaints:
        try:
            ended = _driven(session, command, as_json, complaints)
        finally:
            report = session.close(None if ended is None else ended.code)
        if complaints is not None and ended.code:
            report.notes.append(f"the command ended with {ended.code}{_last(complaints, session.boundary.vault)}")
    return report, ended


def _last(complaints: IO[bytes], vault: Vault) -> str:
    """The last line of what a command said on stderr, without secrets."""
    size = complaints.seek(0, os.SEEK_END)
    complaints.seek(max(0, size - LAST_BYTES))
    # As a whole, since a secret may have several lines; of one that was cut at the beginning nothing is believed.
    lines = vault.masked(complaints.read().decode("utf-8", "replace")).split("\n")[int(size > LAST_BYTES) :]
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {said[:MOST_SAID]}" if said else ""


def _calibrate(
    recording: Recording, command: tuple[str, ...], tools: str, masks: tuple[Mask, ...], as_json: bool
) -> int:
    """Serve by position, and say what differed. Never a verdict, so never the exit code of one."""
    try:
        session = _session(recording, tools, masks, calibrates=True)
    except Ineligible as error:
        found = Calibration(reasons=error.facts["reasons"])
    else:
        try:
            _driven(session, command, as_json)
        finally:
            found = session.calibrated()
    if as_json:
        render.emit_json(found.to_json())
    elif found.reasons:
        _say_reasons(found.reasons)
    else:
        _say_calibrated(found)
    return INELIGIBLE if found.reasons else 0


def _session(
    recording: Recording, tools: str, masks: tuple[Mask, ...] | None, calibrates: bool = False
) -> ReplaySession:
    with render.progress("verifying", recording.log_bytes) as bar:
        return ReplaySession(recording, os.environ, tools=tools, watch=bar.update, masks=masks, calibrates=calibrates)


def _driven(
    session: ReplaySession, command: tuple[str, ...], as_json: bool | None, complaints: IO[bytes] | None = None
) -> process.Ended:
    """Run the command; with `complaints` it is not seen, and its stderr goes there."""
    if complaints is not None:  # one of many: what stands on our stdin is none of theirs
        nothing = subprocess.DEVNULL
        return process.run(command, session.environment(alone=True), nothing, stderr=complaints, stdin=nothing)
    return process.run(command, session.environment(alone=True), process.stdout_beside(bool(as_json)))


def _say(recording: Recording, report: ReplayReport, child: process.Ended | None) -> None:
    if report.verdict == "ineligible":
        _say_reasons(report.reasons)
        return
    if report.divergence is not None:
        _say_divergence(recording, report)
        return
    partial = "   (the record is partial)" if report.verdict == "prefix-equivalent" else ""
    if report.level == "L0":
        rebuilt = f"{render.counted(report.contexts, 'context')} rebuilt, all hashes met, nothing was run"
        if report.contexts == 0:
            rebuilt = "no model was asked, so there is no request to rebuild; nothing was run"
        render.verdict("ok", f"{report.verdict}   {rebuilt}{partial}")
        return
    served = f"{render.counted(report.served, 'exchange')} served, none passed on to a provider"
    render.verdict("ok", f"{report.verdict}   {served}   (projection {report.projection}){partial}")
    if child is not None and child.code:
        render.line(f"  the command ended with {child.code}, as recorded")
    render.masks(report.masks, report.masked)
    for note in report.notes:
        render.line(f"  {note}")
    if report.relaxed:
        render.line(f"  {report.relaxed} concurrent answers left in another order than recorded")


def _say_reasons(reasons: list[str]) -> None:
    render.verdict("failed", "ineligible")
    for reason in reasons:
        what, *ways = reason.split("; ")
        render.line(f"  {what}")
        for way in ways:
            render.line(f"    {way}")


def _say_calibrated(found: Calibration) -> None:
    count = len(found.proposals)
    what = f"{render.counted(count, 'mask')} proposed" if count else "no mask proposed"
    served = f"{render.counted(found.served, 'exchange')} served by position, {found.moved:,} of them differ"
    render.verdict("none", f"calibrated, not judged   {what}   {served}")
    for proposal in found.proposals:
        met = f"{render.counted(proposal.values, 'value')} in {render.counted(proposal.exchanges, 'exchange')}"
        render.line(f"  {options([proposal.mask])}   {met}")
        render.line(f"    - {_quoted(proposal.recorded)}", cut=True)
        render.line(f"    + {_quoted(proposal.actual)}", cut=True)
    if found.others:
        render.line("  these differ and do not look volatile; no mask is proposed for them")
    for other in found.others:
        render.line(f"    {other.name}, seq {other.seq}, {other.call}: {other.path}", cut=True)
        render.line(f"    - {_quoted(other.recorded)}", cut=True)
        render.line(f"    + {_quoted(other.actual)}", cut=True)
    if found.more:
        render.line(f"    … and {found.more:,} more")
    if (ended := found.ended) is not None:
        render.line(f"  it went no further than {ended.name} ({ended.kind}): more may differ behind it")
    render.masks(found.masks, 0)
    for note in found.notes:
        render.line(f"  {note}")


def _say_divergence(recording: Recording, report: ReplayReport) -> None:
    found = report.divergence
    assert found is not None
    kind = "" if found.kind == "changed" else f" ({found.kind})"
    at = None if found.seq is None else step_at(steps(recording), found.seq)
    where = f"step {at}, " if at is not None else ""
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
    render.volatile(found.masks)
    render.line(f"  {render.counted(report.served, 'exchange')} served")
    render.masks(report.masks, report.masked)
    for note in report.notes:
        render.line(f"  {note}")


def _quoted(value: Any) -> str:
    """A value as JSON, on one line."""
    return "(nothing)" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")
