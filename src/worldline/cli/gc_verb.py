"""`worldline gc [DIR]`: move old runs to the trash. Shows what it would do; does it with `--now`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, store_of
from worldline.engine import clock
from worldline.engine.spec import seconds_of
from worldline.errors import ReadError, UsageError
from worldline.model.ids import short
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget import trash
from worldline.store.forget.trash import Candidate

if TYPE_CHECKING:
    from worldline.engine.left import Left


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A length of time as people write it, in seconds."""
    if value is None:
        return None
    try:
        return float(seconds_of(value))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


@click.command(
    epilog="""\b
Examples:
  worldline gc --older-than 30d --keep 20
  worldline gc --older-than 30d --keep 20 --now
  worldline gc --pin 7f3a
  worldline gc --empty-trash --now"""
)
@click.argument("directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option(
    "--older-than", callback=_seconds, metavar="AGE", help="Runs whose last change is longer ago: 12h, 30d, 6w."
)
@click.option("--keep", type=click.IntRange(1), metavar="N", help="All but the newest N runs.")
@click.option("--now", is_flag=True, help="Do it. Without it nothing is changed.")
@click.option("--empty-trash", is_flag=True, help="Delete what is in the trash, for good (with --now).")
@click.option("--pin", metavar="RUN", help="Keep this run, whatever its age.")
@click.option("--unpin", metavar="RUN", help="Let go of it again.")
@json_option
def command(
    directory: Path | None,
    older_than: float | None,
    keep: int | None,
    now: bool,
    empty_trash: bool,
    pin: str | None,
    unpin: str | None,
    as_json: bool,
) -> int:
    """Move whole runs to the trash beside the store. Nothing is ever removed by itself.

    With both --older-than and --keep a run goes when both say so. What is pinned or running stays. The trash is the
    folder `trash` beside the store; moving a run back restores it. With --empty-trash, workspaces of branches go, too,
    whose runs are gone for good.
    """
    store = store_of(directory)
    if pin is not None or unpin is not None:
        return _pin(store, pin, unpin, as_json)
    if not empty_trash and older_than is None and keep is None:
        raise UsageError("nothing is chosen; say --older-than AGE, --keep N or both, or --empty-trash")
    if empty_trash and (older_than is not None or keep is not None):
        raise UsageError("--empty-trash takes neither --older-than nor --keep")
    time = clock.wall_ns() / 1e9
    chosen = trash.trashed(store, time) if empty_trash else trash.select(store, time, older_than, keep)
    if now:
        chosen = list(trash.delete(store, chosen) if empty_trash else trash.move(store, chosen))
    workspaces = _workspaces(store, [each.run for each in chosen if each.kept is None], now) if empty_trash else []
    freed = _swept(store) if now and empty_trash else 0
    if as_json:
        said = {"done": now, "trash": trash.trash_of(store), "runs": chosen, "snapshots": freed}
        render.emit_json({**said, "workspaces": workspaces})
    else:
        _say(store, chosen, now, empty_trash)
        _say_workspaces(workspaces, now)
        if freed:
            render.line(f"snapshots that no run needs any more: {freed / 1e3:,.0f} kB")
    return 0


def _swept(store: Path) -> int:
    """Drop the snapshots that no run needs, once nothing in the trash could need one. The bytes that this freed."""
    from worldline.engine.checkpoints import sweep

    if trash.trashed(store, clock.wall_ns() / 1e9):
        return 0
    try:
        return sweep(store)
    except ReadError as error:
        render.verdict("warn", f"no snapshot was dropped: {error}", err=True)
        return 0


def _workspaces(store: Path, going: list[str], now: bool) -> list[Left]:
    """The workspaces of branches whose runs are gone, or go from the trash; removed where it is `now`."""
    from worldline.engine.left import drop, left

    found = left(store, going)
    return drop(found) if now else found


def _pin(store: Path, pin: str | None, unpin: str | None, as_json: bool) -> int:
    changed = {}
    for name, pinned in ((pin, True), (unpin, False)):
        if name is not None:
            recording = recording_of(name, store)
            if isinstance(recording, PackedRecording):
                raise UsageError(f"{name} is a bundle; only runs of a store are pinned")
            trash.pin(recording.run_directory, pinned)
            changed[recording.run_id] = pinned
    if as_json:
        render.emit_json({"pinned": changed})
    for run, pinned in changed.items() if not as_json else ():
        render.verdict("ok", f"{short(run)} {'pinned' if pinned else 'unpinned'}")
    return 0


def _say_workspaces(workspaces: list[Left], now: bool) -> None:
    for each in workspaces:
        if each.kept is not None:
            render.verdict("warn", f"the workspace {each.path} stays: {each.kept}")
    going = [each for each in workspaces if each.kept is None]
    if going:
        size = f"{sum(each.size for each in going) / 1e3:,.0f} kB"
        which = render.counted(len(going), "workspace")
        done = "deleted" if now else "would be deleted; --now does it"
        render.line(f"{which} of branches whose runs are gone, {size}: {done}")


def _say(store: Path, chosen: list[Candidate], now: bool, empty_trash: bool) -> None:
    rows = [[short(c.run), f"{c.age / 86400:,.1f} d", f"{c.size / 1e3:,.0f} kB", c.kept or ""] for c in chosen]
    if rows:
        render.table(rows, ["run", "age", "size", "kept"], right=["age", "size"])
    going = [each for each in chosen if each.kept is None]
    size = f"{sum(each.size for each in going) / 1e3:,.0f} kB"
    what = "deleted" if empty_trash else f"moved to {trash.trash_of(store)}"
    done = "" if now else "would be "
    render.line(f"{render.counted(len(going), 'run')}, {size}: {done}{what}" + ("" if now else "; --now does it"))
