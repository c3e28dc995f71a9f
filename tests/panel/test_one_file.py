"""`worldline export --to html`: a page with the run inside, and a folder; both open by double-click and ask nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.panel.conftest import Bundles
from tests.panel.panel import Panel


def exported(bundle: Path, target: Path, *options: str) -> Path:
    """The bundle as a page, or as a folder."""
    command = [sys.executable, "-m", "worldline", "export", str(bundle), "--to", "html", "-o", str(target), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return target if target.is_file() else target.with_suffix("")  # of a folder the name without .html


@pytest.mark.parametrize("options", [(), ("--folder",)], ids=["page", "folder"])
def test_it_opens_by_double_click_and_asks_nobody(
    panel: Panel, bundle: Bundles, tmp_path: Path, options: tuple[str, ...]
) -> None:
    made = exported(bundle("gui"), tmp_path / "run.html", *options)
    panel.goto((made / "index.html" if made.is_dir() else made).as_uri()).at(20)
    expect(panel.verdict).to_contain_text("Failed at step 21")
    panel.reveal()
    panel.press("j").at(21)
    expect(panel.layer("Screen").get_by_role("img").first).to_be_visible()
    expect(panel.layer("What the agent saw")).to_contain_text("Issue refund")
    assert all(address.startswith(tmp_path.as_uri()) or not address.startswith("file:") for address in panel.asked)


def test_restricted_contents_are_not_in_it(bundle: Bundles, tmp_path: Path) -> None:
    made = exported(bundle("damaged-withheld"), tmp_path / "shared.html")
    assert b"Desk lamp, brass" not in made.read_bytes()
