"""`worldline reconcile [DIR]`: seal what dead writers left, complete what they had committed, name what is in doubt."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, store_of
from worldline.engine.account import account
from worldline.model.ids import short
from worldline.store.catalog import runs
from worldline.store.reconcile import HARMLESS, State, reconcile

NOT_WELL = 1
MARKS = {
    "live": "live",
    "stillborn": "none",
    "superseded": "none",
    "contained": "none",
    "sealed:partial": "warn",
    "sealed:complete": "ok",
}


@click.command(
    epilog="""\b
Examples:
  worldline reconcile
  worldline reconcile runs/ --json"""
)
@click.argument("directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@json_option
def command(directory: Path | None, as_json: bool) -> int:
    """Seal what dead writers left. What is live, sealed, damaged or in doubt is not touched.

    An attempt that died before its result was published is sealed as partial; one that died after it gets the seal
    it had staged. Nothing is run again, and nothing is published here. It may be run at any time, and again.

    DIR is a store, a folder with one, or a run. Exits with 1 where a record is damaged, or a published result has no
    attempt that vouches for it.
    """
    found = [state for run in _runs(directory) for state in reconcile(run, account)]
    if as_json:
        render.emit_json(found)
    else:
        _say(found)
    return 0 if all(state.state in HARMLESS for state in found) else NOT_WELL


def _runs(directory: Path | None) -> list[Path]:
    if directory is not None and (directory / "trajectory").is_dir():
        return [directory]
    return runs(store_of(directory))


def _say(found: list[State]) -> None:
    shown = [state for state in found if state.did or state.state not in ("sealed:complete", "sealed:partial")]
    for state in shown:
        where = f"   {state.file}, byte {state.offset:,}" if state.file and state.offset is not None else ""
        done = "   sealed now" if state.did else ""
        attempt = f" {short(state.attempt)}" if state.attempt else ""
        text = f"{short(state.run)}{attempt}   {state.state}{done}   {state.reason or ''}{where}".rstrip()
        render.verdict(MARKS.get(state.state, "failed"), text)
    rest = len(found) - len(shown)
    render.line(f"  {render.counted(rest, 'attempt')} sealed before" if found else "nothing to reconcile: no runs")
