"""`worldline show RUN`: a run step by step, whatever its state."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec

from worldline.cli import render
from worldline.cli.hints import next_commands, nothing_crossed
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.eligibility import may_have_gone_on
from worldline.engine.lineage import Branch, branch_of, parent_of
from worldline.engine.steps import Step, each_step, steps, the_step
from worldline.errors import Damaged, ReadError
from worldline.model.ids import short
from worldline.store.bundle.cut import open_readable
from worldline.store.forget.availability import AVAILABLE, CORRUPT, MISSING, STATES, availabilities, expired, when
from worldline.store.recording import Recording
from worldline.store.verdicts import derivation

PREVIEW = 400
BEGINNING = 64 << 10  # bytes of a result that are read in order to show a part of it


@click.command(
    epilog="""\b
Examples:
  worldline show latest
  worldline show 7f3a --step 2
  worldline show runs/run_01k... --json"""
)
@run_argument
@click.option("--step", "number", type=int, help="Show this step in full.")
@json_option
@store_option
def command(run: str, number: int | None, as_json: bool, store: Path | None) -> int:
    """Show a run step by step: what the model decided, which tools ran, how it ended.

    Opens the longest good content of a damaged or running record too, and says what is wrong with it.
    """
    recording = open_readable(lambda: recording_of(run, store), run)
    if number is not None:
        chosen = [the_step(recording, number, None if as_json else BEGINNING)]
    elif as_json:
        chosen = steps(recording)
    if as_json:
        contents = list(availabilities(recording))
        render.emit_json({**_facts(recording), "steps": chosen, "contents": contents, "problems": recording.damages})
        return 0
    if number is None:
        _overview(recording)
    else:
        _full(chosen[0])
    return 0


GONE_ON = "it failed open and broke off: behind the end of its record the agent may have acted, on no record"


def _branch(recording: Recording) -> Branch | None:
    """What a branch says of the fork that made it; None for a run that is no branch."""
    try:
        return branch_of(recording)
    except ReadError:  # what is wrong with it is said below
        return None


def _may_have_gone_on(recording: Recording) -> bool:
    """Whether its agent may have acted on no record, or that of a run which it resumes.

    A fork goes on from a row that is there: what its parent did behind its end is no part of it.
    """
    with suppress(ReadError):  # what is wrong with its lineage is said elsewhere
        while not may_have_gone_on(recording):
            branch, left = branch_of(recording), parent_of(recording)
            if branch is None or left is None or not branch.resumed:
                return False
            recording = left[0]
        return True
    return False


def _left(recording: Recording, branch: Branch) -> str:
    """Where a branch left its parent, in a line."""
    parent = recording.header.data["parent"]
    what = "goes on from" if branch.resumed else "a branch of"
    changed = f", with {', '.join(branch.changed)}" if branch.changed else ""
    before = f"; steps 0 to {branch.step - 1} are there" if branch.step else ""
    return f"  {what} {parent.get('run')} at {branch.at}{changed}{before}"


def _header(recording: Recording) -> dict[str, Any]:
    """What the header says; of a record whose first row is damaged, what its other files say of the same."""
    try:
        return recording.header.data
    except Damaged:
        said = recording.summary
        return {
            "run": recording.run_id,
            "attempt": recording.attempt_id,
            "session": said.get("session"),
            "task": {"text": said.get("task")},
            "t0_wall": said["started"] * 1e9 if said.get("started") is not None else None,
            "capture": recording.manifest.capture if recording.manifest else None,
            "agent": {},
        }


def _facts(recording: Recording) -> dict[str, Any]:
    header, summary = _header(recording), recording.summary
    manifest = recording.manifest
    return {
        "run": header["run"],
        "attempt": header["attempt"],
        "session": header["session"],
        "path": str(recording.path),
        "task": header["task"]["text"],
        "disposition": recording.disposition,
        "outcome": summary.get("outcome"),
        "exit": summary.get("exit"),
        "signal": summary.get("signal"),
        "reward": summary.get("reward"),
        "started": int(header["t0_wall"]) / 1e9 if header["t0_wall"] is not None else None,
        "seconds": summary.get("seconds"),
        "capture": header["capture"],
        "agent": header["agent"],
        "coverage": manifest.coverage if manifest else None,
        "fingerprint": recording.fingerprint,
        "derived_from": manifest.derived_from if manifest else None,
        "parent": header.get("parent"),
        "masks": header.get("masks", []),
        "fail_open": header.get("fail_open", False),
        "may_have_gone_on": recording.disposition != "running" and _may_have_gone_on(recording),
    }


def _overview(recording: Recording) -> None:
    facts = _facts(recording)
    task = f'   "{facts["task"]}"' if facts["task"] else ""
    render.line(f"{short(facts['run'])}   {render.when(facts['started'])}{task}")
    branch = _branch(recording)
    if branch is not None:
        render.line(_left(recording, branch))
    count = render.step_lines(each_step(recording, BEGINNING))
    _ending(recording, facts, count)
    for damage in recording.damages[:5]:
        render.verdict(
            "failed", f"{damage.kind} at row {damage.seq} ({damage.file}, byte {damage.offset:,}): {damage.detail}"
        )
    _contents(recording)
    if recording.manifest is not None and (made := derivation(recording.manifest)):
        render.verdict("warn", made["derivation"])
    render.gaps(facts["coverage"] or {})
    if facts["may_have_gone_on"]:
        render.verdict("warn", GONE_ON)
    if facts["masks"]:
        render.line(f"  a replay leaves out of the comparison: {', '.join(facts['masks'])}")
    if recording.manifest is not None and nothing_crossed(facts["coverage"] or {}):
        render.verdict("warn", "nothing crossed this recording")
    first = branch.step if branch is not None else 0
    verbs = [f"show {{name}} --step {first}", "view {name}", "verify {name}"] if count else ["verify {name}"]
    if facts["disposition"] == "interrupted":
        verbs.append("resume {name} -- CMD")
    render.line("  " + next_commands(recording, *verbs))


def _contents(recording: Recording) -> None:
    """One line where not every sealed content is here."""
    found = list(availabilities(recording))
    states = Counter(content["availability"] for content in found)
    away = [f"{states[state]:,} {state}" for state in STATES if state != AVAILABLE and states[state]]
    if away:
        since = f", since {when(gone[0].deadline)}" if (gone := expired(recording)) else ""
        mark = "failed" if states[MISSING] or states[CORRUPT] else "warn"
        render.verdict(mark, f"of {render.counted(len(found), 'content')} {', '.join(away)}{since}")


def _ending(recording: Recording, facts: dict[str, Any], count: int) -> None:
    state, outcome = facts["disposition"], facts["outcome"] or "unknown"
    steps_text = render.counted(count, "step")
    if state == "complete" and recording.damages:
        render.verdict("failed", f"damaged   {steps_text} can be read, of a run that {outcome}")
    elif state == "complete":
        code = render.exit_text(facts)
        mark = {"succeeded": "ok", "failed": "failed"}.get(outcome, "none")
        render.verdict(mark, f"{outcome}{code}   {steps_text}   {render.duration(facts['seconds'])}")
    elif state == "running":
        render.verdict("live", f"running   {steps_text} so far")
    else:
        unsealed = recording.seal_problem or "its writer died before sealing it"
        reason = recording.manifest.reason if recording.manifest else unsealed
        render.verdict("warn", f"{state}   {steps_text}   {reason or ''}")


def _full(step: Step) -> None:
    render.line(f"step {step.index}   seq {step.seq}   {step.model or step.name or ''}   lane {step.lane}")
    for name, text in (
        ("thought", step.reasoning),
        ("says", step.text),
        ("error", step.error or ""),
        ("lost", step.lost or ""),
    ):
        if text:
            _block(name, text)
    for call in step.calls:
        render.line(f"  {call.name}   {call.id or ''}   {call.ran}" + (f"   {call.effect}" if call.effect else ""))
        _block("  arguments", call.arguments)
        if call.error:
            _block("  error", call.error)
        if call.result is not None:
            _block("  result", call.result, call.size)
    for permission in step.permissions:
        text = render.permission_text(permission) or f"– {permission['src']} {permission.get('capability', '')}"
        render.line(f"  {text}   {msgspec.json.encode(permission.get('facts')).decode()}")


def _block(name: str, text: str, size: int | None = None) -> None:
    shown = text[:PREVIEW]
    whole = f"{len(text):,} characters" if size is None else f"{size:,} bytes"
    cut = f"  … {PREVIEW:,} of {whole}; --json has all" if len(text) > PREVIEW else ""
    for index, part in enumerate(shown.splitlines() or [""]):
        render.line(f"  {name if index == 0 else '':<11} {part}")
    if cut:
        render.line(f"  {'':<11}{cut}")
