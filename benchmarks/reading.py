"""Reading a recording back: verifying its chain and root, parsing it, packing it into a bundle."""

from __future__ import annotations

import hashlib
import itertools
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.events import events, place, unsynced
from benchmarks.measure import CPU, WALL, Contest, Row, Work, timed
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store.bundle.pack import pack
from worldline.store.bundle.squeeze import LOG_LEVEL
from worldline.store.fold import fold
from worldline.store.recording import Recording
from worldline.store.verify import verify


def recorded(store: Path, count: int) -> Path:
    """A sealed run of `count` events of about 1 KB, made without waiting for the disk. Returns its directory."""
    values = itertools.cycle(events())
    with unsynced():
        recorder = Recorder(Spec(store=store, task="benchmark"))
        for _ in range(count):
            recorder.append("observation", "file", {}, {"value": Content.of(next(values))})
        recorder.seal()
    return recorder.run_directory


@contextmanager
def _works(quick: bool) -> Iterator[dict[str, Work]]:
    count = 500 if quick else 20_000
    with place() as folder:
        run = recorded(folder, count)
        files = list(Recording(run).files())
        sealed = Recording(run).manifest
        log = b"".join(file.open("rb").read() for file in files)
        size = len(log)

        def sha() -> None:
            for file in files:
                with file.open("rb") as opened:
                    digest = hashlib.sha256()
                    while part := opened.read(1 << 20):
                        digest.update(part)

        def chain() -> None:
            folded = fold(files)
            assert folded and sealed and (folded.rows, folded.root.hex()) == (sealed.rows, sealed.root)

        def parse() -> None:
            for file in files:
                with file.open("rb") as opened:
                    for line in opened:
                        msgspec.json.decode(line)

        def whole() -> None:
            assert verify(Recording(run)).ok

        def deflate() -> None:
            deflated(log, 1)

        def packed() -> None:
            target = folder / "run.skn"
            pack(Recording(run), target)
            target.unlink()

        yield {
            "sha": lambda: timed(CPU, size, sha),
            "chain": lambda: timed(CPU, size, chain),
            "parse": lambda: timed(CPU, size, parse),
            "verify": lambda: timed(CPU, size, whole),
            "zlib": lambda: timed(WALL, size, deflate),
            "pack": lambda: timed(WALL, size, packed),
        }


def deflated(data: bytes, level: int) -> int:
    """Deflate in parts as a program would that has a file; returns the size."""
    squeeze = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    view, size = memoryview(data), 0
    for at in range(0, len(view), 1 << 20):
        size += len(squeeze.compress(view[at : at + (1 << 20)]))
    return size + len(squeeze.flush())


@contextmanager
def _sizes(quick: bool) -> Iterator[dict[str, Work]]:
    with place() as folder:
        run = recorded(folder, 500 if quick else 20_000)
        log = b"".join(file.open("rb").read() for file in Recording(run).files())

        def bundle() -> float:
            target = folder / "run.skn"
            size = pack(Recording(run), target).size
            target.unlink()
            return float(size)

        yield {
            "bundle": bundle,
            "plain": lambda: float(deflated(log, LOG_LEVEL)),
            "plain-6": lambda: float(deflated(log, 6)),
        }


CONTESTS = (
    Contest(
        _works,
        (
            Row(
                "verify-chain", "verify chain and root", "chain", ("sha",), "one SHA-256 pass", unit="ms/MB", limit=3.5
            ),
            Row(
                "verify",
                "verify a sealed run: every question",
                "verify",
                ("chain", "parse"),
                "chain and root + a bare JSON parse of each row",
                unit="ms/MB",
                limit=1.6,
            ),
            Row(
                "pack",
                "pack a sealed run (verified first), wall",
                "pack",
                ("zlib",),
                "zlib level 1 of the log",
                figure="speed",
                unit="ms/MB",
                limit=0.9,
                at_least=True,
            ),
        ),
        rounds=7,
    ),
    Contest(
        _sizes,
        (
            Row(
                "pack-size",
                "size of the bundle",
                "bundle",
                ("plain",),
                f"the log through plain deflate, level {LOG_LEVEL} as the bundle",
                unit="MB",
                limit=1.05,
            ),
            Row("pack-size-6", "the same", "bundle", ("plain-6",), "the log through plain deflate, level 6", unit="MB"),
        ),
        rounds=1,
    ),
)
