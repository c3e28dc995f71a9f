"""A chain of forks of forks of any depth, by the real recorder: each goes on by one step from its parent's end.

A fork of a run would drive the whole prefix again for each; here each branch records its own step alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import worldline as wl
from tests.fork.inside import look, opened
from worldline.engine.boundary import RecordBoundary
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.seams.active import ActiveRun, entered


class Looker:
    """Does what such a chain has on record, a step for each of its recordings; `saw` is what it saw."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.saw: list[str] = []

    def __call__(self) -> None:
        self.saw = []
        with wl.record("runs", task="walk") as run:
            for number in range(self.turns):
                with run.step(f"turn {number}"):
                    self.saw.append(look(number))


def chain(store: Path, depth: int) -> wl.Run:
    """A run of one step and so many forks of forks behind it, each at its parent's last step's end; the last one."""
    parent: dict[str, Any] | None = None
    for number in range(depth + 1):
        recorder = Recorder(Spec(store=store, task="walk", parent=parent, first_call=2 * number))
        if parent is not None:
            said = {"step": number, "at": f"step:{number}", "resumed": False, "changed": [], "change": None}
            own = {"branch_id": recorder.run, "seed": None, "side_effect_cursor": parent["seq"]}
            recorder.append("snapshot_ref", "branch", {}, {**said, **own})
        run = ActiveRun(RecordBoundary(recorder), "http://127.0.0.1:9", recorder.run)
        with entered(run), run.step(f"turn {number}"):
            look(number)
        cut = recorder.log.seq - 1
        bound = {"run": recorder.run, "attempt": recorder.attempt_id, "seq": cut, "h": recorder.log.h.hex()}
        path = recorder.seal("complete")
        parent = {**bound, "genesis": recorder.header_hash if parent is None else parent["genesis"]}
    return opened(path)
