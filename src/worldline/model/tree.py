"""The tree of a workspace: what its folders hold, as plain JSON that any language reads, and what differs in two.

A folder is one document, named by the SHA-256 of its bytes; so what did not change is the same document in each tree.

    {"entries":[{"type":"file","name":"a.py","mode":420,"size":12,"content":"<64 hex>","mtime":"1796000000000000000"},
                {"type":"folder","name":"lib","mode":493,"digest":"<64 hex>","node":"<64 hex>"},
                {"type":"symlink","name":"now","target":"a.py"}]}

A tree names its top folder, and what is hard links to one file:

    {"format":"worldline-tree/1","root":{"type":"folder","name":"","mode":493,"digest":..,"node":..},"hardlinks":[["a","b"]]}

`digest` is the SHA-256 of the same document without the fields that two equal states may differ in, `mtime` and `node`.
Entries are sorted by the bytes of their names; a name that is no UTF-8 is `{"$b64": ...}`.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

FORMAT = "worldline-tree/1"


class Raw(msgspec.Struct, frozen=True):
    """Bytes that are no UTF-8, in base 64."""

    b64: str = msgspec.field(name="$b64")


Text = str | Raw


def text_of(data: bytes) -> Text:
    """Bytes of a name, a target or an attribute as a tree carries them."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return Raw(base64.b64encode(data).decode("ascii"))


def bytes_of(text: Text) -> bytes:
    """The bytes that `text_of` was given. Raises `ValueError` for what is no base 64."""
    return text.encode("utf-8") if isinstance(text, str) else base64.b64decode(text.b64, validate=True)


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    name: Text
    mode: int | None = None  # permission bits, setuid and the like; None of a symbolic link
    owner: tuple[int, int] | None = None  # user and group, where they are not those of the workspace's top folder
    xattrs: tuple[tuple[Text, Text], ...] = ()  # extended attributes, sorted by their names


class File(_Entry, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="file"):
    """A regular file. `content` is the SHA-256 of its bytes, `mtime` when it was changed last: Unix ns, decimal."""

    size: int
    content: str
    mtime: str | None = None


class Folder(_Entry, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="folder"):
    """A folder. `digest` tells what it holds, `node` names its document."""

    digest: str
    node: str | None = None


class Symlink(_Entry, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag="symlink"):
    """A symbolic link."""

    target: Text


Entry = File | Folder | Symlink


class Node(msgspec.Struct, frozen=True):
    """The document of a folder."""

    entries: tuple[Entry, ...]


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """The document of a tree. `hardlinks` are groups of at least two paths, sorted."""

    format: str = FORMAT
    root: Folder
    hardlinks: tuple[tuple[Text, ...], ...] = ()


_encode = msgspec.json.Encoder().encode
_nodes = msgspec.json.Decoder(Node)
_trees = msgspec.json.Decoder(Tree)


def name_of(data: bytes) -> str:
    """The name of a document or a content: the SHA-256 of its bytes."""
    return hashlib.sha256(data).hexdigest()


def plain(entry: Entry) -> Entry:
    """An entry without what equal states may differ in."""
    if isinstance(entry, File):
        return msgspec.structs.replace(entry, mtime=None) if entry.mtime is not None else entry
    if isinstance(entry, Folder):
        return msgspec.structs.replace(entry, node=None) if entry.node is not None else entry
    return entry


def encode_folder(entries: Iterable[Entry]) -> tuple[bytes, str]:
    """The document of a folder with these entries, and its digest."""
    ordered = sorted(entries, key=lambda entry: bytes_of(entry.name))
    document = _encode(Node(tuple(ordered)))
    return document, name_of(_encode(Node(tuple(map(plain, ordered)))))


def encode_tree(root: Folder, hardlinks: Iterable[Iterable[bytes]] = ()) -> tuple[bytes, str]:
    """The document of a tree, and its digest."""
    groups = sorted(sorted(group) for group in hardlinks)
    tree = Tree(root=root, hardlinks=tuple(tuple(map(text_of, group)) for group in groups))
    bare = plain(root)
    assert isinstance(bare, Folder), "a folder stays one"
    return _encode(tree), name_of(_encode(msgspec.structs.replace(tree, root=bare)))


def decode_folder(data: bytes) -> tuple[Entry, ...]:
    """The entries of a folder's document. Raises `ValueError` for what is none, or has a name that no folder holds."""
    entries = _nodes.decode(data).entries
    names = [bytes_of(entry.name) for entry in entries]
    if any(not name or name in (b".", b"..") or b"/" in name or b"\0" in name for name in names):
        raise ValueError("a name that no folder holds")
    if any(a >= b for a, b in pairwise(names)):
        raise ValueError("names out of order, or one of them twice")
    return entries


