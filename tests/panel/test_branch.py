"""A branch is shown with the history that it continues: numbered as `worldline show` does, each part in its own run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import expect

from tests.cli.terminal import worldline
from tests.fork.outside import Outside
from tests.fork.shop import Desk, clerk
from tests.panel.conftest import PAGE as page_file
from tests.panel.conftest import Opener, origin_of, viewing
from tests.panel.panel import Panel
from tests.panel.test_access import violations
from worldline.testing.provider import Provider

NUMBERED = """() => [...document.querySelectorAll("[data-testid=steps] [role=option]")].map((row) =>
  [row.querySelector(".number").innerText.replace(/\\D/g, ""), row.querySelector(".action").innerText,
   row.querySelector(".older") !== null])"""


class Family(NamedTuple):
    """A run, a fork of it at step 2, and a fork of that at step 3."""

    store: Path
    first: str
    fork: str
    again: str

    def shown(self, run: str) -> list[tuple[int, str]]:
        """The steps that `worldline show` prints of one: their numbers, and the tool that ran first."""
        said: dict[str, Any] = json.loads(worldline("show", run, "--json", "--store", self.store).out)
        return [(step["index"], step["calls"][0]["name"] if step["calls"] else "") for step in said["steps"]]


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    folder, before = tmp_path_factory.mktemp("branch"), Path.cwd()
    os.chdir(folder)
    try:
        with Outside() as outside, Provider(clerk) as provider:
            desk = Desk(folder, provider, outside)
            first = desk.record()
            made = []
            for parent, at in ((first, "step:2"), (None, "step:3")):
                done = desk.verb("fork", parent or made[-1], "--at", at)
                assert done.code == 0, done.err
                made.append(desk.newest())
        yield Family(desk.store, first, *made)
    finally:
        os.chdir(before)


def listed(panel: Panel) -> list[tuple[int, str, bool]]:
    return [(int(number), action, old) for number, action, old in panel.page.evaluate(NUMBERED)]


def test_the_steps_of_a_branch_and_those_before_it_are_numbered_as_show_numbers_them(
    panels: Opener, family: Family
) -> None:
    """Of a fork of a fork the steps before stand in two runs, and each is looked for in its own."""
    with viewing(family.store / family.again) as url:
        panel = panels(origin_of(url)).goto(url)
        band = panel.page.get_by_test_id("began")
        expect(band).to_contain_text(f"Began at step 3 of run {family.fork[-4:]}")
        expect(band).to_contain_text("sealed")  # judged as the run that it is
        for run in (family.first, family.fork):
            expect(panel.steps.locator(".older", has_text=run[-4:]).first).to_be_visible()
        found = listed(panel)
        own = family.shown(family.again)
        assert [(number, old) for number, _, old in found] == [(n, n < own[0][0]) for n in range(own[-1][0] + 1)]
        history = {**dict(family.shown(family.first)[:2]), **dict(family.shown(family.fork)[:1]), **dict(own)}
        assert all(history[number] in action for number, action, _ in found), (found, history)
        # Its own steps are those that keys go to; the first one says which key leads further back.
        panel.steps.focus()
        panel.press("Home").at(0)
        panel.press("k")
        expect(panel.page.locator(".said")).to_contain_text(f"step 2 is one of run {family.fork[-4:]}")


def test_a_branch_beside_the_run_that_it_left_has_its_steps_before_from_there(panels: Opener, family: Family) -> None:
    """It holds its own rows alone: what it was served is no difference."""
    with viewing(family.store / family.first, family.store / family.fork) as url:
        panel = panels(origin_of(url)).goto(url)
        rows = panel.page.get_by_role("listbox", name="Aligned steps").get_by_role("option")
        panel.page.get_by_role("button", name="fold same").click()
        expect(rows.get_by_text("served from that run")).to_have_count(2)
        expect(panel.page.locator(".spine-list .r-left")).to_have_count(0)
        rows.first.click()
        expect(panel.page.get_by_text("was served this step as it is")).to_be_visible()


def test_one_press_leads_to_the_run_that_a_branch_left_where_it_did(panels: Opener, family: Family) -> None:
    with viewing(family.store / family.fork) as url:
        panel = panels(origin_of(url)).goto(url)
        here, title = panel.page.get_by_role("heading", level=1), f"run {family.first[-4:]}"
        panel.press("u")
        expect(here).to_have_text(title)
        panel.at(2)
        expect(panel.page.get_by_test_id("began")).to_have_count(0)
        panel.page.go_back()
        expect(here).to_have_text(f"run {family.fork[-4:]}")
        panel.steps.get_by_role("option").nth(1).click()
        expect(here).to_have_text(title)
        panel.at(1)
        panel.page.go_back()
        expect(here).to_have_text(f"run {family.fork[-4:]}")
        panel.page.get_by_role("region", name="Timeline").get_by_role(
            "button", name=re.compile(f"began at step 2 of {title}")
        ).click()
        expect(here).to_have_text(title)
        panel.page.goto("about:blank")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_list_of_runs_a_branch_its_family_and_the_fork_dialog(
    panels: Opener, family: Family, axe: str, theme: str
) -> None:
    with viewing(family.store) as url:
        panel = panels(origin_of(url), color_scheme=theme, bypass_csp=True).goto(url, ready=False)
        rows = panel.page.get_by_role("listbox", name="Runs").get_by_role("option")
        expect(rows).to_have_count(3)
        found = {"runs": violations(panel, axe)}
        rows.first.dblclick()
        panel.ready()
        expect(panel.steps.locator(".older .action", has_text="look")).to_be_visible()
        found["branch"] = violations(panel, axe)
        panel.page.get_by_role("button", name="Forks").click()
        expect(panel.page.locator(".fork-row")).to_have_count(3)
        found["forks"] = violations(panel, axe)
        panel.page.get_by_role("button", name=re.compile("^fork from step")).click()
        expect(panel.page.get_by_role("dialog")).to_contain_text("worldline fork")
        found["fork"] = violations(panel, axe)
        panel.page.goto("about:blank")
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_branch_alone_says_where_its_history_is(panel: Panel, family: Family, tmp_path: Path) -> None:
    packed = tmp_path / "branch.skn"
    done = worldline("pack", family.fork, "-o", packed, "--store", family.store)
    assert done.code == 0, done.err
    panel.open(page_file, packed)
    band = panel.page.get_by_test_id("began")
    expect(band).to_contain_text(f"Began at step 2 of run {family.first[-4:]}")
    expect(band.get_by_role("button", name="copy command")).to_have_attribute("title", f"worldline view {family.first}")
    assert [number for number, _, _ in listed(panel)] == [n for n, _ in family.shown(family.fork)]
