"""A sealed record that somebody changed: reported with the right kind, never replayed, and what is good of it opens.

Every operation on every target, in a directory and in a bundle. In the bundle the container is made to fit again after
it (its own digests would show everything, see `test_bundle`): what is left to tell are seal, chain and names.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.store import hostile
from tests.store.hostile import remade, replace
from worldline.cli.main import cli
from worldline.engine.replay import ReplayBoundary, inspect
from worldline.errors import Damaged, Ineligible, ReadError
from worldline.model import events
from worldline.store import layout
from worldline.store.bundle.container import EVENTS, INDEX, MANIFEST
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording
from worldline.store.verify import verify

Rows = list[bytes]
AT = 5  # a row in the middle
LAST = -1


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that did the same, and the bundle of each."""
    folder = tmp_path_factory.mktemp("tampered")
    for name in ("this", "other"):
        pack(hostile.recorded(folder / name), folder / f"{name}.skn")
    return folder


def attempt_of(store: Path) -> Path:
    (attempt,) = store.glob("run_*/trajectory/attempts/*")
    return attempt


@pytest.fixture
def attempt(made: Path, quick: Path) -> Path:
    shutil.copytree(made / "this", quick / "this")
    return attempt_of(quick / "this")


def chunk_of(attempt: Path) -> Path:
    return attempt / layout.CHUNKS / "000000.jsonl"


def lines(made: Path, store: str) -> Rows:
    return chunk_of(attempt_of(made / store)).read_bytes().splitlines(True)


def seqs(made: Path) -> set[int]:
    """The rows that a run has."""
    return set(range(len(lines(made, "this"))))


def counted(lost: set[int], made: Path) -> set[int]:
    """Rows that can be lost, the last one counted from the end."""
    return {seq % len(seqs(made)) if seq < 0 else seq for seq in lost}


def seal_of(recording: Recording) -> str | None:
    return json.loads(recording.manifest_line or b"{}").get("seal")


def judged(recording: Recording) -> tuple[set[str], set[str]]:
    """The questions that found problems, and their kinds. Whatever is found: replay refuses and `show` shows."""
    found = verify(recording)
    assert not found.ok
    with pytest.raises((Ineligible, Damaged)):
        ReplayBoundary(recording)
    with suppress(Damaged):
        assert not inspect(recording).equivalent
    name = str(recording.attempt)
    for words in (["replay", name], ["replay", name, "--", "true"]):
        ran = CliRunner().invoke(cli, words, standalone_mode=False)
        assert ran.return_value == 3 or isinstance(ran.exception, ReadError)
    with pytest.raises(Ineligible):
        pack(recording, Path("packed.skn"))
    shown = CliRunner().invoke(cli, ["show", name], standalone_mode=False)
    assert shown.exception is None and "m-1" in shown.output
    ran = CliRunner().invoke(cli, ["verify", name], standalone_mode=False)
    assert ran.exception is None and ran.return_value == 1
    questions = {question for question, state in found.verdicts.items() if state in ("failed", "missing", "unsealed")}
    return questions, {problem.kind for problem in found.problems}


# Rows.


def rehashed(rows: Rows, other: bytes) -> bytes:
    """A row with another body, chained to the one before; those behind it are not."""
    before = bytes.fromhex(rows[AT - 1][-67:-3].decode())
    body = other[: -events.SUFFIX]
    return events.line(body, events.link(before, events.leaf(body)))


def edited(row: bytes) -> bytes:
    return row.replace(b'"lane":"main"', b'"lane":"mine"')


# operation: (the rows it makes of this run's and the other's, the kinds of problems, the rows that can be lost by it)
ROWS: dict[str, tuple[Callable[[Rows, Rows], Rows], set[str], set[int]]] = {
    "edit": (lambda r, o: [*r[:AT], edited(r[AT]), *r[AT + 1 :]], {"changed"}, {AT}),
    "edit and hash": (lambda r, o: [*r[:AT], rehashed(r, edited(r[AT])), *r[AT + 1 :]], {"changed"}, {AT + 1}),
    "delete": (lambda r, o: r[:AT] + r[AT + 1 :], {"gap", "changed"}, {AT}),
    "delete the first": (lambda r, o: r[1:], {"gap", "changed", "damaged"}, {0}),
    "delete the last": (lambda r, o: r[:-1], {"gap", "changed"}, {LAST}),
    "swap": (lambda r, o: [*r[:AT], r[AT + 1], r[AT], *r[AT + 2 :]], {"gap", "order", "changed"}, {AT, AT + 1}),
    "duplicate": (lambda r, o: [*r[: AT + 1], r[AT], *r[AT + 1 :]], {"order", "changed"}, set()),
    "truncate": (lambda r, o: [*r[:AT], r[AT][:-9]], {"torn", "gap", "changed"}, set(range(AT, 1000))),
    "truncate inside": (lambda r, o: [*r[:AT], r[AT][:-9] + b"\n", *r[AT + 1 :]], {"malformed", "changed"}, {AT}),
    "splice": (lambda r, o: [*r[:AT], o[AT], *r[AT + 1 :]], {"changed"}, {AT, AT + 1}),
    "splice and hash": (lambda r, o: [*r[:AT], rehashed(r, o[AT]), *r[AT + 1 :]], {"changed"}, {AT + 1}),
    "splice the rest": (lambda r, o: r[:AT] + o[AT:], {"changed"}, {AT}),
    "splice the header": (lambda r, o: [o[0], *r[1:]], {"changed"}, {1}),
    "add": (lambda r, o: [*r, rehashed([*r[:AT], r[-1]], r[-1])], {"order", "changed"}, set()),
    "blank": (lambda r, o: [*r[:AT], b"\n", *r[AT:]], {"malformed", "gap", "changed"}, set()),
    "NUL": (lambda r, o: [*r[:AT], bytes(len(r[AT])), *r[AT + 1 :]], {"zeros", "gap", "changed"}, {AT}),
}


