"""Every fuzz target over its whole corpus, without a fuzzer: so the targets and their inputs cannot rot.

The rule is theirs: nothing but errors of ours, and answers that hold together. Beside each input runs what a fuzzer
does first: a byte changed, a part gone, a part twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.make_corpus import make
from tests.fuzz.targets import CORPUS, TARGETS, inputs
from tests.soak import Soak

MUTATED = 12  # of each input


def mutated(data: bytes, chance: random.Random, count: int) -> Iterator[bytes]:
    for number in range(count):
        at, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        if number % 4 == 0 and at < len(data):
            yield data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :]
        elif number % 4 == 1:
            yield data[:at] + data[end:]
        elif number % 4 == 2:
            yield data[:end] + data[at:]
        else:
            yield data[:at] + chance.choice((b"\0", b"\n", b"{", b"null", b"-1", b'"', b"\xff")) + data[end:]


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_finds_nothing_in_its_corpus(name: str, soak: Soak) -> None:
    for number in soak.rounds():
        chance = random.Random(number)
        for path in inputs(name):
            data = path.read_bytes()
            for tried in (data, *mutated(data, chance, MUTATED)):
                try:
                    TARGETS[name].run(tried)
                except Exception as error:
                    error.add_note(f"{name} on {path.name}, round {number}: {tried!r:.2000}")
                    raise


def test_the_corpus_is_small_and_can_be_made_again(tmp_path: Path) -> None:
    make(tmp_path)
    kept = {str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*") if path.is_file()}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        name for name in kept if "/found-" not in name
    }
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 300_000
    assert all(inputs(name) for name in TARGETS)
