"""What was exported opens in a browser from the disk, without a server, and shows the run that is inside."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require
from tests.store.rich import recorded
from tests.store.test_browser import FLAGS, NAMES
from worldline.model.ids import short
from worldline.view.export import export


@pytest.mark.parametrize("folder", [False, True], ids=["page", "folder"])
def test_an_export_opened_from_the_disk_shows_its_run(folder: bool, tmp_path: Path) -> None:
    browser = next((found for name in NAMES if (found := shutil.which(name))), None)
    require("chromium", browser, "opens a page as a user does")
    run = recorded(tmp_path / "runs")
    done = export(run, tmp_path / "a run.html", "html", folder=folder)
    place = done.path / "index.html" if folder else done.path
    words = [*FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000", "--dump-dom"]
    ran = subprocess.run(
        [str(browser), *words, place.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    app = re.sub(r"<(script|style).*?</\1>", "", ran.stdout, flags=re.S)
    seen = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", app))
    assert f"run {short(run.run_id)}" in seen and "finder" in seen, seen[:2000]
    assert "drop" not in seen.lower(), seen[:2000]  # what the empty page asks for
