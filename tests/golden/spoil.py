"""Damage and malice, done to good golden recordings: every kind once, small, and the same each time.

`DIRECTORIES` change the copy of a run's attempt directory, `BUNDLES` and `HOSTILE` the bytes of a bundle. The value of
each is what it makes; the name is what a reader has to find.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.store.forgery import forge, replace, reseal
from worldline.store.bundle import container
from worldline.store.bundle.container import CONTAINER, DEFLATED, EVENTS, INDEX, MANIFEST, STORED, Container, Entry
from worldline.store.source import FileSource

MANIFESTS = ("manifest.staged.json", "manifest.json")


# --------------------------------------------------------------------------------------------------------- directories


def chunk(attempt: Path, number: int = 0) -> Path:
    return attempt / "chunks" / f"{number:06d}.jsonl"


def lines(attempt: Path) -> list[bytes]:
    return chunk(attempt).read_bytes().splitlines(keepends=True)


def rewrite(attempt: Path, rows: list[bytes]) -> None:
    replace(chunk(attempt), b"".join(rows))


def row_edited(attempt: Path) -> None:
    rows = lines(attempt)
    rows[2] = rows[2].replace(b'"kind":"', b'"kinD":"')
    rewrite(attempt, rows)


def row_hash_edited(attempt: Path) -> None:
    rows = lines(attempt)
    rows[2] = rows[2][:-4] + (b"0" if rows[2][-4:-3] != b"0" else b"1") + rows[2][-3:]
    rewrite(attempt, rows)


def row_deleted(attempt: Path) -> None:
    rows = lines(attempt)
    rewrite(attempt, rows[:2] + rows[3:])


def header_deleted(attempt: Path) -> None:
    rewrite(attempt, lines(attempt)[1:])


def end_deleted(attempt: Path) -> None:
    rewrite(attempt, lines(attempt)[:-1])


def rows_swapped(attempt: Path) -> None:
    rows = lines(attempt)
    rewrite(attempt, [*rows[:1], rows[2], rows[1], *rows[3:]])


def row_duplicated(attempt: Path) -> None:
    rows = lines(attempt)
    rewrite(attempt, [*rows[:3], *rows[2:]])


def row_spliced(attempt: Path) -> None:
    """A good row of the same place in another recording."""
    rows = lines(attempt)
    body = rows[2][:-73].replace(b'"v":1', b'"v":2')
    from worldline.model import events

    before = bytes.fromhex(rows[1][-67:-3].decode())
    rows[2] = events.line(body, events.link(before, events.leaf(body)))
    rewrite(attempt, rows)


def log_cut(attempt: Path) -> None:
    replace(chunk(attempt), chunk(attempt).read_bytes()[:-100])


def log_zeroed(attempt: Path) -> None:
    rows = lines(attempt)
    rows[2] = bytes(len(rows[2]))
    rewrite(attempt, rows)


def log_emptied(attempt: Path) -> None:
    rewrite(attempt, [])


def log_not_utf8(attempt: Path) -> None:
    rows = lines(attempt)
    rows[2] = rows[2].replace(b'"lane":"', b'"lane":"\xff', 1)
    rewrite(attempt, rows)


def log_longer(attempt: Path) -> None:
    rewrite(attempt, [*lines(attempt), b"{}\n"])


def tail_left(attempt: Path) -> None:
    (attempt / "tail.jsonl").write_bytes(lines(attempt)[-1])


def chunk_added(attempt: Path) -> None:
    chunk(attempt, 7).write_bytes(b"")


def chunk_renamed(attempt: Path) -> None:
    chunk(attempt).rename(chunk(attempt, 9))


def chunk_linked(attempt: Path) -> None:
    """A symbolic link to the same bytes elsewhere."""
    data = chunk(attempt).read_bytes()
    elsewhere = attempt.parent.parent.parent / "elsewhere"
    elsewhere.write_bytes(data[:-1] + b" ")
    chunk(attempt).unlink()
    chunk(attempt).symlink_to(elsewhere)


def manifest_edited(attempt: Path) -> None:
    for name in MANIFESTS:
        data = (attempt / name).read_bytes()
        replace(attempt / name, data.replace(b'"capture":"full"', b'"capture":"refs"'))


def manifest_cut(attempt: Path) -> None:
    replace(attempt / "manifest.json", (attempt / "manifest.json").read_bytes()[:-30])


def manifest_no_newline(attempt: Path) -> None:
    replace(attempt / "manifest.json", (attempt / "manifest.json").read_bytes()[:-1])


def manifest_deleted(attempt: Path) -> None:
    (attempt / "manifest.json").unlink()


def manifest_empty(attempt: Path) -> None:
    replace(attempt / "manifest.json", b"")


def staged_edited(attempt: Path) -> None:
    replace(attempt / "manifest.staged.json", (attempt / "manifest.staged.json").read_bytes() + b"\n")


def staged_deleted(attempt: Path) -> None:
    (attempt / "manifest.staged.json").unlink()


def result_edited(attempt: Path) -> None:
    data = (attempt / "result.json").read_bytes()
    replace(attempt / "result.json", data.replace(b'"outcome":"succeeded"', b'"outcome":"SUCCEEDED"'))


def result_deleted(attempt: Path) -> None:
    (attempt / "result.json").unlink()


def published(attempt: Path) -> Path:
    [found] = attempt.parent.parent.parent.glob("*.json")
    return found


def published_edited(attempt: Path) -> None:
    replace(published(attempt), published(attempt).read_bytes() + b"\n")


def published_deleted(attempt: Path) -> None:
    published(attempt).unlink()


def open_edited(attempt: Path) -> None:
    replace(attempt / "open.json", (attempt / "open.json").read_bytes().replace(b"sess_", b"sezz_"))


def lock_filled(attempt: Path) -> None:
    replace(attempt / "lock", b"1")


def file_added(attempt: Path) -> None:
    (attempt / "notes.txt").write_bytes(b"by somebody")


def folder_added(attempt: Path) -> None:
    (attempt / "chunks" / "more").mkdir()
    (attempt / "chunks" / "more" / "file").write_bytes(b"x")


def torn_added(attempt: Path) -> None:
    (attempt / "tail.torn").write_bytes(b"x")


def sealed_more_rows(attempt: Path) -> None:
    """Sealed anew by somebody who counts wrong."""
    reseal(attempt, {"rows": json.loads((attempt / "manifest.json").read_bytes())["rows"] + 1})


def sealed_wrong_types(attempt: Path) -> None:
    reseal(attempt, {"chunks": [["000000.jsonl", "12", 7]], "blobs": [7]})


def sealed_wrong_tables(attempt: Path) -> None:
    reseal(attempt, {"masks": {}, "coverage": []})


def sealed_leads_out(attempt: Path) -> None:
    """A result's name that leads out of the run's directory."""
    manifest = json.loads((attempt / "manifest.json").read_bytes())
    reseal(attempt, {"result": {**manifest["result"], "name": "../../outside.json"}})


def rows_chained_anew(attempt: Path) -> None:
    """Every row changed and chained anew, the seal left as it was."""
    kept = [(attempt / name).read_bytes() for name in MANIFESTS]
    forge(attempt, lambda body: body.replace(b'"v":1', b'"v":1,"x":0'))
    for name, data in zip(MANIFESTS, kept, strict=True):
        replace(attempt / name, data)


def other_format(attempt: Path) -> None:
    """A format that is newer than any reader."""
    forge(attempt, lambda body: body.replace(b'"format":"worldline/', b'"format":"worldline/9'))


def sync_false(attempt: Path) -> None:
    """Chained and sealed anew, with marks that name no row."""
    forge(attempt, lambda body: re.sub(rb'("sync":\[\d+,")[0-9a-f]{16}', rb"\g<1>" + b"F" * 16, body))


def forged(attempt: Path) -> None:
    """Changed, chained and sealed anew, and `open.json` with it: no chain can tell."""
    forge(attempt, lambda body: body.replace(b'"pieces":2', b'"pieces":3'))


def open_and_lock_deleted(attempt: Path) -> None:
    """Files that can be derived again."""
    (attempt / "open.json").unlink()
    (attempt / "lock").unlink()


def blob(attempt: Path, number: int = 0) -> Path:
    found = sorted((attempt / "blobs" / "ordinary").glob("??/*"))
    return found[number]


def blob_edited(attempt: Path) -> None:
    data = bytearray(blob(attempt).read_bytes())
    data[len(data) // 2] ^= 1
    replace(blob(attempt), bytes(data))


def blob_cut(attempt: Path) -> None:
    replace(blob(attempt), blob(attempt).read_bytes()[:-1])


def blob_deleted(attempt: Path) -> None:
    blob(attempt).unlink()


def blobs_swapped(attempt: Path) -> None:
    one, other = blob(attempt), blob(attempt, 1)
    data = one.read_bytes()
    replace(one, other.read_bytes())
    replace(other, data)


def blob_added(attempt: Path) -> None:
    path = attempt / "blobs" / "ordinary" / "ab" / ("ab" * 32)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"a stranger")


def blob_elsewhere(attempt: Path) -> None:
    """In the other tier, where nobody looks for it."""
    target = attempt / "blobs" / "restricted" / blob(attempt).parent.name / blob(attempt).name
    target.parent.mkdir(parents=True)
    blob(attempt).rename(target)


Spoil = Callable[[Path], None]
DIRECTORIES: tuple[Spoil, ...] = (
    row_edited,
    row_hash_edited,
    row_deleted,
    header_deleted,
    end_deleted,
    rows_swapped,
    row_duplicated,
    row_spliced,
    log_cut,
    log_zeroed,
    log_emptied,
    log_not_utf8,
    log_longer,
    tail_left,
    chunk_added,
    chunk_renamed,
    chunk_linked,
    manifest_edited,
    manifest_cut,
    manifest_no_newline,
    manifest_deleted,
    manifest_empty,
    staged_edited,
    staged_deleted,
    result_edited,
    result_deleted,
    published_edited,
    published_deleted,
    open_edited,
    lock_filled,
    file_added,
    folder_added,
    torn_added,
    sealed_more_rows,
    sealed_wrong_types,
    sealed_wrong_tables,
    sealed_leads_out,
    rows_chained_anew,
    other_format,
    sync_false,
    forged,
    open_and_lock_deleted,
    blob_edited,
    blob_cut,
    blob_deleted,
    blobs_swapped,
    blob_added,
    blob_elsewhere,
)
UNSEEN = ("forged", "open_and_lock_deleted")
"""What no verdict tells: what was sealed anew, and what can be derived again."""


# ------------------------------------------------------------------------------------------------------------- bundles


class Bundle:
    """A bundle taken apart, to be put together in another way."""

    def __init__(self, path: Path) -> None:
        self.raw = path.read_bytes()
        self.container = container.open_container(FileSource(path))
        offsets = self.container.offsets()
        self.stored = {e.name: self.raw[offsets[e.name] : offsets[e.name] + e.stored] for e in self.container.entries}
        self.entries = list(self.container.entries)

    def again(self, entries: list[tuple[Entry, bytes]], **changes: Any) -> bytes:
        """A bundle of these entries, everything that follows from them made anew."""
        facts = {"format": self.container.format, "seal": self.container.seal, "withheld": self.container.withheld}
        facts |= changes
        data = container.encode(Container(entries=tuple(entry for entry, _ in entries), **facts))
        return assembled(entries, data)

    def parts(self) -> list[tuple[Entry, bytes]]:
        return [(entry, self.stored[entry.name]) for entry in self.entries]

    def content(self, name: str) -> bytes:
        entry = next(entry for entry in self.entries if entry.name == name)
        return zlib.decompress(self.stored[name], -15) if entry.method == DEFLATED else self.stored[name]

    def with_entry(self, name: str, content: bytes) -> list[tuple[Entry, bytes]]:
        """The entries, one with other content."""
        return [packed(name, content, e.method) if e.name == name else (e, data) for e, data in self.parts()]


def packed(name: str, content: bytes, method: int = STORED) -> tuple[Entry, bytes]:
    """An entry of this content."""
    stored = content
    if method == DEFLATED:
        squeeze = zlib.compressobj(1, zlib.DEFLATED, -15)
        stored = squeeze.compress(content) + squeeze.flush()
    return Entry(name, method, len(content), len(stored), zlib.crc32(content), _sha(stored)), stored


def _sha(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def assembled(entries: list[tuple[Entry, bytes]], data: bytes) -> bytes:
    """The file of these entries with `container.json` as given."""
    own = container.own_entry(data)
    body = b"".join(container.local_header(entry) + stored for entry, stored in [*entries, (own, data)])
    return body + container.central_directory((*(entry for entry, _ in entries), own))


def flipped(raw: bytes, at: int) -> bytes:
    changed = bytearray(raw)
    changed[at] ^= 0x20
    return bytes(changed)


def padded(bundle: Bundle) -> bytes:
    """Flip a bit behind the end of a deflated stream: every tool inflates the same."""
    offsets = bundle.container.offsets()
    for entry in bundle.entries:
        for bit in range(8) if entry.method == DEFLATED else ():
            stored = bytearray(bundle.stored[entry.name])
            stored[-1] ^= 1 << bit
            try:
                if zlib.decompress(bytes(stored), -15) != bundle.content(entry.name):
                    continue
            except zlib.error:
                continue
            begins = offsets[entry.name]
            return bundle.raw[:begins] + bytes(stored) + bundle.raw[begins + entry.stored :]
    raise AssertionError("every stream of it ends with a whole byte")


def worded(bundle: Bundle, change: Callable[[bytes], bytes]) -> bytes:
    """The bundle whose `container.json` says something else and has the digest of it."""
    before = container.encode(bundle.container)[: -len(',"container":"') - 66]
    import hashlib

    text = change(before)
    digest = hashlib.sha256(b"\x04" + text).hexdigest().encode()
    return assembled(bundle.parts(), text + b',"container":"' + digest + b'"}')


BundleSpoil = Callable[[Bundle], bytes]
BUNDLES: dict[str, BundleSpoil] = {
    "flip-first-header": lambda b: flipped(b.raw, 0),
    "flip-name": lambda b: flipped(b.raw, 32),
    "flip-extra": lambda b: flipped(b.raw, 48),
    "flip-log": lambda b: flipped(b.raw, 200),
    "flip-padding": padded,
    "flip-resource": lambda b: flipped(b.raw, b.container.offsets()[b.entries[1].name] + 20),
    "flip-manifest": lambda b: flipped(b.raw, b.container.offsets()[MANIFEST] + 40),
    "flip-index": lambda b: flipped(b.raw, b.container.offsets()[INDEX] + 9),
    "flip-container": lambda b: flipped(b.raw, b.raw.rindex(b'{"format":"') + 40),
    "flip-directory": lambda b: flipped(b.raw, b.raw.index(b"PK\x01\x02") + 20),
    "flip-attributes": lambda b: flipped(b.raw, b.raw.index(b"PK\x01\x02") + 40),
    "flip-end": lambda b: flipped(b.raw, len(b.raw) - 50),
    "flip-last": lambda b: flipped(b.raw, len(b.raw) - 1),
    "cut-1": lambda b: b.raw[:-1],
    "cut-98": lambda b: b.raw[:-98],
    "cut-half": lambda b: b.raw[: len(b.raw) // 2],
    "empty": lambda b: b"",
    "longer": lambda b: b.raw + b"\n",
    "prefixed": lambda b: b"#!/bin/sh\n" + b.raw,
    "entry-removed": lambda b: b.again([part for part in b.parts() if not part[0].name.startswith("resources/")]),
    "entry-added": lambda b: b.again([*b.parts(), packed(f"resources/{'ab' * 32}.bin", b"a stranger")]),
    "entries-reordered": lambda b: b.again([b.parts()[1], b.parts()[0], *b.parts()[2:]]),
    "log-replaced": lambda b: b.again(b.with_entry(EVENTS, b.content(EVENTS).replace(b'"v":1', b'"v":2', 1))),
    "log-cut": lambda b: b.again(b.with_entry(EVENTS, b.content(EVENTS)[:-200])),
    "manifest-replaced": lambda b: b.again(
        b.with_entry(MANIFEST, b.content(MANIFEST).replace(b'"publish":"hard-link"', b'"publish":"none"'))
    ),
    "resource-replaced": lambda b: b.again(b.with_entry(b.entries[1].name, b"other words")),
    "result-replaced": lambda b: b.again(
        b.with_entry(INDEX, b.content(INDEX).replace(b'\\"outcome\\":\\"succeeded', b'\\"outcome\\":\\"SUCCEEDED'))
    ),
    "other-seal": lambda b: b.again(b.parts(), seal="0" * 64),
    "no-index": lambda b: b.again([part for part in b.parts() if part[0].name != INDEX]),
    "no-log": lambda b: b.again([part for part in b.parts() if part[0].name != EVENTS]),
    "wrong-crc": lambda b: b.again([(_with(e, crc32=e.crc32 ^ 1) if _is_content(e) else e, d) for e, d in b.parts()]),
    "wrong-size": lambda b: b.again([(_with(e, size=e.size + 1) if _is_content(e) else e, d) for e, d in b.parts()]),
    "trailing-in-entry": lambda b: b.again([_longer(e, d) for e, d in b.parts()]),
}


def _is_content(entry: Entry) -> bool:
    return entry.name.startswith("resources/")


def _with(entry: Entry, **changes: Any) -> Entry:
    import msgspec

    return msgspec.structs.replace(entry, **changes)


def _longer(entry: Entry, stored: bytes) -> tuple[Entry, bytes]:
    if not _is_content(entry):
        return entry, stored
    more = stored + b"hidden"
    return _with(entry, stored=len(more), sha256=_sha(more)), more


# ------------------------------------------------------------------------------------------------------------- hostile


def foreign(bundle: Bundle) -> bytes:
    """Any ZIP, of the standard library."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name in (EVENTS, INDEX, MANIFEST, CONTAINER):
            made.writestr(zipfile.ZipInfo(name), b"{}")
    return file.getvalue()


