"""The zygote keeps the promises of every substrate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.substrates import drawing
from worldline.testing.subject import Subject
from worldline.testing.substrates import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promise(check: Callable[[Subject], None], quick: Path) -> None:
    check(Subject("tests.substrates.drawing:Commands", quick, draw=lambda env: env.exec("draw"), twins=drawing.twins))
