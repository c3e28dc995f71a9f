"""The panel as it is measured: one page in Chromium, what it asked for, held and drew, and how soon.

Times are taken inside the page, on its own clock: from the event of an input to the frame behind it.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page

WIDE = {"width": 1440, "height": 900}
LONGEST_MS = 240_000
LOOK_MS, IDLE_SECONDS = 500, 0.02
PROBES = (Path(__file__).parent / "panel_probes.js").read_text("utf-8")
SCANNED = """() => { const facts = document.querySelector(".facts");
  return facts !== null && document.querySelector(".facts .scanning") === null; }"""


# The record is checked, and the timeline was not drawn on since the last look.
AT_REST = """() => { const drawn = __probe.drawn; __probe.drawn = 0;
  return drawn === 0 && !/checking/.test(document.querySelector(".facts").textContent); }"""
# A step that shows the picture of the step before draws none.
SETTLED = """() => !document.querySelector("#stage-panel.stale")
  && (__probe.picture > 0 || performance.now() - __probe.clicked > 3000)"""


class First(NamedTuple):
    """Until the first row of the list is drawn: milliseconds, bytes and requests; and until all rows are read."""

    ms: float
    bytes: int
    requests: int
    read_ms: float


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[tuple[Page, First]]:
    """A page at this address, all of its run read, and how its first screen came."""
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    context.add_init_script(PROBES)
    page = context.new_page()
    page.set_default_timeout(LONGEST_MS)
    came: list[tuple[float, int]] = []
    asked: list[float] = []
    cdp = context.new_cdp_session(page)
    cdp.send("Network.enable")
    cdp.on("Network.requestWillBeSent", lambda event: asked.append(event["timestamp"]))
    cdp.on("Network.dataReceived", lambda event: came.append((event["timestamp"], event["dataLength"])))
    at_rest(browser, page)
    page.goto(url, wait_until="commit")
    page.wait_for_function("() => window.__probe.rows > 0")
    rows = float(page.evaluate("() => __probe.rows"))
    page.wait_for_function(SCANNED)
    read = float(page.evaluate("() => performance.now()"))
    page.wait_for_function(AT_REST, polling=1000)
    until = (asked[0] if asked else 0) + rows / 1000
    yield (
        page,
        First(rows, sum(size for at, size in came if at <= until), sum(at <= until for at in asked), read),
    )
    context.close()


def at_rest(browser: Browser, page: Page) -> None:
    """Wait for a new window of the browser: its own pages (tabs, side panels) take half a second of both cores."""
    cdp = browser.new_browser_cdp_session()
    used = [0.0]
    while True:
        processes = cdp.send("SystemInfo.getProcessInfo")["processInfo"]
        used.append(sum(process["cpuTime"] for process in processes))
        if used[-1] - used[-2] < IDLE_SECONDS:
            break
        page.wait_for_timeout(LOOK_MS)
    cdp.detach()


def held(page: Page) -> tuple[int, int]:
    """Elements of the document, and bytes of the page's JavaScript heap behind a collection."""
    cdp = page.context.new_cdp_session(page)
    cdp.send("HeapProfiler.collectGarbage")
    cdp.send("Performance.enable")
    metrics = {metric["name"]: metric["value"] for metric in cdp.send("Performance.getMetrics")["metrics"]}
    return int(page.evaluate("() => document.querySelectorAll('*').length")), int(metrics["JSHeapUsedSize"])


def scrubbed(page: Page, moves: int) -> tuple[float, int]:
    """Drag the playhead through the whole run: p95 from an input to its frame in ms, and strokes on the timeline."""
    page.keyboard.press("0")
    page.wait_for_timeout(500)
    box = page.get_by_test_id("timeline-plot").bounding_box()
    assert box
    at = [(box["x"] + box["width"] * (0.02 + 0.96 * n / moves), box["y"] + 4) for n in range(moves)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.wait_for_timeout(300)
    page.evaluate("() => { __probe.frames.length = 0; __probe.drawn = 0; }")
    for place in at:
        page.mouse.move(*place)
    frames: list[float] = page.evaluate("() => __probe.frames")
    drawn = int(page.evaluate("() => __probe.drawn"))
    page.mouse.up()
    return p95(frames), drawn


def sought(page: Page, seeks: int) -> float:
    """Jump all over the run with the screen on the stage: p95 from the click to its full picture, in ms."""
    page.keyboard.press("Alt+2")
    page.wait_for_timeout(1500)
    box = page.get_by_test_id("timeline-plot").bounding_box()
    assert box
    took = []
    for n in range(seeks):
        x = box["x"] + box["width"] * (0.03 + 0.94 * ((n * 37) % seeks) / seeks)
        page.mouse.move(x - 6, box["y"] + 4)
        page.mouse.down()
        page.mouse.move(x, box["y"] + 4)
        page.mouse.up()
        page.wait_for_function(SETTLED)
        drawn = float(page.evaluate("() => __probe.picture && __probe.picture - __probe.clicked"))
        took += [drawn] if drawn else []
    if not took:
        raise SystemExit("benchmarks: no seek drew a picture on the stage")
    return p95(took)


def found(page: Page, words: str) -> float:
    """Search for words: from their last letter to the first hit in the list, in ms."""
    page.keyboard.press("/")
    field = page.get_by_label("What to seek")
    field.fill(words[:-1])
    page.wait_for_timeout(1500)
    page.evaluate("() => __untilHit()")
    page.keyboard.type(words[-1:])
    page.wait_for_function("() => __probe.hit > 0")
    took = float(page.evaluate("() => __probe.hit"))
    page.keyboard.press("Escape")
    return took


def p95(values: list[float]) -> float:
    """The value that 95 of 100 stay below."""
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


@contextmanager
def viewing(bundle: Path) -> Iterator[str]:
    """`worldline view` of a bundle, as a process. Gives its address."""
    command = [sys.executable, "-m", "worldline", "view", str(bundle), "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    said: Any = ""
    while not (match := re.search(r"http://127\.0\.0\.1:\d+/\S+", said)):
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"benchmarks: worldline view ended: {said}")
        said += line
    try:
        yield match[0]
    finally:
        process.terminate()
        process.communicate()
