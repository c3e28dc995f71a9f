"""A disk that fills up or fails: one clear line, a dead writer, and every row before it still verifies."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.conftest import require
from tests.faults.judged import clear, judge
from tests.faults.recorder_process import Recorded, RecorderServer
from tests.faults.test_kill import calls_in
from tests.soak import Soak
from worldline.errors import LogBroken
from worldline.store import layout
from worldline.store.log import LogWriter
from worldline.store.recording import Recording

STRUCK = "write,fdatasync,fsync,link,rename,mkdir,openat,unlink,fchmod"


def refused(store: Path, came: Recorded, words: str) -> None:
    """One error of ours that says what happened and where; from then on the recorder does nothing; nothing is lost."""
    assert came.said("error")[0] in ("log-broken", "record-error"), came.lines
    (message,) = came.said("message")
    assert words in message and "\n" not in message
    assert not came.said("sealed") and not came.said("revived"), came.lines
    assert set(came.said("again")) <= {"log-broken", "attempt-closed"}
    judge(store, came)


def fail(recorders: RecorderServer, store: Path, name: str, number: int, error: str, shape: int = 0) -> str:
    """Record while one system call fails. Returns `refused`, `stale` (only what a list shows) or `unharmed`."""
    inject = f"inject={name}:error={error}:when={number}"
    came = recorders.record(store, ["-e", f"trace={STRUCK}", "-e", inject], shape=shape)
    struck = next(index for index, line in enumerate(came.trace) if "(INJECTED)" in line)
    if came.said("sealed"):
        judge(store, came)
        clear(store)
        if not came.said("stale"):
            return "unharmed"
        assert layout.PROGRESS in came.trace[struck]  # how often that is written is a matter of time
        return "stale"
    refused(store, came, os.strerror(getattr(errno, error)))
    after = [line for line in came.trace[struck + 1 :] if re.match("write|fdatasync|fsync|link|rename", line)]
    assert not [line for line in after if layout.TAIL in line or "sync" in line[:9]], "something was tried again"
    clear(store)
    return "refused"


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_every_failing_system_call_is_one_clear_error(
    error: str, recorders: RecorderServer, quick: Path, soak: Soak
) -> None:
    """Each sync with both errors; of the others the short form takes every second, which of the two by the error."""
    require("strace", shutil.which("strace"), "makes an exact system call fail")
    for shape in soak.rounds():
        whole = recorders.record(quick / "whole", ["-e", f"trace={STRUCK}"], shape=shape)
        assert judge(quick / "whole", whole) == "sealed:complete"
        clear(quick / "whole")
        places = calls_in(whole.trace)
        if not soak.long:
            spread = range(error == "EIO", len(places), 2)
            places = [p for index, p in enumerate(places) if index in spread or (error == "EIO" and "sync" in p[0])]
        if shape > 0:
            places = random.Random(shape).sample(places, min(len(places), 40))
        came = [(name, fail(recorders, quick / "failed", name, number, error, shape)) for name, number in places]
        assert {ended for name, ended in came if name in ("fdatasync", "fsync", "link", "mkdir")} <= {"refused"}
        if shape == 0:
            assert [ended for _, ended in came].count("refused") > (110 if soak.long else 50)


def writer_of(folder: Path) -> LogWriter:
    return LogWriter(folder, iter(range(10**9)).__next__)


def test_a_failed_sync_fails_everybody_who_waited_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = writer_of(tmp_path)
    others = threading.Event()
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        syncs.append(descriptor)
        others.wait(120)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(layout, "sync", sync)
    failures: list[LogBroken] = []

    def append() -> None:
        try:
            writer.append("marker", "step", "main", {}, b"{}", durable=True)
        except LogBroken as error:
            failures.append(error)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    while writer.seq < 4:  # all rows are written before the first sync comes back
        threads[0].join(0.001)
    others.set()
    for thread in threads:
        thread.join()
    assert len(failures) == 4 and len(syncs) == 1
    with pytest.raises(LogBroken):
        writer.append("marker", "step", "main", {}, b"{}")
    writer.close()


def test_beside_a_log_that_failed_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents stand beside the log: once it has failed, none is tried on that disk any more."""
    writer = writer_of(tmp_path)

    def sync(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(layout, "sync", sync)
    with pytest.raises(LogBroken) as first:
        writer.append("marker", "step", "main", {}, b"{}", durable=True)
    with pytest.raises(LogBroken) as again, writer.fatal():
        pytest.fail("a dead log let a write in")
    assert again.value is first.value
    writer.close()


LIMITED = """
import resource, sys
from pathlib import Path
from worldline.errors import LogBroken
from worldline.store.log import LogWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
writer = LogWriter(Path(sys.argv[1]), iter(range(10**9)).__next__)
acknowledged = 0
try:
    while True:
        writer.append("marker", "step", "main", {}, b'{"n":%d}' % acknowledged, durable=True)
        acknowledged += 1
except LogBroken as error:
    print(acknowledged, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        writer.append("marker", "step", "main", {}, b"{}")
    except LogBroken as again:
        print(again is error)
"""


@pytest.mark.parametrize("limit", [1, 3000, 3001, 3100])
def test_a_file_that_may_grow_no_further(limit: int, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), str(limit)], capture_output=True, text=True, check=True
    )
    first, second = ended.stdout.splitlines()
    acknowledged, message = int(first.split(" ", 1)[0]), first.split(" ", 1)[1]
    assert os.strerror(errno.EFBIG) in message and f"{acknowledged} rows stand" in message and second == "True"
    recording = Recording(tmp_path)
    assert [event.seq for event in recording.events()] == list(range(acknowledged))
    assert [damage.kind for damage in recording.damages] in ([], ["torn"])
