"""Recordings for the panel: each kind of run is made by a program that really does it, under the real recorder.

`python -m tests.panel.runs KIND... -o DIR` writes `DIR/KIND.skn` (some kinds write more than one file, or a directory).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

KINDS = (
    "gui",
    "terminal",
    "api",
    "lanes",
    "denied",
    "retries",
    "gaps",
    "pair",
    "hostile",
    "damaged",
    "big-100k",
    "big-1m",
)
"""Every kind, in the order in which they are made; the last ones build on the first."""


def make(kind: str, folder: Path) -> list[Path]:
    """Make the files of one kind in `folder`; returns them. A file that is there already is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind.startswith("big-"):
        return [importlib.import_module("tests.panel.runs.big").bundle(folder, kind)]
    maker: Callable[[Path], list[Path]] = importlib.import_module(f"tests.panel.runs.{kind}").make
    return maker(folder)
