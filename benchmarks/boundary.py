"""What waits for the disk: a durable boundary against the device's flush and sqlite, and a step through the API."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import worldline as wl
from benchmarks.events import encoded, place
from benchmarks.measure import CPU, WALL, Contest, Row, Work, timed
from worldline.engine.clock import RunClock
from worldline.store.log import LogWriter

BLOCK = bytes(range(256)) * 16  # 4 KiB
BLOCKS = 1024  # of the file that is written over


@contextmanager
def _disk(quick: bool) -> Iterator[dict[str, Work]]:
    data = itertools.cycle(encoded())
    with place() as folder, ExitStack() as stack:
        (folder / "attempt").mkdir()
        log = stack.enter_context(closing(LogWriter(folder / "attempt", RunClock())))
        raw = os.open(folder / "raw", os.O_RDWR | os.O_CREAT, 0o600)
        stack.callback(os.close, raw)
        os.pwrite(raw, BLOCK * BLOCKS, 0)
        os.fsync(raw)
        growing = os.open(folder / "growing", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        stack.callback(os.close, growing)
        database = stack.enter_context(closing(sqlite3.connect(folder / "events.sqlite", isolation_level=None)))
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, data BLOB)")
        places = itertools.cycle(range(BLOCKS))

        def flush() -> None:
            os.pwrite(raw, BLOCK, next(places) * len(BLOCK))
            os.fdatasync(raw)

        def grow() -> None:
            os.write(growing, BLOCK)
            os.fdatasync(growing)

        yield {
            "boundary": lambda: timed(
                WALL, 1, lambda: log.append("action", "tool_call", "main", {}, next(data), durable=True)
            ),
            "flush": lambda: timed(WALL, 1, flush),
            "grow": lambda: timed(WALL, 1, grow),
            "sqlite": lambda: timed(
                WALL, 1, lambda: database.execute("INSERT INTO events (data) VALUES (?)", (next(data),))
            ),
        }


@wl.tool(effect="pure")
def look_up(order: int) -> dict[str, object]:
    """A tool that costs nothing."""
    return {"order": order, "ok": True}


@wl.tool(effect="side_effecting")
def pay_back(order: int) -> dict[str, object]:
    """A tool that costs nothing, and says that it does something outside."""
    return {"order": order, "ok": True}


@contextmanager
def _api(quick: bool) -> Iterator[dict[str, Work]]:
    count = 100 if quick else 2_000
    with place() as folder, wl.record(folder) as run:
        raw = os.open(folder / "raw", os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(raw, BLOCK * BLOCKS, 0)
        os.fsync(raw)
        places = itertools.cycle(range(BLOCKS))

        def steps() -> None:
            for _ in range(count):
                with run.step("look"):
                    pass

        def observe() -> None:
            for number in range(count):
                run.observe({"order": number, "ok": True}, src="file")

        def flush() -> None:
            os.pwrite(raw, BLOCK, next(places) * len(BLOCK))
            os.fdatasync(raw)

        yield {
            "step": lambda: timed(CPU, count, steps),
            "observe": lambda: timed(CPU, count, observe),
            "tool": lambda: timed(WALL, 1, lambda: look_up(17)),
            "effect": lambda: timed(WALL, 1, lambda: pay_back(17)),
            "flush": lambda: timed(WALL, 1, flush),
            "tool-cpu": lambda: timed(CPU, 20, lambda: [look_up(17) for _ in range(20)]),
        }
        os.close(raw)


CONTESTS = (
    Contest(
        _disk,
        (
            Row(
                "boundary",
                "durable boundary, 1 KB",
                "boundary",
                ("flush",),
                "4 KiB written over, fdatasync",
                limit=1.35,
                disk=True,
            ),
            Row("boundary-grow", "the same", "boundary", ("grow",), "4 KiB appended, fdatasync", disk=True),
            Row(
                "boundary-sqlite",
                "the same",
                "boundary",
                ("sqlite",),
                "sqlite3, WAL, synchronous FULL, 1 KB",
                limit=1.05,
                disk=True,
            ),
        ),
        rounds=400,
        quick_rounds=5,
    ),
    Contest(
        _api,
        (
            Row("step", "record a step, not durable, CPU", "step", figure="own", limit=30),
            Row("observe", "record an observation, not durable, CPU", "observe", figure="own"),
        ),
    ),
    Contest(
        _api,
        (
            Row(
                "step-durable",
                "record a tool call (its start durable)",
                "tool",
                ("flush",),
                "4 KiB written over, fdatasync",
                limit=1.5,
                disk=True,
            ),
            Row(
                "step-effect",
                "one with an effect outside (start and end durable)",
                "effect",
                ("flush",),
                "4 KiB written over, fdatasync",
                disk=True,
            ),
            Row("step-durable-cpu", "the first of them, CPU", "tool-cpu", figure="own"),
        ),
        rounds=200,
        quick_rounds=3,
    ),
)
