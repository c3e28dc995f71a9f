"""`worldline rewind RUN --to step:6`: take back what the agent did in its workspace, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.rewind import Journal, Rewind, told

MOST = 20  # paths of each kind that are shown


@click.command(
    epilog="""\b
Examples:
  worldline rewind latest --to step:6 --dry-run
  worldline rewind latest --to step:6
  worldline undo"""
)
@run_argument
@click.option("--to", required=True, metavar="step:N", help="The workspace as it stood when step N began.")
@click.option("--dry-run", is_flag=True, help="Show what would go back and what would stay; touch nothing.")
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the workspace stands now.  [default: where it was recorded]",
)
@click.option("--force", is_flag=True, help="Also where a program has files open that go back.")
@json_option
@store_option
def command(
    run: str, to: str, dry_run: bool, workspace: Path | None, force: bool, as_json: bool, store: Path | None
) -> int:
    """Take back what the agent of a run did in its workspace from a step on.

    Each change goes back that was made while the agent's tools ran, where the file still is as the agent left it. What
    somebody else changed, before, meanwhile or since, stays as it is, untracked and ignored files too, and is named.
    git is not asked for anything: no stash, no reset. `worldline undo` takes it back.
    """
    rewind = Rewind(recording_of(run, store), to, workspace, os.environ)
    if dry_run:
        journal = rewind.journal()
        rewind.leave()
    else:
        journal = rewind.act(force=force)
    if as_json:
        render.emit_json(told(journal, dry_run=dry_run))
    else:
        say(journal, dry_run=dry_run)
    return 0


def say(journal: Journal, *, dry_run: bool) -> None:
    """What went back, or would, and what stays."""
    facts = told(journal, dry_run=dry_run)
    changes, kept = facts["changes"], facts["kept"]
    paths = f"{render.counted(len(changes), 'path')} {'would go back' if dry_run else 'went back'}"
    render.verdict("ok" if changes else "none", f"{paths} in {journal.workspace}")
    for change in changes[:MOST]:
        render.line(f"  {change['action']:<10}  {change['path']}   step {change['step']}")
    if len(changes) > MOST:
        render.line(f"  and {len(changes) - MOST} more: --json names all")
    for left in kept[:MOST]:
        render.verdict("warn", f"stays  {left['path']}: {left['why']}")
    if len(kept) > MOST:
        render.line(f"  and {len(kept) - MOST} more that stay: --json names all")
    if dry_run:
        render.line("  nothing was touched: leave out --dry-run to do it")
    elif changes and journal.undoes is None:
        render.line("  to take it back: worldline undo")