def decode_tree(data: bytes) -> Tree:
    """A tree from its document. Raises `ValueError` for what is none."""
    tree = _trees.decode(data)
    if tree.format != FORMAT:
        raise ValueError(f"not a {FORMAT}: {tree.format!r}")
    return tree


Read = Callable[[str], bytes]  # the bytes of a document by its name


def walk(read: Read, folder: Folder, at: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
    """Every path below a folder with its entry, a folder before what is in it."""
    for entry in entries_of(read, folder):
        path = at + bytes_of(entry.name)
        yield path, entry
        if isinstance(entry, Folder):
            yield from walk(read, entry, path + b"/")


def entries_of(read: Read, folder: Folder) -> tuple[Entry, ...]:
    """What a folder holds. Raises `ValueError` for one that does not name its document."""
    if folder.node is None:
        raise ValueError("a folder without its document")
    return decode_folder(read(folder.node))


class Change(msgspec.Struct, frozen=True):
    """One path that is not the same in two trees: what it is in the first and in the second, None where it is not.

    Of a folder only what it is itself counts, not what it holds. `old_links` and `new_links` are the other paths that
    are hard links to the same file.
    """

    path: bytes
    old: Entry | None
    new: Entry | None
    old_links: tuple[bytes, ...] = ()
    new_links: tuple[bytes, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The change as reports carry it."""
        told = {"path": text_of(self.path), "old": self.old, "new": self.new}
        links = {"old_links": [*map(text_of, self.old_links)], "new_links": [*map(text_of, self.new_links)]}
        plain_form: dict[str, Any] = msgspec.to_builtins(
            {**told, **{key: value for key, value in links.items() if value}}
        )
        return plain_form


def diff(read: Read, a: Tree, b: Tree) -> list[Change]:
    """What differs from `a` to `b`, by path, sorted; folders that are equal are not read."""
    old_links, new_links = _linked(a), _linked(b)
    found = {path: (old, new) for path, old, new in _differing(read, b"", a.root, b.root)}
    if itself(a.root) != itself(b.root):
        found[b""] = (a.root, b.root)
    regrouped = {path for path in old_links.keys() | new_links.keys() if old_links.get(path) != new_links.get(path)}
    for path in regrouped - found.keys():
        old, new = at_path(read, a, path), at_path(read, b, path)
        if old is not None or new is not None:
            found[path] = (old, new)
    return [
        Change(path, old, new, old_links.get(path, ()), new_links.get(path, ()))
        for path, (old, new) in sorted(found.items())
    ]


def at_path(read: Read, tree: Tree, path: bytes) -> Entry | None:
    """What stands at a path of a tree; None where nothing does."""
    entry: Entry = tree.root
    for part in path.split(b"/") if path else ():
        if not isinstance(entry, Folder):
            return None
        found = next((each for each in entries_of(read, entry) if bytes_of(each.name) == part), None)
        if found is None:
            return None
        entry = found
    return entry


def renames(changes: Iterable[Change]) -> dict[bytes, bytes]:
    """New paths of files that only moved, each with its old path: one file of this content went, and one came."""
    went, came = defaultdict[str, list[bytes]](list), defaultdict[str, list[bytes]](list)
    for change in changes:
        if change.new is None and isinstance(change.old, File) and change.old.size:
            went[change.old.content].append(change.path)
        elif change.old is None and isinstance(change.new, File) and change.new.size:
            came[change.new.content].append(change.path)
    return {to[0]: went[content][0] for content, to in came.items() if len(to) == 1 and len(went[content]) == 1}


def _linked(tree: Tree) -> Mapping[bytes, tuple[bytes, ...]]:
    """Each path of the tree's hard links, with the others of its group."""
    groups = [tuple(map(bytes_of, group)) for group in tree.hardlinks]
    return {path: tuple(each for each in group if each != path) for group in groups for path in group}


def itself(entry: Entry | None) -> Any:
    """What an entry is apart from what it holds and when it was written."""
    if entry is None:
        return None
    if isinstance(entry, Folder):
        return "folder", entry.mode, entry.owner, entry.xattrs
    return plain(entry)


def _differing(
    read: Read, at: bytes, a: Folder | None, b: Folder | None
) -> Iterator[tuple[bytes, Entry | None, Entry | None]]:
    """The paths below two folders (or none) that differ."""
    if a is not None and b is not None and a.digest == b.digest:
        return
    left = {bytes_of(e.name): e for e in entries_of(read, a)} if a is not None else {}
    right = {bytes_of(e.name): e for e in entries_of(read, b)} if b is not None else {}
    for name in sorted(left.keys() | right.keys()):
        old, new = left.get(name), right.get(name)
        path = at + name
        if old is None or new is None or itself(old) != itself(new):
            yield path, old, new
        old_folder = old if isinstance(old, Folder) else None
        new_folder = new if isinstance(new, Folder) else None
        if old_folder is not None or new_folder is not None:
            yield from _differing(read, path + b"/", old_folder, new_folder)
