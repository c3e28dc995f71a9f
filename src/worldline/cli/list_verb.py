"""`worldline list`: the runs of a store, newest first, without opening their logs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option
from worldline.errors import RecordingNotFound
from worldline.model.ids import short
from worldline.store.catalog import Entry, default_store, entries, runs
from worldline.store.layout import DEFAULT_STORE

STATES = {"complete": "ok", "running": "live", "damaged": "failed"}


@click.command(
    epilog="""\b
Examples:
  worldline list
  worldline list runs/ --json"""
)
@click.argument("directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@json_option
def command(directory: Path | None, as_json: bool) -> int:
    """List the runs of a store, newest first.

    DIR is a store or a folder with one; without it the nearest `.worldline/runs` upwards from here.
    """
    if directory is not None and not directory.is_dir():
        raise RecordingNotFound(f"no folder {directory}", path=str(directory))
    store = default_store(directory)
    if directory is not None and not runs(directory) and (directory / DEFAULT_STORE).is_dir():
        store = directory / DEFAULT_STORE
    found = entries(store)[::-1]
    if as_json:
        render.emit_json(found)
        return 0
    if not found:
        render.line(f"no runs in {store} yet; `worldline record -- CMD` makes one")
        return 0
    heads = ["run", "started", "state", "outcome", "steps", "time", "task"]
    render.table([_row(entry) for entry in found], heads, right=["steps", "time"])
    if sys.stdout.isatty():
        render.line(f"  worldline show {short(found[0].run)}    worldline replay {short(found[0].run)} -- CMD")
    return 0


def _row(entry: Entry) -> list[str]:
    mark = render.MARKS[STATES.get(entry.disposition, "warn")][0]
    steps = render.number(entry.steps)
    length = render.duration(entry.seconds)
    task = render.shorten(entry.task or "", 48)
    return [
        short(entry.run),
        render.when(entry.started),
        f"{mark} {entry.disposition}",
        entry.outcome or "–",
        steps,
        length,
        task,
    ]
