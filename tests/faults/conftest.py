"""Recorders and disks that the tests of real faults share."""

from __future__ import annotations

from collections.abc import Iterator

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
