"""`worldline pack RUN -o FILE.skn`: a sealed run as one file that any ZIP tool opens."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.export import EXPORTS
from worldline.engine.pictures import thumbnail
from worldline.errors import UsageError
from worldline.model.ids import short
from worldline.store.bundle.pack import Packed, pack

WITH = {name.removesuffix(".jsonl"): name for name in EXPORTS}


@click.command(
    epilog="""\b
Examples:
  worldline pack latest -o refund.skn
  worldline pack 7f3a -o refund.skn --share
  worldline pack 7f3a -o refund.skn --with decisions,network
  worldline show refund.skn"""
)
@run_argument
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE"
)
@click.option("--share", is_flag=True, help="Leave out restricted contents and their key, and list them.")
@click.option(
    "--with",
    "extras",
    metavar="NAMES",
    help="Add what other tools read: decisions (OpenTelemetry spans), network (HAR entries), or both with a comma.",
)
@json_option
@store_option
def command(run: str, target: Path, share: bool, extras: str | None, as_json: bool, store: Path | None) -> int:
    """Pack a sealed run into one bundle.

    The run is verified first; one that is not sealed, or not what was sealed, is refused. A file is never overwritten.
    RUN may be a bundle too: packed again with --share, it can be given away.
    """
    exports = {name: EXPORTS[name] for name in _wanted(extras)}
    recording = recording_of(run, store)
    with render.progress("packing", recording.log_bytes) as bar:
        packed = pack(recording, target, share=share, exports=exports, thumbnail=thumbnail, watch=bar.update)
    if as_json:
        render.emit_json(packed._asdict())
    else:
        _say(packed)
        if recording.header.data.get("parent") is not None:
            left = str(recording.header.data["parent"].get("run"))
            render.verdict(
                "warn", f"it is a branch: what came before stands in {short(left)}, and is not in the bundle"
            )
    return 0


def _wanted(extras: str | None) -> list[str]:
    """The entries that --with names, each once, in their own order. Raises `UsageError` for a name of none."""
    asked = [word.strip() for word in extras.split(",")] if extras is not None else []
    for word in asked:
        if word not in WITH:
            raise UsageError(f"--with takes {', '.join(WITH)}; not {word!r}", name=word)
    return [name for word, name in WITH.items() if word in asked]


def _say(packed: Packed) -> None:
    size = f"{packed.size:,} bytes for {packed.raw:,} of log"
    render.verdict(
        "ok", f"packed {packed.path}   {render.counted(packed.entries, 'entry').replace('entrys', 'entries')}   {size}"
    )
    if packed.withheld:
        render.verdict("warn", f"left out: {render.counted(len(packed.withheld), 'restricted content')}; --json lists")
    if packed.expired:
        render.verdict("none", f"expired before: {render.counted(len(packed.expired), 'content')}")
    render.line("  it holds prompts and answers: look at it before you share it")
    render.line(f"  worldline verify {packed.path}    worldline show {packed.path}")
