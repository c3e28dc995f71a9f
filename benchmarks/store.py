"""The log's hot paths: appending a row of about 1 KB, and a durable boundary, each against the bare work under it."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.measure import Row, ratio
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store.log import LogWriter

EVENTS = 2_000
BOUNDARIES = 60
EVENT = {"name": "lookup", "text": "the lamp arrived broken, " * 32, "order": 812, "paid": [49.0, 98.0], "ok": True}


def rows() -> list[Row]:
    """All rows of this file."""
    return [append(), record(), record_with_secrets(), durable()]


@contextmanager
def _attempt() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=".") as place:
        yield Path(place)


def _bare(encode: bool) -> object:
    """What any hash-chained log has to do: encode, two SHA-256, a buffered write."""
    with _attempt() as place, (place / "log").open("ab", buffering=1 << 16) as file:
        encoded, h = msgspec.json.encode(EVENT), b""
        for _ in range(EVENTS):
            line = msgspec.json.encode(EVENT) if encode else encoded
            h = hashlib.sha256(h + hashlib.sha256(line).digest()).digest()
            file.write(line + h)
    return None


def append() -> Row:
    """Append rows whose data is encoded already."""
    encoded = msgspec.json.encode(EVENT)

    def ours() -> None:
        with _attempt() as place:
            log = LogWriter(place, iter(range(10**9)).__next__)
            for _ in range(EVENTS):
                log.append("observation", "file", "main", {}, encoded)
            log.close()

    return ratio("append a row of 1 KB", ours, lambda: _bare(False), per=EVENTS, peer_name="2 SHA-256 + buffered write")


def _record(secrets: dict[str, str]) -> None:
    with _attempt() as place:
        recorder = Recorder(Spec(store=place, secrets=secrets))
        for _ in range(EVENTS):
            recorder.append("observation", "file", {}, {"value": Content.of(EVENT)})
        recorder.close()


def record() -> Row:
    """The same with value checks."""
    return ratio(
        "the same, values checked",
        lambda: _record({}),
        lambda: _bare(True),
        per=EVENTS,
        peer_name="encode + 2 SHA-256 + buffered write",
        target="<= 2.2x",
    )


def record_with_secrets() -> Row:
    """The same with ten registered secrets."""
    secrets = {f"KEY_{n}": f"secret-value-number-{n:04d}" for n in range(10)}
    return ratio(
        "the same, 10 secrets held back",
        lambda: _record(secrets),
        lambda: _bare(True),
        per=EVENTS,
        peer_name="encode + 2 SHA-256 + buffered write",
        target="<= 4.6x",
    )


def durable() -> Row:
    """A durable boundary against a bare write and fdatasync of 4 KiB."""

    def ours() -> None:
        with _attempt() as place:
            log = LogWriter(place, iter(range(10**9)).__next__)
            for _ in range(BOUNDARIES):
                log.append("action", "tool_call", "main", {}, json.dumps(EVENT).encode(), durable=True)
            log.close()

    def peer() -> None:
        with _attempt() as place:
            file = os.open(place / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for _ in range(BOUNDARIES):
                os.write(file, bytes(4096))
                os.fdatasync(file)
            os.close(file)

    return ratio(
        "durable boundary",
        ours,
        peer,
        per=BOUNDARIES,
        peer_name="write 4 KiB + fdatasync",
        target="<= 1.35x",
        cpu=False,
    )
