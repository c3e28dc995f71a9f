"""Whatever a workspace holds: a snapshot has it, a fork too, a restore brings it back, a difference names it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.conftest import MEMORY
from tests.substrates.trees import TREES, empty, make, walked
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.materialise import remove
from worldline.engine.substrates.substrate import Policy
from worldline.model import tree

PLACE = MEMORY if MEMORY.is_dir() else None


@settings(max_examples=40)
@given(TREES, TREES)
def test_what_is_kept_is_what_an_independent_walk_finds(one: dict[bytes, Any], two: dict[bytes, Any]) -> None:
    place = Path(tempfile.mkdtemp(dir=PLACE, prefix="worldline-tree-"))
    try:
        workspace, files = place / "workspace", Files(place / "runs")
        workspace.mkdir()
        env = files.open(workspace, Policy(store=files.store))
        make(os.fsencode(workspace), one)
        first, was = env.snapshot(1), walked(workspace)
        (branch,) = files.fork(first, 1, branch_seed="", identity="run", into=[place / "fork"])
        assert walked(branch.root) == was

        empty(os.fsencode(workspace))
        make(os.fsencode(workspace), two)
        second, then = env.snapshot(2), walked(workspace)
        assert (walked_plain(was) == walked_plain(then)) == (first.digest == second.digest)
        changed = {path for path in was.keys() | then.keys() if plain(was.get(path)) != plain(then.get(path))}
        # A path whose group lost or won another path is named, too, though its own entry is the same.
        named = {change.path for change in files.diff(first, second)}
        assert changed <= named
        assert all(_regrouped(path, was, then) for path in named - changed)

        env.restore(first)
        assert walked(workspace, times=False) == walked_times_off(was)
        branch.restore(second)
        assert walked(branch.root, times=False) == walked_times_off(then)
    finally:
        remove(place)


def plain(entry: Any) -> Any:
    """What of an entry counts in a difference: not its time."""
    return [each for number, each in enumerate(entry) if number != 5] if entry and entry[0] == "file" else entry


def walked_plain(found: dict[bytes, Any]) -> dict[bytes, Any]:
    return {path: plain(entry) for path, entry in found.items()}


def walked_times_off(found: dict[bytes, Any]) -> dict[bytes, Any]:
    return {path: [*e[:5], None, e[6]] if e[0] == "file" else e for path, e in found.items()}


def _regrouped(path: bytes, was: dict[bytes, Any], then: dict[bytes, Any]) -> bool:
    def group(found: dict[bytes, Any]) -> set[bytes]:
        first = found[path][-1]
        return {each for each, entry in found.items() if entry[0] == "file" and entry[-1] == first}

    return path in was and path in then and group(was) != group(then)


def test_a_tree_is_the_same_bytes_in_any_language() -> None:
    """The documents of a small workspace, written down, and their digests."""
    entries: list[tree.Entry] = [
        tree.File(name="b.py", mode=0o644, size=2, content="a" * 64, mtime="1796000000000000000"),
        tree.Symlink(name=tree.text_of(b"\xff"), target="b.py"),
        tree.Folder(name="a", mode=0o755, digest="b" * 64, node="c" * 64),
    ]
    document, digest = tree.encode_folder(entries)
    assert document == (
        b'{"entries":[{"type":"folder","name":"a","mode":493,"digest":"'
        + b"b" * 64
        + b'","node":"'
        + b"c" * 64
        + b'"},'
        b'{"type":"file","name":"b.py","mode":420,"size":2,"content":"'
        + b"a"
        * 64
        + b'","mtime":"1796000000000000000"},'
        b'{"type":"symlink","name":{"$b64":"/w=="},"target":"b.py"}]}'
    )
    bare = document.replace(b',"node":"' + b"c" * 64 + b'"', b"").replace(b',"mtime":"1796000000000000000"', b"")
    assert digest == tree.name_of(bare)
    assert tree.decode_folder(document) == tuple(sorted(entries, key=lambda each: tree.bytes_of(each.name)))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b"])
def test_a_folder_never_holds_a_name_that_leads_out_of_it(name: str) -> None:
    document, _ = tree.encode_folder([tree.Symlink(name=name, target="x")])
    with pytest.raises(ValueError, match="no folder holds"):
        tree.decode_folder(document)


def test_names_out_of_order_are_no_folder() -> None:
    document, _ = tree.encode_folder([tree.Symlink(name="a", target="x"), tree.Symlink(name="b", target="x")])
    with pytest.raises(ValueError, match="out of order"):
        tree.decode_folder(document.replace(b'"name":"a"', b'"name":"c"'))
