"""A million events: the memory of recording, verifying and opening them, and finding one without an index.

What is measured for its memory is a process of its own: `python -m benchmarks.large record|verify|open STORE COUNT`
prints its peak in bytes.
"""

from __future__ import annotations

import itertools
import random
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import worldline as wl
from benchmarks.events import events, place
from benchmarks.measure import WALL, Contest, Row, Work, timed
from benchmarks.proxied import ROOT
from worldline.engine.steps import each_step
from worldline.store.seek import Found, SeekableLog

MILLION = 1_000_000
SEEKS = 500


def record(store: Path, count: int) -> None:
    """Record `count` observations of about 1 KB through the API, and seal."""
    values = itertools.cycle(events())
    with wl.record(store, task="large") as run:
        for number in range(count):
            run.observe({**next(values), "number": number}, src="file")


def verify(store: Path, count: int) -> None:
    """Verify every byte."""
    assert wl.open("latest", store).verify().ok


def look(store: Path, count: int) -> None:
    """Open it, read the first steps and some rows from all over it."""
    run = wl.open("latest", store)
    assert run.outcome is not None
    for _ in itertools.islice(each_step(run.recording), 20):
        pass
    for seq in range(0, count, max(1, count // 100)):
        assert run.event(seq) is not None


JOBS: dict[str, Callable[[Path, int], None]] = {"record": record, "verify": verify, "open": look}


def peak() -> int:
    """The most memory that this process held, in bytes. What it held before it was this program does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text("ascii").splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextmanager
def _works(quick: bool) -> Iterator[dict[str, Work]]:
    count = 2_000 if quick else MILLION
    with place() as folder:
        store, made = folder / "runs", []

        def process(job: str) -> float:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.large", job, str(store), str(count)],
                env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
                check=True,
                capture_output=True,
            )
            return float(done.stdout)

        def recorded() -> float:
            if not made:
                made.append(process("record"))
            return made[0]

        def sought() -> tuple[list[float], list[int]]:
            recorded()
            return seeks(wl.open("latest", store).recording.attempt, count)

        yield {
            "record": recorded,
            "verify": lambda: recorded() and process("verify"),
            "open": lambda: recorded() and process("open"),
            "seek": lambda: statistics.median(sought()[0]),
            "probes": lambda: float(max(sought()[1])),
        }


def seeks(attempt: Path, rows: int) -> tuple[list[float], list[int]]:
    """Seek rows all over the log, by seq and by time in turns: the seconds and the probes that each took."""
    log, chance, seconds, probes = SeekableLog.of(attempt), random.Random(11), [], []
    for _ in range(SEEKS):
        seq = chance.randrange(rows)
        by_seq = log.by_seq(seq)
        assert by_seq and by_seq.event.seq == seq and by_seq.offset is not None
        by_time: list[Found | None] = []
        began = WALL()
        by_time.append(log.by_time(by_seq.event.t))
        seconds.append(WALL() - began)
        seconds.append(timed(WALL, 1, lambda seq=seq: log.by_seq(seq)))
        found = by_time[0]
        assert found and found.event.t == by_seq.event.t
        probes += [by_seq.probes, found.probes]
    return seconds, probes


CONTESTS = (
    Contest(
        _works,
        (
            Row(
                "memory-record",
                "record 1M events (1 KB) through the API, peak",
                "record",
                figure="own",
                unit="MB",
                limit=100,
            ),
            Row("memory-verify", "verify that run (over 1 GB), peak", "verify", figure="own", unit="MB", limit=150),
            Row(
                "memory-open",
                "open it, its first steps, rows all over it, peak",
                "open",
                figure="own",
                unit="MB",
                limit=150,
            ),
            Row(
                "seek-probes",
                "seek by seq or time in it without an index, most probes",
                "probes",
                figure="own",
                unit="",
                limit=24,
            ),
            Row("seek", "the same, wall", "seek", figure="own"),
        ),
        rounds=1,
    ),
)

if __name__ == "__main__":
    JOBS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
    print(peak())
