"""What an attacker can make who knows the format: any JSON in place of any value, chained, sealed and packed anew.

Everything that is made here passes every digest and every hash: what is wrong in it is wrong by what it says.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from click import ClickException
from click.testing import CliRunner
from msgspec import structs

from tests.engine.recorded import action, answer, decision, recorder_in
from worldline.cli.main import cli
from worldline.engine.boundary import call
from worldline.errors import WorldlineError
from worldline.model import events
from worldline.model.manifest import _digest as seal_digest
from worldline.model.merkle import Merkle
from worldline.store import layout
from worldline.store.bundle import container
from worldline.store.bundle.container import STORED, Entry
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording

WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "a negative size": -1,
    "zero": 0,
    "half": 0.5,
    "2^53": 2**53,
    "2^64": 2**64,
    "huge": 10**400,
    "no text": "",
    "a path": "../../etc/passwd",
    "NUL and LF": "a\0b\nc",
    "a long text": "x" * 40_000,
    "a list": [],
    "a mapping": {},
    "lists in lists": [[[[1]]]],
    "a content": {"$blob": {"name": "../../../x", "size": -1, "type": 7, "tier": "no tier"}},
    "an escape": {"$int": "x", "$f64": "y", "$b64": "=", "$e": ["x", {}, []]},
    "an escape alone": {"$f64": "neither"},
}
"""What is put in the place of any value. JSON has no NaN; `test_hostile_json` spells it all the same."""
BODY = b'{"model":"m-1","messages":[{"role":"user","content":"hello"}],"tools":[]}'
MORE = BODY.replace(b"}]", b'},{"role":"assistant","content":"hi"}]', 1)
CHAT = b'data: {"id":"1","model":"m-1","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
LOOKED = "x" * 40_000  # over the inline limit: a content of its own
_SYNC = re.compile(rb'"sync":\[(\d{1,6}),"[0-9a-f]{16}"\]')


def recorded(store: Path) -> Recording:
    """A small sealed run with one of everything: model calls, a stream, tools, a content, a permission, a step."""
    recorder, boundary = recorder_in(store, task="hostile")
    answer(boundary, decision(BODY, name="openai.chat"), [CHAT[:20], CHAT[20:]])
    answer(boundary, decision(MORE, name="openai.chat"), [b"{}"])
    call(boundary, action("look", {"at": 1}), lambda: LOOKED)
    call(boundary, action("see", {"at": [1.5, None]}), lambda: {"found": True})
    boundary.note("permission", "granted", "main", {}, {"capability": "look", "facts": {"by": "somebody"}})
    boundary.note("marker", "step", "main", {}, {"phase": "begin", "name": "two"})
    recorder.seal()
    return Recording(recorder.attempt)


def spelled(value: Any) -> bytes:
    """Any value as JSON, also what our own encoder refuses."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside, itself first."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*at, key))


def replaced(value: Any, at: tuple[Any, ...], other: Any) -> Any:
    """The value with another in the place `at`."""
    if not at:
        return other
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[at[0]] = replaced(value[at[0]], at[1:], other)
    return copied


def without(value: Any, at: tuple[Any, ...]) -> Any:
    """The value without what stands in the place `at`."""
    copied = dict(value) if isinstance(value, dict) else list(value)
    if len(at) == 1:
        del copied[at[0]]
    else:
        copied[at[0]] = without(value[at[0]], at[1:])
    return copied


def mutations(value: Any, every: int = 1) -> Iterator[tuple[str, Any]]:
    """The value with each of `WRONG`, and with nothing, in each place but the whole, each named; every so many-th."""
    number = 0
    for at in places(value):
        for name, other in [*WRONG.items(), ("gone", None)] if at else ():
            if number % every == 0:
                changed = without(value, at) if name == "gone" else replaced(value, at, other)
                yield f"{'.'.join(map(str, at))} is {name}", changed
            number += 1


def sealed_line(fields: Any) -> bytes:
    """A manifest's line of any fields, with a seal that fits."""
    before = spelled(fields)[:-1]
    return before + b',"seal":"' + seal_digest(before).encode() + b'"}\n'


def chained(bodies: Iterable[bytes]) -> tuple[bytes, dict[str, Any]]:
    """The rows of these bodies, each with the hash and the sync mark that it must have, and what the seal says then."""
    head, fold, lines, starts = events.GENESIS, Merkle(), [], [b""]
    for body in bodies:
        mark = _SYNC.search(body)
        if mark is not None and int(mark[1]) < len(starts):
            body = body.replace(mark[0], b'"sync":[%b,"%b"]' % (mark[1], starts[int(mark[1])]), 1)
        leaf = events.leaf(body)
        head = events.link(head, leaf)
        fold.add(leaf)
        starts.append(head.hex()[:16].encode())
        lines.append(events.line(body, head))
    log = b"".join(lines)
    header = lines[0][-67:-3].decode() if lines else "0" * 64
    facts = {"rows": len(lines), "bytes": len(log), "head": head.hex(), "root": fold.root().hex(), "header": header}
    return log, facts | {"genesis": header}


