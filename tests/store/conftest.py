"""Folders and recorders that the store's tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.recorder_process import RecorderServer, agent

MEMORY = Path("/dev/shm")


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """An empty folder in memory where there is one: for tests that record hundreds of times."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=MEMORY, prefix="worldline-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def recorders() -> Iterator[RecorderServer]:
    """Recorders that can be killed at any system call."""
    server = RecorderServer()
    yield server
    server.close()


@pytest.fixture
def sealed(quick: Path) -> Path:
    """The attempt directory of a sealed run: several chunks, a blob, published."""
    agent(quick / "runs", lambda **fact: None)
    (attempt,) = (quick / "runs").glob("run_*/trajectory/attempts/*")
    return attempt
