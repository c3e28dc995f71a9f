"""What a user gets who installs the core: a command that starts, from three dependencies, in under 12 MB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, require

LIMIT = 12_000_000  # bytes on disk, compiled modules included
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
PIP_ENVIRONMENT = os.environ | {"PIP_USER": "0"}
UNREACHABLE = ("Failed to establish a new connection", "Temporary failure in name resolution", "Read timed out")


def install(target: Path, *arguments: str) -> None:
    """Install into the directory `target`, or say that the package index cannot be reached."""
    command = [*PIP, "install", "--retries", "6", "--target", str(target), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=PIP_ENVIRONMENT)
    unreachable = any(words in done.stderr for words in UNREACHABLE)
    require("network", not unreachable, "the package index cannot be reached")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds the core's locked dependencies and this project, nothing else."""
    target = tmp_path_factory.mktemp("core") / "site"
    install(target, "--require-hashes", "-r", "requirements/core.txt")
    install(target, "--no-deps", "--no-build-isolation", str(ROOT))
    return target


def test_a_core_install_is_small(core: Path) -> None:
    sizes = {path: path.stat().st_size for path in core.rglob("*") if path.is_file()}
    assert sum(sizes.values()) < LIMIT, sorted(((size, path.name) for path, size in sizes.items()), reverse=True)[:10]


def test_the_command_starts_with_the_core_alone(core: Path) -> None:
    script = "import sys; sys.path.insert(0, sys.argv.pop(1)); from worldline.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-I", "-S", "-c", script, str(core), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: "), done.stdout
