"""A recording by an enemy is shown as what it is: text. Nothing in it runs, and nothing is fetched."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Bundles
from tests.panel.panel import Panel
from tests.panel.runs.hostile import TAGS

TABS = ("Decision", "Snapshot", "State", "Console", "Network", "Raw", "Integrity")
# Chromium says on the console what it held back in the frame of a recorded page: there is no harm in that.
HELD_BACK = (r"Blocked script execution in 'about:srcdoc'", r"Content Security Policy")


@pytest.mark.parametrize("name", ["hostile", "hostile-index"])
def test_nothing_runs_and_nothing_is_fetched(panel: Panel, bundle: Bundles, name: str) -> None:
    panel.allowed += HELD_BACK
    panel.open(page_file, bundle(name))
    panel.reveal()
    last = int(panel.playhead.get_attribute("aria-valuemax") or 0)
    assert last >= 2
    for step in range(last + 1):
        panel.press("Home", *["j"] * step).at(step)
        for tab in TABS:
            panel.tab(tab)
        for layer in panel.stage.get_by_role("tab").all():
            if layer.is_enabled():
                layer.click()
                panel.settled()
                for moment in ("before", "after", "action"):
                    panel.moment(moment)
    expect(panel.search("script").get_by_role("option").first).to_be_visible()
    panel.press("Enter", "Escape")
    assert panel.page.evaluate("() => ({}).polluted") is None
    assert panel.page.locator("script").count() == panel.page.evaluate("() => document.scripts.length")
    panel.check()


def test_tags_are_text(panel: Panel, bundle: Bundles) -> None:
    panel.allowed += HELD_BACK
    panel.open(page_file, bundle("hostile"))
    panel.press("Home").at(0)
    expect(panel.tab("Decision")).to_contain_text(TAGS[:40])
    assert panel.page.locator("[onerror], [onload], a[href^='javascript']").count() == 0


def test_an_index_that_lies_changes_nothing_that_is_said_of_a_row(panel: Panel, bundle: Bundles) -> None:
    panel.allowed += HELD_BACK
    panel.open(page_file, bundle("hostile-index"))
    expect(panel.steps.get_by_role("option").first).to_contain_text("orders.read")
