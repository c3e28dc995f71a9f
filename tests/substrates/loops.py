"""A file system of btrfs in a file, mounted by a loop device, for as long as tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import IN_MEMORY, MEMORY, require
from worldline.engine.substrates import subvolumes

SIZE = 400 << 20  # bytes; the file is sparse


@contextmanager
def btrfs(folder: Path) -> Iterator[Path]:
    """Where it is mounted; the file is in memory where that can be. Skips where this machine cannot have one, or fails
    where it promises to.
    """
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else folder, prefix=IN_MEMORY) as place:
        yield from _mounted(Path(place))


def _mounted(folder: Path) -> Iterator[Path]:
    make = shutil.which("mkfs.btrfs", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin{os.pathsep}/sbin")
    require("btrfs", make, "mkfs.btrfs (btrfs-progs) is not installed")
    assert make is not None
    image, place = folder / "image", folder / "mounted"
    with image.open("wb") as file:
        file.truncate(SIZE)
    place.mkdir()
    subprocess.run([make, "-q", image], check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, text=True, check=False)
    require("btrfs", done.returncode == 0, f"it cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)  # the loop device goes with its last mount


def as_subvolume(folder: Path) -> None:
    """Make a folder a subvolume, with what is in it."""
    aside = folder.with_name(f"{folder.name}.aside")
    folder.rename(aside)
    subvolumes.create(folder)
    for each in aside.iterdir():
        shutil.move(each, folder / each.name)
    aside.rmdir()
