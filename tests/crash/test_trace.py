"""The traces are complete, and the model of the disk loses what a disk may lose and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, require
from tests.crash import scenes
from tests.crash.disk import found_at, materialise, renumbered
from tests.crash.scenes import after_kill, record, recorded, settle
from tests.crash.states import crashes
from tests.crash.trace import Trace

CALLS = (
    "openat,write,pwrite64,writev,fsync,fdatasync,link,linkat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat"
)
MEANT = {"fdatasync": "sync", "fsync": "sync", "openat": "create"}


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes.steady(monkeypatch)


def test_a_trace_replayed_gives_the_directory_byte_for_byte(quick: Path) -> None:
    killed = quick / "killed"
    for number, scene in enumerate((lambda trace: scenes.twice(trace, 2), scenes.forget, scenes.hide, settle)):
        (place := quick / f"{number}").mkdir()
        if scene in (scenes.forget, scenes.hide):
            record(Trace(place), 3, retention=scenes.RETENTION, answer=scenes.SECRET)
        elif scene is settle:
            record(Trace(place), 3, ends=None)
        before = found_at(place)
        trace = recorded(place, scene)
        tree = trace.before.copy()
        for op in trace.ops:
            tree.apply(op)
        assert renumbered(tree.state()) == renumbered(trace.tree.state()) == found_at(place) != before
        if scene is settle:
            killed.mkdir()
            again = after_kill(trace, len(trace.ops) // 2, killed, settle)
            assert renumbered(again.tree.state()) == found_at(killed)


def test_strace_sees_the_operations_of_the_trace(tmp_path: Path) -> None:
    require("strace", shutil.which("strace"), "sees what goes past the trace")
    (place := tmp_path / "place").mkdir()
    output = tmp_path / "calls"
    strace = ["strace", "-f", "-qq", "-y", "-s", "1", "-e", f"trace={CALLS}", "-o", str(output)]
    program = [sys.executable, "-m", "tests.crash.scenes", str(place)]
    done = subprocess.run([*strace, *program], cwd=ROOT, capture_output=True, text=True, check=True)
    seen = [call for line in output.read_text().splitlines() if (call := _call(line, str(place)))]
    assert seen == done.stdout.splitlines() and len(seen) > 100


def _call(line: str, place: str) -> str | None:
    """What a line of strace says in the words of a trace; None for what changed nothing there."""
    found = re.match(r"\d+ +(\w+)\((.*)\) += (\d+)", line)
    if found is None or (f"{place}/" not in line and f"<{place}>" not in line):
        return None
    name, arguments, result = found.groups()
    if name == "openat" and "O_CREAT" not in arguments:
        return None
    name = MEANT.get(name, re.sub(r"at2?$", "", name))
    return f"write {result}" if name == "write" else name


def left(quick: Path, work: Callable[[Path], None]) -> list[dict[str, bytes | None]]:
    """Every state that a crash in the work may leave, as the contents by path."""
    (place := quick / "place").mkdir()
    trace = recorded(place, lambda trace: work(place))
    return [{path: data for path, _, data in crashed.state} for crashed in crashes(trace, since=len(trace.ops))]


def test_a_name_is_durable_with_its_directory_and_bytes_with_their_file(quick: Path) -> None:
    def work(place: Path) -> None:
        os.mkdir(place / "kept")
        sync(place)
        for folder, named in (("kept", True), ("lost", False)):
            if not named:
                os.mkdir(place / folder)
            write(place / folder / "synced", b"all", True)
            write(place / folder / "torn", b"all", False)
            sync(place / folder)

    states = left(quick, work)
    assert all(state["kept/synced"] == b"all" and "kept/torn" in state for state in states)
    assert {state["kept/torn"] for state in states} >= {b"", b"a", b"all", bytes(3)}
    assert {"lost" in state for state in states} == {True, False}
    assert all("lost/synced" in state for state in states if "lost" in state)


def test_a_rename_is_whole_and_unsynced_names_are_lost_in_any_order(quick: Path) -> None:
    def work(place: Path) -> None:
        os.mkdir(place / "to")
        for name in ("moved", "removed"):
            write(place / name, b"x", True)
        sync(place)
        os.rename(place / "moved", place / "to" / "moved")
        write(place / "made", b"", True)
        os.unlink(place / "removed")

    states = [frozenset(state) for state in left(quick, work)]
    assert all(("moved" in state) != ("to/moved" in state) for state in states)
    # Each of the three for itself: eight states.
    assert len(states) == 8 and frozenset({"to", "to/moved", "removed"}) in states


def test_what_was_not_synced_has_holes_and_zeros(quick: Path) -> None:
    rows = [b"%d" % number * 399 + b"\n" for number in range(4)]

    def work(place: Path) -> None:
        write(place / "log", rows[0], True)
        sync(place)
        for row in rows[1:]:
            write(place / "log", row, False)

    found = {state["log"] for state in left(quick, work)}
    whole = b"".join(rows)
    assert all(data is not None and data.startswith(rows[0]) for data in found)
    assert {rows[0], whole, whole[:800], whole[:801], whole[:1024], rows[0] + bytes(1200)} <= found
    assert whole[:512] + bytes(512) + whole[1024:] in found  # a hole before a whole row
    assert rows[0] + bytes(400) + whole[800:] in found


def test_a_state_is_made_with_its_links(quick: Path) -> None:
    state = (("a", 1, b"same"), ("b", 2, b"same"), ("c", 3, None), ("c/a", 1, b"same"))
    (place := quick / "place").mkdir()
    materialise(state, place)
    assert found_at(place) == state
    assert (place / "a").samefile(place / "c" / "a") and not (place / "a").samefile(place / "b")


def write(path: Path, data: bytes, synced: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, data)
    if synced:
        os.fsync(descriptor)
    os.close(descriptor)


def sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
