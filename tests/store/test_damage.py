"""A damaged log: the longest good content opens, every damage is named with its place, and replay refuses.

One damaged row costs one row. Padding is told apart from tampering, a cut end from a cut middle.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from worldline.cli.main import cli
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.replay import ReplayBoundary, inspect
from worldline.engine.spec import Spec
from worldline.errors import Ineligible
from worldline.model import events
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verify import verify

BODY = b'{"model":"m-1","messages":[%s],"n":1}'


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The rows of a live log: a header, then model calls (each context builds on the one before) and tools."""
    attempt = record(tmp_path_factory.mktemp("lines"))
    return (attempt / layout.TAIL).read_bytes().splitlines(keepends=True)


def record(folder: Path) -> Path:
    recorder = Recorder(Spec(store=folder / "runs", task="damage"))
    boundary = RecordBoundary(recorder)
    messages = []
    for number in range(4):
        messages.append(b'{"role":"user","content":"question %d"}' % number)
        request = Call(
            kind="decision", name="openai.chat", inputs=Content.of({"n": number}), body=BODY % b",".join(messages)
        )
        answer = boundary.begin(request)
        answer.chunk(b'{"choices":[]}')
        answer.finish({"status": 200})
        boundary.begin(Call(kind="action", name="look", inputs=Content.of(number))).finish({}, Content.of(number))
    recorder.log.sync()
    recorder.close()
    return recorder.attempt


