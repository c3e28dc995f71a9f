"""Rows, the Merkle root, manifests and ids, each against its definition computed here a second time."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.odd_values import same, values
from worldline.model import events, ids
from worldline.model.manifest import FORMAT, Manifest, seal, unseal
from worldline.model.merkle import Merkle
from worldline.model.values import plain


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def mth(entries: list[bytes]) -> bytes:
    """RFC 9162, section 2.1.1, word for word: k is the largest power of two smaller than n."""
    n = len(entries)
    if n == 0:
        return sha(b"")
    if n == 1:
        return sha(b"\x00", entries[0])
    k = 1
    while k * 2 < n:
        k *= 2
    return sha(b"\x01", mth(entries[:k]), mth(entries[k:]))


def test_the_root_is_that_of_rfc_9162_at_every_size() -> None:
    entries = [b"row %d" % n for n in range(130)]
    tree = Merkle()
    for size in range(len(entries) + 1):
        assert tree.size == size
        assert tree.root() == mth(entries[:size])
        if size < len(entries):
            tree.add(events.leaf(entries[size]))


def test_the_root_of_known_entries() -> None:
    """The seven entries that Certificate Transparency's reference tests use."""
    entries = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
    tree = Merkle()
    for entry in entries:
        tree.add(events.leaf(bytes.fromhex(entry)))
    assert tree.root().hex() == "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"


row_fields = st.fixed_dictionaries(
    {
        "seq": st.integers(0, 2**53 - 1),
        "t": st.integers(0, 2**53 - 1),
        "dt": st.integers(0, 2**53 - 1),
        "lane": st.text(max_size=20),
        "sync": st.none() | st.tuples(st.integers(0, 2**53 - 1), st.just("0123456789abcdef")),
        "call": st.text(max_size=20),
        "data": st.dictionaries(st.text(max_size=5), values.map(plain), max_size=3),
    }
)


@settings(max_examples=60)
@given(st.lists(row_fields, max_size=3))
def test_rows_read_back_and_chain_over_their_bytes(rows: list[dict[str, Any]]) -> None:
    before, expected = events.GENESIS, bytes(32)
    for row in rows:
        data = events.encode_json(row["data"])
        body = events.body(
            row["seq"], row["t"], row["dt"], "decision", "chunk", row["lane"], {"call": row["call"]}, data, row["sync"]
        )
        before = events.link(before, events.leaf(body))
        expected = sha(b"\x02", expected, sha(b"\x00", body))
        line = events.line(body, before)
        assert before == expected
        assert len(line) - len(body) == events.SUFFIX and line.count(b"\n") == 1
        event = events.read(line)
        assert (event.seq, event.t, event.dt, event.lane) == (row["seq"], row["t"], row["dt"], row["lane"])
        assert (event.name, event.call, event.sync) == ("decision/chunk", row["call"], row["sync"])
        assert event.raw == line and event.h == before.hex() and same(event.data, row["data"])
        order = list(json.loads(line))
        assert order == [k for k in ORDER if k != "sync" or row["sync"]]


ORDER = ["seq", "t", "dt", "sync", "kind", "src", "v", "lane", "call", "data", "h"]
GOOD = events.line(events.body(0, 0, 0, "meta", "header", "main", {"own": [1]}, b'{"a":1}'), bytes(32))


def test_unknown_kinds_and_fields_survive() -> None:
    line = GOOD.replace(b'"meta"', b'"dream"').replace(b'"own":[1]', b'"own":{"x":null}')
    event = events.read(line)
    assert (event.kind, event.keys, event.raw) == ("dream", {"own": {"x": None}}, line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}\n",
        GOOD[:-1],
        GOOD[1:],
        GOOD[:-2] + b"\n",
        GOOD.replace(b'"seq":0', b'"seq":"0"'),
        GOOD.replace(b'"seq":0', b'"seq":0.0'),
        GOOD.replace(b'"seq":0', b'"seq":true'),
        GOOD.replace(b'"seq":0,', b""),
        GOOD.replace(b'"lane":"main"', b'"lane":null'),
        GOOD.replace(b'{"a":1}', b"[1]"),
        GOOD.replace(b'{"a":1}', b'{"a":\xff}'),
        GOOD.replace(b'{"a":1}', b"[" * 5000 + b"]" * 5000),
        GOOD.replace(b'"kind"', b'"sync":[1],"kind"'),
        GOOD.replace(b'"kind"', b'"sync":["1",2],"kind"'),
        GOOD.replace(b'"kind"', b'"sync":7,"kind"'),
        b"\x00" * 400,
    ],
)
def test_what_is_no_row_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a row"):
        events.read(line)


