"""`worldline report STUDY -o report.html`: what a study found, as one page that needs nothing."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, store_option
from worldline.store.catalog import default_store
from worldline.store.studies.folder import find_study
from worldline.study.reporting import read_report, write_page


@click.command(
    epilog="""\b
Examples:
  worldline report latest -o report.html
  worldline report 7gqp --json"""
)
@click.argument("study")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="The page to write.")
@click.option("--panel", metavar="URL", help="Let links lead into the panel at this address.")
@click.option("--full", is_flag=True, help="Quote what belongs to the restricted tier, too.")
@json_option
@store_option
def command(study: str, out: Path | None, panel: str | None, full: bool, as_json: bool, store: Path | None) -> int:
    """Write what a study found as one page: no network, no script, light and dark.

    STUDY is a study's id, its end, `latest`, or its folder. What the page quotes of the run is as `export` gives it:
    secrets are replaced, the restricted tier is left out.
    """
    folder = find_study(study, default_store(store))
    made = read_report(folder, full=full)
    if out is not None:
        size = write_page(folder, out, full=full, panel=panel)
        if not as_json:
            render.verdict("ok", f"{out}   {render.number(size)} bytes")
    if as_json:
        render.emit_json(made.answer)
    elif out is None:
        render.line(str(made.answer["sentence"]))
        render.line(f"  worldline report {study} -o report.html")
    return 0
