"""The order of system calls in which a recorder's promises lie, as the kernel sees them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.conftest import require
from tests.faults.recorder_process import RecorderServer


def test_a_blob_is_durable_before_its_row(recorders: RecorderServer, tmp_path: Path) -> None:
    require("strace", shutil.which("strace"), "shows the order of system calls")
    came = recorders.record(tmp_path / "runs", ["-e", "trace=write,fsync,fdatasync,link,mkdir"])
    assert came.said("sealed")
    trace = [line for line in came.trace if "/runs/" in line]

    def first(pattern: str, start: int = 0) -> int:
        return next(index for index in range(start, len(trace)) if re.search(pattern, trace[index]))

    synced = first(r"fsync\(\d+<.*/blobs/ordinary/\.[^/]*tmp")
    linked = first(r"link\(")
    linked = first(r"link\(.*", synced)
    folder = first(r"fsync\(\d+<[^>]*/blobs/ordinary/[0-9a-f]{2}>", linked)
    row = first(r"write\(\d+<[^>]*/tail\.jsonl>", synced)
    assert synced < linked < folder < row
    made = [first(rf"mkdir\(.*/{name}\"") for name in ("attempts", "chunks", "blobs", "ordinary")]
    for index in made:  # a new directory's entry is durable before anything is put into it
        assert "fsync" in trace[index + 1]