def nested(bundle: Bundle) -> bytes:
    """A good bundle inside a ZIP that is none."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(zipfile.ZipInfo("run.skn"), bundle.raw)
    return file.getvalue()


def nested_in_ours(bundle: Bundle) -> bytes:
    """A good bundle as a content of another."""
    return bundle.again([*bundle.parts(), packed(f"resources/{_sha(bundle.raw)}.bin", bundle.raw)])


def named(name: str) -> BundleSpoil:
    """An entry with a name that leads elsewhere."""
    return lambda bundle: bundle.again([*bundle.parts(), packed(name, b"outside")])


def twice(bundle: Bundle) -> bytes:
    """The same name two times."""
    return bundle.again([*bundle.parts(), bundle.parts()[1]])


def overlapping(bundle: Bundle) -> bytes:
    """Two directory records that share their bytes: the directory says so, the container does not."""
    data = container.encode(bundle.container)
    own = container.own_entry(data)
    good = container.central_directory((*bundle.entries, own))
    first = 46 + len(EVENTS) + 28
    record = 46 + len(bundle.entries[1].name) + 28
    bad = bytearray(good)
    bad[first + record - 8 : first + record] = bytes(8)
    return bundle.raw[: -len(good)] + bytes(bad)


def symlink(bundle: Bundle) -> bytes:
    """A symbolic link's mode in the directory."""
    at = bundle.raw.index(b"PK\x01\x02") + 38
    return bundle.raw[:at] + (0o120777 << 16).to_bytes(4, "little") + bundle.raw[at + 4 :]


