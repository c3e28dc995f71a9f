"""The one writer of a log: rows from many threads make one chain, durable means durable, nobody else gets in."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.recorder_process import agent
from worldline.engine import clock
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import CLOCK_STEP_NS, Recorder
from worldline.engine.spec import Spec
from worldline.errors import AttemptClosed, LogBroken, ValueRefused, WriterConflict
from worldline.model import events
from worldline.store import layout
from worldline.store.log import Appended, LogWriter, take_lock
from worldline.store.recording import Recording
from worldline.store.rows import RowReader

THREADS, ROWS = 8, 120


def ticking() -> Callable[[], int]:
    return iter(range(10**9)).__next__


def step(writer: LogWriter, data: bytes = b"{}", durable: bool = False) -> Appended:
    return writer.append("marker", "step", "main", {}, data, durable=durable)


def rows_of(attempt: Path) -> list[Any]:
    recording = Recording(attempt)
    found = list(recording.events())
    assert recording.damages == []
    assert [event.seq for event in found] == list(range(len(found)))
    return found


class Syncs:
    """Counts syncs and remembers how many bytes of a file each made durable. Others may come while one runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.durable = 0, 0
        self._real = layout.sync
        self.during: Callable[[], object] = lambda: None
        monkeypatch.setattr(layout, "sync", self)

    def __call__(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        self.during()
        self._real(descriptor)
        self.count, self.durable = self.count + 1, size


def test_threads_make_one_chain_and_share_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    writer = LogWriter(tmp_path, ticking())
    everybody = threading.Barrier(THREADS)
    waiting = threading.Semaphore(0)
    # A sync lasts until another row was written behind it, so that there is always somebody to share the next one.
    syncs.during = lambda: waiting.acquire(timeout=0.005)
    acknowledged: list[tuple[int, int]] = []

    def work(number: int) -> None:
        everybody.wait()
        for row in range(ROWS):
            appended = step(writer, b'{"by":%d,"row":%d}' % (number, row), durable=row % 3 == 0)
            waiting.release()
            if row % 3 == 0:
                acknowledged.append((appended.seq, syncs.durable))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    found = rows_of(tmp_path)
    assert len(found) == THREADS * ROWS
    for number in range(THREADS):
        assert [event.data["row"] for event in found if event.data["by"] == number] == list(range(ROWS))
    ends, end = {}, 0
    for event in found:
        end += len(event.raw)
        ends[event.seq] = end
    assert all(ends[seq] <= durable for seq, durable in acknowledged), "acknowledged before it was durable"
    assert 0 < syncs.count < len(acknowledged)


def test_every_begun_call_was_durable_before_it_could_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    recorder = Recorder(Spec(store=tmp_path / "runs"))
    boundary = RecordBoundary(recorder)
    for number in range(5):
        for effect in ("read", "side_effecting"):
            boundary.begin(Call(kind="action", name="f", inputs=Content.of(number), effect=effect))
            assert syncs.durable == recorder.log.bytes
    recorder.close()


def test_rotation_marks_what_was_durable(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, ticking(), chunk_bytes=2000)
    for number in range(60):
        step(writer, b'{"n":%d}' % number, durable=number % 7 == 0)
    writer.finish()
    with pytest.raises(AttemptClosed):
        step(writer)
    writer.close()
    chunks = sorted((tmp_path / layout.CHUNKS).iterdir())
    assert [chunk.name for chunk in chunks] == [layout.chunk_name(n) for n in range(len(chunks))] and len(chunks) > 4
    assert not (tmp_path / layout.TAIL).exists()
    found = rows_of(tmp_path)
    assert len(found) == 60
    firsts = {events.read(chunk.read_bytes().splitlines(keepends=True)[0]).seq for chunk in chunks}
    for event in found:
        if event.seq and event.seq in firsts:
            assert event.sync == (event.seq, found[event.seq - 1].h[:16])
        if event.seq % 7 == 1:
            assert event.sync is not None
        if event.sync is not None:
            assert event.sync[1] == found[event.sync[0] - 1].h[:16] and event.sync[0] <= event.seq


def test_who_looks_whether_a_run_is_live_keeps_no_writer_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looker = os.open(tmp_path / layout.LOCK, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(looker, fcntl.LOCK_SH)
    looked: list[float] = []

    def gone(seconds: float) -> None:
        looked.append(seconds)
        if len(looked) == 3:
            fcntl.flock(looker, fcntl.LOCK_UN)

    monkeypatch.setattr(time, "sleep", gone)
    os.close(take_lock(tmp_path))
    assert len(looked) == 3
    fcntl.flock(looker, fcntl.LOCK_SH)  # for ever
    with pytest.raises(WriterConflict):
        take_lock(tmp_path)
    os.close(looker)


def test_a_second_writer_is_refused_and_told_who(tmp_path: Path) -> None:
    recorder = Recorder(Spec(store=tmp_path / "runs"))
    before = (recorder.attempt / layout.TAIL).read_bytes()
    with pytest.raises(WriterConflict, match=rf"process {os.getpid()}\) holds .*ainst_") as refused:
        LogWriter(recorder.attempt, ticking())
    assert "\n" not in str(refused.value)
    other = "import sys; from pathlib import Path; from worldline.store.log import LogWriter, take_lock; "
    other += "LogWriter(Path(sys.argv[1]), int)"
    ended = subprocess.run([sys.executable, "-c", other, recorder.attempt], capture_output=True, text=True)
    assert "WriterConflict" in ended.stderr
    assert (recorder.attempt / layout.TAIL).read_bytes() == before
    sealed = recorder.seal()
    with pytest.raises(AttemptClosed):
        LogWriter(recorder.attempt, ticking())
    assert sealed.exists() and not (recorder.attempt / layout.TAIL).exists()


FORKS = """
import os, signal, sys, threading
from pathlib import Path
from worldline.errors import AttemptClosed
from worldline.store.log import LogWriter, take_lock
inside, go_on = threading.Event(), threading.Event()
def now():
    if threading.current_thread() is not threading.main_thread():
        inside.set()  # from here on a thread that the child will not have holds the writer's lock
        go_on.wait()
    return 0
writer = LogWriter(Path(sys.argv[1]), now)
def append(who, durable=True):
    writer.append("marker", "step", "main", {}, b'{"by":"%s"}' % who, durable=durable)
append(b"parent")
thread = threading.Thread(target=append, args=(b"thread",))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        append(b"child")
    except AttemptClosed:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
go_on.set()
thread.join()
alive, says = os.pipe()
child = os.fork()
if child == 0:
    os.write(says, b"1")  # it runs: it has let go of what it was born with
    sys.stdin.read()
    os._exit(0)
os.read(alive, 1)
append(b"parent")
print("ready", flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_forked_child_cannot_append_and_keeps_no_lock(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FORKS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.wait()
    with (tmp_path / layout.LOCK).open() as lock:  # its holder is dead, the child of it lives
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    process.stdin.close()
    assert process.stdout.read() == b""
    process.stdout.close()
    assert not Recording(tmp_path).live
    assert {event.data["by"] for event in rows_of(tmp_path)} == {"parent", "thread"}


@pytest.mark.parametrize("what", ["cut", "grown", "removed"])
def test_a_log_that_somebody_touched_takes_no_more(what: str, tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, ticking())
    step(writer, durable=True)
    tail = tmp_path / layout.TAIL
    if what == "removed":
        tail.unlink()
    else:
        os.truncate(tail, 10 if what == "cut" else 10_000)
    with pytest.raises(LogBroken, match="changed under its writer"):
        step(writer, durable=True)
    with pytest.raises(LogBroken):
        writer.finish()
    writer.close()


def test_time_never_runs_backwards(tmp_path: Path) -> None:
    times = iter([5, 9, 3, 9, 12])
    writer = LogWriter(tmp_path, times.__next__)
    for _ in range(5):
        step(writer)
    writer.close()
    assert [(event.t, event.dt) for event in rows_of(tmp_path)] == [(5, 5), (9, 4), (9, 0), (9, 0), (12, 3)]


def test_a_step_of_the_wall_clock_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(Spec(store=tmp_path / "runs"))
    real, back = clock.wall_ns, 3600 * CLOCK_STEP_NS
    monkeypatch.setattr(clock, "wall_ns", lambda: real() - back)
    recorder.append("permission", "granted", {}, {}, durable=True)
    recorder.append("permission", "granted", {}, {}, durable=True)
    recorder.close()
    found = rows_of(recorder.attempt)
    (jump,) = [event for event in found if event.name == "meta/clock"]
    assert abs(int(jump.data["step_ns"]) + back) < CLOCK_STEP_NS
    assert [event.t for event in found] == sorted(event.t for event in found)


def test_a_row_over_its_limit_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, ticking())
    envelope = len(step(writer, b'{"x":""}').line)
    room = events.MAX_ROW - envelope - len("0000")
    longest = step(writer, b'{"x":"%s"}' % (b"x" * room))
    assert events.MAX_ROW - 8 < len(longest.line) <= events.MAX_ROW
    with pytest.raises(ValueRefused, match="over the limit"):
        step(writer, b'{"x":"%s"}' % (b"x" * (room + 8)))
    step(writer)
    writer.close()
    assert len(rows_of(tmp_path)) == 3


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        agent(tmp_path / "new" / "runs", lambda **fact: None)
        recorder = Recorder(Spec(store=tmp_path / "new" / "runs"))
        recorder.progress()
        recorder.close()
    finally:
        os.umask(before)
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in (tmp_path / "new").rglob("*")}
    assert modes == {(True, 0o700), (False, 0o600)}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_durable_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    layout.write_durable(path, b"first")
    with pytest.raises(FileExistsError) as refused:
        layout.write_durable(path, b"second")
    assert refused.value.errno == errno.EEXIST
    assert path.read_bytes() == b"first" and list(tmp_path.iterdir()) == [path]


def test_reading_follows_a_log_that_rotates(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, ticking(), chunk_bytes=600)
    for number in range(40):
        step(writer, b'{"n":%d}' % number)
        recording = Recording(tmp_path)
        assert sum(1 for _ in RowReader(recording.files())) == number + 1 and recording.live
    writer.close()