def manifest(**changed: Any) -> Manifest:
    one, two = "1" * 64, "2" * 64
    facts: dict[str, Any] = {
        "format": FORMAT, "session": "s", "run": "run_" + "0" * 26, "attempt": "ainst_" + "0" * 26,
        "disposition": "complete", "reason": None, "sealed_at": 1, "sealed_by": "w", "rows": 2, "bytes": 3,
        "head": one, "root": two, "durability": "d", "header": one, "parent": None,
        "result": {"name": "x.json", "size": 1, "sha256": one, "publish": "hard-link"},
        "blobs": [[one, 1, "t", "ordinary", "captured"]], "coverage": {}, "masks": [], "secrets": {},
        "limits": {"row": 1}, "capture": "full", "chunks": [["000000.jsonl", 3, two]], "torn": None, "writer": "w",
    }  # fmt: skip
    return Manifest(**{**facts, **changed})


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_a_sealed_manifest_reads_back_under_the_seal_of_its_own_bytes(reason: str, coverage: dict[str, str]) -> None:
    line = seal(manifest(reason=reason, coverage=coverage))
    read, fingerprint = unseal(line)
    assert read == manifest(reason=reason, coverage=coverage)
    before = line[: line.rindex(b',"seal":"')]
    assert fingerprint == sha(b"\x03", before).hex() == json.loads(line)["seal"]
    assert line.endswith(b'"}\n') and line.count(b"\n") == 1


def test_every_changed_byte_of_a_manifest_breaks_its_seal() -> None:
    line = seal(manifest())
    for at in range(len(line)):
        for flip in (0x01, 0x20, 0x80):
            with pytest.raises(ValueError, match=r"seal|manifest"):
                unseal(line[:at] + bytes([line[at] ^ flip]) + line[at + 1 :])
        with pytest.raises(ValueError, match=r"seal|manifest"):
            unseal(line[:at])
    for other in (line + b"\n", b" " + line, line[:-1] + b" \n", line[:-1], b"", b"\n"):
        with pytest.raises(ValueError, match=r"seal|manifest"):
            unseal(other)


def test_a_field_of_a_later_version_is_ignored_and_a_wrong_type_is_no_manifest() -> None:
    def sealed(fields: dict[str, Any]) -> bytes:
        before = msgspec.json.encode(fields)[:-1]
        return before + b',"seal":"' + sha(b"\x03", before).hex().encode() + b'"}\n'

    known = json.loads(seal(manifest()))
    del known["seal"]
    assert unseal(sealed({**known, "later": [1]}))[0] == manifest()
    with pytest.raises(ValueError, match="not a manifest"):
        unseal(sealed({**known, "rows": "2"}))
    with pytest.raises(ValueError, match="not a manifest"):
        unseal(sealed({"format": FORMAT}))


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1), st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1))
def test_ids_are_26_characters_that_sort_as_their_times(t: int, r: int, t2: int, r2: int) -> None:
    one, other = ids.spell("run", t, r), ids.spell("run", t2, r2)
    assert ids.is_id(one, "run") and not ids.is_id(one, "sess") and len(one) == 4 + 26
    assert one == one.lower() and one.isascii()
    number = 0
    for character in one[4:]:
        number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(character)
    assert number == (t << 80) | r
    assert (one < other) == ((t, r) < (t2, r2))


NO_IDS = ["", "run_", "run_" + "0" * 25, "run_" + "0" * 27, "run_8" + "0" * 25, "run_i" + "0" * 25]


@pytest.mark.parametrize("text", [*NO_IDS, "RUN_" + "0" * 26, "run-" + "0" * 26, "run_" + "0" * 26 + "\n"])
def test_what_is_no_id(text: str) -> None:
    assert not ids.is_id(text, "run")


@given(st.text())
def test_a_slug_is_a_safe_file_name(text: str) -> None:
    name = ids.slug(text, "result")
    assert 1 <= len(name) <= 40 and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not name.startswith("-") and not name.endswith("-")


HASH = "3" * 64


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", "../other"),
        ("attempt", "run_" + "0" * 26),
        ("head", "A" * 64),
        ("root", ""),
        ("rows", 0),
        ("result", {}),
        ("result", {"name": "../x.json", "size": 1, "sha256": HASH, "publish": "none"}),
        ("result", {"name": "/x.json", "size": 1, "sha256": HASH, "publish": "none"}),
        ("result", {"name": ".json", "size": 1, "sha256": HASH, "publish": "none"}),
        ("result", {"name": "x.json", "size": True, "sha256": HASH, "publish": "none"}),
        ("result", {"name": "x.json", "size": 1, "sha256": HASH, "publish": None}),
        ("chunks", [["000000.jsonl", 3]]),
        ("chunks", [["../00.jsonl", 3, HASH]]),
        ("chunks", [["000000.jsonl", 2, HASH]]),
        ("chunks", [["000000.jsonl", -1, HASH], ["000001.jsonl", 4, HASH]]),
        ("chunks", [["000000.jsonl", 1, HASH], ["000000.jsonl", 2, HASH]]),
        ("blobs", [[HASH, 1, "t", "ordinary"]]),
        ("blobs", [["../../x", 1, "t", "ordinary", "captured"]]),
        ("blobs", [[HASH, "1", "t", "ordinary", "captured"]]),
        ("blobs", [[HASH, 1, "t", None, "captured"]]),
        ("blobs", [[HASH, 1, "t", "ordinary", "captured"]] * 2),
        ("torn", {"size": 1}),
    ],
)
def test_a_sealed_manifest_that_cannot_be_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"the manifest cannot be: {field}"):
        unseal(seal(manifest(**{field: value})))
