"""A run that failed, recorded once; each test that draws rollouts has the store for itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import worldline as wl
from tests.attribution.line import foreman, recorded
from tests.cli.terminal import environment
from worldline.testing.provider import Provider


@pytest.fixture(scope="session")
def line_provider() -> Iterator[Provider]:
    with Provider(foreman) as provider:
        yield provider


@pytest.fixture(scope="session")
def line_store(tmp_path_factory: pytest.TempPathFactory, line_provider: Provider) -> Path:
    """A store with one run of the worker that failed; only to be copied."""
    store = tmp_path_factory.mktemp("line") / "runs"
    recorded(store, line_provider)
    return store


@pytest.fixture
def stores(line_store: Path, line_provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stores:
    """Copies of the store, and this process's environment led to the provider."""
    for name, value in environment(line_provider).items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.endswith("_API_KEY") and name != "OPENAI_API_KEY"]:
        monkeypatch.delenv(name)
    return Stores(line_store, tmp_path)


class Stores:
    """Makes copies of a store: the same run again, with nothing known of it."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._source = source
        self._folder = folder

    def copy(self, name: str = "a") -> Path:
        return Path(shutil.copytree(self._source, self._folder / name / "runs"))

    def run(self, name: str = "a") -> wl.Run:
        return wl.open("latest", self.copy(name))
