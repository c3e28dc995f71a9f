"""A pytest plugin: refuses to run where the package under test is not the copy, and notes which tests failed.

The environment says where the copy is (`MUTANT_SOURCE`) and where the names of the failed tests go (`MUTANT_FAILED`).
What programs started by the tests import is looked at, too: the checkout is installed in the same interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ASK = "import worldline; print(worldline.__file__)"


def pytest_sessionstart() -> None:
    """Refuse to run anything but the copy."""
    import worldline

    source = Path(os.environ["MUTANT_SOURCE"])
    said = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, cwd="/"
    ).stdout.strip()
    for found in (str(worldline.__file__), said):
        if not Path(found).is_relative_to(source):
            pytest.exit(f"the tests would run {found}, not what stands in {source}", returncode=3)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that failed; one that could not be set up or taken down proves nothing."""
    if report.failed and report.when == "call":
        with open(os.environ["MUTANT_FAILED"], "a", encoding="utf-8") as file:
            file.write(report.nodeid + "\n")
