"""`worldline verify RUN`: is the record what was written? Five verdicts, and every problem with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from worldline.cli import render
from worldline.cli.hints import name_of
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.export import EXPORTS
from worldline.store.bundle.container import THUMBS
from worldline.store.verdicts import Verification
from worldline.store.verify import verify

NOT_VERIFIED = 1
GOOD = {"ok": "ok", "packed": "ok", "signed": "ok"} | dict.fromkeys(
    ("unsigned", "withheld", "expired", "derived"), "none"
)


@click.command(
    epilog="""\b
Examples:
  worldline verify latest
  worldline verify runs/run_01k.../refund.json --json
  worldline verify refund.skn --signers allowed_signers"""
)
@run_argument
@click.option(
    "--signers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Who may have signed: an allowed signers file of ssh-keygen. What none of them signed does not verify.",
)
@json_option
@store_option
def command(run: str, signers: Path | None, as_json: bool, store: Path | None) -> int:
    """Verify a run: structure, evidence, publication, availability, authenticity.

    RUN is a path, an id or its unambiguous prefix, or `latest`. Exits with 1 where anything is not what was written.
    """
    recording = recording_of(run, store)
    with render.progress("verifying", recording.log_bytes) as bar:
        verification = verify(recording, bar.update, signers=signers, exports=EXPORTS)
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
        _say(verification, name_of(recording))
    return 0 if verification.ok else NOT_VERIFIED


def _looked_at(facts: Mapping[str, Any]) -> str:
    """How many contents were read; those that are not here could not be."""
    if not facts["contents"]:
        return "all contents stand in the rows"
    here = facts.get("availability", {}).get("available", facts["contents"])
    return render.counted(here, "content") + (f" of {facts['contents']:,}" if here != facts["contents"] else "")


def _here(counts: Mapping[str, int]) -> str:
    """How many contents are in which state; what is in none is not said."""
    some = {state: count for state, count in counts.items() if count}
    if some.keys() <= {"available"}:
        return "all here"
    return ", ".join(f"{count:,} {'here' if state == 'available' else state}" for state, count in some.items())


def _unsealed(names: Sequence[str]) -> str:
    """The entries of a bundle that no seal speaks for and nobody can derive again."""
    thumbs = sum(name.startswith(THUMBS) for name in names)
    said = [name for name in names if not name.startswith(THUMBS)]
    said += [render.counted(thumbs, "thumbnail")] if thumbs else []
    return f"unsealed and not derived again: {', '.join(said)}"


def _say(verification: Verification, name: str) -> None:
    facts = verification.facts
    rows = render.counted(facts["rows"], "row")
    sealed = facts["fingerprint"] is not None
    words = {
        "structure": f"{rows}, chain and root match the seal" if sealed else f"{rows}, chained; there is no seal yet",
        "evidence": _looked_at(facts),
        "publication": f"published by {facts['attempt']}, {facts['disposition']}",
        "availability": _here(facts.get("availability", {})),
        "authenticity": facts.get("authenticity", ""),
    }
    publication = {
        "withheld": "sealed as partial, nothing published",
        "packed": f"packed from {facts['attempt']}, {facts['disposition']}",
        "derived": facts.get("derivation", ""),
    }
    words |= {"publication": publication.get(verification.verdicts["publication"], words["publication"])}
    for question, state in verification.verdicts.items():
        text = words[question] if state in GOOD else f"{state}: see below"
        render.verdict(GOOD.get(state, "failed"), f"{question:<14} {text}")
    if facts.get("unsealed"):
        render.verdict("none", f"{'beside it':<14} {_unsealed(facts['unsealed'])}")
    for problem in verification.problems[:20]:
        render.line(f"  {problem.kind:<12} {problem.where}: {problem.detail}")
    if len(verification.problems) > 20:
        render.line(f"  and {len(verification.problems) - 20:,} more; --json lists all")
    if not verification.ok:
        render.line(f"  worldline show {name} still opens what is good of it")
