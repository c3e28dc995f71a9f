"""The report of a study is one page that asks for nothing, shows what it quotes as text, and fits any window."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.conftest import require
from worldline.study.sentences import EXPLAINED
from worldline.view.report_html import report_page

HOSTILE = '</span><script>document.title="taken"</script><img src=http://x.invalid/a onerror=alert(1)>\ud800 \u202e'


def _answer(**more: Any) -> dict[str, Any]:
    seen = {"n": 32, "successes": 20, "undefined": 1}
    drop = {
        "step": 38,
        "drop": 0.62,
        "ci": [0.41, 0.79],
        "bounds": [0.4, 0.8],
        "before": seen,
        "after": {**seen, "successes": 0},
    }
    curve = [
        {"at": at, "v": v, "low": max(0.0, v - 0.2), "high": min(1.0, v + 0.2), "n": 40, "successes": round(40 * v)}
        for at, v in ((0, 0.81), (20, 0.8), (38, 0.78), (39, 0.16), (50, 0.0))
    ]
    answer = {
        "verdict": "decisive", "method": "locate", "steps": 50, "interval": [38, 39], "step": 38, "drop": 0.62,
        "ci": [0.41, 0.79], "share": 0.77, "certified": [drop], "tested": [{**drop, "step": 12, "drop": 0.02}],
        "unexplained": 0.1, "curve": curve, "untested": [{"interval": [0, 38], "drop": 0.03}],
        "not_attributable": [3, 4], "rollouts": 312, "live_steps": 4102, "tokens": 1_900_000, "money": 0.0,
        "undefined": 2, "diverged": 1, "delta": 0.05, "stopped": None, "warnings": [], "notes": [],
        "study": "study_01m8p31bgnea5hm9z967qpvbew", "kind": "attribute", "run": "run_01m8p31bgnhwx9wz6rqnmg026q",
        "task": HOSTILE, "verifier": "exit-code", "agent": "agent.py", "sentence": "Step 38 cost 0.62.",
        "recorded": [{"step": 38, "action": HOSTILE, "seq": 1}],
        "rescued": [{"at": 38, "k": 1, "run": "run_01m8p31bgnfh2bn4tnqy2g7gqp", "action": "asked first"}],
    }  # fmt: skip
    return {**answer, **more}


def test_the_page_says_it_all_and_asks_for_nothing() -> None:
    page = report_page(_answer(), explained=EXPLAINED["decisive"], beside=(HOSTILE, "asked\nfirst"), took=41.0)
    assert "<script" not in page and "default-src 'none'" in page
    assert not re.search(r"<[a-z]+[^>]*(?:src|href)=", page), "nothing is fetched, and no link leads away"
    for said in ("Step 38 cost 0.62.", "20 of 31 (+1 open)", "0.41 to 0.79", "Steps 0 to 37: not taken apart", "41 s",
                 "Steps 3, 4: always comes", "Step 12: tested", "worldline view 026q 7gqp", "at most 5%"):  # fmt: skip
        assert said in page, said
    assert page.encode("utf-8")


@pytest.mark.parametrize("verdict", EXPLAINED)
def test_every_verdict_has_a_page_also_where_nothing_was_drawn(verdict: str) -> None:
    bare = _answer(verdict=verdict, step=None, drop=None, ci=None, certified=[], curve=[], rescued=[], untested=[])
    page = report_page(bare, explained=EXPLAINED[verdict])
    assert verdict in page and "What it took" in page and "None" not in page


def test_links_lead_into_the_panel_where_one_is_named() -> None:
    page = report_page(_answer(), explained="", beside=("a", "b"), panel="http://127.0.0.1:8000/word/")
    both = "http://127.0.0.1:8000/word/#run=run_01m8p31bgnhwx9wz6rqnmg026q&amp;with=run_01m8p31bgnfh2bn4tnqy2g7gqp"
    assert f'href="{both}&amp;step=38"' in page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = os.environ.get("WORLDLINE_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    require("chromium", found, "not installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (1000, "dark"), (360, "light")])
def test_a_browser_shows_it_whole_and_runs_nothing_of_what_it_quotes(
    browser: Browser, width: int, scheme: Any, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_page(_answer(), explained="", beside=(HOSTILE, "asked")), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert "taken" not in page.title() and page.locator("script, img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the window"
    assert page.locator("svg").bounding_box()["width"] > 0.8 * min(width, 800)  # type: ignore[index]
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
    page.close()
