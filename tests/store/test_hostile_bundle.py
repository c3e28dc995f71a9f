"""A file from a stranger: what is no bundle of ours is refused by our own errors, and nothing is unpacked.

Foreign archives, archives that lie about themselves, and bundles made to fit whose content does not.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.store import hostile
from tests.store.hostile import assembled, contents, defects, remade
from worldline.errors import Damaged, NotARecording, ReadError, UsageError
from worldline.store.bundle import container
from worldline.store.bundle.container import EVENTS, INDEX, MANIFEST, STORED, Entry
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.verify import verify

REFUSED = (NotARecording, Damaged, ReadError, UsageError)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    pack(hostile.recorded(folder / "runs"), folder / "good.skn")
    return folder / "good.skn"


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def refused(data: bytes, place: Path) -> None:
    """The file is refused by whoever opens it, in words of ours; every verb ends well, and writes nothing anywhere."""
    place.write_bytes(data)
    before = tree(place.parent)
    with pytest.raises(REFUSED):
        open_recording(place)
    assert defects(place) == []
    assert tree(place.parent) == before


def reported(data: bytes, place: Path) -> set[str]:
    """The file opens, and `verify` finds what is wrong with it: the kinds. Nothing is replayed, packed or proven."""
    place.write_bytes(data)
    before = tree(place.parent)
    assert defects(place) == [] and tree(place.parent) == before
    found = verify(PackedRecording(str(place)))
    assert not found.ok
    return {problem.kind for problem in found.problems}


# Foreign archives.


def zipped(bundle: Path, change: str) -> bytes:
    """The entries of a bundle, packed by Python's zipfile in one of the ways that ZIP has."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in contents(bundle).items():
            info = zipfile.ZipInfo(name)
            if change == "symbolic links":
                info.external_attr = 0o120777 << 16
            if change == "zip64":
                with made.open(info, "w", force_zip64=True) as entry:
                    entry.write(content)
                continue
            made.writestr(info, content, zipfile.ZIP_STORED if change == "stored" else None)
        if change == "comment":
            made.comment = b"made by hand"
    data = out.getvalue()
    if change == "encrypted":
        data = data.replace(b"PK\x03\x04\x14\x00\x00\x00", b"PK\x03\x04\x14\x00\x01\x00")
        data = data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")
    return data


class Unseekable(io.RawIOBase):
    """A stream: zipfile then writes data descriptors."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self.data += bytes(part)
        return len(part)


def streamed(bundle: Path) -> bytes:
    out = Unseekable()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in contents(bundle).items():
            made.writestr(name, content)
    return out.data


@pytest.mark.parametrize("change", ["again", "stored", "comment", "zip64", "encrypted", "symbolic links", "streamed"])
def test_an_archive_of_another_tool(change: str, bundle: Path, tmp_path: Path) -> None:
    refused(streamed(bundle) if change == "streamed" else zipped(bundle, change), tmp_path / "x.skn")


def test_an_archive_inside_an_archive(bundle: Path, tmp_path: Path) -> None:
    inner = bundle.read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("good.skn", inner)
    refused(out.getvalue(), tmp_path / "x.skn")
    name = "resources/" + hostile.hashlib.sha256(inner).hexdigest() + ".bin"
    assert "added" in reported(remade(bundle, {name: inner}), tmp_path / "x.skn")
    assert len(list(PackedRecording("x.skn").events())) == len(list(PackedRecording(str(bundle)).events()))


def test_two_bundles_one_behind_the_other(bundle: Path, tmp_path: Path) -> None:
    good = bundle.read_bytes()
    for data in (good + good, b"#!/bin/sh\n" + good, good + b"\0" * 22, good + b"\n", good[:-22] + good[-22:] * 2):
        refused(data, tmp_path / "x.skn")


def test_cut_anywhere(bundle: Path, tmp_path: Path) -> None:
    good, chance = bundle.read_bytes(), random.Random(5)
    for size in [*range(130), *(chance.randrange(len(good)) for _ in range(60)), *range(len(good) - 99, len(good))]:
        (tmp_path / "x.skn").write_bytes(good[:size])
        with pytest.raises(REFUSED):
            open_recording(tmp_path / "x.skn")


# End records and the directory.


def ends(good: bytes, field: str, value: int) -> bytes:
    """The bundle with one number in its end records replaced."""
    at, form = {
        "count": (24, "<Q"),
        "count, all disks": (32, "<Q"),
        "size": (40, "<Q"),
        "offset": (48, "<Q"),
        "this disk": (16, "<I"),
        "record size": (4, "<Q"),
        "locator": (64, "<Q"),
        "old count": (86, "<H"),
        "old size": (88, "<I"),
        "old offset": (92, "<I"),
        "comment": (96, "<H"),
    }[field]
    data = bytearray(good)
    struct.pack_into(form, data, len(data) - 98 + at, value & ((1 << (8 * struct.calcsize(form))) - 1))
    return bytes(data)


FIELDS = ["count", "count, all disks", "size", "offset", "this disk", "record size", "locator"]
FIELDS += ["old count", "old size", "old offset", "comment"]


@pytest.mark.parametrize("field", FIELDS)
def test_end_records_that_lie(field: str, bundle: Path, tmp_path: Path) -> None:
    good = bundle.read_bytes()
    for value in (0, 1, 3, 999, len(good), 1 << 31, (1 << 64) - 1, 1_000_000, 10**12):
        data = ends(good, field, value)
        if data != good:
            refused(data, tmp_path / "x.skn")


def entry_of(name: str, content: bytes, **fields: Any) -> tuple[Entry, bytes]:
    said = {"name": name, "method": STORED, "size": len(content), "stored": len(content)}
    said |= {"crc32": zlib.crc32(content), "sha256": hostile.hashlib.sha256(content).hexdigest()}
    return Entry(**(said | fields)), content


def made_of(bundle: Path, *more: tuple[Entry, bytes], leave: tuple[str, ...] = ()) -> bytes:
    """The bundle's entries and more, each behind its header, whatever their names are."""
    packed = PackedRecording(str(bundle))
    kept = [(entry, b"".join(packed.stored(entry))) for entry in packed.container.entries if entry.name not in leave]
    entries = [*kept, *more]
    parts = [container.local_header(entry) + stored for entry, stored in entries]
    return assembled(parts, [entry for entry, _ in entries], packed.container.seal)


