"""Every key of the panel does what the help sheet says."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.panel.panel import Panel


def test_keys_that_move(gui: Panel) -> None:
    gui.press("k").at(19)
    gui.press("j").at(20)
    gui.press("Home").at(0)
    gui.press("End").at(21)
    gui.press("p").at(20)
    gui.press("n").at(21)
    gui.press("Shift+O").at(20)
    gui.press("Home").at(0)
    gui.press("o").at(12)
    before = gui.playhead.get_attribute("aria-valuetext")
    gui.press("ArrowRight")
    expect(gui.playhead).not_to_have_attribute("aria-valuetext", before or "")
    gui.press("End", "Shift+ArrowLeft")
    expect(gui.playhead).not_to_have_attribute("aria-valuenow", "21")


def test_space_plays_and_pauses(gui: Panel) -> None:
    gui.press("Home").at(0)
    gui.press(" ")
    expect(gui.page.get_by_role("button", name="Pause")).to_be_visible()
    gui.page.wait_for_function(
        "() => Number(document.querySelector('[role=slider]').getAttribute('aria-valuenow')) > 0"
    )
    gui.press(" ")
    expect(gui.page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_keys_of_the_tabs(gui: Panel) -> None:
    names = ("Decision", "Snapshot", "State", "Console", "Network", "Raw", "Integrity")
    for number, name in reversed(list(enumerate(names, 1))):
        gui.press(str(number))
        expect(gui.inspector.get_by_role("tab", name=re.compile(f"^{name}"))).to_have_attribute("aria-selected", "true")


def test_keys_of_the_layers(gui: Panel) -> None:
    """Of those that were not recorded the stage says so."""
    names = ("What the agent saw", "Screen", "DOM", "Terminal", "Video")
    for number, name in reversed(list(enumerate(names, 1))):
        gui.press(f"Alt+{number}")
        expect(gui.page.locator("#stage-panel")).to_have_attribute("aria-label", name)
    gui.press("Alt+5")
    expect(gui.page.locator("#stage-panel")).to_contain_text(re.compile("video", re.IGNORECASE))


def test_keys_of_the_timeline(gui: Panel) -> None:
    crumbs = gui.page.get_by_role("toolbar", name="Playback")
    whole = crumbs.inner_text()
    gui.press("w", "w")
    expect(crumbs).not_to_have_text(whole)
    gui.press("0")
    expect(crumbs).to_contain_text("whole run")
    gui.press("f")
    expect(crumbs).to_contain_text(re.compile(r"steps? \d+"))
    for key in ("a", "d", "s", "x", "x", "Shift+X"):
        gui.press(key)
    gui.press("0")
    gui.at(20)


def test_keys_that_open_something(gui: Panel) -> None:
    gui.press("?")
    sheet = gui.page.get_by_role("dialog")
    expect(sheet).to_contain_text("next problem")
    gui.press("?")
    expect(sheet).to_have_count(0)
    gui.press("/")
    expect(gui.page.get_by_label("What to seek")).to_be_focused()
    gui.press("Escape")
    gui.press("m")
    expect(gui.page.get_by_role("textbox", name="At step")).to_be_focused()
    gui.press("Escape")
    theme = gui.page.evaluate(
        "() => getComputedStyle(document.documentElement).colorScheme + document.documentElement.dataset.theme"
    )
    gui.press("t")
    assert theme != gui.page.evaluate(
        "() => getComputedStyle(document.documentElement).colorScheme + document.documentElement.dataset.theme"
    )


def test_c_copies_a_link_to_here(gui: Panel) -> None:
    gui.context.grant_permissions(["clipboard-read", "clipboard-write"])
    gui.press("c")
    expect(gui.page.locator(".said")).to_contain_text("copied")
    assert re.search(r"#.*step=20", gui.page.evaluate("() => navigator.clipboard.readText()"))


def test_l_says_that_a_finished_run_does_not_go_on(gui: Panel) -> None:
    gui.press("l")
    expect(gui.page.locator(".said")).to_contain_text("does not go on")


def test_b_asks_for_a_second_run(gui: Panel) -> None:
    gui.press("b")
    expect(gui.page.get_by_role("dialog", name="Compare with another run")).to_be_visible()


def test_no_key_does_anything_while_something_is_written(gui: Panel) -> None:
    gui.press("m")
    field = gui.page.get_by_role("textbox", name="At step")
    expect(field).to_be_focused()
    gui.page.keyboard.type("jkn 123")
    expect(field).to_have_value("jkn 123")
    assert gui.step == 20


def test_the_help_sheet_names_every_key_of_the_design(gui: Panel) -> None:
    gui.press("?")
    text = gui.page.get_by_role("dialog").inner_text()
    for word in (
        "J",
        "K",
        "N",
        "P",
        "O",
        "Space",
        "W",
        "A",
        "S",
        "D",
        "F",
        "0",
        "/",
        "M",
        "C",
        "B",
        "L",
        "X",
        "?",
        "Alt",
    ):
        assert re.search(rf"(?m)(^|\W){re.escape(word)}(\W|$)", text), word
