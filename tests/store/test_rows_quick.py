"""What is read quickly is what is read with care: rows, whole logs, sealed runs and blocks of a bundle alike."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.recorded import answer, decision, recorder_in
from tests.store.rich import recorded
from worldline.engine.cassette import Cassette
from worldline.engine.eligibility import Folding
from worldline.errors import Ineligible
from worldline.model import events, fields
from worldline.model.events import Event
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.bundle.squeeze import LOG_LEVEL, Squeeze
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verdicts import collect_blobs
from worldline.store.verify import Reading, may_name_contents, verify

HASH = b',"h":"' + b"a" * 64 + b'"}\n'
ENVELOPE: dict[str, Any] = {
    "seq": 3, "t": 5, "dt": 1, "kind": "action", "src": "tool_call", "v": 1, "lane": "main", "data": {"a": [1, {}]}
}  # fmt: skip
ODD = [0, -1, 1.0, 1 << 63, (1 << 63) - 1, 1 << 70, True, None, "", "x", [], {}, [3, "ab"], [3, 4], [1.5, "x"]]
NAMES = [*ENVELOPE, "h", "sync", "call", "mode", "key", "effect", "parent_id"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The rows of a log that was not sealed, with sync marks."""
    recorder, boundary = recorder_in(tmp_path_factory.mktemp("log"), task="quick")
    for number in range(6):
        answer(boundary, decision(b'{"messages":[%d]}' % number), [b"data: 1\n\n", b"data: [DONE]\n\n"])
    recorder.log.sync()
    recorder.close()
    return b"".join(path.read_bytes() for path in Recording(recorder.attempt).files()).splitlines(keepends=True)


def seen(reader: RowReader) -> tuple[Any, ...]:
    """All that a reader gives and says, row by row and at its end."""
    given = [(event, reader.seq, reader.head, reader.leaf, reader.bytes, reader.at) for event in reader]
    return given, reader.damages, reader.seq, reader.head, reader.leaf, reader.bytes, reader.at, reader.false_sync


