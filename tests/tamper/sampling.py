"""Which bytes are changed, and how: every region of every file gets its share, by a seed that makes it repeatable.

A change is the file's whole new content, so that it is undone by writing the old one. In the long form (`make soak`)
every byte is flipped, by one bit in each round, and every file is cut at every length.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.soak import Soak

FLIPS = {"whole": 1100, "copied": 1100, "expired": 1000, "reconciled": 1000}
FLIPS |= {"whole.skn": 1600, "shared.skn": 1000, "expired.skn": 1000}
CUTS = {"whole": 350, "copied": 250, "expired": 350, "reconciled": 350}
CUTS |= {"whole.skn": 700, "shared.skn": 400, "expired.skn": 400}
SHIFTS = {"whole": 120, "copied": 0, "expired": 120, "reconciled": 120}
SHIFTS |= {"whole.skn": 300, "shared.skn": 150, "expired.skn": 150}
"""How many changes of each sort the short form tries, by the recording. `test_bundle_bytes` holds their sum."""


class Region(NamedTuple):
    """Bytes `start` to `end` of a file, which mean one thing. `name` says what, and decides what has to be reported."""

    name: str
    path: Path
    start: int
    end: int


class Change(NamedTuple):
    """One change. `how` and `offset` say what it is, for the report; `data` is what the file holds then."""

    region: Region
    how: str
    offset: int
    data: bytes


def flips(regions: Sequence[Region], count: int, soak: Soak) -> Iterator[Change]:
    """One byte is another: at `count` places spread evenly over the regions, or every byte."""
    held = contents(regions)
    if soak.long:
        for number in soak.rounds():
            for region in regions:
                for offset in range(region.start, region.end):
                    yield flip(region, held[region.path], offset, 1 << (offset + number) % 8)
        return
    chance = random.Random(7)
    for region in dealt(regions, count):
        offset = chance.randrange(region.start, region.end)
        yield flip(region, held[region.path], offset, chance.randrange(1, 256))


def flip(region: Region, data: bytes, offset: int, mask: int) -> Change:
    """The change of one byte by `mask`."""
    other = data[:offset] + bytes([data[offset] ^ mask]) + data[offset + 1 :]
    return Change(region, f"flipped by {mask:#04x}", offset, other)


def cuts(regions: Sequence[Region], count: int, soak: Soak) -> Iterator[Change]:
    """A file ends early: at `count` places spread evenly over the regions, or at every length."""
    held = contents(regions)
    if soak.long:
        for region in regions:
            yield from (cut(region, held[region.path], size) for size in range(region.start, region.end))
        return
    chance = random.Random(11)
    for number, region in enumerate(dealt(regions, count)):
        ends = (region.start, region.end - 1, chance.randrange(region.start, region.end))
        yield cut(region, held[region.path], ends[number % 3])


def cut(region: Region, data: bytes, size: int) -> Change:
    """The change of a file to its first `size` bytes."""
    return Change(region, "cut", size, data[:size])


def shifts(regions: Sequence[Region], count: int, seed: int = 13) -> Iterator[Change]:
    """What is no flip and no cut: a byte more, a byte less, a stretch of zeros, a stretch twice."""
    held, chance = contents(regions), random.Random(seed)
    for number, region in enumerate(dealt(regions, count)):
        data, at = held[region.path], chance.randrange(region.start, region.end)
        length = chance.randrange(1, 65)
        how, other = (
            ("a byte more", data[:at] + bytes([chance.randrange(256)]) + data[at:]),
            ("a byte less", data[:at] + data[at + 1 :]),
            ("zeros", data[:at] + bytes(len(data[at : at + length])) + data[at + length :]),
            ("twice", data[: at + length] + data[at : at + length] + data[at + length :]),
        )[number % 4]
        if other != data:
            yield Change(region, how, at, other)


def dealt(regions: Sequence[Region], count: int) -> Iterator[Region]:
    """`count` regions in turn: as many of the small ones as of the large ones."""
    for number in range(count):
        yield regions[number % len(regions)]


def contents(regions: Sequence[Region]) -> dict[Path, bytes]:
    """What the files of the regions hold."""
    return {path: path.read_bytes() for path in {region.path for region in regions}}
