"""Every pane draws something and keeps within itself, in both themes; PANEL_PICTURES names a folder for them."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Bundles, Opener

PANES = {
    "top": "header.top",
    "filmstrip": ".film",
    "steps": "[data-testid=steps]",
    "stage": "section.stage",
    "inspector": "[data-testid=inspector]",
    "transport": ".transport",
    "timeline": "section.timeline",
}
FEWEST_COLOURS = 12  # text is drawn in many shades; an empty pane has one or two
# Parts that stick out of their pane to the side, though nothing scrolls there.
OUTSIDE = """(pane) => {
  const edge = pane.getBoundingClientRect();
  return [...pane.querySelectorAll("button, p, h1, h2, h3, h4, li, td, input, select")].filter((part) => {
    const box = part.getBoundingClientRect();
    if (box.width === 0 || getComputedStyle(part).visibility === "hidden" || part.closest(".unseen")) return false;
    for (let up = part.parentElement; up && up !== pane.parentElement; up = up.parentElement)
      if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(up).overflowX)) return false;
    return box.right > edge.right + 1 || box.left < edge.left - 1;
  }).map((part) => part.outerHTML.slice(0, 120));
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_pane_draws_and_keeps_within_itself(panels: Opener, bundle: Bundles, tmp_path: Path, theme: str) -> None:
    folder = Path(os.environ.get("PANEL_PICTURES", tmp_path))
    folder.mkdir(exist_ok=True)
    panel = panels(color_scheme=theme).open(page_file, bundle("gui"))
    panel.at(20)
    expect(panel.page.locator(".film .film-picture.wait")).to_have_count(0)
    wrong = {}
    for name, selector in PANES.items():
        pane = panel.page.locator(selector).first
        taken = pane.screenshot(path=folder / f"{name}-{theme}.png")
        colours = len(Image.open(io.BytesIO(taken)).convert("RGB").getcolors(1 << 24) or [])
        outside = pane.evaluate(OUTSIDE)
        if colours < FEWEST_COLOURS or outside:
            wrong[name] = (colours, outside)
    assert wrong == {}
