"""A tree of git in the content-addressed form: its objects are read once each, from one process of git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from worldline.engine.substrates.scan import Scanned, told
from worldline.errors import StaleBase
from worldline.model import tree
from worldline.model.tree import Entry, File, Folder, Symlink
from worldline.store.snapshots import Batch

if TYPE_CHECKING:
    from worldline.engine.substrates.git import Repository

LINK, NESTED = b"120000", b"160000"  # modes of symbolic links, and of repositories in the repository
_LONGEST_LINK = 4096


def surroundings() -> dict[str, str]:
    """The environment without what points git at another repository, index or identity."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def imported(repository: Repository, treeish: str, batch: Batch) -> Scanned:
    """A tree of git in the content-addressed form."""
    lines = repository.run("ls-tree", "-r", "-z", "--full-tree", treeish).split(b"\0")[:-1]
    entries = [(*head.split(b" "), path) for head, _, path in (line.partition(b"\t") for line in lines)]
    nested = [told(os.fsdecode(path)) for mode, _, _, path in entries if mode == NESTED]
    names = dict.fromkeys(name for mode, _, name, _ in entries if mode != NESTED)
    kept = {
        name: (data if len(data) <= _LONGEST_LINK else b"", batch.add(data), len(data))
        for name, data in _contents(repository, names)
    }
    folders: dict[bytes, list[Entry]] = {b"": []}
    for mode, _, name, path in entries:
        folder, _, last = path.rpartition(b"/")
        for above in _above(folder):
            folders.setdefault(above, [])
        if mode == NESTED:
            continue
        data, content, size = kept[name]
        if mode == LINK:
            folders[folder].append(Symlink(name=tree.text_of(last), target=tree.text_of(data)))
        else:
            bits = 0o755 if mode == b"100755" else 0o644
            folders[folder].append(File(name=tree.text_of(last), mode=bits, size=size, content=content))
    document, digest = tree.encode_tree(_made(folders, batch))
    notes = tuple({"path": path, "why": "not kept: a repository in the repository"} for path in nested)
    return Scanned(batch.add(document), digest, notes, batch.bytes)


def _above(path: bytes) -> Iterator[bytes]:
    """The folders on the way to a folder, itself first."""
    while path:
        yield path
        path = path.rpartition(b"/")[0]


def _made(folders: dict[bytes, list[Entry]], batch: Batch) -> Folder:
    """The top folder; each folder is made when all below it are."""
    for path in sorted(folders, key=lambda at: (not at, -at.count(b"/"))):  # the top last
        document, digest = tree.encode_folder(folders[path])
        above, _, name = path.rpartition(b"/")
        folder = Folder(name=tree.text_of(name), mode=0o755, digest=digest, node=batch.add(document))
        if path:
            folders[above].append(folder)
    return folder


def _contents(repository: Repository, names: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The bytes of git's objects, from one process."""
    argv = ["git", "cat-file", "--batch"]
    with subprocess.Popen(
        argv, cwd=repository.root, env=surroundings(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None, "both are pipes"
        for name in names:
            process.stdin.write(name + b"\n")
            process.stdin.flush()
            head = process.stdout.readline().split()
            if len(head) != 3:
                raise StaleBase(f"git's object {name.decode()} is not in {repository.root}", ref=name.decode())
            data = process.stdout.read(int(head[2]) + 1)
            yield name, data[:-1]
        process.stdin.close()
