"""A log folds to the head and root that its rows have, and to nothing where a byte of it is another."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from worldline.errors import Damaged
from worldline.model.merkle import Merkle
from worldline.store import layout
from worldline.store.fold import fold
from worldline.store.log import LogWriter
from worldline.store.rows import RowReader
from worldline.store.seal import read_back


def written(attempt: Path, rows: int) -> LogWriter:
    attempt.mkdir()
    log = LogWriter(attempt, iter(range(10**9)).__next__, chunk_bytes=40_000)
    for number in range(rows):
        log.append("marker", "step", "main", {}, b'{"n":"' + b"n" * (number % 300) + b'"}')
    log.finish()
    return log


def chunks(attempt: Path) -> list[Path]:
    return sorted((attempt / layout.CHUNKS).iterdir())


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 255, 256, 257, 1000])
def test_a_log_folds_to_what_its_rows_come_to(tmp_path: Path, rows: int) -> None:
    log = written(tmp_path / "a", rows)
    reader, merkle = RowReader(chunks(tmp_path / "a")), Merkle()
    for _ in reader:
        merkle.add(reader.leaf)
    folded = fold(chunks(tmp_path / "a"))
    assert folded == (rows, log.bytes, log.h, merkle.root())
    log.close()


@pytest.mark.parametrize("seed", range(60))
def test_a_log_of_which_a_byte_changed_does_not_fold(tmp_path: Path, seed: int) -> None:
    log, chance = written(tmp_path / "a", 200), random.Random(seed)
    whole = fold(chunks(tmp_path / "a"))
    path = chance.choice(chunks(tmp_path / "a"))
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    if seed % 3 == 0:
        del data[at]
    else:
        data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    assert fold(chunks(tmp_path / "a")) is None
    with pytest.raises(Damaged) as raised:
        read_back(tmp_path / "a", log)
    assert raised.value.facts["damage"] is not None
    assert whole is not None
    log.close()


def test_a_log_that_lacks_its_last_rows_is_not_what_was_written(tmp_path: Path) -> None:
    log = written(tmp_path / "a", 200)
    last = chunks(tmp_path / "a")[-1]
    last.write_bytes(b"".join(last.read_bytes().splitlines(keepends=True)[:-1]))
    folded = fold(chunks(tmp_path / "a"))
    assert folded is not None and folded.rows == 199
    with pytest.raises(Damaged):
        read_back(tmp_path / "a", log)
    log.close()


def test_leaves_added_together_are_folded_as_those_added_one_by_one() -> None:
    chance = random.Random(2)
    one, many = Merkle(), Merkle()
    for _ in range(40):
        leaves = [chance.randbytes(32) for _ in range(chance.choice((0, 1, 5, 63, 64, 65, 200)))]
        many.extend(leaves)
        for leaf in leaves:
            one.add(leaf)
        assert (many.size, many.root()) == (one.size, one.root())
