"""What is recorded in the contests: events of about 1 KB, each another, the same in every run."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from worldline.store import layout

SAID = """the order arrived late and the lamp was broken so we asked for a refund which the policy allows within thirty
days unless the seal of the box is open then support decides after they have seen a picture of it and the receipt"""
DISTINCT = 256


def events(count: int = DISTINCT) -> list[dict[str, Any]]:
    """Results of tools as agents see them: a text, some numbers, a list; about 1,000 bytes as JSON."""
    chance = random.Random(7)
    return [
        {
            "name": "look_up_order",
            "order": 10_000 + number,
            "ok": number % 5 != 0,
            "paid": [49.0, 98.5, chance.random()],
            "customer": {"id": f"c-{chance.randrange(10**6):06d}", "since": 2019, "notes": None},
            "text": " ".join(chance.choices(SAID.split(), k=150))[:820],
        }
        for number in range(count)
    ]


def encoded(count: int = DISTINCT) -> list[bytes]:
    """The same as JSON."""
    return [msgspec.json.encode(event) for event in events(count)]


@contextmanager
def place() -> Iterator[Path]:
    """A new directory on the file system of the working directory; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=".") as path:
        yield Path(path).absolute()


@contextmanager
def unsynced() -> Iterator[None]:
    """Nothing waits for the disk: for making what is measured afterwards, never for what is measured."""
    with (
        mock.patch.object(layout, "sync", lambda descriptor: None),
        mock.patch.object(layout, "sync_directory", lambda directory: None),
        mock.patch.object(os, "fsync", lambda descriptor: None),
    ):
        yield
