"""The cadence curve: what a snapshot every K events costs an event, and what a branch from any of them costs then."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import NamedTuple

from benchmarks.events import place
from benchmarks.measure import WALL, timed
from worldline.engine.substrates.overlay import Overlay
from worldline.engine.substrates.substrate import Env, Policy, SnapRef

EVERY = (1, 10, 100, 500)
EVENTS, FORKS = 1000, 20
SEED = "5eed" * 16


class Point(NamedTuple):
    """Milliseconds: of snapshots by event, and of a fork with the events re-issued that came behind its snapshot."""

    every: int
    event: float
    fork: float


def event(root: Path, number: int) -> None:
    """What happens in the workspace at an event: one file is written."""
    (root / f"{number % 50}.txt").write_text(f"event {number}\n" * 40)


def curve(quick: bool) -> list[Point]:
    """With overlay; nothing where that cannot be had."""
    return [found for every in EVERY if (found := _point(every, EVENTS // 10 if quick else EVENTS)) is not None]


def _point(every: int, events: int) -> Point | None:
    with place() as folder:
        store, workspace = folder / "runs", folder / "workspace"
        workspace.mkdir()
        overlay = Overlay(store)
        if overlay.probe().why_not is not None:
            return None
        env = overlay.open(workspace, Policy(store=store))
        refs, spent = [env.snapshot(0)], 0.0
        for number in range(1, events + 1):
            event(env.root, number)
            if number % every == 0:
                spent += timed(WALL, 1, lambda number=number: refs.append(env.snapshot(number)))  # type: ignore[misc]
        forks = [_fork(overlay, refs, events * number // FORKS) for number in range(1, FORKS + 1)]
        env.close()
        return Point(every, spent / events * 1e3, statistics.mean(forks) * 1e3)


def _fork(overlay: Overlay, refs: list[SnapRef], at: int) -> float:
    """Branch from an event: from the nearest snapshot before it, with what came between issued again."""
    ref = max((ref for ref in refs if ref.seq <= at), key=lambda ref: ref.seq)
    made: list[Env] = []

    def branch() -> None:
        made.extend(overlay.fork(ref, 1, branch_seed=SEED, identity="bench"))
        for number in range(ref.seq + 1, at + 1):
            event(made[0].root, number)

    took = timed(WALL, 1, branch)
    made[0].close()
    return took


def table(points: list[Point]) -> str:
    """The curve as Markdown."""
    lines = ["| a snapshot every | costs an event | and a fork from any event |", "|--:|--:|--:|"]
    return "\n".join([*lines, *(f"| {p.every} | {p.event:.2f} ms | {p.fork:.2f} ms |" for p in points)])
