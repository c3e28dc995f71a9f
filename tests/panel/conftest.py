"""A browser for the tests of the panel, the recordings that they open, and the page as it is shipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.conftest import ROOT, require
from tests.panel.panel import LOOKING, SOON_MS, Panel
from tests.panel.runs.chromium import CHROMIUM, launch
from tests.panel.runs.kept import kept

PAGE = Path(os.environ.get("PANEL_PAGE", ROOT / "src" / "worldline" / "view" / "viewer.html"))
"""The built page; PANEL_PAGE names another build, for whoever works on it."""
AXE = ROOT / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
WIDE = {"width": 1440, "height": 900}

Opener = Callable[..., Panel]
Bundles = Callable[[str], Path]


# Of the package and not of the session: Playwright holds an event loop in this thread, in which no other can run.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this folder."""
    require("chromium", CHROMIUM, "no chromium is installed")
    with sync_playwright() as playwright:
        started = launch(playwright)
        yield started
        started.close()


@pytest.fixture
def panels(browser: Browser) -> Iterator[Opener]:
    """Makes pages, each in a context of its own; at the end each is judged (`Panel.check`)."""
    LOOKING.clear()

    def new(origin: str | None = None, **options: Any) -> Panel:
        context = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **options})
        LOOKING.append(Panel(context, origin))
        return LOOKING[-1]

    yield new
    for panel in LOOKING:
        panel.check()
        panel.context.close()


@pytest.fixture
def panel(panels: Opener) -> Panel:
    """One page that may ask nobody for anything."""
    return panels()


@pytest.fixture(scope="module")
def shared(browser: Browser) -> Iterator[Panel]:
    """One page for all tests of a module that only look at the run in a browser: opening it is most of their cost."""
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    panel = Panel(context).open(PAGE, kept("gui"))
    yield panel
    context.close()


@pytest.fixture
def gui(shared: Panel) -> Iterator[Panel]:
    """The run in a browser as it opens, on its denial at step 20; judged behind each test."""
    yield shared.again(20)
    shared.check()


@pytest.fixture(scope="session")
def bundle() -> Bundles:
    """A recording by its name (`gui`, `pair-failed`, `damaged-changed` ...), made once."""
    return kept


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which finds what is hard to use."""
    require("viewer", AXE.is_file(), "viewer/node_modules is not installed (make panel)")
    return AXE.read_text("utf-8")


@contextmanager
def viewing(*arguments: str | Path, **environment: str) -> Iterator[str]:
    """`worldline view` with these arguments, as a process. Gives the address that it prints; before it ends, the pages
    that look at it are judged and left."""
    command = [sys.executable, "-m", "worldline", "view", *map(str, arguments), "--no-open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment}
    )
    try:
        assert process.stdout is not None
        said = ""
        while (found := re.search(r"http://127\.0\.0\.1:\d+/\S+", said)) is None:
            line = process.stdout.readline()
            assert line, f"worldline view ended: {said}"
            said += line
        yield found[0]
        for panel in LOOKING:
            if panel.origin == origin_of(found[0]):
                panel.leave()
    finally:
        process.terminate()
        process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()


def origin_of(url: str) -> str:
    """Scheme, host and port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@pytest.fixture(scope="package", autouse=True)
def patience() -> None:
    """How long a test waits for what must come."""
    expect.set_options(timeout=SOON_MS)