@pytest.mark.parametrize("operation", ROWS)
def test_rows_of_a_directory(operation: str, attempt: Path, made: Path) -> None:
    change, kinds, lost = ROWS[operation]
    replace(chunk_of(attempt), b"".join(change(lines(made, "this"), lines(made, "other"))))
    questions, found = judged(Recording(attempt))
    assert questions == {"structure"} and found <= kinds and "changed" in found
    assert seqs(made) - {event.seq for event in Recording(attempt).events()} <= counted(lost, made)


@pytest.mark.parametrize("operation", ROWS)
def test_rows_of_a_bundle(operation: str, made: Path, tmp_path: Path) -> None:
    change, kinds, lost = ROWS[operation]
    data = b"".join(change(lines(made, "this"), lines(made, "other")))
    (tmp_path / "x.skn").write_bytes(remade(made / "this.skn", {EVENTS: data}))
    questions, found = judged(PackedRecording("x.skn"))
    assert questions == {"structure"} and found and found <= kinds
    assert seqs(made) - {event.seq for event in PackedRecording("x.skn").events()} <= counted(lost, made)


# Contents.

CONTENTS: dict[str, tuple[Callable[[bytes, bytes], bytes | None], str]] = {
    "edit": (lambda this, other: b"y" + this[1:], "corrupt"),
    "delete": (lambda this, other: None, "missing"),
    "swap": (lambda this, other: other, "corrupt"),
    "truncate": (lambda this, other: this[:-1], "corrupt"),
    "empty": (lambda this, other: b"", "corrupt"),
    "duplicate": (lambda this, other: this + this, "corrupt"),
}


@pytest.mark.parametrize("operation", CONTENTS)
def test_contents_of_a_directory_and_of_a_bundle(operation: str, attempt: Path, made: Path, tmp_path: Path) -> None:
    change, kind = CONTENTS[operation]
    path = next((attempt / layout.BLOBS).rglob("?" * 64))
    content = change(path.read_bytes(), chunk_of(attempt).read_bytes())
    path.unlink()
    name = next(name for name in hostile.contents(made / "this.skn") if name.startswith("resources/"))
    if content is None:
        data = remade(made / "this.skn", leave=[name])
    else:
        path.write_bytes(content)
        data = remade(made / "this.skn", {name: content})
    (tmp_path / "x.skn").write_bytes(data)
    question = "availability" if kind == "missing" else "evidence"
    assert judged(Recording(attempt)) == ({question}, {kind})
    assert judged(PackedRecording("x.skn")) == ({question}, {kind})


def test_a_content_under_another_name_or_media_type(made: Path, tmp_path: Path) -> None:
    entries = hostile.contents(made / "this.skn")
    name = next(name for name in entries if name.startswith("resources/"))
    others = {
        name.replace(".json", ".html"): {"corrupt"},  # a browser would show it as a page
        name[:-1] + "x": set(),
        name.replace("resources/", "resources/f"): set(),
        f"resources/{'0' * 64}.json": {"missing", "added"},
    }
    for other, kinds in others.items():
        data = remade(made / "this.skn", {other: entries[name]}, leave=[name])
        (tmp_path / "x.skn").write_bytes(data)
        if kinds:
            assert judged(PackedRecording("x.skn"))[1] == kinds
        else:
            with pytest.raises(Damaged):
                PackedRecording("x.skn")


# The manifest, and what stands beside it.


