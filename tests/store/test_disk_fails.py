"""A disk that fills up or fails: one clear line, a dead writer, and every row before it still verifies."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require
from tests.store.recorder_process import Recorded, RecorderServer
from worldline.engine.cassette import Cassette
from worldline.errors import LogBroken
from worldline.store import layout
from worldline.store.log import LogWriter
from worldline.store.recording import Recording
from worldline.store.verify import verify

WRITES = ("write", "mkdir", "link", "rename", "replace", "open")
SYNCS = ("fdatasync", "fsync")


def judge(store: Path, came: Recorded, words: str) -> None:
    """The error is ours and says what happened; what was acknowledged is there."""
    assert came.said("error") and came.said("error")[0] in ("log-broken", "record-error"), came.lines
    (message,) = came.said("message")
    assert words in message and "\n" not in message and not came.said("sealed")
    attempts = list(store.glob("run_*/trajectory/attempts/*"))
    assert len(attempts) <= 1
    if not came.said("begun"):
        return
    recording = Recording(attempts[0])
    exchanges = Cassette(recording).by_call
    assert set(came.said("begun")) <= set(exchanges)
    assert {call for call in came.said("finished") if exchanges[call].finished is None} == set()
    assert [damage.kind for damage in recording.damages] in ([], ["torn"])
    assert not recording.live
    if not (attempts[0] / layout.MANIFEST).exists():
        assert {problem.kind for problem in verify(recording).problems} <= {"unsealed", "torn"}


@pytest.mark.parametrize(("names", "error"), [(WRITES, errno.ENOSPC), (WRITES, errno.EIO), (SYNCS, errno.EIO)])
def test_every_failing_operation_is_one_clear_error(
    names: tuple[str, ...], error: int, recorders: RecorderServer, quick: Path
) -> None:
    for number in range(1, 200):
        store = quick / f"{number}"
        came = recorders.record(store, at=number, errno=error, names=names)
        if came.said("sealed"):
            assert verify(Recording(Path(came.said("sealed")[0]))).ok
            if came.said("stale"):
                continue
            break
        judge(store, came, os.strerror(error))
        shutil.rmtree(store, ignore_errors=True)
    assert number > 15


@pytest.mark.parametrize(("name", "error"), [("write", "ENOSPC"), ("fdatasync", "EIO"), ("link", "ENOSPC")])
def test_errors_of_the_kernel(name: str, error: str, recorders: RecorderServer, quick: Path) -> None:
    require("strace", shutil.which("strace"), "makes an exact system call fail")
    for number in range(1, 100):
        store = quick / f"{number}"
        inject = f"inject={name}:error={error}:when={number}"
        came = recorders.record(store, ["-e", f"trace={name}", "-e", inject])
        if came.said("stale"):
            continue
        if came.said("sealed"):
            break
        judge(store, came, os.strerror(getattr(errno, error)))
        if name == "fdatasync" and came.said("begun"):
            failed = next(index for index, line in enumerate(came.trace) if "(INJECTED)" in line)
            assert not [line for line in came.trace[failed + 1 :] if "tail.jsonl" in line], "a sync was tried again"
    assert number > 3


def writer_of(folder: Path) -> LogWriter:
    return LogWriter(folder, iter(range(10**9)).__next__)


def test_a_failed_sync_fails_everybody_who_waited_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = writer_of(tmp_path)
    others = threading.Event()
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        syncs.append(descriptor)
        others.wait(10)
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 200 KiB that is really full in the end."""
    place = tmp_path / "disk"
    place.mkdir()
    able = os.geteuid() == 0 and sys.platform == "linux"
    mounted = able and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)]).returncode == 0
    require("root-tmpfs", mounted, "mounts a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


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
