"""Folders that the store's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.recorder_process import agent


@pytest.fixture
def sealed(quick: Path) -> Path:
    """The attempt directory of a sealed run: several chunks, a blob, published."""
    agent(quick / "runs", lambda **fact: None)
    (attempt,) = (quick / "runs").glob("run_*/trajectory/attempts/*")
    return attempt
