"""`worldline view RUN`: the replay panel in the browser, served from this machine to this machine alone."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from worldline.cli import main, render
from worldline.cli.options import json_option, store_of, store_option
from worldline.errors import RecordingNotFound, UsageError
from worldline.model.ids import short
from worldline.store.bundle.cut import open_readable
from worldline.store.bundle.packed import open_recording
from worldline.store.catalog import default_store, entries, path_of, runs
from worldline.store.layout import DEFAULT_STORE
from worldline.store.recording import Recording
from worldline.view.page import viewer_page
from worldline.view.routes import PanelRoutes
from worldline.view.server import PanelServer
from worldline.view.shown import Shown

MOST_RUNS = 2


@click.command(
    epilog="""\b
Examples:
  worldline view latest
  worldline view --live
  worldline view 7f3a b21c
  worldline view runs/
  worldline view refund.skn --no-open"""
)
@click.argument("names", nargs=-1, metavar="[RUN|DIR] [RUN]")
@click.option("--live", is_flag=True, help="A run that is being recorded now; without RUN the newest of them.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The page's port.  [default: a free one]")
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
@json_option
@store_option
def command(names: tuple[str, ...], live: bool, port: int, no_open: bool, as_json: bool, store: Path | None) -> int:
    """Look at a run in the browser: finished, live, or left behind by a crash; a directory, a bundle, or a URL.

    Two runs are compared. A store, or nothing, gives the list of runs. Nothing leaves this machine: the page is served
    to it alone, under an address that nobody can guess. Ctrl-C ends it.
    """
    if len(names) > MOST_RUNS:
        raise UsageError(f"two runs are compared, not {len(names)}")
    place = _store_named(names, store)
    named = [] if place is not None and not live else _runs_named(names, live, place or default_store(store))
    made: list[PanelRoutes] = []

    def routes(closing: threading.Event) -> PanelRoutes:
        made.append(PanelRoutes(Shown(named, place, closing), closing, _program()))
        return made[0]

    ended = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in signals}
    server = PanelServer(viewer_page(), routes, port)
    try:
        _say(server, named, place, as_json)
        if not no_open and _has_display():
            threading.Thread(target=webbrowser.open, args=(server.opener,), daemon=True).start()
        ended.wait()
    finally:
        server.close()
        made[0].close()
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _store_named(names: Sequence[str], store: Path | None) -> Path | None:
    """The store that is asked for: nothing, a folder with one, or with bundles; None where runs are."""
    if not names:
        return store_of(store)
    path = Path(names[0])
    if len(names) > 1 or not path.is_dir() or path_of(names[0], default_store(store)) is not None:
        return None
    inside = runs(path) or (path / DEFAULT_STORE).is_dir() or any(path.glob("*.skn"))
    return store_of(path) if inside else None


def _runs_named(names: Sequence[str], live: bool, store: Path) -> list[Recording]:
    """The recordings that are named, whatever their state. Raises what finding and opening raise."""
    if live and not names:
        running = [entry for entry in entries(store) if entry.disposition == "running"]
        if not running:
            raise RecordingNotFound(f"nothing is being recorded in {store} now", store=str(store))
        return [Recording(running[-1].path)]
    found = []
    for name in names:
        path = path_of(name, store)
        found.append(open_readable(partial(open_recording, name if path is None else path), name))
    if live and not any(recording.live for recording in found):
        raise UsageError(f"{names[0]} is not being recorded now; leave --live out to look at what there is of it")
    return found


def _program() -> list[str] | None:
    """How a fork is started from here; None where this version has no such verb."""
    return [sys.executable, "-m", "worldline"] if "fork" in main.VERBS else None


def _say(server: PanelServer, named: Sequence[Recording], store: Path | None, as_json: bool) -> None:
    if as_json:
        render.emit_json({"url": server.url, "pid": os.getpid()})
        return
    what = " and ".join(short(recording.run_id) for recording in named) or f"the runs of {store}"
    render.verdict("live", f"showing {what}   {server.url}   Ctrl-C ends it")


def _has_display() -> bool:
    """Whether a browser has somewhere to show itself: one in text would take this terminal."""
    if sys.platform == "darwin" or os.environ.get("BROWSER"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
