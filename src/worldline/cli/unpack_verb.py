"""`worldline unpack FILE.skn`: a bundle as a run of the store, to be forked, resumed and studied."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.hints import name_of, next_commands
from worldline.cli.options import json_option, store_option
from worldline.engine.lineage import parent_of
from worldline.errors import LineageBroken, RecordingNotFound, UsageError
from worldline.model.ids import short
from worldline.store.bundle.packed import PackedRecording, is_packed
from worldline.store.bundle.unpack import Unpacked, unpack
from worldline.store.catalog import default_store
from worldline.store.recording import Recording


@click.command(
    epilog="""\b
Examples:
  worldline unpack refund.skn
  worldline unpack refund.skn --store elsewhere/runs
  worldline unpack https://example.org/refund.skn"""
)
@click.argument("bundle")
@json_option
@store_option
def command(bundle: str, as_json: bool, store: Path | None) -> int:
    """Make a bundle a run of the store again, under its own id.

    It is verified first and once more when it is written; every sealed byte comes back as it was. Then it can be
    forked, resumed, attributed and packed like a run that was recorded here. A store that has it already is left as it
    is. The files of its workspace's checkpoints are not in a bundle, nor are the runs that a branch goes on from.
    """
    if not is_packed(bundle):
        if not Path(bundle).exists():
            raise RecordingNotFound(f"no bundle at {bundle}", path=bundle)
        raise UsageError(f"{bundle} is no bundle; `worldline pack` makes one of a run", path=bundle)
    packed = PackedRecording(bundle)
    with render.progress("unpacking", 2 * packed.log_bytes) as bar:
        done = unpack(packed, default_store(store), bar.update)
    missing = _parent_missing(done.recording)
    if as_json:
        here = done.recording
        facts = {"run": here.run_id, "attempt": here.attempt_id, "path": str(here.path), "fresh": done.fresh}
        left = {"checkpoints_left": done.checkpoints, "parent_missing": missing}
        render.emit_json({**facts, "attempts_before": done.beside, **left})
    else:
        _say(done, missing)
    return 0


def _parent_missing(recording: Recording) -> str | None:
    """The run that it goes on from, where that attempt of it is not in the store; None where nothing is missing."""
    try:
        parent_of(recording)
    except LineageBroken as error:
        return str(error.facts["run"])
    return None


def _say(done: Unpacked, missing: str | None) -> None:
    name, manifest = short(done.recording.run_id), done.recording.manifest
    assert manifest is not None
    if done.fresh:
        contents = render.counted(len(manifest.blobs) - len(done.recording.expiry.removals), "content")
        render.verdict("ok", f"unpacked {name}   {render.counted(manifest.rows, 'row')}, {contents}")
    else:
        render.verdict("none", f"{name} is here already, the same recording: it stays as it is, its notes too")
    if done.fresh and done.beside:
        attempts = render.counted(done.beside, "attempt")
        render.verdict("warn", f"it stands beside {attempts} of the same run that {name} had here: see which is meant")
    if done.checkpoints:
        files = render.counted(done.checkpoints, "checkpoint")
        render.verdict(
            "warn",
            f"the files of its {files} are not in a bundle: fork it with --workspace DIR, a folder that is there",
        )
    if missing is not None:
        own = missing == done.recording.run_id
        what = "goes on from an earlier attempt of its run" if own else f"is a branch of {short(missing)}"
        render.verdict("warn", f"it {what}, which is not here: unpack that, too")
        render.line(f"  worldline show {name_of(done.recording)}    worldline view {name_of(done.recording)}")
        return
    forks = ["fork {name} --at step:0 -- CMD"] if manifest.derived_from is None else []
    render.line("  " + next_commands(done.recording, "show {name}", "view {name}", *forks))
