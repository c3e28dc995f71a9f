"""Any row is found by its seq or its time in few reads, without an index; of a damaged log, what a full read has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import worldline as wl
from worldline.errors import UsageError
from worldline.model import events
from worldline.model.events import Event
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.log import LogWriter
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.seek import Found, SeekableLog
from worldline.store.source import FileSource

MILLION = 1_000_000
WIDTH = 1024


def written(attempt: Path, rows: int, chance: random.Random, chunk_bytes: int = 64 << 10) -> Path:
    """A log of rows of all sizes in several chunks and a tail; some have the time of the row before."""
    attempt.mkdir()
    t = 0

    def now() -> int:
        nonlocal t
        t += chance.choice((0, 0, 1, 3, 10**9))
        return t

    log = LogWriter(attempt, now, chunk_bytes)
    for _ in range(rows):
        size = chance.choice((0, 10, 100, 1000, 3000, 60_000 if chance.random() < 0.1 else 5))
        log.append("observation", "file", "main", {}, b'{"text":"' + b"n" * size + b'"}')
    log.sync()
    log.close()
    return attempt


def good(attempt: Path) -> list[Event]:
    tail = attempt / layout.TAIL
    return list(RowReader([*sorted((attempt / layout.CHUNKS).iterdir()), *([tail] if tail.is_file() else [])]))


def last(found: list[Event], fits: Callable[[Event], bool]) -> Event | None:
    return next((event for event in reversed(found) if fits(event)), None)


def event(found: Found | None) -> Event | None:
    return None if found is None else found.event


def places(rows: list[Event], chance: random.Random) -> Iterator[tuple[int, int]]:
    """Seqs and times around some of the rows, and beyond both ends."""
    yield from ((-1, -1), (0, 0), (10**9, 10**18))
    for row in chance.sample(rows, min(25, len(rows))):
        yield row.seq, row.t
        yield row.seq + 1, row.t - 1
        yield row.seq, row.t + 1


@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_found_by_its_seq_and_by_its_time(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    attempt = written(tmp_path / "a", chance.choice((1, 2, 40, 400)), chance)
    rows, log = good(attempt), SeekableLog.of(attempt)
    for seq, t in places(rows, chance):
        for sought, expected in (
            (log.by_seq(seq), last(rows, lambda row, seq=seq: row.seq <= seq)),
            (log.by_time(t), last(rows, lambda row, t=t: row.t <= t)),
        ):
            assert event(sought) == expected
            assert sought is None or sought.offset is not None, "a whole log was read from its beginning"


@pytest.mark.parametrize("seed", range(12))
def test_in_a_damaged_log_what_is_found_is_what_a_full_read_has(tmp_path: Path, seed: int) -> None:
    chance = random.Random(100 + seed)
    attempt = written(tmp_path / "a", 300, chance)
    for _ in range(chance.choice((1, 2, 20))):
        damage(chance.choice([*sorted((attempt / layout.CHUNKS).iterdir()), attempt / layout.TAIL]), chance)
    rows, log = good(attempt), SeekableLog.of(attempt)
    for seq, t in places(rows, chance):
        assert event(log.by_seq(seq)) == last(rows, lambda row, seq=seq: row.seq <= seq)
        assert event(log.by_time(t)) == last(rows, lambda row, t=t: row.t <= t)


def damage(path: Path, chance: random.Random) -> None:
    """Flip a byte (half of them in what a search looks at), zero a stretch, cut the file, or take a piece out."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    match chance.randrange(5):
        case 0:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            begin = data.rfind(b"\n", 0, at) + 1
            data[min(begin + chance.randrange(24), len(data) - 1)] = 0x30 + chance.randrange(10)
        case 2:
            data[at : at + 4096] = bytes(len(data[at : at + 4096]))
        case 3:
            del data[at + 1 :]
        case _:
            del data[at : at + chance.randrange(5000)]
    path.write_bytes(data or b"\n")


def test_a_row_that_says_a_false_time_does_not_hide_another(tmp_path: Path) -> None:
    attempt = written(tmp_path / "a", 400, random.Random(3))
    for row in good(attempt)[1:]:
        path = next(file for file in files(attempt) if row.raw in file.read_bytes())
        whole = path.read_bytes()
        later = row.raw.replace(b'"t":%d,' % row.t, b'"t":%d,' % (row.t + 5 * 10**9), 1)
        if len(later) != len(row.raw) or row.seq % 20:
            continue
        path.write_bytes(whole.replace(row.raw, later))
        rows = good(attempt)
        assert event(SeekableLog.of(attempt).by_time(row.t)) == last(rows, lambda one, t=row.t: one.t <= t)
        path.write_bytes(whole)


