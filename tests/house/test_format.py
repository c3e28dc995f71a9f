"""The specification says what is written: schemas hold for every golden line, and the pages name every field."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import worldline as wl
from tests.conftest import ROOT
from tests.golden import schemas
from worldline.engine.spec import Bounds, RecordingSpec
from worldline.model.events import Event
from worldline.model.manifest import FORMAT, READABLE, Manifest
from worldline.store.bundle.container import Container
from worldline.store.bundle.index import Index
from worldline.store.bundle.media import KeyFrame
from worldline.store.forget.availability import Removal
from worldline.store.note_lines import Annotation, Audit
from worldline.store.proof import Proof
from worldline.store.recording import Recording

PAGES = ROOT / "docs" / "format"
GOLDEN = ROOT / "tests" / "golden"
VERSIONS = sorted(path.name for path in GOLDEN.glob("v*"))
LINES = {"manifest.json": "manifest", "result.json": "result", "expiry.jsonl": "expiry"}


def page(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


def lines(version: str) -> Iterator[tuple[str, Any, str]]:
    """(schema, value, where) of everything in the golden recordings that there is a schema for."""
    folder = GOLDEN / version
    for attempt in sorted(folder.glob("*/run_*/trajectory/attempts/*")):
        where = str(attempt.relative_to(folder))
        for event in Recording(attempt).events():
            row = json.loads(event.raw)
            yield "row", row, f"{where} row {event.seq}"
            yield from (("content", found, f"{where} row {event.seq}") for found in contents(row["data"]))
            if event.name == "meta/header":
                yield "header", row["data"], f"{where} row 0"
        for name, schema in LINES.items():
            for line in (attempt / name).read_bytes().splitlines() if (attempt / name).is_file() else ():
                yield schema, json.loads(line), f"{where}/{name}"
    for bundle in sorted(folder.glob("*.skn")):
        with zipfile.ZipFile(bundle) as opened:
            yield "container", json.loads(opened.read("container.json")), bundle.name
            index = json.loads(opened.read("index.json"))
        if index["format"] != "worldline-index/0":
            yield "index", index, bundle.name


def contents(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and "$blob" in value:
        yield value["$blob"]
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from contents(item)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_golden_line_is_as_its_schema_says(version: str) -> None:
    loaded = {name: schemas.load(name) for name in schemas.names()}
    met: dict[str, int] = {}
    for name, value, where in lines(version):
        met[name] = met.get(name, 0) + 1
        assert list(schemas.problems(value, loaded[name])) == [], where
    missing = set(schemas.names()) - met.keys()
    later = {"annotations", "audit"}  # of lines that nobody wrote beside these: tests/notes has some
    assert missing <= later | ({"index", "expiry"} if version == "v0" else set())


def test_a_schema_refuses_what_is_not_so() -> None:
    [attempt] = (GOLDEN / "v0" / "complete").glob("run_*/trajectory/attempts/*")
    manifest = json.loads((attempt / "manifest.json").read_bytes())
    schema = schemas.load("manifest")
    for changed in (
        {"rows": "37"},
        {"head": "f" * 63},
        {"disposition": "done"},
        {"chunks": [["000000.jsonl", 1]]},
        {"result": {**manifest["result"], "name": "../outside.json"}},
        {"secrets": {}},
        {"torn": {}},
    ):
        assert list(schemas.problems({**manifest, **changed}, schema)), changed
    row = {"seq": 0, "t": 0, "dt": 0, "kind": "meta", "src": "end", "v": 1, "lane": "main", "data": {}, "h": "0" * 64}
    assert list(schemas.problems(row, schemas.load("row"))) == []
    for changed in (
        {"kind": "thought"},
        {"t": -1},
        {"data": []},
        {"sync": [0, "0" * 16]},
        {"h": None},
        {"key": "short"},
    ):
        assert list(schemas.problems({**row, **changed}, schemas.load("row"))), changed


@pytest.mark.parametrize(
    "struct, where",
    [
        (Manifest, "manifest.md"),
        (RecordingSpec, "manifest.md"),
        (Bounds, "manifest.md"),
        (Container, "bundle.md"),
        (Index, "bundle.md"),
        (Removal, "contents.md"),
        (Proof, "proof.md"),
        (Annotation, "notes.md"),
        (Audit, "notes.md"),
        (KeyFrame, "exports.md"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_page_names_every_field(struct: type[msgspec.Struct], where: str) -> None:
    text = page(where)
    assert [name for name in struct.__struct_fields__ if f"`{name}`" not in text] == []


def test_the_pages_name_every_field_of_a_row_that_is_written(tmp_path: Path) -> None:
    envelope, kinds = page("rows.md"), page("kinds.md")
    assert [name for name in set(Event.__struct_fields__) - {"keys", "raw"} if f"`{name}`" not in envelope] == []
    seen: dict[str, set[str]] = {}
    for version in VERSIONS:
        for attempt in (GOLDEN / version).glob("*/run_*/trajectory/attempts/*"):
            for event in Recording(attempt).events():
                seen.setdefault(event.name, set()).update(event.data)
                assert [key for key in event.keys if f"`{key}`" not in envelope] == []
    for name, fields in seen.items():
        assert f"`{name}`" in kinds or f"`{name.partition('/')[0]}/<word>`" in kinds, name
        families = [name.removesuffix("*") for name in re.findall(r"`(gen_ai\.[a-z]+\.\*)`", kinds)]
        unnamed = [f for f in fields if f"`{f}`" not in kinds and not f.startswith(tuple(families))]
        assert unnamed == [], name
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    written = {src for text in sources for src in re.findall(r'"meta", "([a-z]+)"', text)}
    assert written and [src for src in sorted(written) if f"`meta/{src}`" not in kinds] == []


def test_the_pages_name_what_this_version_writes_and_reads(tmp_path: Path) -> None:
    versions = page("versions.md")
    assert all(f"`{name}`" in versions for name in READABLE) and f"`{FORMAT}` is frozen" in versions
    with wl.record(tmp_path / "runs") as run:
        run.observe("x", src="terminal")
    assert Recording(tmp_path / "runs" / run.run).header.data["format"] == FORMAT
    index = page("index.md")
    for path in PAGES.glob("*"):
        assert path.name == "index.md" or f"({path.name}" in index, f"docs/format/index.md does not lead to {path.name}"
