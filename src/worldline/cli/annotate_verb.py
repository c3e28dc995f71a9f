"""`worldline annotate RUN --at step:9 "text"`: a note beside a run, live, sealed or packed. The record stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine import clock
from worldline.engine.steps import the_step
from worldline.errors import UsageError
from worldline.store import notes
from worldline.store.recording import Recording


@click.command(
    epilog="""\b
Examples:
  worldline annotate latest --at step:9 "here it stops asking"
  worldline annotate refund.skn --at seq:412 --tag bug "wrong order number"
  worldline annotate latest --list
  worldline annotate latest --remove a0"""
)
@run_argument
@click.argument("text", required=False)
@click.option("--at", "place", metavar="PLACE", help="step:N or seq:N.  [default: the run's beginning]")
@click.option("--who", metavar="NAME", help="Whose note it is. Nothing is filled in by itself.")
@click.option("--tag", metavar="WORD", help="A word to find it by.")
@click.option("--list", "listing", is_flag=True, help="Show the notes that stand.")
@click.option("--audit", "auditing", is_flag=True, help="Show who looked behind a mask, and why.")
@click.option("--remove", "gone", metavar="ID", help="Say that a note counts no more; its line stays.")
@json_option
@store_option
def command(
    run: str,
    text: str | None,
    place: str | None,
    who: str | None,
    tag: str | None,
    listing: bool,
    auditing: bool,
    gone: str | None,
    as_json: bool,
    store: Path | None,
) -> int:
    """Add a note to a run at a step or a row, list the notes, or take one back.

    Notes stand beside the record, outside its seal, and are a chain of their own; nothing else changes. Of a bundle a
    new file is written that takes its place. They travel with `pack`, also with --share; the audit does not.
    """
    if sum((text is not None, listing, auditing, gone is not None)) != 1:
        raise click.UsageError("give a TEXT, --list, --audit or --remove ID")
    if text is None and (place, who, tag) != (None, None, None):
        raise click.UsageError("--at, --who and --tag belong to a TEXT")
    recording = recording_of(run, store)
    if listing or auditing:
        found = notes.annotations(recording) if listing else notes.audits(recording)
        render.emit_json(found) if as_json else _list(found, auditing)
        return 0
    if text is not None:
        seq, at = _seq_of(recording, place)
        line = notes.annotate(recording, now_ns=clock.wall_ns(), seq=seq, at=at, text=text, who=who, tag=tag)
    else:
        line = notes.remove(recording, str(gone), now_ns=clock.wall_ns())
    if as_json:
        render.emit_json(line)
    elif text is not None:
        render.verdict(
            "ok", f"noted {line['id']} at {line['at']}, row {line['seq']:,}   worldline annotate {run} --list"
        )
    else:
        render.verdict("ok", f"{line['id']} counts no more; its line stays")
    return 0


def _seq_of(recording: Recording, place: str | None) -> tuple[int, str]:
    """The row that a place names, and the place. Raises `UsageError`, `UnknownStep` for none."""
    if place is None:
        return 0, "seq:0"
    kind, _, number = place.partition(":")
    if kind not in ("step", "seq") or not number.isascii() or not number.isdigit():
        raise UsageError(f"no place {place!r}; give step:N or seq:N", place=place)
    if kind == "seq":
        return int(number), place
    return the_step(recording, int(number), most=1).seq, place


def _list(found: Sequence[Mapping[str, Any]], auditing: bool) -> None:
    if not found:
        render.verdict("none", "nobody looked behind a mask" if auditing else "no notes")
    for line in found:
        moment = render.when(line["when"] / 1e9)
        who = f"   {line['who']}" if "who" in line else ""
        if auditing:
            row = f" at row {line['seq']:,}" if "seq" in line else ""
            render.line(f"{moment}   {line['what']} {line['scope']}{row}{who}   {line.get('reason', '')}".rstrip())
        else:
            tag = f"   [{line['tag']}]" if "tag" in line else ""
            render.line(f"{line['id']:<4} {line['at']:<10} {moment}{who}{tag}")
            for part in line["text"].splitlines():
                render.line(f"     {part}")
