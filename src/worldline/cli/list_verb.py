"""`worldline list`: the runs of a store, newest first, without opening their logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from worldline.cli import render
from worldline.cli.hints import next_commands
from worldline.cli.options import json_option, store_of, store_option
from worldline.model.ids import short
from worldline.store.bundle.packed import open_recording
from worldline.store.catalog import entries
from worldline.store.listed import Entry

if TYPE_CHECKING:
    from worldline.store.studies.table import Listed as Study

STATES = {"complete": "ok", "running": "live", "damaged": "failed"}


@click.command(
    epilog="""\b
Examples:
  worldline list
  worldline list runs/ --json
  worldline list --studies"""
)
@click.option("--studies", is_flag=True, help="The studies of the store, in place of its runs.")
@click.argument("directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@json_option
@store_option
def command(studies: bool, directory: Path | None, as_json: bool, store: Path | None) -> int:
    """List the runs of a store, newest first.

    DIR is a store, or a folder with one or with bundles; without it the nearest `.worldline/runs` upwards from here.
    What stands in the logs is not looked at: whether a run was changed is for `worldline verify` to say.
    """
    store = store_of(directory or store)
    if studies:
        return _studies(store, as_json)
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
        newest = next((entry for entry in found if entry.disposition not in ("damaged", "contained")), None)
        if newest is not None:
            render.line("  " + next_commands(open_recording(newest.path), "show {name}"))
    return 0


def _studies(store: Path, as_json: bool) -> int:
    from worldline.store.studies.table import listed  # loads sqlite3, which the list of runs does without

    found = listed(store)
    if as_json:
        render.emit_json(found)
        return 0
    if not found:
        render.line(f"no studies in {store} yet; `worldline attribute RUN --verifier WHO -- CMD` makes one")
        return 0
    heads = ["study", "started", "of run", "what", "state", "verdict", "step", "cost", "rollouts", "task"]
    render.table([_study(study) for study in found], heads, right=["step", "cost", "rollouts"])
    return 0


def _study(study: Study) -> list[str]:
    return [
        short(study.study),
        render.when(study.started),
        short(study.run),
        study.kind if study.method in (None, "locate", study.kind) else f"{study.kind} {study.method}",
        study.state,
        study.verdict or "–",
        render.number(study.step),
        "–" if study.drop is None else f"{study.drop:.2f}",
        render.number(study.rollouts),
        render.shorten(study.task or "", 40),
    ]


def _row(entry: Entry) -> list[str]:
    mark = render.MARKS[STATES.get(entry.disposition, "warn")][0]
    steps = render.number(entry.steps)
    length = render.duration(entry.seconds)
    task = render.shorten(entry.task or "", 48)
    bundle = Path(entry.path).name if entry.path.endswith(".skn") else None  # is named by its file
    return [
        bundle or short(entry.run),
        render.when(entry.started),
        f"{mark} {entry.disposition}",
        entry.outcome or "–",
        steps,
        length,
        task,
    ]
