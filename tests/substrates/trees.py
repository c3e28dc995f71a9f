"""Workspaces made by chance, and a walk of its own that says all that is promised to be kept of one."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(
    [b"a", b"b", b"c.py", b"with space", b"nl\nname", "ü".encode(), b"\xff\xfe", b"-rf", b"*", b"x" * 200]
)
CONTENTS = st.one_of(
    st.binary(max_size=40), st.just(b"same"), st.integers(1, 3).map(lambda n: bytes(n) * (1 << 20) + b"end")
)
FILES = st.fixed_dictionaries(
    {
        "kind": st.just("file"),
        "content": CONTENTS,
        "mode": st.sampled_from([0o644, 0o755, 0o600, 0o444, 0o4755]),
        "attribute": st.one_of(st.none(), st.binary(min_size=1, max_size=8)),
        "mtime": st.integers(10**17, 2 * 10**18),
    }
)
LINKS = st.fixed_dictionaries({"kind": st.just("link"), "target": st.sampled_from([b"a", b"../x", b"/none", b"\xff"])})
HARD = st.fixed_dictionaries({"kind": st.just("hard"), "which": st.integers(0, 50)})


def folders(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Folders of what is inside."""
    return st.fixed_dictionaries(
        {"kind": st.just("folder"), "mode": st.sampled_from([0o755, 0o700, 0o555]), "entries": entries(inside)}
    )


def entries(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[bytes, Any]]:
    """What one folder holds."""
    return st.dictionaries(NAMES, inside, max_size=5)


TREES = entries(st.recursive(st.one_of(FILES, LINKS, HARD), folders, max_leaves=12))


def make(place: bytes, tree: dict[bytes, Any]) -> None:
    """Make `place`, an empty folder, hold a tree."""
    files: list[bytes] = []
    _make(place, tree, files)


def _make(place: bytes, tree: dict[bytes, Any], files: list[bytes]) -> None:
    for name, what in tree.items():
        path = place + b"/" + name
        if what["kind"] == "folder":
            os.mkdir(path)
            _make(path, what["entries"], files)
            os.chmod(path, what["mode"])
        elif what["kind"] == "link":
            os.symlink(what["target"], path)
        elif what["kind"] == "hard":
            if files:
                os.link(files[what["which"] % len(files)], path)
        else:
            with open(path, "wb") as file:
                file.write(what["content"])
            if what["attribute"] is not None and sys.platform == "linux":
                os.setxattr(path, b"user.test", what["attribute"])
            os.chmod(path, what["mode"])
            os.utime(path, ns=(what["mtime"], what["mtime"]))
            files.append(path)


def empty(place: bytes) -> None:
    """Remove all that a folder holds, whatever its modes."""
    for at, names, _ in os.walk(place):
        for name in names:
            path = os.path.join(at, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    for entry in sorted(os.scandir(place), key=lambda each: each.name):
        if entry.is_dir(follow_symlinks=False):
            empty(entry.path)
            os.rmdir(entry.path)
        else:
            os.unlink(entry.path)


def walked(place: Path, *, times: bool = True) -> dict[bytes, Any]:
    """All that is promised to be kept of a folder, by path; hard links by the first path of their group."""
    found: dict[bytes, Any] = {}
    groups: dict[tuple[int, int], list[bytes]] = {}
    root = os.fsencode(place)
    for at, names, files in os.walk(root):
        for name in [*names, *files]:
            path = os.path.join(at, name)
            state = os.lstat(path)
            shown = os.path.relpath(path, root)
            kind = stat.S_IFMT(state.st_mode)
            if kind == stat.S_IFREG:
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
                attributes = {key: os.getxattr(path, key) for key in _attributes(path)}
                told = state.st_mtime_ns if times else None
                found[shown] = ["file", stat.S_IMODE(state.st_mode), state.st_size, content, attributes, told, shown]
                groups.setdefault((state.st_dev, state.st_ino), []).append(shown)
            elif kind == stat.S_IFLNK:
                found[shown] = ["link", os.readlink(path)]
            elif kind == stat.S_IFDIR:
                found[shown] = ["folder", stat.S_IMODE(state.st_mode)]
    for group in groups.values():
        for shown in group:
            found[shown][-1] = min(group)
    return found


def _attributes(path: bytes) -> list[str]:
    return [each for each in os.listxattr(path) if each.startswith("user.")] if sys.platform == "linux" else []
