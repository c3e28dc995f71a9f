"""`worldline undo`: take the last rewind back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, store_option
from worldline.cli.rewind_verb import say
from worldline.engine.rewind import told, undo
from worldline.store.catalog import default_store


@click.command(
    epilog="""\b
Examples:
  worldline undo --dry-run
  worldline undo"""
)
@click.argument("rewind", required=False)
@click.option("--dry-run", is_flag=True, help="Show what would come back and what would stay; touch nothing.")
@click.option("--force", is_flag=True, help="Also where a program has files open that come back.")
@json_option
@store_option
def command(rewind: str | None, dry_run: bool, force: bool, as_json: bool, store: Path | None) -> int:
    """Take a rewind back: the last one of the store, or the one with the id REWIND.

    The workspace is again what it was before, but for what somebody changed since: that stays, and is named.
    """
    journal = undo(default_store(store), rewind, dry_run=dry_run, force=force, environment=os.environ)
    if as_json:
        render.emit_json(told(journal, dry_run=dry_run))
    else:
        say(journal, dry_run=dry_run)
    return 0
