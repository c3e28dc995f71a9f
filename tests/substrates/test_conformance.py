"""The substrates that are everywhere keep the promises of every substrate, and say what they do not keep."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import require
from worldline.testing.subject import Subject
from worldline.testing.substrates import CHECKS

BUILT_IN = {
    "none": "worldline.engine.substrates.none:Nothing",
    "files": "worldline.engine.substrates.files:Files",
    "git": "worldline.engine.substrates.git:Git",
}


def repository(workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", workspace], check=True)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", BUILT_IN)
def test_it_keeps_the_promise(name: str, check: Callable[[Subject], None], quick: Path) -> None:
    if name == "git":
        require("git", shutil.which("git"), "not installed")
    check(Subject(BUILT_IN[name], quick, prepare=repository if name == "git" else lambda workspace: None))
