"""The pages are enough: contexts, keys and deep values of golden recordings, by the pages and the standard library."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from worldline.engine.cassette import Cassette
from worldline.store.recording import Recording

GOLDEN = ROOT / "tests" / "golden"
VERSIONS = sorted(path.name for path in GOLDEN.glob("v*"))
KEPT = ("complete", "lanes", "secrets", "restricted", "blobs", "short")


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


class Reader:
    """An attempt directory, read as `docs/format` says."""

    def __init__(self, attempt: Path) -> None:
        self.attempt = attempt
        log = b"".join(path.read_bytes() for path in sorted((attempt / "chunks").iterdir()))
        self.rows = [json.loads(line) for line in log.splitlines()]
        key = attempt / "blobs" / "restricted" / "key"
        self.key = key.read_bytes() if key.exists() else b""
        self.nodes: dict[bytes, tuple[bytes, bytes]] = {}
        self.texts: dict[tuple[str, int, int], bytes] = {}

    def content(self, reference: dict[str, Any]) -> bytes:
        name = reference["name"]
        data = (self.attempt / "blobs" / reference["tier"] / name[:2] / name).read_bytes()
        named = hmac.new(self.key, data, "sha256") if reference["tier"] == "restricted" else hashlib.sha256(data)
        assert (named.hexdigest(), len(data)) == (name, reference["size"])
        return data

    def text(self, value: Any) -> bytes:
        if isinstance(value, str):
            return value.encode()
        return base64.b64decode(value["$b64"]) if "$b64" in value else self.content(value["$blob"])

    def contexts(self) -> Iterator[bytes]:
        """The body of every request, its hash compared."""
        for row in self.rows:
            if (row["kind"], row["src"]) == ("decision", "request"):
                form = row["data"]["body"]
                key = self.key if form.get("tier") == "restricted" else b""
                body = self.body(row["call"], form, key)
                digest = hmac.new(key, body, "sha256") if key else hashlib.sha256(body)
                assert (digest.hexdigest(), len(body)) == (form["context_hash"], form["size"])
                yield body

    def body(self, call: str, form: dict[str, Any], key: bytes) -> bytes:
        template, arrays, at = self.place(call, -1, 0, form["template"]), [], 0
        for number, array in enumerate(form["arrays"]):
            c, known = (bytes.fromhex(array["base"][0]), array["base"][1]) if array["base"] else (bytes(32), 0)
            elements = self.prefix(c, known)
            add = json.loads(self.content(array["add"]["$blob"])) if isinstance(array["add"], dict) else array["add"]
            for index, text in enumerate(add):
                element = self.place(call, number, index, text)
                after = sha(b"\x05", key, c, sha(element))
                self.nodes[after] = c, element
                c = after
                elements.append(element)
            opens, between, closes = (part.encode() for part in array.get("between", ["", ",", ""]))
            arrays.append((array["at"], opens + between.join(elements) + closes))
        whole = b""
        for place, text in arrays:
            whole, at = whole + template[at:place] + text, place
        return whole + template[at:]

    def place(self, call: str, array: int, index: int, text: Any) -> bytes:
        if isinstance(text, dict) and "$e" in text:
            return self.texts[tuple(text["$e"])]
        self.texts[call, array, index] = self.text(text)
        return self.texts[call, array, index]

    def prefix(self, c: bytes, known: int) -> list[bytes]:
        found: list[bytes] = []
        for _ in range(known):
            c, element = self.nodes[c]
            found.insert(0, element)
        assert c == bytes(32)
        return found


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def key_of(row: dict[str, Any], inputs: bytes, body: bytes | None) -> str:
    digest = sha(inputs) if body is None else sha(inputs, b"\x00", canonical(json.loads(body)))
    parts = (row["kind"].encode(), row["data"]["name"].encode(), digest)
    return sha(*(len(part).to_bytes(8, "big") + part for part in parts)).hex()[:32]


def readers(version: str) -> Iterator[Reader]:
    for recipe in KEPT:
        for attempt in (GOLDEN / version / recipe).glob("run_*/trajectory/attempts/*"):
            yield Reader(attempt)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_context_is_rebuilt(version: str) -> None:
    rebuilt = 0
    for reader in readers(version):
        cassette = Cassette(Recording(reader.attempt))
        asked = [exchange for exchange in cassette.exchanges if exchange.kind == "decision"]
        assert list(reader.contexts()) == [cassette.request(exchange) for exchange in asked]
        rebuilt += len(asked)
    assert rebuilt >= 6


@pytest.mark.parametrize("version", VERSIONS)
def test_every_key_follows_from_what_crossed(version: str) -> None:
    met = 0
    for reader in readers(version):
        bodies = reader.contexts()
        for row in reader.rows:
            if "key" not in row or row["kind"] == "observation":
                continue
            body = next(bodies) if row["kind"] == "decision" else None
            said = row["data"].get("inputs", row["data"].get("arguments"))
            restricted = isinstance(said, dict) and "$blob" in said
            inputs = json.loads(reader.content(said["$blob"])) if restricted else said
            key = key_of(row, canonical(inputs), body)
            if restricted or row["data"].get("body", {}).get("tier") == "restricted":
                key = hmac.new(reader.key, key.encode(), "sha256").hexdigest()[:32]
            assert key == row["key"], (reader.attempt, row["seq"])
            met += 1
    assert met >= 15


@pytest.mark.parametrize("version", VERSIONS)
def test_a_deep_value_is_put_together(version: str) -> None:
    [attempt] = (GOLDEN / version / "short").glob("run_*/trajectory/attempts/*")
    reader = Reader(attempt)
    deep = [row["data"]["result"]["$blob"] for row in reader.rows if "$blob" in row["data"].get("result", ())]
    assert [reference["type"] for reference in deep] == ["application/x-worldline-deep+json"] * 2
    for reference, depth in zip(deep, (120, 130), strict=True):
        built: list[Any] = []
        for tag, said in json.loads(reader.content(reference)):
            built.append(said if tag == "v" else [built[index] for index in said])
        value = built[-1]
        for _ in range(depth):
            [value] = value
        assert value == ["bottom"]
