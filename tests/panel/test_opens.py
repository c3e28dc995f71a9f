"""A run opens on its cause, in words, and the next questions are one key away."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Bundles, Opener, origin_of, viewing
from tests.panel.panel import Panel


@pytest.mark.parametrize(
    ("name", "step", "words"),
    [
        ("gui", 20, r"Failed at step 21.*TimeoutError.*denied http\.post at step 20"),
        ("denied", 2, r"Failed at step 4.*ValueError.*denied refund\.pay at step 2"),
        ("gaps", 10, r"Failed at step 11.*denied refund\.pay at step 10"),
        ("pair-failed", 4, r"Failed at step 4.*TimeoutError"),
        ("lanes", 2, r"Succeeded.*denied refund\.pay at step \d"),
        ("api", 0, r"Succeeded"),
    ],
)
def test_it_opens_on_the_cause_and_says_it_in_words(
    panel: Panel, bundle: Bundles, name: str, step: int, words: str
) -> None:
    panel.open(page_file, bundle(name))
    expect(panel.verdict).to_have_text(re.compile(words, re.DOTALL))
    if name == "lanes":  # three at once: whichever asked first
        step = int(re.findall(r"at step (\d+)", panel.verdict.inner_text())[-1])
    panel.at(step)


def test_it_never_plays_by_itself(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gui"))
    expect(panel.page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    panel.at(20)


def test_the_next_three_questions_are_one_key_away(gui: Panel) -> None:
    """What failed then? What was asked before it? Where else did something go wrong?"""
    gui.press("n").at(21)
    expect(gui.inspector).to_contain_text("The refund was denied, but the button is still on the page.")
    gui.press("p").at(20)
    expect(gui.inspector.get_by_test_id("permission").first).to_contain_text("money-over-50")
    gui.press("Shift+O").at(13)
    expect(gui.inspector.get_by_test_id("permission").first).to_contain_text("file.download")


def test_a_step_shows_what_the_agent_saw_with_the_element_it_aimed_at(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gui")).press("j").at(21)
    panel.reveal()
    seen = panel.layer("What the agent saw")
    expect(seen).to_contain_text("Issue refund")
    expect(seen).to_contain_text("Refunds over $50 need approval")
    screen = panel.layer("Screen")
    box = screen.get_by_test_id("acted-box")
    expect(box).to_be_visible()
    picture = screen.get_by_role("img").first.bounding_box()
    where = box.bounding_box()
    assert picture and where
    # The button lies in the lower left of the page; the box is drawn where the button is on the picture.
    assert picture["x"] < where["x"] < picture["x"] + picture["width"] / 3
    assert picture["y"] + picture["height"] / 2 < where["y"] < picture["y"] + picture["height"]


def test_every_layer_that_was_recorded_can_be_looked_at(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gui"))
    panel.reveal()
    panel.layer("DOM")
    frame = panel.stage.frame_locator("iframe.ready")
    expect(frame.get_by_role("heading", name="Order 10-4471")).to_be_visible()
    panel.press("Alt+1")
    expect(panel.stage.get_by_role("tab", name="What the agent saw")).to_have_attribute("aria-selected", "true")
    expect(panel.stage.get_by_role("tab", name="Terminal")).to_have_count(0)  # none was recorded


def test_a_shell_session_can_be_read_and_played(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("terminal"))
    panel.reveal()
    terminal = panel.layer("Terminal")
    expect(terminal).to_contain_text("price.py")


def test_the_inspector_holds_the_decision_the_state_the_console_and_the_network(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gui"))
    expect(panel.tab("Decision")).to_contain_text("gpt-5-mini")
    expect(panel.tab("Decision")).to_contain_text("http.post")
    panel.reveal()
    expect(panel.tab("State")).to_contain_text("blocked")
    panel.away().press("Home").at(0)
    expect(panel.tab("Console")).to_contain_text("order desk ready")
    expect(panel.tab("Network")).to_contain_text("desk.css")
    expect(panel.tab("Raw")).to_contain_text("decision/request")
    expect(panel.tab("Integrity")).to_contain_text("sealed", ignore_case=True)


def test_lanes_of_sub_agents_are_told_apart(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("lanes"))
    for name in ("orders", "stock", "refunds"):
        expect(panel.page.locator(".tl-labels")).to_contain_text(name)
        expect(
            panel.steps.get_by_role("option").filter(has=panel.page.locator(f".lane[title='lane {name}']")).first
        ).to_be_visible()


def test_a_long_silence_is_folded_and_opens_on_a_click(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gaps"))
    # The third silence falls into a model's answer, as a rule: then somebody was at work, and it is no gap.
    for silence in ("4[0-9] s", "11 h 00 m"):  # what the program itself took comes to it
        expect(panel.page.get_by_role("button", name=re.compile(f"^{silence} idle, open"))).to_have_count(1)
    longest = panel.page.get_by_role("button", name=re.compile(r"11.* idle, open"))
    longest.focus()
    panel.press("Enter")
    expect(panel.page.get_by_role("button", name=re.compile(r"11.* idle, fold"))).to_have_count(1)


def test_retries_are_marked_on_their_step(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("retries"))
    expect(panel.steps.get_by_role("option", name=re.compile("2 retries"))).to_have_count(1)


def test_a_link_leads_back_to_the_very_place(panels: Opener, bundle: Bundles) -> None:
    with viewing(bundle("gui")) as url:
        first = panels(origin_of(url)).goto(url)
        first.at(20)
        first.press("k", "k", "4").at(18)
        first.page.wait_for_function("() => /step=18/.test(location.hash) && /tab=console/.test(location.hash)")
        second = panels(origin_of(url)).goto(first.page.url)
        second.at(18)
        expect(second.inspector.get_by_role("tab", name=re.compile("^Console"))).to_have_attribute(
            "aria-selected", "true"
        )
        for panel in (first, second):  # left before their server ends
            panel.page.goto("about:blank")