def reopened(folder: Path, data: bytes) -> Recording:
    """A run whose whole log is `data`."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    attempt = folder / "run" / layout.ATTEMPTS / "a"
    (attempt / layout.CHUNKS).mkdir(parents=True)
    (attempt / layout.TAIL).write_bytes(data)
    return Recording(folder / "run")


def read(folder: Path, data: bytes) -> tuple[list[int], list[tuple[str, int, int]]]:
    """The seqs of the good rows, and (kind, seq, offset) of every damage."""
    path = folder / layout.TAIL
    path.write_bytes(data)
    reader = RowReader([path])
    seqs = [event.seq for event in reader]
    assert {damage.file for damage in reader.damages} <= {layout.TAIL}
    return seqs, [(damage.kind, damage.seq, damage.offset) for damage in reader.damages]


def at(lines: list[bytes], row: int) -> int:
    return sum(map(len, lines[:row]))


def without(lines: list[bytes], *rows: int) -> list[int]:
    return [row for row in range(len(lines)) if row not in rows]


def test_cut_at_every_byte_of_the_last_two_rows(lines: list[bytes], tmp_path: Path) -> None:
    whole, rows = b"".join(lines), len(lines)
    for end in range(at(lines, rows - 2), len(whole)):
        seqs, damages = read(tmp_path, whole[:end])
        good = rows - 2 if end < at(lines, rows - 1) else rows - 1
        assert seqs == list(range(good))
        assert damages == ([] if end == at(lines, good) else [("torn", good, at(lines, good))])
    recording = reopened(tmp_path, whole[: at(lines, rows - 1) + 9])
    assert {problem.kind for problem in verify(recording).problems} == {"torn"}
    assert inspect(recording).verdict == "prefix-equivalent"
    assert not ReplayBoundary(recording).report().equivalent  # a prefix is replayed, and nothing was asked of it


@pytest.mark.parametrize("size", [1, 1728, 4096, 300_000])
def test_nul_padding_at_the_end_and_before_good_rows(size: int, lines: list[bytes], tmp_path: Path) -> None:
    whole, half = b"".join(lines), len(lines) // 2
    seqs, damages = read(tmp_path, whole + bytes(size))
    assert seqs == without(lines) and {(kind, seq) for kind, seq, _ in damages} == {("zeros", len(lines))}
    assert damages[0][2] == len(whole)
    seqs, damages = read(tmp_path, b"".join(lines[:half]) + bytes(size) + b"".join(lines[half:]))
    assert seqs == without(lines) and {kind for kind, *_ in damages} == {"zeros"}
    assert damages[0][1:] == (half, at(lines, half))
    seqs, damages = read(tmp_path, b"".join(lines[:half]) + lines[half][:50] + bytes(size))
    assert seqs == list(range(half)) and damages[0][0] in ("torn", "malformed") and damages[-1][0] in ("zeros", "torn")
    recording = reopened(tmp_path, whole + bytes(size))
    (problem,) = {(problem.kind, problem.where.split(",")[0]) for problem in verify(recording).problems[:1]}
    assert problem == ("zeros", f"row {len(lines)} (tail.jsonl")


@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_a_line_cut_in_the_middle_costs_one_row(newline: bytes, lines: list[bytes], tmp_path: Path) -> None:
    for row in range(1, len(lines) - 1):
        cut = [*lines[:row], lines[row][:40] + newline, *lines[row + 1 :]]
        assert read(tmp_path, b"".join(cut)) == (without(lines, row), [("malformed", row, at(lines, row))])


def test_a_hole_of_unsynced_pages_before_good_rows(lines: list[bytes], tmp_path: Path) -> None:
    whole = bytearray(b"".join(lines))
    start, end = at(lines, 4) + 30, at(lines, 7) + 30  # from inside row 4 into row 7
    whole[start:end] = bytes(end - start)
    seqs, damages = read(tmp_path, bytes(whole))
    assert seqs == without(lines, 4, 5, 6, 7)
    assert {"gap"} <= {kind for kind, *_ in damages} and damages[0][1:] == (4, at(lines, 4))
    refused(reopened(tmp_path, bytes(whole)))


SWAP = "swapped"
EDITS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], set[str], set[int]]] = {
    "deleted": (lambda rows: rows[:5] + rows[6:], {"gap"}, {5}),
    "two deleted": (lambda rows: rows[:5] + rows[7:], {"gap"}, {5, 6}),
    "duplicated": (lambda rows: [*rows[:6], rows[5], *rows[6:]], {"order"}, set()),
    "repeated later": (lambda rows: [*rows[:9], rows[5], *rows[9:]], {"order"}, set()),
    SWAP: (lambda rows: [*rows[:5], rows[6], rows[5], *rows[7:]], {"order", "gap"}, {6}),
    "edited": (lambda rows: [*rows[:5], rows[5].replace(b'"v":1', b'"v":2'), *rows[6:]], {"changed"}, {5}),
    "seq edited": (lambda rows: [*rows[:5], rows[5].replace(b'"seq":5', b'"seq":95'), *rows[6:]], {"changed"}, {5}),
    "seq lowered": (lambda rows: [*rows[:5], rows[5].replace(b'"seq":5', b'"seq":1'), *rows[6:]], {"order"}, {5}),
    "hash edited": (lambda rows: [*rows[:5], rows[5][:-67] + b"0" * 64 + b'"}\n', *rows[6:]], {"changed"}, {5}),
    "junk inserted": (lambda rows: [*rows[:5], b"junk\n", *rows[5:]], {"malformed"}, set()),
    "header deleted": (lambda rows: rows[1:], {"gap"}, {0}),
    "too long": (lambda rows: [*rows[:5], b"[" * 300_000 + b"\n", *rows[6:]], {"malformed"}, {5}),
}


def refused(recording: Recording) -> None:
    """Not verified, not re-driven; shown all the same."""
    assert not verify(recording).ok
    with pytest.raises(Ineligible):
        ReplayBoundary(recording)
    assert not inspect(recording).equivalent


@pytest.mark.parametrize("name", EDITS)
def test_edits_are_found_and_cost_no_other_row(name: str, lines: list[bytes], tmp_path: Path) -> None:
    edit, kinds, lost = EDITS[name]
    data = b"".join(edit(lines))
    seqs, damages = read(tmp_path, data)
    assert seqs == without(lines, *lost)
    assert {kind for kind, *_ in damages} == kinds
    recording = reopened(tmp_path, data)
    assert kinds <= {problem.kind for problem in verify(recording).problems}
    if 0 not in lost:
        refused(recording)
        shown = CliRunner().invoke(cli, ["show", str(tmp_path / "run")], standalone_mode=False)
        assert shown.exception is None and "step" in shown.output


def rehashed(lines: list[bytes], row: int) -> bytes:
    """The row with other content and a hash that fits it and the row before."""
    before = bytes.fromhex(lines[row - 1][-67:-3].decode())
    body = lines[row][: -events.SUFFIX].replace(b'"lane":"main"', b'"lane":"mine"')
    leaf = hashlib.sha256(b"\x00" + body).digest()
    return events.line(body, hashlib.sha256(b"\x02" + before + leaf).digest())


def test_a_row_rehashed_without_the_rest_breaks_the_chain(lines: list[bytes], tmp_path: Path) -> None:
    for row in (1, 5, len(lines) - 2):
        data = b"".join([*lines[:row], rehashed(lines, row), *lines[row + 1 :]])
        seqs, damages = read(tmp_path, data)
        assert damages == [("changed", row + 1, at(lines, row + 1))] and seqs == without(lines, row + 1)
        refused(reopened(tmp_path, data))


@given(data=st.data())
def test_no_damage_of_one_byte_costs_more_than_two_rows(
    data: st.DataObject, lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = bytearray(b"".join(lines))
    offset = data.draw(st.integers(0, len(whole) - 1))
    whole[offset] ^= data.draw(st.integers(1, 255))
    seqs, damages = read(tmp_path_factory.getbasetemp(), bytes(whole))
    row = sum(1 for end in range(1, len(lines) + 1) if at(lines, end) <= offset)
    newline = offset == at(lines, row + 1) - 1
    assert seqs == without(lines, row, *([row + 1] if newline and row + 1 not in seqs else []))
    assert damages and damages[0][2] <= offset


def test_a_chunk_that_is_gone_is_a_gap(sealed: Path) -> None:
    chunks = sorted((sealed / layout.CHUNKS).iterdir())
    assert len(chunks) > 2
    rows = [event.seq for event in RowReader(chunks)]
    chunks[1].unlink()
    reader = RowReader([chunks[0], *chunks[2:]])
    kept = [event.seq for event in reader]
    (damage,) = reader.damages
    assert (damage.kind, damage.file, damage.offset) == ("gap", chunks[2].name, 0)
    assert set(kept) < set(rows) and len(kept) > len(rows) // 3
    verification = verify(Recording(sealed))
    assert verification.verdicts["structure"] == "failed"
    assert {"gap", "missing"} <= {problem.kind for problem in verification.problems}


def test_a_hash_in_other_letters_costs_its_row_alone(lines: list[bytes], tmp_path: Path) -> None:
    for row in (0, 3, len(lines) - 2):
        letter = next(i for i in range(len(lines[row]) - 67, len(lines[row]) - 3) if lines[row][i : i + 1].isalpha())
        changed = bytearray(lines[row])
        changed[letter] ^= 0x21  # "e" becomes "D": no hash as we write one, but a hash that could be read
        seqs, damages = read(tmp_path, b"".join([*lines[:row], bytes(changed), *lines[row + 1 :]]))
        assert seqs == without(lines, row)
        assert [kind for kind, *_ in damages] == ["malformed"]
