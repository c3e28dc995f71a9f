"""Debian's Chromium, driven by Playwright: found, never downloaded; it calls nobody but the pages it is sent to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Playwright, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
]
START_MS = 180_000  # of a cold disk, beside other work


def launch(playwright: Playwright, *flags: str) -> Browser:
    """A browser without a window."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags], timeout=START_MS)


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """A browser for one piece of work."""
    with sync_playwright() as playwright:
        browser = launch(playwright, *flags)
        yield browser
        browser.close()
