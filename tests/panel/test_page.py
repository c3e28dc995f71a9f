"""The page in the package is what its sources make, and stays small."""

from __future__ import annotations

import shutil
import subprocess

from benchmarks.panel import app_size
from checks import panel as check
from tests.conftest import ROOT, require
from tests.panel.conftest import PAGE as page_file


def test_the_shipped_page_was_made_of_these_sources() -> None:
    assert check.check(page_file).problems == []


def test_building_it_again_gives_the_same_bytes() -> None:
    require("node", shutil.which("node"), "not installed")
    require("viewer", (ROOT / "viewer" / "node_modules").is_dir(), "viewer/node_modules is not installed (make panel)")
    command = ["node", "tools/assemble.mjs", "--check"]
    done = subprocess.run(command, cwd=ROOT / "viewer", capture_output=True, text=True, timeout=420, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_first_screen_needs_stays_in_its_budget() -> None:
    assert app_size(page_file) <= 80_000 + 2_000  # the page around the app, and what starts it
