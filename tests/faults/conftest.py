"""Recorders and disks that the tests of real faults share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require
from tests.faults.lossy_disk import LossyDisk
from tests.faults.recorder_process import RecorderServer


@pytest.fixture(scope="module")
def recorders() -> Iterator[RecorderServer]:
    """Recorders that can be killed at any system call."""
    server = RecorderServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LossyDisk]:
    """A mounted disk whose power can be cut."""
    try:
        disk = LossyDisk(tmp_path_factory.mktemp("lossy"))
    except OSError as error:
        require("fuse", False, f"mounts a file system of its own ({error})")
        raise
    yield disk
    disk.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 200 KiB that is really full in the end."""
    place = tmp_path / "disk"
    place.mkdir()
    able = os.geteuid() == 0 and sys.platform == "linux"
    mounted = (
        able
        and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k,nr_inodes=4096", "tmpfs", str(place)]).returncode
        == 0
    )
    require("root-tmpfs", mounted, "mounts a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)