def with_care(files: list[Path], patch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """The same of a reader that looks at each line with the one behind it, from the first on."""
    with patch.context() as patched:
        patched.setattr(RowReader, "_next", lambda self, raw: None)
        return seen(RowReader(files))


def spoiled(chance: random.Random, lines: list[bytes]) -> list[bytes]:
    """A log with one to three faults of the kinds that crashes, disks and people make."""
    lines = list(lines)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        line = lines[at]
        match chance.randrange(9):
            case 0:
                byte = chance.randrange(len(line))
                lines[at] = line[:byte] + bytes([line[byte] ^ (1 << chance.randrange(8))]) + line[byte + 1 :]
            case 1:
                lines[at] = line[: chance.randrange(len(line))]
            case 2:
                del lines[at : at + chance.randint(1, 3)]
            case 3:
                lines.insert(at, chance.choice(lines))
            case 4:
                lines[at] = bytes(chance.randint(1, 4096))
            case 5:
                lines[at] = bytes(chance.randint(1, 200)) + line
            case 6:
                chance.shuffle(lines)
            case 7:
                lines[at] = line[: len(line) // 2] + line
            case 8:
                lines = lines[: at + 1]
        lines = lines or [b""]
    return lines


def test_a_log_is_read_the_same_whatever_happened_to_it(
    log: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(4)
    damaged = 0
    for number in range(150):
        lines = spoiled(chance, log) if number else log
        border = chance.randrange(len(lines) + 1)
        files = [tmp_path / "000000.jsonl", tmp_path / "tail.jsonl"]
        for path, part in zip(files, (lines[:border], lines[border:]), strict=True):
            path.write_bytes(b"".join(part))
        quick = seen(RowReader(files))
        assert quick == with_care(files, monkeypatch)
        damaged += bool(quick[1])
    assert damaged > 100


def test_rows_that_chain_in_an_order_that_no_log_has(
    log: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, chance = tmp_path / "tail.jsonl", random.Random(6)
    for number in range(40):
        order = chance.sample(range(len(log)), chance.randint(2, len(log)))
        seqs, head, lines = (order if number % 2 else sorted(order)), events.GENESIS, []
        for seq in seqs:
            body = log[seq][: -events.SUFFIX]
            head = events.link(head, events.leaf(body))
            lines.append(events.line(body, head))
        path.write_bytes(b"".join(lines))
        quick = seen(RowReader([path]))
        assert quick == with_care([path], monkeypatch)
        assert {damage.kind for damage in quick[1]} <= {"gap", "order"} and (quick[1] or seqs == list(range(len(seqs))))


def line_of(members: list[tuple[str, Any]]) -> bytes:
    """A row of these fields in this order, one of them twice if need be."""
    return b"{" + b",".join(b"%b:%b" % (json.dumps(k).encode(), json.dumps(v).encode()) for k, v in members) + HASH


def read_both(raw: bytes) -> tuple[Event | None, Event | None]:
    found = []
    for read in (events.read_hashed, events._read_any):
        try:
            found.append(read(raw))
        except ValueError:
            found.append(None)
    return found[0], found[1]


@given(st.randoms(use_true_random=False))
def test_a_row_is_read_the_same_whatever_its_fields_hold(chance: random.Random) -> None:
    members = list(ENVELOPE.items())
    for _ in range(chance.randint(0, 3)):
        name = chance.choice([*NAMES, "else", "data"])
        members.append((name, chance.choice(ODD)))
        if chance.random() < 0.3:
            members.remove(chance.choice(members))
    if chance.random() < 0.3:
        chance.shuffle(members)
    quick, careful = read_both(line_of(members))
    assert quick == careful
    assert repr(quick) == repr(careful), "1 is not True, nor 1.0"


def test_the_usual_rows_take_the_quick_way(log: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_read_any", None)
    assert [events.read(line).seq for line in log] == list(range(len(log)))


@pytest.mark.parametrize("place", ["data", "else"])
def test_nesting_too_deep_is_no_row_by_either_way(place: str) -> None:
    for depth, fits in ((events.DEEPEST - 1, True), (events.DEEPEST, False), (900, False)):
        deep = b"[" * depth + b"]" * depth
        value = b'{"x":%b}' % (deep[1:-1] or b"0") if place == "data" else deep
        members = {**ENVELOPE, "data": {}}
        raw = line_of([(k, v) for k, v in members.items() if k != place])[: -len(HASH)]
        quick, careful = read_both(b'%b,"%b":%b' % (raw, place.encode(), value) + HASH)
        assert quick == careful and (quick is not None) == fits, depth


@given(st.dictionaries(st.sampled_from([*fields._FIELDS["observation/tool_result"], "name"]), st.sampled_from(ODD)))
def test_fields_are_judged_the_same_in_either_order(data: dict[str, Any]) -> None:
    for name in ("observation/tool_result", "meta/header", "meta/end", "marker/step", "action/click"):
        careful = fields._first_unfit(name, data) if name in fields._FIELDS else None
        assert fields.unfit(name, data) == careful


def exchanges(cassette: Cassette) -> list[Any]:
    return [*cassette.exchanges, cassette.notes, cassette.last_seq, list(cassette.by_call)]


def test_what_is_folded_while_it_is_verified_is_what_was_recorded(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "runs")
    folding = Folding(recording)
    reading = Reading(recording, fold=folding.begins())
    alone = Reading(recording)
    assert exchanges(folding.cassette()) == exchanges(Cassette(recording))
    assert (reading.blobs, reading.header, reading.last) == (alone.blobs, alone.header, alone.last)
    assert reading.merkle.root() == alone.merkle.root() and reading.blobs
    assert verify(recording, reading=reading) == verify(recording)
    assert exchanges(Folding(recording).cassette()) == exchanges(Cassette(recording)), "where nothing was verified"


def test_a_content_that_is_named_in_escapes_is_looked_for(tmp_path: Path) -> None:
    named = 0
    for event in recorded(tmp_path / "runs").events():
        for spelled in (b'"$blob"', b'"\\u0024blob"', b'"$\\u0062lob"', b'"\\u0024\\u0062\\u006cob"'):
            raw = event.raw.replace(b'"$blob"', b'"' + spelled[1:])
            found: dict[str, Any] = {}
            collect_blobs(events.read(raw).data, found)
            assert may_name_contents(raw) or not found
            named += bool(found)
    assert named >= 8 and not may_name_contents(b'{"a":"\\n $5"}')


def test_blocks_that_are_deflated_side_by_side_are_one_stream(tmp_path: Path) -> None:
    chance = random.Random(5)
    blocks = [bytes(chance.choices(b"abcdef \n", k=chance.randint(1, 60_000))) for _ in range(40)]
    taken: list[tuple[bytes, bytes]] = []
    with Squeeze(lambda raw, stored: taken.append((raw, stored))) as squeeze:
        for number, block in enumerate(blocks):
            squeeze.block(block, last=number == len(blocks) - 1)
    one = zlib.compressobj(LOG_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    expected = [one.compress(block) + one.flush(zlib.Z_FULL_FLUSH) for block in blocks[:-1]]
    expected.append(one.compress(blocks[-1]) + one.flush())
    assert taken == list(zip(blocks, expected, strict=True))
    assert squeeze.offsets == [sum(map(len, expected[:number])) for number in range(len(blocks))]
    with pytest.raises(ZeroDivisionError), Squeeze(lambda raw, stored: None) as squeeze:
        squeeze.block(b"x")
        raise ZeroDivisionError


def test_what_does_not_verify_is_packed_nowhere(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "runs")
    chunk = sorted((recording.attempt / layout.CHUNKS).iterdir())[0]
    data = chunk.read_bytes()
    chunk.write_bytes(data.replace(b'"t":', b'"t":1', 1))
    with pytest.raises(Ineligible, match="cannot pack"):
        pack(Recording(recording.attempt), tmp_path / "out.skn")
    assert not list(tmp_path.glob("*out.skn*"))
    chunk.write_bytes(data)
    pack(Recording(recording.attempt), tmp_path / "out.skn")
    packed = open_recording(tmp_path / "out.skn")
    assert [event.raw for event in packed.events()] == [event.raw for event in recording.events()]
