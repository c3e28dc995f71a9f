"""What was exported opens in a browser from the disk, without a server, and shows the run that is inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import require
from tests.panel.runs.chromium import CHROMIUM, chromium
from tests.store.rich import recorded
from worldline.model.ids import short
from worldline.view.export import export


@pytest.mark.parametrize("folder", [False, True], ids=["page", "folder"])
def test_an_export_opened_from_the_disk_shows_its_run(folder: bool, tmp_path: Path) -> None:
    require("chromium", CHROMIUM, "opens a page as a user does")
    run = recorded(tmp_path / "runs")
    done = export(run, tmp_path / "a run.html", "html", folder=folder)
    place = done.path / "index.html" if folder else done.path
    with chromium() as browser:
        page = browser.new_page()
        page.goto(place.as_uri())
        page.get_by_text(f"run {short(run.run_id)}").first.wait_for(timeout=60_000)
        seen = page.inner_text("body")
    assert "finder" in seen and "drop" not in seen.lower(), seen[:2000]  # "drop" is what the empty page asks for
