"""`worldline verify RUN`: is the record what was written? Five verdicts, and every problem with its place."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.model.ids import short
from worldline.store.verify import Verification, verify

NOT_VERIFIED = 1
GOOD = {"ok": "ok", "unsigned": "none", "withheld": "none"}


@click.command(
    epilog="""\b
Examples:
  worldline verify latest
  worldline verify runs/run_01k.../refund.json --json"""
)
@run_argument
@json_option
@store_option
def command(run: str, as_json: bool, store: Path | None) -> int:
    """Verify a run: structure, evidence, publication, availability, authenticity.

    RUN is a path, an id or its unambiguous prefix, or `latest`. Exits with 1 where anything is not what was written.
    """
    recording = recording_of(run, store)
    with render.progress("verifying", recording.log_bytes) as bar:
        verification = verify(recording, bar.update)
    if as_json:
        render.emit_json(
            {
                "ok": verification.ok,
                "verdicts": verification.verdicts,
                "problems": verification.problems,
                "facts": verification.facts,
            }
        )
    else:
        _say(verification)
    return 0 if verification.ok else NOT_VERIFIED


def _say(verification: Verification) -> None:
    facts = verification.facts
    rows = render.counted(facts["rows"], "row")
    sealed = facts["fingerprint"] is not None
    words = {
        "structure": f"{rows}, chain and root match the seal" if sealed else f"{rows}, chained; there is no seal yet",
        "evidence": render.counted(facts["contents"], "content")
        if facts["contents"]
        else "all contents stand in the rows",
        "publication": f"published by {facts['attempt']}, {facts['disposition']}",
        "availability": "all here",
        "authenticity": "unsigned: its owner could rebuild it",
    }
    words |= (
        {"publication": "sealed as partial, nothing published"}
        if verification.verdicts["publication"] == "withheld"
        else {}
    )
    for name, state in verification.verdicts.items():
        text = words[name] if state in GOOD else f"{state}: see below"
        render.verdict(GOOD.get(state, "failed"), f"{name:<14} {text}")
    for problem in verification.problems[:20]:
        render.line(f"  {problem.kind:<12} {problem.where}: {problem.detail}")
    if len(verification.problems) > 20:
        render.line(f"  and {len(verification.problems) - 20:,} more; --json lists all")
    if not verification.ok:
        render.line(f"  worldline show {short(facts['run'])} still opens what is good of it")
