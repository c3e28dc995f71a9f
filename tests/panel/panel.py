"""The panel in a browser, as a test uses it: what is pressed, what is seen, and what it did behind the scenes.

Everything a page asks for, says on its console or throws is kept; `check` judges it at the end of a test.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Frame, Locator, Page, Request, WebSocket, expect

# For what must come; nothing waits that long where it comes, and a machine may be busy with something else.
SOON_MS = int(os.environ.get("PANEL_PATIENCE_MS", "60000"))
WATCH = (Path(__file__).parent / "watch.js").read_text("utf-8")


class Panel:
    """One page of the panel. `origin` is the only place that it may ask anything of; None where it may ask nobody."""

    def __init__(self, context: BrowserContext, origin: str | None = None) -> None:
        self.context = context
        self.origin = origin
        self.asked: list[str] = []
        self.said: list[str] = []
        self._times = 0
        self.allowed: list[str] = []  # patterns of console lines that a test expects
        context.add_init_script(WATCH)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(SOON_MS)
        context.on("request", self._request)
        self.page.on("websocket", self._socket)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.said.append(f"thrown: {error} {error.stack}"))
        self.page.on("dialog", self._dialog)

    # ------------------------------------------------------------------------------------------------------ opening

    def goto(self, url: str, *, ready: bool = True) -> Panel:
        """Go to an address; with `ready` until its run is read."""
        self.page.goto(url)
        return self.ready() if ready else self

    def open(self, page_file: Path, *bundles: Path, ready: bool = True) -> Panel:
        """Open the built page by `file:` and give it these files."""
        self.page.goto(page_file.as_uri())
        self.page.set_input_files("input[type=file]", [str(bundle) for bundle in bundles])
        return self.ready() if ready else self

    def ready(self) -> Panel:
        """Until a run is open and all of it has been read."""
        self.page.wait_for_function(READY)
        return self

    # ------------------------------------------------------------------------------------------------------- looking

    @property
    def step(self) -> int:
        """The step under the playhead."""
        return int(self.playhead.get_attribute("aria-valuenow") or -1)

    @property
    def playhead(self) -> Locator:
        """The slider."""
        return self.page.get_by_role("slider", name="Playhead")

    @property
    def steps(self) -> Locator:
        """The list of steps."""
        return self.page.get_by_role("listbox", name="Steps").first

    @property
    def inspector(self) -> Locator:
        """The pane on the right."""
        return self.page.get_by_test_id("inspector")

    @property
    def stage(self) -> Locator:
        """The pane in the middle."""
        return self.page.get_by_role("region", name="Stage")

    @property
    def verdict(self) -> Locator:
        """The line that says how it ended."""
        return self.page.get_by_test_id("verdict")

    def at(self, step: int) -> None:
        """Until the playhead stands at a step, and the inspector shows it."""
        expect(self.playhead).to_have_attribute("aria-valuenow", str(step))
        self.settled()

    def settled(self) -> None:
        """Until what is shown is of the step under the playhead."""
        expect(self.page.locator("#inspector-panel")).to_have_attribute("aria-busy", "false")
        expect(self.page.locator("#inspector-panel .empty-line[role=status]")).to_have_count(0)

    def tab(self, name: str) -> Locator:
        """A tab of the inspector, once it is chosen."""
        found = self.inspector.get_by_role("tab", name=re.compile(f"^{re.escape(name)}"))
        found.click()
        expect(found).to_have_attribute("aria-selected", "true")
        return self.page.locator("#inspector-panel")

    def layer(self, name: str) -> Locator:
        """A layer of the stage, once it is chosen."""
        found = self.stage.get_by_role("tab", name=name)
        found.click()
        expect(found).to_have_attribute("aria-selected", "true")
        return self.page.locator("#stage-panel")

    def moment(self, name: str) -> None:
        """Look at what was before, at or after the action."""
        self.stage.get_by_role("group", name="Moment").get_by_role("button", name=name).click()

    # ------------------------------------------------------------------------------------------------------ pressing

    def press(self, *keys: str) -> Panel:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def search(self, words: str) -> Locator:
        """The search, open, for these words."""
        self.press("/")
        self.page.get_by_label("What to seek").fill(words)
        return self.page.get_by_test_id("search")

    def away(self) -> Panel:
        """Take the focus away from where it is: lists and tabs have keys of their own."""
        self.page.evaluate("() => document.activeElement.blur()")
        return self

    def again(self, step: int) -> Panel:
        """Back to how the run opened at a step: nothing above the page, the first tab and layer, the whole run."""
        self._times += 1
        place = (
            f"#step={step}&tab=decision&stage=seen&again={self._times}"  # another place each time, else nothing happens
        )
        self.press("Escape", "Escape").away().press("0")
        self.page.evaluate("(place) => { location.hash = place; }", place)
        self.at(step)
        return self

    def reveal(self, reason: str = "looking into a failure") -> None:
        """Reveal the whole run, as a user does."""
        self.page.get_by_role("button", name=re.compile("^Masking")).click()
        self.page.get_by_role("button", name="reveal all…").click()
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_label("Why").fill(reason)
        dialog.get_by_role("button", name="reveal", exact=True).click()
        expect(dialog).to_have_count(0)

    # ------------------------------------------------------------------------------------------------------- judging

    def check(self) -> None:
        """It asked nobody else, said no error, and ran nothing that it was given. Raises `AssertionError`."""
        foreign = [url for url in self.asked if not self._own(url)]
        assert not foreign, f"the page asked for {foreign}"
        said = [line for line in self.said if not any(re.search(pattern, line) for pattern in self.allowed)]
        assert not said, f"the page said {said}"
        for frame in self.page.frames:
            if was_hit(frame):
                raise AssertionError(f"something ran in {frame.url}")

    def leave(self) -> None:
        """Judge the page and leave it, before its server ends: it asks on, and would say that nobody answers."""
        self.check()
        self.page.goto("about:blank")

    def shifts(self) -> list[str]:
        """The layout shifts since the last look."""
        return list(self.page.evaluate("() => window.__shifts.splice(0)"))

    def drawn(self) -> int:
        """How many strokes the timeline's canvases were given since the last look."""
        return int(self.page.evaluate("() => { const n = window.__drawn; window.__drawn = 0; return n; }"))

    def _own(self, url: str) -> bool:
        parts = urlsplit(url)
        if parts.scheme in ("data", "blob", "about"):
            return True
        if self.origin is None:
            return parts.scheme == "file"
        return f"{parts.scheme}://{parts.netloc}" == self.origin

    def _request(self, request: Request) -> None:
        self.asked.append(request.url)

    def _socket(self, socket: WebSocket) -> None:
        self.asked.append(socket.url)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.said.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.said.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


LOOKING: list[Panel] = []
"""The pages that the running test has made. Not in the conftest: pytest has another copy of it than who imports it."""
READY = """() => {
  const facts = document.querySelector(".facts");
  return facts !== null && document.querySelector(".facts .scanning") === null;
}"""


def was_hit(frame: Frame) -> bool:
    """Whether something ran in the frame that was not to run. One that goes away meanwhile is the page's no more."""
    while not frame.is_detached():
        try:
            return bool(frame.evaluate("() => window.__hit !== undefined"))
        except Error as error:  # a snapshot's frame loads its document, or makes way for the next one: asked again
            if not re.search("context was destroyed|context with given id|detached", error.message):
                raise
    return False


def labels(options: Sequence[Locator]) -> list[str]:
    """The spoken names of rows."""
    return [option.get_attribute("aria-label") or "" for option in options]
