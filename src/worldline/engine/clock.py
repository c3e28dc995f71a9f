"""The one source of time, ids and randomness: everything else asks here, so tests and replays can see what is used."""

from __future__ import annotations

import hashlib
import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterable

from worldline.model import ids

Generator = random.Random
"""The type of a reproducible generator, for annotations in modules that may not import `random`."""


def wall_ns() -> int:
    """Unix time in ns. It may step; never subtract two of them."""
    return time.time_ns()


def monotonic_ns() -> int:
    """A clock that never steps, in ns from an arbitrary start of this process's host."""
    return time.monotonic_ns()


def timezone() -> str:
    """The local time zone's abbreviation."""
    return time.tzname[0]


def new_id(prefix: str) -> str:
    """A fresh id that sorts by time (`model.ids`)."""
    return ids.spell(prefix, wall_ns() // 1_000_000, secrets.randbits(80))


def nonce() -> str:
    """128 random bits in hex."""
    return secrets.token_hex(16)


def key() -> bytes:
    """32 random bytes for keyed digests."""
    return secrets.token_bytes(32)


def token() -> str:
    """A word that strangers cannot guess, safe in a URL."""
    return secrets.token_urlsafe(18)


def new_seed() -> int:
    """A seed of 53 random bits: an integer that every JSON reader reads exactly."""
    return secrets.randbits(53)


def seed_from(word: str) -> int:
    """The seed, as `new_seed` gives one, that follows from a word."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big") >> 11


def uuid_from(word: str) -> str:
    """The UUID, as `new_uuid` gives one, that follows from a word."""
    return str(uuid.UUID(bytes=hashlib.sha256(word.encode()).digest()[:16], version=4))


def generator(seed: int) -> Generator:
    """A reproducible generator for agents that ask for one. Not for secrets."""
    return Generator(seed)


class Reseeding(Generator):
    """A generator that asks before each draw whether it has to go on from other seeds: behind a fork it has."""

    def __init__(self, seed: int, due: Callable[[], Iterable[int]]) -> None:
        self._due: Callable[[], Iterable[int]] = tuple
        super().__init__(seed)
        self._due = due

    def random(self) -> float:
        """The next float in [0, 1)."""
        self._reseed()
        return super().random()

    def getrandbits(self, k: int) -> int:
        """The next `k` random bits."""
        self._reseed()
        return super().getrandbits(k)

    def _reseed(self) -> None:
        for seed in self._due():
            self.seed(seed)


def new_uuid() -> str:
    """A random UUID (version 4)."""
    return str(uuid.uuid4())


class RunClock:
    """Nanoseconds since a run began, on the writer's monotonic clock."""

    def __init__(self) -> None:
        self.wall_ns = wall_ns()
        self.start_ns = monotonic_ns()

    def __call__(self) -> int:
        """The nanoseconds so far."""
        return monotonic_ns() - self.start_ns

    def drift_ns(self) -> int:
        """How far the wall clock has moved away from the monotonic one since the start: a step shows here."""
        return wall_ns() - self.wall_ns - self()