def test_each_field_of_the_manifest(attempt: Path, made: Path, tmp_path: Path) -> None:
    """Changed, left out, twice, or with another seal that fits its bytes: then chain, files and result speak."""
    line = (attempt / layout.MANIFEST).read_bytes()
    fields = json.loads(line)
    for name, value in fields.items():
        other = "0" * 64 if name == "seal" else 7 if value is None else None
        left = {key: said for key, said in fields.items() if key != name}
        twice = hostile.spelled(fields)[:-1] + b"," + hostile.spelled({name: other})[1:]
        for spelled in (hostile.spelled({**fields, name: other}), hostile.spelled(left), twice):
            for path in (attempt / layout.MANIFEST, attempt / layout.STAGED):
                replace(path, spelled + b"\n")
            (tmp_path / "x.skn").write_bytes(remade(made / "this.skn", {MANIFEST: spelled + b"\n"}))
            for recording in (Recording(attempt), PackedRecording("x.skn")):
                found = verify(recording)
                assert "manifest" in {problem.kind for problem in found.problems}, name
                assert recording.manifest is None and recording.disposition == "damaged"
                assert len(list(recording.events())) == len(seqs(made))
    judged(Recording(attempt))
    judged(PackedRecording("x.skn"))


# What of a manifest that was sealed anew is bound by other bytes; the rest only a signature can hold.
BOUND = {
    "rows", "bytes", "head", "root", "header", "result", "blobs", "chunks",
}  # fmt: skip


def test_each_field_of_a_manifest_sealed_anew(made: Path, tmp_path: Path) -> None:
    """What the log and the contents say can be checked without trusting the seal."""
    fields = json.loads(hostile.contents(made / "this.skn")[MANIFEST])
    del fields["seal"]
    other: dict[str, Any] = {
        "rows": fields["rows"] - 1,
        "bytes": fields["bytes"] - 1,
        "head": "0" * 64,
        "root": "0" * 64,
        "header": "0" * 64,
        "result": {**fields["result"], "sha256": "0" * 64},
        "blobs": [],
        "chunks": [["000000.jsonl", fields["bytes"], "0" * 64]],
    }
    assert set(other) == BOUND
    for name, value in other.items():
        attempt = attempt_of(tmp_path / shutil.copytree(made / "this", tmp_path / name).name)
        (tmp_path / "x.skn").write_bytes(hostile.resealed(made / "this.skn", {**fields, name: value}))
        line = hostile.sealed_line({**fields, name: value})
        for path in (attempt / layout.MANIFEST, attempt / layout.STAGED):
            replace(path, line)
        recordings = [Recording(attempt)]
        if name != "chunks":  # how the log was cut into files is gone in a bundle
            recordings.append(PackedRecording("x.skn"))
        for recording in recordings:
            assert judged(recording)[1] & {"changed", "manifest", "added", "corrupt"}, name


def test_files_of_another_run(attempt: Path, made: Path, tmp_path: Path) -> None:
    other = attempt_of(made / "other")
    expected = {
        layout.MANIFEST: "structure",
        layout.STAGED: "publication",
        layout.RESULT: "publication",
        layout.OPEN: "structure",
        "chunks/000000.jsonl": "structure",
    }
    for name, question in expected.items():
        ours = (attempt / name).read_bytes()
        replace(attempt / name, (other / name).read_bytes())
        questions, kinds = judged(Recording(attempt))
        assert question in questions and "changed" in kinds, name
        replace(attempt / name, ours)
    assert verify(Recording(attempt)).ok
    theirs = hostile.contents(made / "other.skn")
    for name in (MANIFEST, INDEX, EVENTS):
        (tmp_path / "x.skn").write_bytes(remade(made / "this.skn", {name: theirs[name]}))
        questions, kinds = judged(PackedRecording("x.skn"))
        assert questions == {"structure"} and "changed" in kinds, name


def test_the_container_speaks_of_another_seal_or_hides_a_content(made: Path, tmp_path: Path) -> None:
    entries = hostile.contents(made / "this.skn")
    name = next(name for name in entries if name.startswith("resources/"))
    withheld = [[name.split("/")[1].split(".")[0], 40_002, "application/json"]]
    seal = seal_of(PackedRecording(str(made / "other.skn")))
    for change, leave in (({"seal": seal}, []), ({"withheld": withheld}, [name])):
        data = remade(made / "this.skn", change=lambda said, change=change: {**said, **change}, leave=leave)
        (tmp_path / "x.skn").write_bytes(data)
        questions, kinds = judged(PackedRecording("x.skn"))
        assert "structure" in questions and "changed" in kinds, change


@pytest.mark.parametrize("column", ["rows", "raw", "blocks", "marks", "kinds", "lanes", "trouble", "result", "span"])
def test_each_column_of_the_index(column: str, made: Path, tmp_path: Path) -> None:
    entries = hostile.contents(made / "this.skn")
    index = json.loads(entries[INDEX])
    (at,) = [list(index).index(column)]
    for place in [place for place in hostile.places(index) if place[:1] == (column,)][-3:]:
        value = index
        for key in place:
            value = value[key]
        other = {int: 77, str: "other", type(None): {"seq": 1, "t": 1, "kind": "x"}}.get(type(value))
        changed = hostile.replaced(index, place, other)
        (tmp_path / "x.skn").write_bytes(remade(made / "this.skn", {INDEX: hostile.spelled(changed)}))
        assert "changed" in {problem.kind for problem in verify(PackedRecording("x.skn")).problems}, place
        assert len(list(PackedRecording("x.skn").events())) == len(seqs(made)) and at >= 0
