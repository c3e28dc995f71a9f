"""`worldline redact RUN -o DERIVED.skn --rule RULE...`: a derived bundle without what rules take out."""

from __future__ import annotations

import os
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.redact.derive import Derived, derive
from worldline.engine.redact.rules import UNREADABLE, Rules


@click.command(
    epilog="""\b
Rules:
  secret-env:NAME   the value of that variable, in every encoding
  shapes            keys of a known shape
  field:NAME        the value of every JSON member of that name
  tool:GLOB         what such tools were given, gave back and failed with
  text:REGEX        what a pattern finds in a text
  content:PREFIX    one content, by the beginning of its name
  pictures          every picture

\b
Examples:
  worldline redact latest -o public.skn --rule secret-env:SHOP_TOKEN --why "found later"
  worldline redact run.skn -o public.skn --rule field:email --rule 'tool:read_*' --dry-run"""
)
@run_argument
@click.option("-o", "--output", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@click.option(
    "--rule", "rules", multiple=True, required=True, metavar="RULE", help="What to take out; may be repeated."
)
@click.option("--why", metavar="TEXT", help="Why; it stands in the derived bundle's manifest.")
@click.option("--dry-run", is_flag=True, help="Only say what would be taken out.")
@json_option
@store_option
def command(
    run: str,
    target: Path | None,
    rules: tuple[str, ...],
    why: str | None,
    dry_run: bool,
    as_json: bool,
    store: Path | None,
) -> int:
    """Derive a bundle from a sealed run or bundle, without what rules take out.

    The source is never changed. The derived bundle has a chain and a seal of its own and names its source, the rules
    and how often each took something; nothing in it is a digest of what is gone. It verifies, shows and rebuilds its
    requests, and is not re-driven: it is the record of nothing that ran. Exits with 1 where no rule finds anything.
    """
    if target is None and not dry_run:
        raise click.UsageError("give -o FILE, or --dry-run")
    chosen = Rules(rules, os.environ)
    recording = recording_of(run, store)
    with render.progress("redacting", recording.log_bytes) as bar:
        derived = derive(recording, None if dry_run else target, chosen, why, bar.update)
    if as_json:
        render.emit_json({**derived._asdict(), "dry_run": dry_run})
    else:
        _say(derived)
    return 0


def _say(derived: Derived) -> None:
    total = f"{sum(derived.removed.values()):,} removed"
    if derived.path is None:
        render.verdict("none", f"{total}, were it done   from {derived.source[:12]}")
    else:
        render.verdict("ok", f"derived {derived.path}   {total}   {derived.size:,} bytes   from {derived.source[:12]}")
    for label, count in derived.removed.items():
        words = "bodies that nobody can look into, whole" if label == UNREADABLE else label
        render.line(f"  {count:>7,}  {words}")
    for label in derived.idle:
        render.verdict("warn", f"{label} finds nothing")
    if derived.signed:
        render.verdict("warn", "the source is signed; a signature vouches for those bytes and does not carry over")
    if derived.path is not None:
        render.line(f"  worldline verify {derived.path}    worldline show {derived.path}")
