"""A recorded run that many tests read: the clerk's, in a store of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Ended, agent, clerks_model, environment, worldline
from worldline.testing.provider import Provider


@dataclass(frozen=True)
class Recorded:
    """The store, the recorder's own end, and the run as `show --json` has it."""

    store: Path
    ended: Ended
    shown: Any


@pytest.fixture(autouse=True)
def own_project(tmp_path: Path) -> None:
    """The test's directory is the root of a project, so that no store above it is found."""
    (tmp_path / ".git").mkdir()


@pytest.fixture(scope="session")
def clerk_recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The unchanged clerk, recorded once. Its provider is gone when this returns."""
    folder, before = tmp_path_factory.mktemp("clerk"), Path.cwd()
    os.chdir(folder)
    try:
        with Provider(clerks_model) as provider:
            env = environment(provider)
            command = agent("clerk")
            ended = worldline("record", "--out", "runs", "--task", "orders 812, 813", "--", *command, env=env)
        shown = worldline("show", "latest", "--store", "runs", "--json").json
    finally:
        os.chdir(before)
    return Recorded(folder / "runs", ended, shown)


@pytest.fixture
def clerk(clerk_recorded: Recorded, tmp_path: Path) -> Recorded:
    """The clerk's run in the test's own working directory, as its default store."""
    shutil.copytree(clerk_recorded.store, tmp_path / ".worldline" / "runs", copy_function=os.link)
    return clerk_recorded


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider that echoes the last user message."""
    with Provider() as running:
        yield running
