"""The index of a bundle: bounded whatever the log holds, and any row is found by it, by number or by time."""

from __future__ import annotations

import hashlib
import zlib
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from tests.store import large
from worldline.errors import Damaged
from worldline.model.events import Event, encode_json
from worldline.store.bundle import container
from worldline.store.bundle.container_writer import ContainerWriter
from worldline.store.bundle.index import MOST_BLOCKS, MOST_MARKS, MOST_NAMES, IndexBuilder
from worldline.store.bundle.packed import PackedRecording
from worldline.store.source import FileSource
from worldline.store.verify import verify

ROWS = 1_000_000
GOLDEN = sorted((Path(__file__).parent.parent / "golden" / "v0").glob("*.skn"))


def row(seq: int, raw: bytes) -> Event:
    kind, lane = f"k{seq % 800}", f"lane {seq % 1000}"
    name = ("decision", "request") if seq % 2 else ("observation", kind)
    return Event(seq, seq * 1000, 1000, *name, 1, lane, {}, {"call": f"c{seq}"}, None, "", raw)


def test_an_index_of_a_million_rows_of_four_gigabytes_is_small_and_counts_them_all() -> None:
    builder, raw = IndexBuilder("{}"), bytes(4000)
    for seq in range(ROWS):
        builder.row(row(seq, raw), stored=seq * 1000)
    index = builder.index()
    encoded = encode_json(index)
    assert len(encoded) < 500_000 and len(zlib.compress(encoded)) < 150_000
    assert (index.rows, index.raw, index.span) == (ROWS, ROWS * 4000, [0, (ROWS - 1) * 1000])
    assert MOST_BLOCKS / 2 <= len(index.blocks.seq) <= MOST_BLOCKS
    assert len(index.marks.seq) == MOST_MARKS and index.marks.total == ROWS // 2
    for counts in (index.kinds, index.lanes):
        assert len(counts.name) == MOST_NAMES and sum(counts.rows) + counts.others == ROWS
    for seq in (0, 1, 77_777, ROWS - 1):
        number = index.blocks.of_seq(seq)
        assert index.blocks.seq[number] <= seq < [*index.blocks.seq, ROWS][number + 1]
        assert index.blocks.of_time(seq * 1000 + 999) == number
    assert index.blocks.of_time(-1) == 0


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large.bundle(tmp_path_factory.mktemp("seek"), 8)


def test_any_row_is_found_by_its_number_and_by_its_time(bundle: Path) -> None:
    packed = PackedRecording(str(bundle))
    rows = list(packed.events())
    assert len(packed.index.blocks.seq) > 5
    for event in rows[:: len(rows) // 23]:
        assert next(packed.rows_from(event.seq)) == event
        block = packed.index.blocks.of_time(event.t)
        assert packed.index.blocks.t[block] <= event.t
        assert any(found.seq == event.seq for found in packed.rows_from(packed.index.blocks.seq[block]))
    assert list(packed.rows_from(rows[-1].seq + 1)) == []


def test_an_index_that_leads_astray_is_no_index(bundle: Path, tmp_path: Path) -> None:
    packed = PackedRecording(str(bundle))
    changes = {
        "a row too early": lambda blocks: blocks["seq"].__setitem__(3, blocks["seq"][3] - 1),
        "a byte too far": lambda blocks: blocks["stored"].__setitem__(3, blocks["stored"][3] + 1),
        "behind the end": lambda blocks: blocks["stored"].__setitem__(-1, 1 << 40),
        "backwards": lambda blocks: blocks["raw"].__setitem__(3, 0),
        "another time": lambda blocks: blocks["t"].__setitem__(3, 0),
        "uneven": lambda blocks: blocks["t"].pop(),
        "a row twice": lambda blocks: [column.insert(1, column[1]) for column in blocks.values()],
        "one less": lambda blocks: [column.pop(2) for column in blocks.values()],
        "none": lambda blocks: [column.clear() for column in blocks.values()],
    }
    for what, change in changes.items():
        said = msgspec.json.decode(b"".join(packed.content_of(packed.entries["index.json"])))
        change(said["blocks"])
        (tmp_path / "x.skn").unlink(missing_ok=True)
        with ContainerWriter(tmp_path / "x.skn") as writer:
            for entry in packed.container.entries:
                parts = [encode_json(said)] if entry.name == "index.json" else packed.content_of(entry)
                if entry.name == "events.jsonl":  # as it stands: its blocks are not cut anew
                    writer.add(entry.name, entry.method, _as_stored(packed, entry))
                elif entry.method == container.DEFLATED:
                    writer.deflate(entry.name, parts)
                else:
                    writer.store(entry.name, parts)
            writer.finish(packed.container.seal, ())
        found = verify(PackedRecording(str(tmp_path / "x.skn")))
        assert "index.json" in [problem.where for problem in found.problems], what


def _as_stored(packed: PackedRecording, entry: container.Entry) -> list[tuple[bytes, bytes]]:
    return [(b"".join(packed.content_of(entry)), b"".join(packed.stored(entry)))]


@pytest.mark.parametrize("bundle_0", GOLDEN, ids=lambda path: path.stem)
def test_bundles_of_the_first_format_open_verify_and_find_their_rows(bundle_0: Path) -> None:
    packed = PackedRecording(str(bundle_0))
    assert packed.container.format == "worldline-container/0"
    assert verify(packed).ok
    index, rows = packed.index, list(packed.events())
    assert (index.rows, index.format) == (len(rows), "worldline-index/1")
    for event in rows:
        assert next(packed.rows_from(event.seq)).raw == event.raw


@pytest.mark.parametrize(("name", "known"), [("decisions.jsonl", False), ("audit.jsonl", True)])
def test_the_first_format_has_no_names_of_the_second(name: str, known: bool, tmp_path: Path) -> None:
    entry = container.Entry(name, container.STORED, 0, 0, 0, hashlib.sha256(b"").hexdigest())
    data = container.encode(container.Container("worldline-container/0", (entry,), "0" * 64))
    own = container.own_entry(data)
    file = container.local_header(entry) + container.local_header(own) + data
    (tmp_path / "x.skn").write_bytes(file + container.central_directory((entry, own)))
    with nullcontext() if known else pytest.raises(Damaged, match="one that no bundle has"):
        assert container.open_container(FileSource(tmp_path / "x.skn")).format == "worldline-container/0"
