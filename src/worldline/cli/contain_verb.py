"""`worldline contain RUN --secret-env NAME`: put a run in which a secret was found later into quarantine, whole."""

from __future__ import annotations

import os
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, run_argument, store_option
from worldline.engine import clock
from worldline.engine.joined import in_answers
from worldline.errors import UsageError
from worldline.model.ids import short
from worldline.store.bundle.packed import is_packed
from worldline.store.catalog import default_store, path_of
from worldline.store.forget.contain import Outcome, contain, target_of
from worldline.store.forget.quarantine import Place

NOT_FOUND = 1
SHOWN = 10


@click.command(
    epilog="""\b
Examples:
  worldline contain 7f3a --secret-env SHOP_TOKEN
  worldline contain latest --secret-env SHOP_TOKEN --anyway"""
)
@run_argument
@click.option("--secret-env", "name", required=True, metavar="NAME", help="The environment variable with the secret.")
@click.option("--anyway", is_flag=True, help="Contain the run also where the secret is not found.")
@json_option
@store_option
def command(run: str, name: str, anyway: bool, as_json: bool, store: Path | None) -> int:
    """Search a run for a secret and, where it is found, move it to quarantine with everything that belongs to it.

    Every attempt of the run is searched, with the snapshots of its workspace, in every spelling that recording looks
    for; those that hold the secret go to `quarantine` beside the store, their snapshots and the published result with
    them, and nothing opens them any more. The secret itself
    is never printed or written. Bundles, backups and what providers keep are not touched: replace the secret.

    Exits with 1 where it is not found; nothing is changed then.
    """
    if not os.environ.get(name):
        raise UsageError(f"--secret-env {name}: the variable is not set", name=name)
    if is_packed(run):
        raise UsageError(f"{run} is a bundle: one file, which you delete yourself, and every copy of it", path=run)
    directory, attempt = target_of(path_of(run, default_store(store)) or Path(run))
    done = contain(
        directory, name, os.environ[name], clock.wall_ns(), attempt=attempt, anyway=anyway, joined=in_answers
    )
    if as_json:
        render.emit_json({"contained": bool(done.attempts), "result": done})
    else:
        _say(done)
    return 0 if done.attempts or not done.searched else NOT_FOUND


def _say(done: Outcome) -> None:
    looked = f"{render.counted(done.searched, 'file')}, {done.bytes:,} bytes"
    if not done.attempts and not done.searched:
        render.verdict("none", f"{short(done.run)} has nothing left that could be searched: see {done.quarantine}")
        return
    if done.found:
        render.verdict("failed", f"{done.label} was found in {short(done.run)}, {render.counted(done.found, 'place')}")
    else:
        render.verdict("none", f"{done.label} was not found in {short(done.run)}   {looked}, in every listed spelling")
        render.line("  not seen is what is compressed, encrypted, in an image, or split by the agent")
    for place in done.places[:SHOWN]:
        render.line(f"  {_text(place)}")
    if done.found > SHOWN:
        render.line(f"  and {done.found - min(SHOWN, len(done.places)):,} more")
    if done.unscanned:
        render.verdict(
            "warn",
            f"nobody could look into {render.counted(done.unscanned, 'recorded body')}".replace("bodys", "bodies"),
        )
    if not done.attempts:
        render.line("  nothing is changed; --anyway contains it all the same")
        return
    attempts = render.counted(len(done.attempts), "attempt")
    kept = f", {render.counted(done.snapshots, 'snapshot')} of the workspace" if done.snapshots else ""
    render.verdict("ok", f"contained: {attempts}, with all contents{kept} and what was published, in {done.quarantine}")
    if done.shared:
        render.verdict("warn", f"contents with it are also in {', '.join(done.shared)}: contain them, too")
    if others := sorted(set(done.needed) - set(done.shared)):
        what = "in which it was not found" if done.found else "of its snapshots"
        render.verdict("none", f"contents {what} stay in the store, because {', '.join(others)} needs them")
    for repository in done.repositories:
        render.verdict("warn", f"its snapshots are commits in {repository}, under refs/worldline: they stay there")
    render.line(f"  not undone: bundles, backups and other copies, what providers keep. Replace {done.label} now.")


def _text(place: Place) -> str:
    """A place as people read it."""
    row = f", row {place.seq:,}" if place.seq is not None else ""
    at = f", byte {place.offset:,}" if place.offset is not None else ""
    named = "a file's name: " if place.kind == "name" else ""
    return f"{place.kind:<9} {named}{place.file}{row}{at}"