def rechained(attempt: Path, bodies: Iterable[bytes], /, **facts: Any) -> None:
    """Write a sealed attempt's log anew, of the bodies of its rows: hashes, sync marks, manifest and seal follow."""
    written, said = chained(bodies)
    first, *others = sorted((attempt / layout.CHUNKS).iterdir())
    for path in others:
        path.unlink()
    replace(first, written)
    fields = json.loads((attempt / layout.MANIFEST).read_bytes())
    del fields["seal"]
    fields |= said | {"chunks": [[first.name, len(written), layout.sha256_of(first)]]}
    line = sealed_line(fields | facts)
    replace(attempt / layout.STAGED, line)
    replace(attempt / layout.MANIFEST, line)


def replace(path: Path, data: bytes) -> None:
    """Other bytes under the same name, in a file of its own."""
    path.unlink()
    path.write_bytes(data)


def bodies(attempt: Path) -> list[bytes]:
    """The rows of a sealed attempt without their hashes."""
    files = sorted((attempt / layout.CHUNKS).iterdir())
    return [line[: -events.SUFFIX] for path in files for line in path.read_bytes().splitlines(True)]


def contents(bundle: Path) -> dict[str, bytes]:
    """The content of every entry but the container's."""
    packed = PackedRecording(str(bundle))
    return {entry.name: b"".join(packed.content_of(entry)) for entry in packed.container.entries}


def container_line(fields: Any) -> bytes:
    """`container.json` of any fields, with a digest that fits."""
    before = spelled(fields)[:-1]
    return before + b',"container":"' + hashlib.sha256(b"\x04" + before).hexdigest().encode() + b'"}'


def remade(
    bundle: Path,
    other: dict[str, bytes] | None = None,
    change: Callable[[dict[str, Any]], Any] = lambda fields: fields,
    sizes: dict[str, int] | None = None,
    leave: Iterable[str] = (),
) -> bytes:
    """The bundle with other contents under some names (new ones too), every header and digest made to fit.

    `leave` are entries to leave out, `sizes` contents' sizes that are lies, and `change` what becomes of the
    container's fields after that.
    """
    packed, other, sizes = PackedRecording(str(bundle)), other or {}, sizes or {}
    names = [entry.name for entry in packed.container.entries]
    entries, parts = [], []
    for name in sorted((name for name in [*names, *other] if name not in leave), key=container.place_of):
        old = packed.entries.get(name)
        if name in [entry.name for entry in entries]:
            continue
        if old is not None and name not in other:
            entry, stored = old, b"".join(packed.stored(old))
        else:
            method = old.method if old is not None else STORED
            stored = other[name] if method == STORED else deflated(other[name])
            size = sizes.get(name, len(other[name]))
            entry = Entry(name, method, size, len(stored), zlib.crc32(other[name]), hashlib.sha256(stored).hexdigest())
        entries.append(entry)
        parts.append(container.local_header(entry) + stored)
    return assembled(parts, entries, packed.container.seal, packed.container.withheld, change)


def assembled(
    parts: Iterable[bytes],
    entries: list[Entry],
    seal: str,
    withheld: tuple[tuple[str, int, str], ...] = (),
    change: Callable[[dict[str, Any]], Any] = lambda fields: fields,
) -> bytes:
    """A bundle of entries with their headers: the container, the directory and the end records that fit them."""
    said = container.Container(container.FORMAT, tuple(entries), seal, withheld)
    fields = json.loads(container.encode(said))
    del fields["container"]
    data = container_line(change(fields))
    own = container.own_entry(data)
    return b"".join([*parts, container.local_header(own), data, container.central_directory((*entries, own))])


def deflated(content: bytes) -> bytes:
    """Content as a ZIP deflates it."""
    squeeze = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return squeeze.compress(content) + squeeze.flush()


def resealed(bundle: Path, fields: Any) -> bytes:
    """The bundle with another manifest, its seal named in the container too."""
    line = sealed_line(fields)
    seal = line[-67:-3].decode()
    return remade(bundle, {container.MANIFEST: line}, lambda said: {**said, "seal": seal})


VERBS = [
    ["show"],
    ["show", "--json"],
    ["verify", "--json"],
    ["replay"],
    ["prove", "--seq", "1", "-o", "proof"],
    ["pack", "-o", "packed.skn"],
]


def defects(name: str | Path, verbs: Iterable[list[str]] = VERBS) -> list[str]:
    """Run verbs on a recording here, in the working directory. What they raised that is no error of ours: defects."""
    found = []
    for verb, *options in verbs:
        ended = CliRunner().invoke(cli, [verb, str(name), *options], standalone_mode=False)
        if ended.exception is not None and not isinstance(ended.exception, WorldlineError | ClickException):
            found.append(f"{verb}: {ended.exception!r:.200}")
        for made in ("proof", "packed.skn"):
            Path(made).unlink(missing_ok=True)
    return found


def msgspec_replace(entry: Entry, **fields: Any) -> Entry:
    """The entry with other fields."""
    return structs.replace(entry, **fields)