def fake_end(bundle: Bundle) -> bytes:
    """A second end record behind the first, which says that there is nothing."""
    return bundle.raw + b"PK\x05\x06" + bytes(18)


def commented(bundle: Bundle) -> bytes:
    """A comment behind the end record, as ZIP allows."""
    return bundle.raw[:-2] + b"\x05\x00hello"


def bomb(bundle: Bundle) -> bytes:
    """A content that inflates to far more than it says."""
    _, stored = packed("x", bytes(16 << 20), DEFLATED)
    name = bundle.entries[1].name
    lie = Entry(name, DEFLATED, 1000, len(stored), 0, _sha(stored))
    return bundle.again([(lie, stored) if entry.name == name else (entry, data) for entry, data in bundle.parts()])


def log_bomb(bundle: Bundle) -> bytes:
    """A log of one line without an end."""
    return bundle.again(bundle.with_entry(EVENTS, b'{"seq":0,"data":"' + b"a" * (32 << 20)))


def many(bundle: Bundle) -> bytes:
    """An end record that speaks of a million entries and more."""
    at = len(bundle.raw) - 98 + 24
    return bundle.raw[:at] + (2**63).to_bytes(8, "little") * 2 + bundle.raw[at + 16 :]


HOSTILE: dict[str, BundleSpoil] = {
    "foreign-zip": foreign,
    "nested-zip": nested,
    "nested-in-ours": nested_in_ours,
    "zip-slip": named("../../outside.txt"),
    "absolute-name": named("/outside.txt"),
    "backslash-name": named("resources\\outside.txt"),
    "case-name": named("Manifest.json"),
    "own-name": named(CONTAINER),
    "name-twice": twice,
    "overlap": overlapping,
    "symlink": symlink,
    "fake-end": fake_end,
    "comment": commented,
    "bomb": bomb,
    "log-bomb": log_bomb,
    "million": many,
    "wrong-types": lambda b: worded(b, lambda text: text.replace(b'"entries":[[', b'"entries":["[",[')),
    "entries-object": lambda b: worded(b, lambda text: b'{"format":"worldline-container/0","entries":{},"seal":7'),
    "huge-size": lambda b: worded(b, lambda text: _resized(text, b"9" * 40)),
    "negative-size": lambda b: worded(b, lambda text: _resized(text, b"-1")),
    "float-size": lambda b: worded(b, lambda text: _resized(text, b"1.5")),
    "null-size": lambda b: worded(b, lambda text: _resized(text, b"null")),
    "more-said": lambda b: worded(b, lambda text: text + b',"more":[]'),
    "said-otherwise": lambda b: worded(b, lambda text: text.replace(b'{"format"', b'{ "format"')),
    "no-json": lambda b: worded(b, lambda text: b"nothing"),
    "deep-json": lambda b: worded(b, lambda text: text + b',"deep":' + b"[" * 20_000 + b"]" * 20_000),
    "other-format": lambda b: worded(b, lambda text: text.replace(b"worldline-", b"worldlike-", 1)),
}


def _resized(text: bytes, size: bytes) -> bytes:
    """The first entry with another size."""
    head, rest = text.split(b'"events.jsonl",8,', 1)
    return head + b'"events.jsonl",8,' + size + rest[rest.index(b",") :]


def attempt_of(run: Path) -> Path:
    """The attempt of a golden run that has one."""
    [attempt] = (run / "trajectory" / "attempts").iterdir()
    return attempt