NAMES = [
    "../outside.json",
    "../../../../../../tmp/outside",
    "/etc/outside",
    "resources/../../outside.txt",
    "resources\\outside.txt",
    "C:\\outside.txt",
    "resources/",
    "resources",
    "",
    ".",
    "manifest.json/",
    "Manifest.json",
    "EVENTS.JSONL",
    "manifest.json.",
    "manifest.json ",
    "events.jsonl\0.txt",
    "container.json",
    "resources/" + "A" * 64 + ".txt",
    "resources/" + "0" * 64 + ".TXT",
    "resources/" + "0" * 64 + ".exe",
    "resources/" + "0" * 64 + ".txt\n",
    "thumbs/../manifest.json",
    "snapshots/../x/meta.json",
    "__MACOSX/._events.jsonl",
    "x" * 60_000,
]


@pytest.mark.parametrize("name", NAMES, ids=[repr(name[:40]) for name in NAMES])
def test_a_name_that_no_bundle_has(name: str, bundle: Path, tmp_path: Path) -> None:
    refused(made_of(bundle, entry_of(name, b"content")), tmp_path / "x.skn")


def test_a_name_twice_or_out_of_order_or_missing(bundle: Path, tmp_path: Path) -> None:
    content = contents(bundle)[MANIFEST]
    refused(made_of(bundle, entry_of(MANIFEST, content)), tmp_path / "x.skn")
    for needed in (EVENTS, INDEX, MANIFEST):
        refused(made_of(bundle, leave=(needed,)), tmp_path / "x.skn")
    packed = PackedRecording(str(bundle))
    whole = [(entry, b"".join(packed.stored(entry))) for entry in packed.container.entries]
    parts = [container.local_header(entry) + stored for entry, stored in whole]
    swapped = assembled([parts[1], parts[0], *parts[2:]], [entry for entry, _ in whole], packed.container.seal)
    assert "changed" in reported(swapped, tmp_path / "x.skn")


LIES: dict[str, dict[str, int]] = {
    "overlap": {"stored": 3},
    "a gap": {"stored": 10_000},
    "larger than the file": {"stored": 1 << 40},
    "as large as a number can be": {"stored": (1 << 63) - 1},
    "content larger than it is": {"size": 1 << 40},
    "content smaller than it is": {"size": 1},
    "another method": {"method": 12},
    "encrypted, they say": {"method": 99},
    "another CRC": {"crc32": 1},
}


