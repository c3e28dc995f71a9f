"""Files that would fill the memory: each is refused, reported or read in parts by a process that is given little of it.

Files of many megabytes that cost no disk (holes), archives that inflate without end, and tables without end.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store import hostile
from worldline.store import layout
from worldline.store.bundle import container
from worldline.store.bundle.container import EVENTS, INDEX, STORED, Entry
from worldline.store.bundle.pack import pack

LARGE = 192 << 20
ROOM = 200 << 20  # of address space; interpreter and libraries take half of it
ROOT = Path(__file__).parents[2]


def hole(path: Path, size: int = LARGE) -> None:
    """A file of zeros that takes no room on the disk."""
    path.unlink(missing_ok=True)
    path.touch()
    os.truncate(path, size)


def line_without_end(attempt: Path) -> None:
    chunk = next((attempt / layout.CHUNKS).iterdir())
    data = chunk.read_bytes()
    hole(chunk, LARGE)
    with chunk.open("r+b") as file:
        file.write(data[: len(data) // 2])
        file.seek(LARGE - 100)
        file.write(b"x" * 100)


def large_result(attempt: Path) -> None:
    """A row whose result, its metadata too, stands in a content that is larger than the memory."""
    rows = hostile.bodies(attempt)
    name = next((attempt / layout.BLOBS).rglob("?" * 64))
    hole(name)
    large = {"$blob": {"name": name.name, "size": LARGE, "type": "application/json", "tier": "ordinary"}}
    for at, body in enumerate(rows):
        row = json.loads(body + b"}")
        if row["src"] == "tool_result":
            row["data"]["result"] = row["data"]["elapsed_ns"] = large
        if row["src"] == "response":
            row["data"]["headers"] = row["data"]["body"] = large
        rows[at] = hostile.spelled(row)[:-1]
    hostile.rechained(attempt, rows, blobs=[[name.name, LARGE, "application/json", "ordinary", "captured"]])


DIRECTORIES: dict[str, Callable[[Path], object]] = {
    "a manifest": lambda attempt: hole(attempt / layout.MANIFEST),
    "a staged manifest": lambda attempt: hole(attempt / layout.STAGED),
    "a result": lambda attempt: hole(attempt / layout.RESULT),
    "a published result": lambda attempt: hole(next(attempt.parents[2].glob("*.json"))),
    "an open.json": lambda attempt: hole(attempt / layout.OPEN),
    "a lock": lambda attempt: hole(attempt / layout.LOCK),
    "a line without end": line_without_end,
    "a content": lambda attempt: hole(next((attempt / layout.BLOBS).rglob("?" * 64))),
    "contents as fields of rows": large_result,
    "records of what expired": lambda attempt: hole(attempt / "expiry.jsonl"),
}


def inflating(before: bytes, block: bytes, after: bytes = b"") -> bytes:
    """Deflated content of `LARGE` bytes of repeated blocks (of a MiB), between two ends."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    head = squeeze.compress(before) + squeeze.flush(zlib.Z_FULL_FLUSH)
    once = squeeze.compress(block) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return head + once * (LARGE >> 20) + squeeze.compress(after) + squeeze.flush()


def index_bomb(bundle: Path, said: int | None = None) -> bytes:
    """An index larger than the memory: a list of nothing but noughts. `said` is the size that the container says."""
    head = hostile.contents(bundle)[INDEX][:-1] + b',"later":[0'
    return with_entry(
        bundle, INDEX, inflating(head, b",0" * (1 << 19), b"]}"), len(head) + LARGE + 2 if said is None else said
    )


def with_entry(bundle: Path, name: str, stored: bytes, size: int) -> bytes:
    packed = hostile.PackedRecording(str(bundle))
    entry = Entry(name, container.DEFLATED, size, len(stored), 0, hashlib.sha256(stored).hexdigest())
    kept = [(e, b"".join(packed.stored(e))) if e.name != name else (entry, stored) for e in packed.container.entries]
    parts = [container.local_header(each) + data for each, data in kept]
    return hostile.assembled(parts, [each for each, _ in kept], packed.container.seal)


def many_entries(bundle: Path, count: int) -> bytes:
    """A bundle with so many empty contents."""
    nothing = hashlib.sha256(b"").hexdigest()
    entries = [Entry(f"resources/{n:064x}.bin", STORED, 0, 0, 0, nothing) for n in range(count)]
    return hostile.assembled(map(container.local_header, entries), entries, "0" * 64)


def directory_of_terabytes(bundle: Path) -> bytes:
    """The end records alone, of a directory that fills a file with a hole of terabytes (see `made`)."""
    size = 1 << 42
    counts = (100_000, 100_000, size - 98, 0)
    end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x032D, 45, 0, 0, *counts)
    return end + struct.pack("<4sIQI", b"PK\x06\x07", 0, size - 98, 1) + bytes.fromhex("504b0506") + bytes(18)


BUNDLES: dict[str, Callable[[Path], bytes]] = {
    "an index bomb": index_bomb,
    "an index bomb, as a small one": lambda bundle: index_bomb(bundle, 3000),
    "a log of zeros": lambda bundle: with_entry(bundle, EVENTS, inflating(b"", bytes(1 << 20)), LARGE),
    "a log of one row": lambda bundle: with_entry(bundle, EVENTS, inflating(b'{"seq":0,', b"x" * (1 << 20)), LARGE + 9),
    "a hundred thousand entries": lambda bundle: many_entries(bundle, 100_000),
    "a million entries, said": lambda bundle: (
        bundle.read_bytes()[:-74] + (10**6).to_bytes(8, "little") * 2 + bundle.read_bytes()[-58:]
    ),
    "a directory of terabytes": directory_of_terabytes,
}


READ = """
import json, resource, sys
room, *names = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (int(room), int(room)))
from tests.store.hostile import defects
found = {name: defects(name, [["show"], ["verify"], ["replay"]]) for name in names}
# Not getrusage: what it calls our own peak may be that of the process that started us.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([found, int(peak.split()[1]) // 1024]))
"""


def read_with_little_room(names: list[str]) -> tuple[dict[str, list[str]], int]:
    """What broke, by the name of the recording, and the most memory that was held, in MB."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", READ, str(ROOM), *names],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=420,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found, held = json.loads(done.stdout)
    return found, held


@pytest.fixture
def good(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(quick)
    return hostile.recorded(quick / "runs").attempt


def test_directories_with_files_larger_than_the_memory(good: Path, quick: Path) -> None:
    names = []
    for number, (name, spoil) in enumerate(DIRECTORIES.items()):
        shutil.copytree(good.parents[2], quick / f"{number}" / good.parents[2].name)
        (attempt,) = (quick / f"{number}").glob("run_*/trajectory/attempts/*")
        spoil(attempt)
        names.append(str(attempt))
        assert name
    found, held = read_with_little_room(names)
    assert {name: broke for name, broke in found.items() if broke} == {} and held < 256


def test_bundles_that_grow_without_end(good: Path, quick: Path) -> None:
    pack(hostile.Recording(good), quick / "good.skn")
    for number, (name, made) in enumerate(BUNDLES.items()):
        data, path = made(quick / "good.skn"), quick / f"{number}.skn"
        path.write_bytes(b"PK\x03\x04" if name == "a directory of terabytes" else data)
        if name == "a directory of terabytes":
            with path.open("r+b") as file:
                file.seek((1 << 42) - 98)
                file.write(data)
    found, held = read_with_little_room([f"{number}.skn" for number in range(len(BUNDLES))])
    assert {name: broke for name, broke in found.items() if broke} == {} and held < 256
