"""Make the pictures of the panel and the sample page anew: `python -m docs.pictures.make [NAME...]`.

The runs are real ones: the refund agent at the order desk that the panel's tests record, and the demo
(`examples/demo.py`). Their times and ids are of the day they were made; nothing else in the pictures changes.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.panel.conftest import PAGE
from tests.panel.panel import Panel
from tests.panel.runs import gui
from tests.panel.runs.chromium import chromium
from tests.panel.runs.kept import kept
from tests.panel.runs.minds import bundled

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SAMPLE = HERE.parent / "sample-run.html"
LARGEST_PICTURE, LARGEST_PAGE = 200_000, 1_000_000
# The refund agent's way without its detours: the sample page is to stay small.
SHORT = [turn for n, turn in enumerate(gui.TURNS) if n in (0, 1, 2, 13, 15, 16, 18, 20, 21)]


def main(chosen: list[str]) -> int:
    """Make what is named, or everything; the exit code is 1 where something came out too large."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        makers: dict[str, Callable[[], Path]] = {
            "panel-light": lambda: picture(browser, "panel-light", "light", [kept("gui")], at_the_failure),
            "panel-dark": lambda: picture(browser, "panel-dark", "dark", [kept("gui")], at_the_denial),
            "compare": lambda: picture(
                browser, "compare", "light", [kept("pair-failed"), kept("pair-rescued")], nothing
            ),
            "terminal": lambda: picture(browser, "terminal", "dark", [kept("terminal")], in_the_terminal),
            "demo": lambda: picture(browser, "demo", "light", [demo(Path(folder))], nothing),
            "sample-run": lambda: sample(browser, Path(folder)),
        }
        sizes = {
            path: path.stat().st_size
            for name, make in makers.items()
            if name in (chosen or makers)
            for path in [make()]
        }
    for path, size in sizes.items():
        print(f"{size:>9,}  {path.relative_to(ROOT)}")
    return int(any(size > (LARGEST_PAGE if path == SAMPLE else LARGEST_PICTURE) for path, size in sizes.items()))


@contextmanager
def opened(browser: Browser, theme: str, bundles: list[Path]) -> Iterator[Panel]:
    """The panel with these runs."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900},
        color_scheme=theme,
        reduced_motion="reduce",  # type: ignore[arg-type]
    )
    panel = Panel(context)
    yield panel.open(PAGE, *bundles)
    panel.check()
    context.close()


def picture(browser: Browser, name: str, theme: str, bundles: list[Path], prepare: Callable[[Panel], None]) -> Path:
    """One picture of the whole page."""
    with opened(browser, theme, bundles) as panel:
        prepare(panel)
        rest(panel.page)
        taken = Image.open(io.BytesIO(panel.page.screenshot()))
    target = HERE / f"{name}.png"
    # An octree keeps the few coloured pixels among all the grey ones; the page has a third of the bytes then.
    taken.convert("RGB").quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(target, optimize=True)
    return target


def rest(page: Page) -> None:
    """Until pictures have come and nothing moves."""
    expect(page.locator(".stage-wait")).to_have_count(0)
    page.wait_for_timeout(1200)


def at_the_denial(panel: Panel) -> None:
    """As it opens: on the cause."""
    panel.at(20)


def at_the_failure(panel: Panel) -> None:
    """One key on: what failed, and the element that was aimed at."""
    panel.at(20)
    panel.press("n").at(21)
    panel.press("Alt+2")


def in_the_terminal(panel: Panel) -> None:
    """The shell, revealed."""
    panel.reveal("a picture for the documentation")
    panel.layer("Terminal")


def nothing(panel: Panel) -> None:
    """As it opens."""
    panel.settled()


def demo(folder: Path) -> Path:
    """The run of the demo that failed; the later one is its branch."""
    subprocess.run([sys.executable, str(ROOT / "examples" / "demo.py")], cwd=folder, check=True, capture_output=True)
    run = min((folder / ".worldline" / "runs").glob("run_*"))
    return bundled(run, folder / "demo.skn")


def sample(browser: Browser, folder: Path) -> Path:
    """The short run as a page that opens by double-click."""
    run = gui.record(folder / "runs", browser, SHORT, rrweb=False)
    SAMPLE.unlink(missing_ok=True)
    command = [sys.executable, "-m", "worldline", "export", str(run), "--to", "html", "-o", str(SAMPLE)]
    subprocess.run(command, check=True, capture_output=True)
    return SAMPLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
