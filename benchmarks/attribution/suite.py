"""The grid: which methods are asked about which families, how often; on all cores, and resumed where it broke off.

Runs are asked about in batches. A batch's scores are a line of a journal in the temporary directory, under a digest of
the code that they depend on: what is there is not done again, and what another code did is not believed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec

from benchmarks.attribution import packages
from benchmarks.attribution.families import BY_NAME, FAMILIES, FLAT, LENGTHS, PLANTED, RANDOM, case
from benchmarks.attribution.methods import METHODS, Method
from benchmarks.attribution.scoring import Score, judged

BATCH = 20
HERE = Path(__file__).resolve().parent
METHOD_CODE = "worldline.analysis.attribution"
JUDGED_BY = ("chance", "running", "program", "truth", "planted", "further", "families", "methods", "scoring")
RANDOM_LENGTH = 80


class Batch(NamedTuple):
    """Runs `first` to `last` (not included) of a family, one method."""

    family: str
    length: int
    method: str
    first: int
    last: int
    seed: int


class Plan(NamedTuple):
    """One method, asked about `runs` runs of each of these families at each of these lengths."""

    method: str
    families: tuple[str, ...]
    lengths: tuple[int, ...]
    runs: int

    def batches(self, seed: int) -> Iterable[Batch]:
        """Its batches."""
        for length in self.lengths:
            for family in self.families:
                for first in range(0, self.runs, BATCH):
                    yield Batch(family, length, self.method, first, min(first + BATCH, self.runs), seed)


def named(*groups: str) -> tuple[str, ...]:
    """The names of the families of these groups."""
    return tuple(family.name for family in FAMILIES if family.group in groups)


ALL = tuple(family.name for family in FAMILIES if family.group != RANDOM)
PEERS = (*named(PLANTED), *named(FLAT))


def full(runs: int) -> list[Plan]:
    """Everything; `runs` runs a cell of ours, and less of rules that take a hundred times as many rollouts."""
    few = max(BATCH, runs // 20)
    rules = [Plan("seed N=50", PEERS, LENGTHS, few), Plan("seed N=50", named(RANDOM), (RANDOM_LENGTH,), few * 2)]
    rules += [Plan(f"seed N={each}", PEERS, LENGTHS[:2], few) for each in (20, 100)]
    rules += [Plan(name, named(PLANTED), LENGTHS, runs) for name in ("last step", "uniform")]
    ours = [Plan("locate", named(RANDOM), (RANDOM_LENGTH,), runs), Plan("locate", ALL, LENGTHS, runs)]
    timefork = [
        Plan(name, PEERS, LENGTHS, max(BATCH, runs // 10))
        for name in packages.asked_of()
        if name.startswith("timefork")
    ]
    return [*ours, *rules, *timefork, *_slow_packages()]


def _slow_packages() -> list[Plan]:
    """They execute the whole agent for each rollout, through their recorders: seconds to minutes a run."""
    here = packages.asked_of()
    short = [Plan(name, named(PLANTED), (20,), 4) for name in here if name.startswith(packages.SEED_PACKAGE)]
    longer = [Plan(name, named(PLANTED), (50,), 2) for name in here if name == f"{packages.SEED_PACKAGE} N=50"]
    return [*short, *longer, *(Plan(name, named(PLANTED), (20,), 2) for name in here if name.startswith("tracefork"))]


def smoke() -> list[Plan]:
    """A look at everything, in minutes."""
    return [
        Plan("locate", ALL, (20, 50), 40),
        Plan("locate", named(RANDOM), (RANDOM_LENGTH,), 60),
        Plan("locate", ALL, (100, 200), 5),
        Plan("seed N=50", PEERS, (50,), 5),
        Plan("last step", named(PLANTED), (50,), 40),
        Plan("uniform", named(PLANTED), (50,), 40),
        *(Plan(name, named(PLANTED), (20,), 20) for name in packages.asked_of() if name.startswith("timefork")),
        *(Plan(name, named(PLANTED), (20,), 1) for name in packages.asked_of() if name.endswith(" N=20")),
    ]


def asked(batch: Batch) -> list[Score]:
    """Ask, and judge: the work of one process."""
    scores = []
    for number in range(batch.first, batch.last):
        found = case(BY_NAME[batch.family], batch.length, number, batch.seed)
        scores.append(judged(found, number, batch.method, method(batch.method)(found)))
    return scores


def method(name: str) -> Method:
    """A method of ours, a rule, or a package that is here."""
    return METHODS[name] if name in METHODS else packages.asked_of()[name]


def _asked(batch: Batch) -> tuple[Batch, list[Score]]:
    return batch, asked(batch)


def scores(
    plans: list[Plan], *, seed: int, jobs: int, journal: Path | None = None, tell: TextIO = sys.stderr
) -> list[Score]:
    """The scores of all runs of these plans, in their order, whoever was done first."""
    wanted = list(dict.fromkeys(batch for plan in plans for batch in plan.batches(seed)))
    path = journal or kept()
    done = read(path)
    waiting = [batch for batch in wanted if (digest(batch.method), batch) not in done]
    began, finished, told = time.monotonic(), 0, 0.0
    if waiting and len(waiting) < len(wanted):
        print(f"{len(wanted) - len(waiting)} of {len(wanted)} batches are in {path}", file=tell)
    with Pool(jobs) as pool, path.open("a", encoding="utf-8") as lines:  # whatever ends this ends its processes
        for batch, found in pool.imap_unordered(_asked, waiting):
            done[digest(batch.method), batch] = found
            line = {"code": digest(batch.method), "batch": batch, "scores": msgspec.to_builtins(found)}
            lines.write("\n" + json.dumps(line))  # a line that was cut off ends here, and spoils no other
            lines.flush()
            finished += 1
            if time.monotonic() - told > 10 or finished == len(waiting):
                told = time.monotonic()
                left = (told - began) / finished * (len(waiting) - finished)
                print(
                    f"{finished} of {len(waiting)} batches, about {left / 60:.1f} minutes left", file=tell, flush=True
                )
    return [score for batch in wanted for score in done[digest(batch.method), batch]]


def kept() -> Path:
    """Where the journal is."""
    return Path(tempfile.gettempdir()) / f"worldline-bench-attribution-{os.getuid()}.jsonl"


def read(path: Path) -> dict[tuple[str, Batch], list[Score]]:
    """What a journal holds; a line that was cut off is not there."""
    found: dict[tuple[str, Batch], list[Score]] = {}
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            try:
                said = json.loads(line)
                found[said["code"], Batch(*said["batch"])] = msgspec.convert(said["scores"], list[Score])
            except (ValueError, KeyError, TypeError):  # the last line of a process that was killed
                continue
    return found


@cache
def digest(method: str) -> str:
    """Of the code that a method's scores depend on."""
    files = [HERE / f"{name}.py" for name in JUDGED_BY]
    if method == "locate":
        used = [module.__file__ for name, module in sys.modules.items() if name.startswith(METHOD_CODE)]
        files += sorted(Path(file) for file in used if file is not None)
    if method not in METHODS:
        files.append(HERE / "packages.py")
    digest = blake2b(digest_size=12)
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
