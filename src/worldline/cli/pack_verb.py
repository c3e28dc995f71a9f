"""`worldline pack RUN -o FILE.skn`: a sealed run as one file that any ZIP tool opens."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.store.bundle import Packed, pack


@click.command(
    epilog="""\b
Examples:
  worldline pack latest -o refund.skn
  worldline pack 7f3a -o refund.skn --share
  worldline show refund.skn"""
)
@run_argument
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE"
)
@click.option("--share", is_flag=True, help="Leave out restricted contents, and list them.")
@json_option
@store_option
def command(run: str, target: Path, share: bool, as_json: bool, store: Path | None) -> int:
    """Pack a sealed run into one bundle.

    The run is verified first; one that is not sealed, or not what was sealed, is refused. A file is never overwritten.
    """
    recording = recording_of(run, store)
    with render.progress("packing", recording.log_bytes) as bar:
        packed = pack(recording, target, share=share, watch=bar.update)
    if as_json:
        render.emit_json(packed._asdict())
    else:
        _say(packed)
    return 0


def _say(packed: Packed) -> None:
    size = f"{packed.size:,} bytes for {packed.raw:,} of log"
    render.verdict(
        "ok", f"packed {packed.path}   {render.counted(packed.entries, 'entry').replace('entrys', 'entries')}   {size}"
    )
    if packed.withheld:
        render.verdict("warn", f"left out: {render.counted(len(packed.withheld), 'restricted content')}")
    render.line("  it holds prompts and answers: look at it before you share it")
    render.line(f"  worldline verify {packed.path}    worldline show {packed.path}")
