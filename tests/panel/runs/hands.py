"""The tools of an agent in a browser, and what is recorded around them: sight, console, requests, windows.

Each tool is a `worldline.tool`; after each the page is looked at. Console lines and requests are recorded as they come.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from playwright.sync_api import Browser, ConsoleMessage, Page, Request
from playwright.sync_api import TimeoutError as Timeout

import worldline as wl
from tests.conftest import ROOT
from tests.panel.runs.eyes import Eyes

P = ParamSpec("P")
R = TypeVar("R")
RRWEB = ROOT / "viewer" / "node_modules" / "rrweb" / "dist" / "rrweb.umd.min.cjs"
LEVELS = {"warning": "warning", "error": "error", "info": "info", "debug": "debug", "assert": "error"}
PATIENCE_MS = 20_000
DISABLED_MS = 1500  # for what was disabled when it was last seen, and will stay so
FILM = "() => { window.__events = []; rrweb.record({ emit: (event) => window.__events.push(event) }); }"


class Hands:
    """A browser page as an agent has it. With `rrweb` the page records itself, too."""

    def __init__(self, browser: Browser, base: str, *, rrweb: bool = False, scale: float = 1) -> None:
        self._base = base
        self._context = browser.new_context(
            viewport={"width": 1280, "height": 800}, device_scale_factor=scale, reduced_motion="reduce"
        )
        self.page: Page = self._context.new_page()
        self.eyes = Eyes(self.page)
        self._rrweb = rrweb and RRWEB.is_file()
        if self._rrweb:
            self._recorder = RRWEB.read_text("utf-8")
        self.page.on("console", self._console)
        self._under_way = 0
        self.page.on("request", lambda _: self._counted(1))
        self.page.on("requestfinished", self._request)
        self.page.on("requestfailed", self._request)
        self.tools: dict[str, Callable[..., Any]] = {
            f"browser.{name}": wl.tool(name=f"browser.{name}", effect=effect)(in_words(does))
            for name, effect, does in (
                ("goto", "idempotent", self._goto),
                ("click", "side_effecting", self._click),
                ("fill", "side_effecting", self._fill),
                ("select", "side_effecting", self._select),
                ("press", "side_effecting", self._press),
                ("back", "idempotent", self._back),
            )
        }

    def close(self) -> None:
        """The window is closed; what its own recorder has is recorded."""
        self.film()
        self._context.close()

    def look(self) -> str:
        """Record what is seen now. Returns it as the model reads it."""
        self._settle()
        wl.observe(
            {"url": self.page.url, "title": self.page.title(), "width": 1280, "height": 800, "scale": 1}, src="window"
        )
        src, seen = self.eyes.look()
        wl.observe(seen, src=src)
        wl.observe(self.page.screenshot(), src="screenshot", name="page", media_type="image/png")
        wl.observe(self.eyes.document(), src="dom_full", name=self.page.url, media_type="text/html")
        self.film()
        return self.eyes.text()

    def _settle(self) -> None:
        """Until the page has what it asked for, and has drawn it."""
        self.page.wait_for_load_state("load")
        while True:
            self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
            if self._under_way <= 0:
                return

    def _counted(self, step: int) -> None:
        self._under_way += step

    def film(self) -> None:
        """Record what the page's own recorder has gathered since; it begins with the document."""
        if not self._rrweb:
            return
        if not self.page.evaluate("() => 'rrweb' in window"):
            self.page.evaluate(self._recorder)
            self.page.evaluate(FILM)
        if events := self.page.evaluate("() => window.__events.splice(0)"):
            wl.observe(events, src="rrweb", name="page")

    def _goto(self, path: str) -> str:
        answer = self.page.goto(self._base + path)
        return f"{answer.status if answer else 'no answer'} {self.page.title()}"

    def _click(self, ref: str, role: str, name: str) -> str:
        disabled = "disabled" in self.eyes.nodes.get(ref, {"own": {}})["own"].get("states", ())
        self._element(ref, role, name).click(timeout=DISABLED_MS if disabled else PATIENCE_MS)
        return f'clicked {role} "{name}"'

    def _fill(self, ref: str, role: str, name: str, text: str) -> str:
        self._element(ref, role, name).fill(text, timeout=PATIENCE_MS)
        return f'filled {role} "{name}"'

    def _select(self, ref: str, role: str, name: str, text: str) -> str:
        self._element(ref, role, name).select_option(label=text, timeout=PATIENCE_MS)
        return f"selected {text}"

    def _press(self, key: str) -> str:
        self.page.keyboard.press(key)
        return f"pressed {key}"

    def _back(self) -> str:
        self.page.go_back()
        return self.page.title()

    def _element(self, ref: str, role: str, name: str) -> Any:
        """The element a reference means. Raises `LookupError` where the newest sight has none such."""
        if ref not in self.eyes.nodes:
            raise LookupError(f"there is no {ref} on this page any more")
        return self.page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]

    def _console(self, message: ConsoleMessage) -> None:
        where = message.location
        wl.observe(
            {
                "level": LEVELS.get(message.type, "log"),
                "text": message.text,
                "url": where.get("url"),
                "line": where.get("lineNumber"),
            },
            src="console",
        )

    def _request(self, request: Request) -> None:
        self._counted(-1)
        answer = request.response() if request.failure is None else None
        timing = request.timing
        size = answer.headers.get("content-length") if answer else None
        wl.observe(
            {
                "method": request.method,
                "url": request.url,
                "status": answer.status if answer else 0,
                "ms": round(max(timing["responseEnd"], 0), 1),
                "size": int(size) if size else 0,
                "type": request.resource_type,
                **({"error": request.failure} if request.failure else {}),
            },
            src="network",
        )


def in_words(does: Callable[P, R]) -> Callable[P, R]:
    """The tool, with its time-outs as plain ones: Playwright's carry the paths of this program's files."""

    @functools.wraps(does)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return does(*args, **kwargs)
        except Timeout as error:
            said = error.message.splitlines()
            why = next((line.strip(" -") for line in said if "element is not" in line), "")
            raise TimeoutError(f"{said[0].rstrip('.')}{': ' * bool(why)}{why}") from None

    return told
