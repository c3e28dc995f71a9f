"""`worldline expire RUN`: remove contents whose declared retention is over. Shows them first; `--now` does it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.hints import name_of
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine import clock
from worldline.store.forget.availability import when
from worldline.store.forget.retention import Content, Expiration, expire
from worldline.store.recording import Recording

NOT_WELL = 1


@click.command(
    epilog="""\b
Examples:
  worldline expire latest
  worldline expire 7f3a --now
  worldline expire 7f3a --now --manifest kept/manifest.json"""
)
@run_argument
@click.option("--now", is_flag=True, help="Do it. Without it nothing is changed.")
@click.option(
    "--manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The sealed manifest as you know it: one that is not the stored one, byte for byte, refuses.",
)
@json_option
@store_option
def command(run: str, now: bool, manifest: Path | None, as_json: bool, store: Path | None) -> int:
    """Remove the contents of a sealed run whose declared retention is over.

    Each removal is recorded first, in expiry.jsonl; the log, the seal and the result stay. Bundles, backups and other
    copies are not touched. Exits with 1 where a content is missing or corrupt: such ones are never expired.
    """
    recording = recording_of(run, store)
    found = expire(recording, clock.wall_ns(), manifest=manifest.read_bytes() if manifest else None, act=now)
    if as_json:
        render.emit_json(found)
    else:
        _say(found, recording)
    return NOT_WELL if found.incidents else 0


def _say(found: Expiration, recording: Recording) -> None:
    for content in found.incidents:
        render.verdict("failed", f"{content.availability}   {content.name[:12]}, {content.tier}: not expired")
    done = "expired" if found.done else "due"
    render.verdict("ok" if found.due else "none", f"{_counted(found.due)} {done}{'' if found.due else ' now'}")
    for deadline, contents in sorted(_by_deadline(found.later).items()):
        render.line(f"  {_counted(contents)} due {when(deadline)}")
    if found.expired:
        render.line(f"  {_counted(found.expired)} expired before")
    if found.kept:
        render.line(f"  {_counted(found.kept)} kept as long as the run")
    if found.due and not found.done:
        render.line(f"  nothing is changed yet: worldline expire {name_of(recording)} --now")
    elif found.due:
        render.line("  bundles, backups and other copies of the run still hold them")


def _by_deadline(contents: list[Content]) -> dict[int, list[Content]]:
    found: dict[int, list[Content]] = {}
    for content in contents:
        found.setdefault(content.deadline or 0, []).append(content)
    return found


def _counted(contents: list[Content]) -> str:
    """How many, of which tiers, how large."""
    if not contents:
        return "no content"
    tiers = Counter(content.tier for content in contents)
    size = sum(content.size for content in contents) / 1e3
    return f"{render.counted(len(contents), 'content')} ({', '.join(sorted(tiers))}; {size:,.1f} kB)"
