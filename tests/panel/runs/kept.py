"""Recordings that are made once and kept in the temporary directory, for as long as what makes them stays the same."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT

RUNS = Path(os.environ["PANEL_RUNS"]) if "PANEL_RUNS" in os.environ else None
"""Where the recordings are; PANEL_RUNS keeps them for whoever works on the page."""
LONGEST_SECONDS = 1800  # the largest takes minutes


def kept(name: str) -> Path:
    """A recording by its name (`gui`, `pair-failed`, `damaged-changed`, `big-100k` ...), made where it is not there."""
    folder = RUNS or Path(tempfile.gettempdir()) / f"worldline-panel-{digest()[:16]}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / (name if name == "damaged-killed" else f"{name}.skn")
    kind = name if name.startswith("big-") else name.partition("-")[0]
    made = folder / f".{kind}"  # a file that is there may still be written by who makes it
    if not (made.exists() and path.exists()):
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (made.exists() and path.exists()):
                make(kind, folder)
                made.touch()
    return path


def make(kind: str, folder: Path) -> None:
    """Make the recordings of a kind, in a process of its own: it has a browser of its own."""
    command = [sys.executable, "-m", "tests.panel.runs", kind, "-o", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    assert done.returncode == 0, done.stderr


def digest() -> str:
    """Of everything that has a say in what the recordings are."""
    sources = [*(ROOT / "src" / "worldline").rglob("*.py"), *(ROOT / "tests" / "panel" / "runs").iterdir()]
    parts = (hashlib.sha256(path.read_bytes()).digest() for path in sorted(sources) if path.is_file())
    return hashlib.sha256(b"".join(parts)).hexdigest()