@pytest.mark.parametrize("name", LIES)
def test_an_entry_that_lies(name: str, bundle: Path, tmp_path: Path) -> None:
    entry, stored = entry_of("resources/" + "0" * 64 + ".txt", b"some content")
    lying = hostile.msgspec_replace(entry, **LIES[name])
    data = made_of(bundle, (lying, stored))
    (tmp_path / "x.skn").write_bytes(data)
    try:
        packed = PackedRecording("x.skn")
    except REFUSED:
        refused(data, tmp_path / "x.skn")
        return
    assert {"changed", "added"} & reported(data, tmp_path / "x.skn")
    with pytest.raises((ReadError, AssertionError)):
        assert b"".join(packed.content_of(packed.entries[lying.name])) != b"some content" or LIES[name] == {"crc32": 1}
        raise AssertionError


def test_bits_of_a_symbolic_link_in_the_directory(bundle: Path, tmp_path: Path) -> None:
    good = bundle.read_bytes()
    mode = struct.pack("<I", 0o100600 << 16)
    assert good.count(mode) == len(PackedRecording(str(bundle)).container.entries) + 1
    at = good.index(mode)
    for other in (0o120777 << 16, 0o040755 << 16, 0o100777 << 16, 0o104755 << 16, 0o100600 << 16 | 0x10):
        refused(good[:at] + struct.pack("<I", other) + good[at + 4 :], tmp_path / "x.skn")


# Bombs.


def bomb(size: int) -> bytes:
    """Deflated zeros; a thousand of them cost a byte."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    part = squeeze.compress(b"0" * (1 << 20))
    return part + b"".join(squeeze.compress(b"0" * (1 << 20)) for _ in range(size // (1 << 20) - 1)) + squeeze.flush()


@pytest.mark.parametrize("name", [EVENTS, INDEX, MANIFEST])
@pytest.mark.parametrize("said", [3, 8 << 20])
def test_a_bomb(name: str, said: int, bundle: Path, tmp_path: Path) -> None:
    packed = PackedRecording(str(bundle))
    stored = bomb(8 << 20)
    entry, _ = entry_of(name, stored, method=container.DEFLATED, size=said)
    old = [(e, b"".join(packed.stored(e))) if e.name != name else (entry, stored) for e in packed.container.entries]
    parts = [container.local_header(each) + data for each, data in old]
    data = assembled(parts, [each for each, _ in old], packed.container.seal)
    assert len(data) < 200_000
    assert {"changed", "manifest"} & reported(data, tmp_path / "x.skn")


def test_json_that_nests_without_end(bundle: Path, tmp_path: Path) -> None:
    for deep in (b"[" * 500_000, b'{"a":' * 200_000, b'{"format":' + b"[" * 100_000 + b"]" * 100_000 + b"}"):
        for name in (INDEX, MANIFEST):
            assert reported(remade(bundle, {name: deep}), tmp_path / "x.skn")
        index = json.loads(contents(bundle)[INDEX])
        unknown = hostile.spelled(index)[:-1] + b',"later":' + deep + b"}"
        assert reported(remade(bundle, {INDEX: unknown}), tmp_path / "x.skn")
        result = hostile.spelled({**index, "result": deep.decode()})
        assert reported(remade(bundle, {INDEX: result}), tmp_path / "x.skn")


def raw_container(bundle: Path, text: bytes) -> bytes:
    """The bundle with any text as its container, which the end records and the digest fit."""
    packed = PackedRecording(str(bundle))
    parts = b"".join(container.local_header(e) + b"".join(packed.stored(e)) for e in packed.container.entries)
    digest = hostile.hashlib.sha256(b"\x04" + text).hexdigest().encode()
    data = text + b',"container":"' + digest + b'"}'
    own = container.own_entry(data)
    return parts + container.local_header(own) + data + container.central_directory((*packed.container.entries, own))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'{"format":NaN',
        b"{\xff\xfe",
        b'{"format":"' + container.FORMAT.encode() + b'"',
        b"[" * 300_000,
    ],
)
def test_a_container_that_is_no_json_of_ours(text: bytes, bundle: Path, tmp_path: Path) -> None:
    refused(raw_container(bundle, text), tmp_path / "x.skn")


def test_a_format_of_later(bundle: Path, tmp_path: Path) -> None:
    later = remade(bundle, change=lambda fields: {**fields, "format": "worldline-container/2"})
    (tmp_path / "x.skn").write_bytes(later)
    with pytest.raises(NotARecording, match="worldline-container/2"):
        open_recording("x.skn")
