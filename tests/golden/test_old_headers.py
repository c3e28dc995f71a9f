"""The oldest headers of `worldline/0` say less than those that are kept here: they open all the same, for ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.golden.test_golden import only
from tests.store import hostile
from worldline.engine.replay import inspect
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.verify import verify

CAME_LATER = ("continues", "origin", "secrets.shapes", "secrets.policy", "secrets")


@pytest.mark.parametrize("field", CAME_LATER)
def test_a_header_that_says_less_reads_as_the_newest_does(field: str, tmp_path: Path) -> None:
    run = shutil.copytree(only("v0", "short"), tmp_path / only("v0", "short").name)
    (attempt,) = layout.attempts(run)
    header, *rows = hostile.bodies(attempt)
    said = json.loads(header + b"}")
    inside, _, name = field.rpartition(".")
    (said["data"][inside] if inside else said["data"]).pop(name)
    hostile.rechained(attempt, [hostile.spelled(said)[:-1], *rows])
    data = Recording(attempt).header.data
    assert data["continues"] is None and data["origin"] is None
    assert {"policy", "shapes"} <= data["secrets"].keys()
    assert verify(Recording(attempt)).ok and inspect(Recording(attempt)).equivalent
