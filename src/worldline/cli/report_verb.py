"""`worldline report STUDY... -o report.html`: what a study found, or several, as one page that needs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from worldline.cli import render
from worldline.cli.options import json_option, store_option
from worldline.store.catalog import default_store
from worldline.store.studies.folder import find_study
from worldline.study.reporting import read_report, read_together, write_page
from worldline.view.report_weak import sentence


@click.command(
    epilog="""\b
Examples:
  worldline report latest -o report.html
  worldline report 7gqp 2m4k 9xwa -o weak-step.html
  worldline report 7gqp --json"""
)
@click.argument("studies", nargs=-1, required=True, metavar="STUDY...")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="FILE", help="The page to write.")
@click.option("--panel", metavar="URL", help="Let links lead into the panel at this address.")
@click.option("--full", is_flag=True, help="Quote what belongs to the restricted tier, too.")
@json_option
@store_option
def command(
    studies: tuple[str, ...], out: Path | None, panel: str | None, full: bool, as_json: bool, store: Path | None
) -> int:
    """Write what a study found as one page: no network, no script, light and dark.

    STUDY is a study's id, its end, `latest`, or its folder; of attribute, repair or ab. Several attributions, of failed
    runs of one task, make one page: the step that is weak in all. What the page quotes of a run is as `export` gives
    it: secrets are replaced, the restricted tier is left out.
    """
    folders = [find_study(study, default_store(store)) for study in studies]
    if len(folders) > 1:
        weakness, several = read_together(folders, full=full)
        answer: dict[str, Any] = {"together": weakness, "studies": [made.answer for made in several]}
        said = sentence(weakness)
    else:
        answer = read_report(folders[0], full=full).answer
        said = str(answer["sentence"])
    if out is not None:
        size = write_page(folders, out, full=full, panel=panel)
        if not as_json:
            render.verdict("ok", f"{out}   {render.number(size)} bytes")
    if as_json:
        render.emit_json(answer)
    elif out is None:
        render.line(said)
        render.line(f"  worldline report {' '.join(studies)} -o report.html")
    return 0
