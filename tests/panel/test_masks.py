"""What came from the world is masked until somebody says why they look; copying and searching obey."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Bundles, Opener, origin_of, viewing
from tests.panel.panel import Panel
from worldline.store.bundle.packed import PackedRecording
from worldline.store.notes import audits

TYPED = "82.50"  # in a field of the page that the agent saw
LOGGED = "amount over the limit"  # on the console of that page, at the same step
GIVEN_BACK = "revised"  # by the tool of the step before
STEP = 18


@pytest.fixture
def gui(panel: Panel, bundle: Bundles) -> Panel:
    """The run in a browser, where the amount was typed in."""
    panel.open(page_file, bundle("gui")).at(20)
    panel.press("k", "k").at(STEP)
    panel.moment("after")
    return panel


def seen(panel: Panel) -> str:
    """All that the layers of the stage say of what the agent saw."""
    texts = [panel.layer("What the agent saw").inner_text()]
    panel.layer("DOM")
    expect(panel.stage.locator("iframe.ready")).to_have_count(1)
    frame = panel.stage.frame_locator("iframe.ready")
    texts += [field.input_value() for field in frame.locator("input").all()]
    return "\n".join(texts)


def test_nothing_of_the_world_is_shown_before_a_reveal(gui: Panel) -> None:
    assert TYPED not in seen(gui)
    for tab in ("Console", "Network", "State", "Snapshot", "Raw"):
        text = gui.tab(tab).inner_text()
        assert LOGGED not in text, tab
        assert tab == "Raw" or TYPED not in text, tab
    expect(gui.steps).not_to_contain_text(LOGGED)
    # What a tool gave back stands in the messages of the next request, too.
    messages = gui.tab("Decision").locator(".messages")
    expect(messages).to_contain_text("result masked")
    expect(messages).not_to_contain_text(GIVEN_BACK)
    gui.reveal()
    expect(messages).to_contain_text(GIVEN_BACK)
    assert TYPED in seen(gui)
    expect(gui.tab("Console")).to_contain_text(LOGGED)


def test_a_reveal_asks_for_a_reason_and_masks_again(gui: Panel) -> None:
    gui.page.get_by_role("button", name=re.compile("^Masking")).click()
    gui.page.get_by_role("button", name="reveal all…").click()
    dialog = gui.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="reveal", exact=True)).to_be_disabled()
    dialog.get_by_label("Why").fill("   ")
    expect(dialog.get_by_role("button", name="reveal", exact=True)).to_be_disabled()
    dialog.get_by_label("Why").fill("a customer asked")
    dialog.get_by_role("button", name="reveal", exact=True).click()
    expect(gui.tab("Console")).to_contain_text(LOGGED)
    gui.page.get_by_role("button", name=re.compile("^Masking")).click()
    gui.page.get_by_role("button", name="mask again").click()
    expect(gui.tab("Console")).not_to_contain_text(LOGGED)


def test_a_reveal_ends_after_five_minutes(panels: Opener, bundle: Bundles) -> None:
    panel = panels()
    panel.page.clock.install()
    panel.open(page_file, bundle("gui"))
    panel.page.clock.run_for(2000)
    panel.press("k", "k").at(STEP)
    panel.reveal()
    expect(panel.tab("Console")).to_contain_text(LOGGED)
    panel.page.clock.run_for("05:01")
    expect(panel.tab("Console")).not_to_contain_text(LOGGED)


def test_a_reveal_of_one_step_opens_no_other(gui: Panel) -> None:
    gui.page.get_by_role("button", name=re.compile("^Masking")).click()
    gui.page.get_by_role("button", name=re.compile(f"reveal step {STEP}")).click()
    dialog = gui.page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("one step only")
    dialog.get_by_role("button", name="reveal", exact=True).click()
    expect(gui.tab("Console")).to_contain_text(LOGGED)
    gui.away().press("k").at(STEP - 1)
    expect(gui.tab("State")).to_contain_text("masked")
    gui.away().press("Home").at(0)
    expect(gui.tab("Console")).to_contain_text("mask")
    expect(gui.tab("Console")).not_to_contain_text("order desk ready")


def test_what_is_copied_is_masked_too(gui: Panel) -> None:
    gui.context.grant_permissions(["clipboard-read", "clipboard-write"])
    gui.tab("Raw")
    for button in gui.inspector.get_by_role("button", name=re.compile("copy", re.IGNORECASE)).all()[:6]:
        button.click()
        assert LOGGED not in gui.page.evaluate("() => navigator.clipboard.readText()")


def test_a_search_does_not_find_what_is_masked(gui: Panel) -> None:
    search = gui.search(LOGGED)
    expect(search).to_contain_text(re.compile(r"Not searched:.*\d+ masked rows"))
    expect(search.get_by_role("option")).to_have_count(0)
    gui.press("Escape")
    gui.reveal()
    expect(gui.search(LOGGED).get_by_role("option").first).to_be_visible()


def test_behind_a_server_each_reveal_is_written_down_before_anything_is_shown(
    panels: Opener, bundle: Bundles, tmp_path: Path
) -> None:
    copy = Path(shutil.copy(bundle("gui"), tmp_path / "gui.skn"))
    with viewing(copy) as url:
        panel = panels(origin_of(url)).goto(url)
        panel.press("k", "k").at(STEP)
        panel.reveal("a customer asked")
        expect(panel.tab("Console")).to_contain_text(LOGGED)
    [line] = audits(PackedRecording(str(copy)))
    assert (line["what"], line["reason"]) == ("reveal", "a customer asked")
