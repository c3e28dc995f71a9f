"""A disk that is really full, of bytes or of files: one clear line, and what was acknowledged is there."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.judged import clear, judge
from tests.faults.recorder_process import RecorderServer
from tests.faults.test_disk_fails import refused
from tests.soak import Soak
from worldline.store.recording import Recording

FILLS = """
import worldline
for number in range(200):
    worldline.observe("x" * 3000, src="terminal")
print("the agent ended by itself")
"""


def test_recording_onto_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    script = tmp_path / "fills.py"
    script.write_text(FILLS)
    words = [sys.executable, "-m", "worldline", "record", "--store", str(small_disk / "runs")]
    ended = subprocess.run([*words, "--", sys.executable, str(script)], capture_output=True, text=True)
    assert ended.returncode == 4
    ours = [line for line in ended.stderr.splitlines() if line.startswith("worldline: ")]
    assert len(ours) == 1 and os.strerror(errno.ENOSPC) in ours[0], ended.stderr
    assert "the agent ended by itself" not in ended.stdout
    recording = Recording(Path(ended.stderr.splitlines()[-1]))
    events = list(recording.events())
    assert len(events) > 20 and [event.seq for event in events] == list(range(len(events)))
    assert {damage.kind for damage in recording.damages} <= {"torn"}
    # And where nothing can be begun at all: one line, no run left behind.
    with (small_disk / "ballast").open("ab", buffering=0) as ballast, pytest.raises(OSError, match="No space"):
        while True:
            ballast.write(bytes(4096))
    again = subprocess.run([*words, "--", sys.executable, str(script)], capture_output=True, text=True)
    assert again.returncode == 4 and again.stderr.count("\n") == 1, again.stderr
    assert again.stderr.startswith("worldline: ") and "No space left" in again.stderr


def grown(disk: Path, **limits: int) -> None:
    """Give the disk other limits: `size` in bytes, `nr_inodes` in files."""
    words = ",".join(["remount", *(f"{name}={limit}" for name, limit in limits.items())])
    subprocess.run(["mount", "-o", words, str(disk)], check=True)


@pytest.mark.parametrize(("limit", "unit"), [("size", 4096), ("nr_inodes", 1)])
def test_disks_of_every_size_that_is_too_small(
    limit: str, unit: int, recorders: RecorderServer, small_disk: Path, tmp_path: Path, soak: Soak
) -> None:
    for shape in soak.rounds():
        grown(small_disk, size=8 << 20, nr_inodes=4096)
        ended = []
        for units in range(6, 400):
            grown(small_disk, **{limit: units * unit})
            came = recorders.record(small_disk / "runs", shape=shape)
            grown(small_disk, size=8 << 20, nr_inodes=4096)
            if came.said("sealed"):
                assert judge(small_disk / "runs", came) == "sealed:complete"
                clear(small_disk / "runs")
                break
            refused(small_disk / "runs", came, os.strerror(errno.ENOSPC))
            ended.append(len(came.said("begun")))
            clear(small_disk / "runs")
        assert came.said("sealed") and sorted(ended) == ended and (shape > 0 or len(set(ended)) > 3)
