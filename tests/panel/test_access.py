"""Everybody can use it: no rule of axe broken in any pane and theme, everything reached by keyboard, nothing jumps."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Bundles, Opener
from tests.panel.panel import Panel

TABS = ("Decision", "Snapshot", "State", "Console", "Network", "Raw", "Integrity")
LAYERS = ("What the agent saw", "Screen", "DOM")


def violations(panel: Panel, axe: str) -> list[str]:
    """What axe finds on the page as it is, in words."""
    if not panel.page.evaluate("() => 'axe' in window"):
        panel.page.evaluate(axe)
    found: list[dict[str, Any]] = panel.page.evaluate(
        "() => axe.run(document, { iframes: false }).then((r) => r.violations)"
    )
    return [f"{v['id']}: {v['help']}: {node['target']} {node['failureSummary']}" for v in found for node in v["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_pane(panels: Opener, bundle: Bundles, axe: str, theme: str) -> None:
    panel = panels(color_scheme=theme, bypass_csp=True)
    panel.page.goto(page_file.as_uri())
    expect(panel.page.get_by_test_id("empty")).to_be_visible()
    assert violations(panel, axe) == []
    panel.page.set_input_files("input[type=file]", str(bundle("gui")))
    panel.ready().at(20)
    found: dict[str, list[str]] = {"as it opens": violations(panel, axe)}
    for layer in LAYERS:
        panel.layer(layer)
        found[f"masked {layer}"] = violations(panel, axe)
    panel.reveal()
    for layer in LAYERS:
        panel.layer(layer)
        found[layer] = violations(panel, axe)
    for tab in TABS:
        panel.tab(tab)
        found[tab] = violations(panel, axe)
    for key, shown in (("?", "dialog"), ("/", "[data-testid=search]"), ("m", "dialog")):
        panel.press(key)
        expect(panel.page.locator(shown).first).to_be_visible()
        found[f"behind {key}"] = violations(panel, axe)
        panel.press("Escape")
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_a_comparison(panels: Opener, bundle: Bundles, axe: str, theme: str) -> None:
    panel = panels(bypass_csp=True, color_scheme=theme).open(page_file, bundle("pair-failed"), bundle("pair-rescued"))
    expect(panel.page.locator(".first-bar")).to_be_visible()
    panel.settled()  # what still shows the step before is faded
    assert violations(panel, axe) == []


def test_the_keyboard_alone_reaches_everything(panel: Panel, bundle: Bundles) -> None:
    """Tab goes through the page, shows where it is, and comes by every pane; what it does not stop at has keys."""
    panel.open(page_file, bundle("gui")).at(20)
    reached: list[str] = []
    for _ in range(140):
        panel.press("Tab")
        found = panel.page.evaluate(
            """() => { const e = document.activeElement;
              if (e === document.body) return "";
              const ring = getComputedStyle(e), seen = ring.outlineStyle !== "none" || ring.boxShadow !== "none"
                || e.matches("canvas, iframe, [role=option]");
              const name = e.getAttribute("aria-label") || e.textContent.trim() || e.title;
              return (seen ? "" : "no ring: ") + name.slice(0, 60); }"""
        )
        if found in reached[:1]:
            break
        reached.append(found)
    text = "\n".join(reached)
    assert "no ring" not in text, text
    for part in (
        "Search",
        "Masking",
        "Help",
        "Steps",
        "Decision",
        "What the agent saw",
        "fork from here",
        "Play",
        "Playhead",
    ):
        assert part in text, f"{part} is not among {reached}"
    # Lists, tabs and radios are one stop each; their arrows go on from there.
    panel.steps.focus()
    panel.press("ArrowDown").at(21)
    panel.inspector.get_by_role("tab", selected=True).focus()
    panel.press("ArrowRight")
    expect(panel.inspector.get_by_role("tab", name="Snapshot")).to_be_focused()


def test_nothing_shifts_and_no_canvas_is_drawn_while_scrubbing(panel: Panel, bundle: Bundles) -> None:
    panel.open(page_file, bundle("gui")).at(20)
    panel.settled()
    expect(panel.page.get_by_text("checking")).to_have_count(0)
    panel.shifts()
    panel.drawn()
    plot = panel.page.get_by_test_id("timeline-plot").bounding_box()
    assert plot
    panel.page.mouse.move(plot["x"] + plot["width"] * 0.1, plot["y"] + 4)
    panel.page.mouse.down()
    for part in range(10, 95):
        panel.page.mouse.move(plot["x"] + plot["width"] * part / 100, plot["y"] + 4)
    panel.page.mouse.up()
    panel.settled()
    assert panel.shifts() == []
    assert panel.drawn() == 0


def test_a_press_on_the_timeline_leads_there(panel: Panel, bundle: Bundles) -> None:
    """Between the marks to the time, on a mark to what it marks; its tab opens."""
    panel.open(page_file, bundle("gui")).at(20)
    plot = panel.page.get_by_test_id("timeline-plot").bounding_box()
    assert plot
    told = []
    for part in (0.2, 0.8, 0.5):
        panel.page.mouse.click(plot["x"] + plot["width"] * part, plot["y"] + 4)
        panel.at(panel.step)
        told.append((part, panel.step, panel.playhead.bounding_box()))
    assert [step for _, step, _ in sorted(told)] == sorted({step for _, step, _ in told}), told
    for part, _, head in told:
        assert head and abs(head["x"] + head["width"] / 2 - plot["x"] - plot["width"] * part) < 3
    labels = panel.page.locator(".tl-label.tl-console").bounding_box()
    assert labels
    panel.page.mouse.move(0, 0)
    row = labels["y"] + labels["height"] / 2
    for x in range(0, int(plot["width"]), 2):  # the first mark of the lane, wherever it is drawn
        panel.page.mouse.move(plot["x"] + x, row)
        if panel.page.get_by_test_id("timeline-plot").evaluate("(e) => e.style.cursor") == "pointer":
            panel.page.mouse.click(plot["x"] + x, row)
            break
    expect(panel.inspector.get_by_role("tab", name="Console")).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize("width", [1440, 1000, 700, 500])
def test_no_width_makes_the_page_scroll_sideways(panels: Opener, bundle: Bundles, width: int) -> None:
    panel = panels(viewport={"width": width, "height": 900}).open(page_file, bundle("gui"))
    assert panel.page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    if width < 1000:
        return  # the inspector is folded away
    # At step 4 long messages stand in the list of what the model was told.
    panel.press("Home", *"jjjj").at(4)
    assert panel.inspector.locator("#inspector-panel").evaluate("(pane) => pane.scrollWidth - pane.clientWidth") <= 0
