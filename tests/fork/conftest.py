"""A shop's clerk, recorded once for many tests: what is recorded is never written to again, and that is checked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fork.outside import Outside
from tests.fork.shop import Desk, clerk
from worldline.testing.provider import Provider


@pytest.fixture(scope="session")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk with one recorded run, `desk.run`, for all tests that only fork it."""
    folder, before = tmp_path_factory.mktemp("desk"), Path.cwd()
    os.chdir(folder)
    try:
        with Outside() as outside, Provider(clerk) as provider:
            desk = Desk(folder, provider, outside)
            desk.run = desk.record()
            yield desk
    finally:
        os.chdir(before)


@pytest.fixture
def recorded(shared_desk: Desk) -> Iterator[Desk]:
    """The recorded run, with nothing of the world outside done since; its bytes are the same in the end."""
    shared_desk.outside.posted.clear()
    shared_desk.outside.mailed.clear()
    before = shared_desk.digest(shared_desk.run)
    yield shared_desk
    assert shared_desk.digest(shared_desk.run) == before, "a fork wrote into its parent"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk of its own, with nothing recorded."""
    (tmp_path / ".git").mkdir()
    with Outside() as outside, Provider(clerk) as provider:
        yield Desk(tmp_path, provider, outside)
