"""Appending an event of about 1 KB: the log against mcap's chunked writer, the recorder against the work under it."""

from __future__ import annotations

import hashlib
import io
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.events import encoded, events, place
from benchmarks.measure import CPU, Contest, Row, Work, installed, timed
from worldline.engine.clock import RunClock
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store.log import LogWriter

SECRETS = {f"KEY_{number}": f"secret-value-number-{number:04d}-of-the-benchmark" for number in range(10)}
BARE = "orjson encode + 2 SHA-256 + buffered write"


@contextmanager
def _works(quick: bool) -> Iterator[dict[str, Work]]:
    count = 500 if quick else 5_000
    works: dict[str, Callable[[Path, int], float]] = {
        "log": _log,
        "checked": lambda folder, n: _recorder(n, Spec(store=folder, shapes=False)),
        "shapes": lambda folder, n: _recorder(n, Spec(store=folder)),
        "secrets": lambda folder, n: _recorder(n, Spec(store=folder, secrets=SECRETS)),
    }
    if installed("orjson"):
        works["bare"] = _bare
    if installed("mcap"):
        works["mcap"] = lambda folder, n: _mcap(folder, n, compressed=False)
        works["mcap-zstd"] = lambda folder, n: _mcap(folder, n, compressed=True)

    def in_place(work: Callable[[Path, int], float]) -> Work:
        def turn() -> float:
            with place() as folder:
                return work(folder, count)

        return turn

    yield {name: in_place(work) for name, work in works.items()}


def _log(folder: Path, count: int) -> float:
    data = itertools.cycle(encoded())
    log = LogWriter(folder, RunClock())

    def work() -> None:
        for _ in range(count):
            log.append("observation", "file", "main", {}, next(data))
        log.close()

    return timed(CPU, count, work)


def _recorder(count: int, spec: Spec) -> float:
    values = itertools.cycle(events())
    recorder = Recorder(spec)

    def work() -> None:
        for _ in range(count):
            recorder.append("observation", "file", {}, {"value": Content.of(next(values))})
        recorder.close()

    return timed(CPU, count, work)


def _bare(folder: Path, count: int) -> float:
    """What any hash-chained log has to do."""
    import orjson

    values, h = itertools.cycle(events()), b""

    def work() -> None:
        nonlocal h
        with (folder / "log").open("ab", buffering=1 << 16) as file:
            for _ in range(count):
                line = orjson.dumps(next(values))
                h = hashlib.sha256(h + hashlib.sha256(line).digest()).digest()
                file.write(line + h)

    return timed(CPU, count, work)


def _mcap(folder: Path, count: int, compressed: bool) -> float:
    from mcap.writer import CompressionType, Writer

    data = itertools.cycle(encoded())
    file = io.FileIO(folder / "log.mcap", "w")
    writer = Writer(file, compression=CompressionType.ZSTD if compressed else CompressionType.NONE)
    writer.start()
    schema = writer.register_schema("event", "jsonschema", b"{}")
    channel = writer.register_channel("events", "json", schema)

    def work() -> None:
        for number in range(count):
            now = time.time_ns()
            writer.add_message(channel, now, next(data), now, number)
        writer.finish()
        file.close()

    return timed(CPU, count, work)


CONTESTS = (
    Contest(
        _works,
        (
            Row("append", "append a 1 KB event, CPU", "log", ("mcap",), "mcap, chunked, not compressed", limit=1.2),
            Row("append-zstd", "the same", "log", ("mcap-zstd",), "mcap as it comes: chunked, zstd"),
            Row("append-checked", "the same, values checked", "checked", ("bare",), BARE, limit=2.2),
            Row("append-shapes", "the same, keys of known shapes held back (the default)", "shapes", ("bare",), BARE),
            Row("append-secrets", "the same, and 10 registered secrets", "secrets", ("bare",), BARE, limit=4.6),
        ),
    ),
)
