"""Every state a recording can be in is shown for what it is, with what to do about it."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.conftest import ROOT
from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Bundles, Opener, origin_of, viewing
from tests.panel.panel import Panel

# Drops a file on the page; false for as long as nothing there takes it.
DROP = """(text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "api.skn"));
  const about = { dataTransfer: transfer, bubbles: true, cancelable: true };
  return ["dragover", "drop"].every((type) => !document.body.dispatchEvent(new DragEvent(type, about)));
}"""
GOLDEN = ROOT / "tests" / "golden"


def test_without_a_recording_it_says_how_to_open_one(panel: Panel) -> None:
    panel.page.goto(page_file.as_uri())
    empty = panel.page.get_by_test_id("empty")
    expect(empty).to_contain_text("Nothing leaves this page")
    expect(empty).to_contain_text("worldline view")
    expect(empty.get_by_role("button", name=re.compile("choose a file"))).to_be_visible()


def test_a_file_can_be_dropped(panel: Panel, bundle: Bundles) -> None:
    panel.page.goto(page_file.as_uri())
    panel.page.wait_for_function(DROP, arg=base64.b64encode(bundle("api").read_bytes()).decode())
    panel.ready()
    expect(panel.verdict).to_contain_text("Succeeded")


def test_what_is_no_recording_is_refused_with_a_reason(panel: Panel, tmp_path: Path) -> None:
    wrong = tmp_path / "holiday.skn"
    wrong.write_bytes(b"no recording at all" * 100)
    panel.open(page_file, wrong, ready=False)
    expect(panel.page.get_by_role("alert")).to_contain_text("What to do")


@pytest.mark.parametrize(
    ("name", "banner", "words"),
    [
        ("damaged-truncated", "truncated", "worldline reconcile"),
        ("damaged-changed", "changed", "not what was sealed"),
        ("damaged-flipped-log", "changed", "not what was sealed"),
        ("damaged-future", "newer", "newer"),
        ("damaged-expired", "expired", "expired"),
    ],
)
def test_a_banner_says_what_is_wrong_and_the_rest_is_shown(
    panel: Panel, bundle: Bundles, name: str, banner: str, words: str
) -> None:
    panel.open(page_file, bundle(name))
    expect(panel.page.get_by_test_id(f"banner-{banner}")).to_contain_text(words)
    expect(panel.steps.get_by_role("option").first).to_be_visible()


@pytest.mark.parametrize(
    ("name", "word"),
    [("damaged-withheld", "withheld"), ("damaged-expired", "expired"), ("damaged-missing", "lost")],
)
def test_what_is_missing_is_hatched_with_the_reason(panel: Panel, bundle: Bundles, name: str, word: str) -> None:
    panel.open(page_file, bundle(name))
    panel.reveal()
    if name == "damaged-missing":
        panel.press("End")
        panel.settled()
        panel.moment("after")
        expect(panel.layer("Screen")).to_contain_text(re.compile(word, re.IGNORECASE))
    else:
        panel.press("Home").at(0)
        expect(panel.tab("Decision")).to_contain_text(re.compile(word, re.IGNORECASE))


def test_a_changed_content_is_said_to_be_changed(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("damaged-flipped-content"))
    panel.reveal()
    panel.press("End")
    panel.settled()
    panel.moment("after")
    expect(panel.layer("Screen")).to_contain_text(re.compile("damaged", re.IGNORECASE))


def test_a_run_whose_writer_was_killed_is_read_as_far_as_it_goes(panels: Opener, bundle: Bundles) -> None:
    with viewing(bundle("damaged-killed")) as url:
        panel = panels(origin_of(url)).goto(url)
        expect(panel.page.get_by_test_id("banner-unsealed")).to_contain_text("worldline reconcile")
        expect(panel.verdict).to_contain_text(re.compile("Interrupted|no end"))
        expect(panel.steps.get_by_role("option").last).to_contain_text(re.compile("step|orders|machine"))


def test_a_search_without_hits_says_what_was_not_searched(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gui"))
    expect(panel.search("zzzz nowhere zzzz")).to_contain_text(
        re.compile(r"0 hits.*Not searched:.*masked row", re.DOTALL)
    )


def test_a_search_leads_to_the_row(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gui"))
    search = panel.search("read the rules for refunds")
    expect(search.get_by_role("option").first).to_contain_text("rules")
    panel.press("Enter").at(8)


@pytest.mark.parametrize("version", ["v0", "v1"])
def test_old_bundles_open_for_ever(panel: Panel, version: str) -> None:
    """Of each version of the format one of each kind that was ever made."""
    paths = sorted((GOLDEN / version).glob("*.skn"))
    assert len(paths) > 10
    for path in paths:
        panel.open(page_file, path)
        expect(panel.verdict).to_be_visible()
        expect(panel.page.get_by_text("checking")).to_have_count(0)
        expect(panel.page.get_by_test_id("banner-changed")).to_have_count(0)
