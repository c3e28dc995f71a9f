"""Two runs of one task side by side: the first divergence is pinned, one playhead maps through the spine."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Bundles, Opener, origin_of, viewing
from tests.panel.panel import Panel


def test_the_first_divergence_is_pinned_and_said(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("pair-failed"), bundle("pair-rescued"))
    compare = panel.page.get_by_role("region", name="Compare")
    expect(compare).to_contain_text(re.compile("first divergence", re.IGNORECASE))
    expect(compare).to_contain_text("orders.read")  # only in the second
    expect(compare).to_contain_text("64.00")
    expect(compare).to_contain_text("32.00")


def test_one_playhead_moves_through_both(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("pair-failed"), bundle("pair-rescued"))
    compare = panel.page.get_by_role("region", name="Compare")
    panel.press("Home")
    before = compare.inner_text()
    panel.press("End")
    panel.settled()
    expect(compare.get_by_role("option", selected=True)).not_to_have_count(0)
    assert before


def test_worldline_view_of_two_runs_compares_them(panels: Opener, bundle: Bundles) -> None:
    with viewing(bundle("pair-failed"), bundle("pair-rescued")) as url:
        panel = panels(origin_of(url)).goto(url)
        expect(panel.page.get_by_role("region", name="Compare")).to_contain_text("orders.read")
