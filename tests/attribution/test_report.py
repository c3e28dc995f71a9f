"""The report of a study is one page that asks for nothing, shows what it quotes as text, and fits any window."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.conftest import require
from tests.panel.conftest import AXE
from worldline.study.sentences import AB_EXPLAINED, EXPLAINED, REPAIR_EXPLAINED, explained
from worldline.view.report_html import report_page
from worldline.view.report_page import Around
from worldline.view.report_weak import weak_page

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


def _tested(action: str, successes: int, low: float, high: float, state: str) -> dict[str, Any]:
    return {
        "changes": [{"step": 38, "action": json.dumps({"text": action, "calls": []}), "source": "user"}],
        "drift": 0.4, "count": {"n": 40, "successes": successes, "undefined": 2}, "interval": [low, high],
        "state": state,
    }  # fmt: skip


def _fix(**more: Any) -> dict[str, Any]:
    best = _tested(HOSTILE, 38, 0.72, 1.0, "valid")
    said = {"text": HOSTILE, "calls": [{"name": "refund", "arguments": {"cents": 4900}}]}
    pair = {"steps": [38], "rejected": [{"text": "", "calls": []}], "chosen": [said], "minimality": 0.6}
    others = [_tested("b" * 400, 4, 0.02, 0.31, "invalid"), _tested("c", 20, 0.3, 0.7, "open")]
    return _answer(
        kind="repair", verdict="validated", sentence="Changing step 38 saves it.", fix=best, wrong=[], pair=pair,
        minimality=0.6, tested=[best, *others], target=0.5, method=None, **more,
    )  # fmt: skip


def _arms(**more: Any) -> dict[str, Any]:
    names = ("as-is", f"action={json.dumps({'text': HOSTILE})}", "model=" + "b" * 80)
    arms = [
        {"name": name, "count": {"n": 40, "successes": n, "undefined": 0}, "rate": n / 40, "interval": [n / 50, 0.9],
         "mean_score": 0.5, "rates": None, "runs": ["run_01m8p31bgnfh2bn4tnqy2g7gqp"] if n == 36 else []}
        for name, n in zip(names, (36, 8, 30), strict=True)
    ]  # fmt: skip
    both = [((0, 1), 0.7, [0.5, 0.9]), ((0, 2), 0.15, [-0.1, 0.4]), ((1, 2), -0.55, [-0.8, -0.2])]
    differences = [
        {"first": names[a], "second": names[b], "difference": d, "ci": ci, "bounds": ci, "method": "Newcombe",
         "score_difference": d, "score_ci": ci, "coverage": 0.93}
        for (a, b), d, ci in both
    ]  # fmt: skip
    return _answer(
        kind="ab", verdict="clear", sentence="From step 38 on, as-is succeeds more often.", at=38, arms=arms,
        differences=differences, method=None, **more,
    )  # fmt: skip


def _several(none: bool = False) -> str:
    weak = {"name": HOSTILE, "culprit_in": 4, "certified_in": 5, "share": 0.8, "share_ci": [0.4, 0.95],
            "mean_drop": 0.5, "mean_ci": [0.3, 0.7], "runs": []}  # fmt: skip
    other = {**weak, "name": "pay", "culprit_in": 1, "share": 0.2}
    steps = [] if none else [weak, other]
    found = {"runs": 6, "steps": steps, "verdicts": {"decisive": 5}, "warnings": ["little is known"]}
    return weak_page(found, [_answer(), _answer(step=None, verdict="diffuse")], took=150.0, panel=None)


def _page(answer: dict[str, Any], beside: tuple[str, str] | None = None, panel: str | None = None) -> str:
    rescued = "run_01m8p31bgnfh2bn4tnqy2g7gqp" if answer["rescued"] else None
    return report_page(answer, Around(explained(answer), beside, rescued, 41.0, panel))


PAGES: dict[str, Callable[[], str]] = {
    "attribute": lambda: _page(_answer(), (HOSTILE, "asked\nfirst")),
    "shapley": lambda: _page(_answer(values=[{"step": n, "value": 0.1 * n - 0.2, "ci": None} for n in range(4)])),
    "repair": lambda: _page(_fix()),
    "ab": lambda: _page(_arms(), (HOSTILE, "asked first")),
    "together": _several,
}


def _asks_for_nothing(page: str) -> bool:
    """Nothing is fetched, no link leads away, nothing runs, and it can be written down."""
    page.encode("utf-8")
    return "<script" not in page and "default-src 'none'" in page and not re.search(r"<[a-z]+[^>]*(?:src|href)=", page)


def test_the_page_says_it_all_and_asks_for_nothing() -> None:
    page = PAGES["attribute"]()
    assert _asks_for_nothing(page)
    for said in ("Step 38 cost 0.62.", "20 of 31 (+1 open)", "0.41 to 0.79", "Steps 0 to 37: not taken apart", "41 s",
                 "Steps 3, 4: always comes", "Step 12: tested", "worldline view 026q 7gqp", "at most 5%"):  # fmt: skip
        assert said in page, said


def test_a_repairs_page_shows_the_pair_and_everything_that_was_tried() -> None:
    page = PAGES["repair"]()
    assert _asks_for_nothing(page)
    for said in ("Changing step 38 saves it.", "38 of 38 (+2 open): good enough", "4 of 38 (+2 open): not good enough",
                 "0.72 to 1.00", "right of the line at 50%", "(nothing)", "refund", "It is 60% like", "C: not decided",
                 "Step 38 alone was changed", "worldline view 026q 7gqp", "41 s", "in at most 5%"):  # fmt: skip
        assert said in page, said


def test_a_comparisons_page_shows_every_arm_and_what_lies_between_them() -> None:
    page = PAGES["ab"]()
    assert _asks_for_nothing(page)
    for said in ("36 of 40 went well", "+70%: clear", "+15%: may be chance", "−55%: clear", "all pairs together",
                 "settled beforehand", "(between +0.50 and +0.90", "worldline view 026q 7gqp", "step 38"):  # fmt: skip
        assert said in page, said


def test_several_runs_make_one_page_that_names_the_step_that_is_weak_in_all() -> None:
    page = _several()
    assert _asks_for_nothing(page)
    for said in ("4 of 6 runs lose it at the same step", "worst in 4 of 6 runs", "0.30 to 0.70", "624",
                 "In 1 of the runs", "little is known", "diffuse"):  # fmt: skip
        assert said in page, said
    assert "In none of the 6 runs could a step be named." in _several(none=True)


@pytest.mark.parametrize("verdict", EXPLAINED)
def test_every_verdict_has_a_page_also_where_nothing_was_drawn(verdict: str) -> None:
    bare = _answer(verdict=verdict, step=None, drop=None, ci=None, certified=[], curve=[], rescued=[], untested=[])
    page = _page(bare)
    assert verdict in page and "What it took" in page and "None" not in page


@pytest.mark.parametrize("verdict", [*REPAIR_EXPLAINED, *AB_EXPLAINED])
def test_so_has_every_verdict_of_a_repair_and_a_comparison(verdict: str) -> None:
    nothing = {"n": 0, "successes": 0, "undefined": 0}
    if verdict in REPAIR_EXPLAINED:
        bare = {**_fix(stopped="rollouts"), "verdict": verdict, "fix": None, "pair": None, "step": None, "tested": []}
    else:
        arms = [{**arm, "count": nothing, "rate": 0.0, "mean_score": None, "runs": []} for arm in _arms()["arms"]]
        bare = {**_arms(stopped="rollouts"), "verdict": verdict, "arms": arms}
    page = _page({**bare, "rescued": []})
    assert verdict in page and "the cap on rollouts" in page and "None" not in page


def test_links_lead_into_the_panel_where_one_is_named() -> None:
    both = "http://127.0.0.1:8000/word/#run=run_01m8p31bgnhwx9wz6rqnmg026q&amp;with=run_01m8p31bgnfh2bn4tnqy2g7gqp"
    for answer in (_answer(), _fix(), _arms()):
        page = _page(answer, ("a", "b"), panel="http://127.0.0.1:8000/word/")
        assert f'href="{both}&amp;step=38"' in page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = os.environ.get("WORLDLINE_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    require("chromium", found, "not installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", PAGES)
def test_a_browser_shows_it_whole_in_any_width_for_everybody_and_runs_nothing_of_what_it_quotes(
    browser: Browser, kind: str, scheme: Any, tmp_path: Path
) -> None:
    require("viewer", AXE.is_file(), "viewer/node_modules is not installed (make panel)")
    file = tmp_path / "report.html"
    file.write_text(PAGES[kind](), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme=scheme, bypass_csp=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert page.title() != "taken" and page.locator("script, img").count() == 0
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(255, 255, 255)") == (scheme == "light")
    page.evaluate(AXE.read_text("utf-8"))
    for width in (360, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the window"
        picture = page.locator("svg, .bars").first.bounding_box()
        assert picture is not None and picture["width"] > 0.8 * min(width, 800)
    found = page.evaluate("() => axe.run(document).then((r) => r.violations)")
    assert [(rule["id"], node["target"]) for rule in found for node in rule["nodes"]] == []
    page.close()