def files(attempt: Path) -> list[Path]:
    return [*sorted((attempt / layout.CHUNKS).iterdir()), attempt / layout.TAIL]


class Fixed:
    """The bytes of a million rows of 1 KiB each, made when they are read; `reads` counts."""

    name = "a million rows"

    def __init__(self, rows: int) -> None:
        self.size = rows * WIDTH
        self.reads = 0
        self._hashes = [events.GENESIS]
        for seq in range(rows):
            self._hashes.append(events.link(self._hashes[-1], events.leaf(self.body(seq))))

    @staticmethod
    def body(seq: int) -> bytes:
        head = b'{"seq":%d,"t":%d,"dt":7,"kind":"marker","src":"step","v":1,"lane":"main","data":{"n":"' % (
            seq,
            7 * seq,
        )
        return head + b"n" * (WIDTH - events.SUFFIX - len(head) - 2) + b'"}'

    def read(self, offset: int, size: int) -> bytes:
        self.reads += 1
        begin, end = offset // WIDTH, -(-(offset + size) // WIDTH)
        lines = b"".join(events.line(self.body(seq), self._hashes[seq + 1]) for seq in range(begin, end))
        return lines[offset - begin * WIDTH :][:size]


def test_in_a_million_rows_at_most_24_reads_find_a_row() -> None:
    source, chance = Fixed(MILLION), random.Random(1)
    log = SeekableLog(source, [])
    for seq in (0, 1, MILLION // 2, MILLION - 1, *chance.sample(range(MILLION), 200)):
        source.reads = 0
        found, later = log.by_seq(seq), log.by_time(7 * seq + 6)
        assert found and later
        assert (found.event.seq, later.event.seq) == (seq, seq)
        assert max(found.probes, later.probes) <= 24
        assert found.probes + later.probes == source.reads


def test_what_is_being_written_is_sought_in_up_to_the_last_whole_row(tmp_path: Path) -> None:
    attempt = written(tmp_path / "a", 50, random.Random(5))
    with (attempt / layout.TAIL).open("ab") as tail:
        tail.write(b'{"seq":50,"t":9,"dt":0,"kind":"ma')
    found = SeekableLog.of(attempt).by_seq(10**6)
    assert found and found.event.seq == 49
    assert found.offset is not None


def test_a_tail_that_becomes_a_chunk_meanwhile_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = written(tmp_path / "a", 60, random.Random(6))
    rows, opened = good(attempt), FileSource.__init__

    def rotating(source: FileSource, path: Path) -> None:
        opened(source, path)
        if path.name == layout.TAIL:
            path.rename(attempt / layout.CHUNKS / layout.chunk_name(len(files(attempt)) - 1))

    monkeypatch.setattr(FileSource, "__init__", rotating)
    log = SeekableLog.of(attempt)
    assert [event(log.by_seq(row.seq)) for row in rows] == rows


def test_a_run_gives_its_rows_by_seq_and_by_time(tmp_path: Path) -> None:
    with wl.record(tmp_path, task="look") as run:
        for number in range(300):
            run.observe({"number": number, "text": "seen " * 40}, src="file")
    opened = wl.open("latest", tmp_path)
    rows = opened.events()
    bundle = PackedRecording(str(pack(opened.recording, tmp_path / "run.skn").path))
    for recording in (opened.recording, Recording(tmp_path / opened.id), bundle):
        for row in (*rows[::37], rows[-1]):
            assert recording.event(row.seq) == row
            assert recording.event_at(row.t) == last(rows, lambda one, t=row.t: one.t <= t)
        assert recording.event(len(rows)) is None
        assert recording.event(-1) is None
        assert recording.event_at(-1) is None
        assert recording.event_at(10**18) == rows[-1]
    assert opened.event(7) == rows[7]
    assert opened.event_at(3600.0) == rows[-1]
    assert list(opened.each_event()) == rows
    assert list(opened.each_event("observation", "marker")) == [r for r in rows if r.kind in ("observation", "marker")]
    assert list(opened.each_step()) == opened.steps
    with pytest.raises(UsageError, match="'step': there are action, "):
        opened.each_event("step")
