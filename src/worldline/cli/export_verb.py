"""`worldline export RUN --to html -o run.html`: a run as a file that others open, redacted unless you say otherwise."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.view.export import FORMATS, export
from worldline.view.export_html import LARGEST_PAGE
from worldline.view.exported import Exported


def _formats() -> str:
    width = max(map(len, FORMATS))
    lines = [f"  {name:<{width}}   {each.words}" for name, each in FORMATS.items()]
    return "\n".join(["\b", "Formats:", *lines])


@click.command(
    epilog=_formats()
    + """

\b
Examples:
  worldline export latest --to html -o refund.html
  worldline export refund.skn --to html -o refund.html --full
  worldline export 7f3a --to decisions -o spans.jsonl"""
)
@run_argument
@click.option("--to", "to", default="html", show_default=True, metavar="FORMAT", help="What to write, see below.")
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where; a new name.",
)
@click.option("--full", is_flag=True, help="Keep restricted contents, their key and the audit in it.")
@click.option(
    "--folder",
    is_flag=True,
    help="A folder (index.html and chunks) instead of one page; what is too large for one becomes one by itself.",
)
@json_option
@store_option
def command(run: str, to: str, target: Path, full: bool, folder: bool, as_json: bool, store: Path | None) -> int:
    """Write a sealed run as something that others open: as one page that shows it, with nothing to install.

    What is restricted is left out, with its key, unless --full is given. The run is verified first. Nothing is ever
    overwritten, and nothing leaves this machine: the page loads nothing, and sends nothing.
    """
    recording = recording_of(run, store)
    with render.progress("exporting", recording.log_bytes) as bar:
        done = export(recording, target, to, full=full, folder=folder, watch=bar.update)
    if as_json:
        render.emit_json(done._asdict())
    else:
        _say(done, folder)
    return 0


def _say(done: Exported, asked: bool) -> None:
    render.verdict("ok", f"exported {done.path}   {done.format}   {done.size:,} bytes")
    if done.folder and not asked:
        render.verdict("none", f"a folder: {done.bundle or 0:,} bytes are more than one page takes ({LARGEST_PAGE:,})")
    held = [render.counted(count, word.removesuffix("s")) for word, count in done.holds.items() if count]
    if held:
        render.line(f"  it holds {', '.join(held)}: look at it before you share it")
    if done.withheld:
        render.verdict(
            "warn", f"left out: {render.counted(len(done.withheld), 'restricted content')}; --full keeps them"
        )
    if done.full:
        render.verdict("warn", "--full: with everything that was recorded; nothing in it is hidden")
    if done.format == "html":
        render.line(f"  open {done.path / 'index.html' if done.folder else done.path} in a browser; nothing leaves it")
