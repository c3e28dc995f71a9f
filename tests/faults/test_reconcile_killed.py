"""Reconciling gives the same, right state, wherever the recorder died and wherever reconciling itself died."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require
from tests.faults.judged import results, settled
from tests.faults.recorder_process import Recorded, RecorderServer
from tests.soak import Soak
from worldline.store import layout

CHANGING = ("write", "link", "rename", "replace", "unlink", "mkdir", "ftruncate")


def killed(recorders: RecorderServer, folder: Path) -> Iterator[tuple[int, Path, Recorded]]:
    """One store for each file operation of a recording, killed there."""
    for number in range(1, 400):
        store = folder / f"{number}"
        came = recorders.record(store, at=number)
        if not came.killed:
            return
        if store.exists() and any(store.glob("run_*")):
            yield number, next(store.glob("run_*")), came
        shutil.rmtree(store, ignore_errors=True)
    raise AssertionError("the recording never came to its end")


def look(run: Path) -> frozenset[tuple[str, int, bool]]:
    """What is where, for telling places apart: names, links, whether there is something in it."""
    files = ((path, path.stat()) for path in run.rglob("*"))
    names = ((re.sub(r"\d+\.tmp", "tmp", path.name), state) for path, state in files)
    return frozenset((name, state.st_nlink, state.st_size > 0) for name, state in names if "ainst" not in name)


def copy(run: Path, to: Path) -> Path:
    """A copy with its hard links."""
    to.mkdir(parents=True)
    subprocess.run(["cp", "-a", run, to], check=True)
    return to / run.name


def test_reconcile_killed_at_every_step(recorders: RecorderServer, quick: Path, soak: Soak) -> None:
    """From each place of the publication protocol, and from a torn tail, killed at each of its own operations.

    The short form takes every second of them, which of the two by turns.
    """
    kills, seen = 0, set()
    for number, run, came in killed(recorders, quick / "recorded"):
        attempt = next(layout.attempts(run), None)
        ended = attempt is not None and any(b'"src":"end"' in path.read_bytes() for path in attempt.rglob("*.jsonl"))
        if (not ended and number % 20) or (looks := look(run)) in seen:
            continue
        seen.add(looks)
        if not ended and attempt is not None and (attempt / layout.TAIL).is_file():
            with (attempt / layout.TAIL).open("ab") as tail:
                tail.write(b'{"seq":9,"t":')
        published = results(run)
        for step in range(1, 200) if soak.long else range(1 + len(seen) % 2, 200, 2):
            again = copy(run, quick / f"{number}-{step}")
            died = recorders.record(again.parent, at=step, names=CHANGING, reconcile=True).killed
            settled(again, came, published)
            shutil.rmtree(again.parent)
            kills += died
            if not died:
                break
    assert len(seen) > 10 and kills > (200 if soak.long else 100)


@pytest.mark.parametrize("name", ["write", "ftruncate", "link", "rename", "unlink", "fsync", "fdatasync", "openat"])
def test_reconcile_killed_by_strace(name: str, recorders: RecorderServer, quick: Path) -> None:
    require("strace", shutil.which("strace"), "kills the reconciler at an exact system call")
    came = recorders.record(quick / "recorded", at=45)
    (run,) = (quick / "recorded").glob("run_*")
    with (next(layout.attempts(run)) / layout.TAIL).open("ab") as tail:
        tail.write(b'{"seq":9,"t":')
    for step in range(1, 200):
        again = copy(run, quick / f"{step}")
        inject = ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={step}"]
        died = recorders.record(again.parent, inject, reconcile=True).killed
        assert settled(again, came, {}) == "sealed:partial"
        kept = (next(layout.attempts(again)) / layout.TORN).read_bytes()
        assert kept.startswith(b'{"seq":9,"t":')
        shutil.rmtree(again.parent)
        if not died:
            assert step > 1
            return
    raise AssertionError("reconciling never came to its end")
