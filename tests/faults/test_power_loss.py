"""The power goes while a real recorder writes to a real file system, and what was not synced is lost.

Whatever came to the medium of the rest (nothing, every name, every byte, any sector and name by chance): what was
acknowledged is there, what reads as good is good, and reconciling, expiring or containing again comes to its end.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.faults.judged import clear, judge, results, run_in, settled
from tests.faults.lossy_disk import SURVIVES, LossyDisk
from tests.faults.recorder_process import Recorded, RecorderServer, forget, hide
from tests.soak import Soak
from tests.store import forgetting
from tests.store.test_contain import LABEL, LARGE, NOW, SECRET, record
from worldline.errors import Contained
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.verify import verify

# What is unsynced may be missing anywhere in a file: the lines behind it may be there.
HOLES = frozenset({"torn", "zeros", "gap", "order", "malformed", "changed"})


def ways(number: int, came: Recorded, soak: Soak) -> list[tuple[str, int]]:
    """What survives a cut, with a seed: all the ways behind the end and in the long form, else one by turns."""
    if soak.long or not came.killed:
        return [*((way, number) for way in SURVIVES), *(("anything", number * 1000 + more) for more in range(1, 6))]
    return [(SURVIVES[number % len(SURVIVES)], number), ("anything", number)][: 1 + (number % 4 == 0)]


def test_power_lost_at_every_change_of_a_recording(
    lossy: LossyDisk, recorders: RecorderServer, quick: Path, soak: Soak
) -> None:
    for shape in soak.rounds():
        cuts, states = 0, []
        for number in range(1, 2000):
            lossy.empty(cut_at=number)
            came = recorders.record(lossy.place / "runs", shape=shape)
            for way, seed in ways(number + shape, came, soak):
                store = lossy.survives(way, seed, quick / "left") / "runs"
                states.append(judge(store, came, HOLES))
                clear(quick / "left")
            cuts += came.killed
            if came.said("sealed"):
                break
        assert came.said("sealed") and cuts >= 2 and set(states) <= {None, *STATES}
        if shape == 0:
            assert cuts > 120 and {*STATES} <= set(states) and states.count("sealed:partial") > 60


STATES = ("stillborn", "sealed:partial", "sealed:complete")


def begun(lossy: LossyDisk, made: Path, cut_at: int) -> Path:
    """Put a store onto the disk, durable; the power goes at that change from here."""
    lossy.empty()
    subprocess.run(["cp", "-a", made, lossy.place], check=True)
    lossy.settle(cut_at)
    return lossy.place / made.name


def each_cut(
    lossy: LossyDisk, recorders: RecorderServer, made: Path, quick: Path, soak: Soak, **request: Any
) -> list[tuple[Path, Recorded]]:
    """What is left of a store after a cut at each change that the request makes; the last one came to its end."""
    left = []
    for number in range(1, 400):
        came = recorders.record(begun(lossy, made, number), **request)
        for way, seed in ways(number, came, soak):
            place = quick / f"{number}-{way}-{seed}"
            left.append((lossy.survives(way, seed, place) / made.name, came))
        if not came.killed:
            assert came.said("error") == []
            return left
    raise AssertionError("it never came to its end")


def test_power_lost_while_a_run_is_reconciled(
    lossy: LossyDisk, recorders: RecorderServer, quick: Path, soak: Soak
) -> None:
    for at in (45, 100, 133) if soak.long else (45, 133):
        lossy.empty(cut_at=at)
        died = recorders.record(lossy.place / "runs")
        made = lossy.survives("anything", 0, quick / f"{at}") / "runs"
        (run,) = made.glob("run_*")
        if (tail := next(layout.attempts(run)) / layout.TAIL).is_file():
            with tail.open("ab") as file:
                file.write(b'{"seq":9,"t":')
        published = results(run)
        for store, _ in each_cut(lossy, recorders, made, quick / f"{at}-left", soak, reconcile=True):
            left = run_in(store)
            assert left is not None
            settled(left, died, results(left) or published)
        shutil.rmtree(quick / f"{at}-left")


def test_power_lost_while_contents_expire(lossy: LossyDisk, recorders: RecorderServer, quick: Path, soak: Soak) -> None:
    recording = forgetting.recorded(quick / "runs")
    now = forgetting.after(recording, 200)
    gone = []
    for store, _ in each_cut(lossy, recorders, quick / "runs", quick / "left", soak, expire=now):
        (run,) = store.glob("run_*")
        # A content may be back, or its record torn; none is gone without a record.
        assert {problem.kind for problem in verify(Recording(run)).problems} <= {"torn"}
        gone.append(len(forgetting.here(Recording(run))))
        forget(store, now)
        assert verify(Recording(run)).ok and forgetting.here(Recording(run)) == set()
        assert len(forgetting.records(Recording(run))) == 8
    assert max(gone) == 8 and min(gone) == 0 and len(gone) > 25


def test_power_lost_while_a_run_is_contained(
    lossy: LossyDisk, recorders: RecorderServer, quick: Path, soak: Soak
) -> None:
    store = quick / "runs"
    attempt = record(store, LARGE + SECRET, SECRET)
    other = record(store, LARGE, "harmless")
    outcomes = []
    for left, came in each_cut(lossy, recorders, store, quick / "left", soak, contain=[LABEL, SECRET, NOW]):
        run, bystander = (left / path.relative_to(store) for path in (attempt, other))
        try:
            found = Recording(run)
        except Contained:
            outcomes.append(True)
        else:
            outcomes.append(False)
            assert verify(found).ok and came.killed
        assert verify(Recording(bystander)).ok
        hide(left, LABEL, SECRET, NOW)
        assert not any(SECRET.encode() in path.read_bytes() for path in left.rglob("*") if path.is_file())
        assert verify(Recording(bystander)).ok
    assert outcomes.count(True) > 5 and outcomes.count(False) > 5
