"""Conducting a study: the method asks for draws, the journal gives those that are known, an executor draws the rest.

Each rollout is written down, durably, as it ends; the method is told of a batch in the order in which it asked. So a
study that was killed goes on where it was, and answers to the bit what it would have answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from worldline.analysis.attribution.asking import Asking, Draw, Outcome
from worldline.analysis.attribution.spending import BudgetSpent
from worldline.engine import clock
from worldline.engine.executors.executor import Done, Executor, Job, settle
from worldline.errors import Cancelled
from worldline.store.studies import folder as studies
from worldline.store.studies.journal import DRAWN, STOPPED, Journal
from worldline.study.rollout import Ask, Drawn
from worldline.study.setting import Setting, rollout_key, rollout_run

KEPT = 3  # rollouts that went well, for each prefix and stream; the first ones in the order of the draws
INTERRUPTED = "interrupted"
Answer = TypeVar("Answer")


class Price(msgspec.Struct, frozen=True):
    """What a million tokens cost, in and out taken together; None is not known."""

    per_million: float | None = None

    def of(self, tokens: int) -> float:
        """What so many tokens cost."""
        return 0.0 if self.per_million is None else tokens * self.per_million / 1e6


class Progress(msgspec.Struct):
    """How far a study is: rollouts drawn (those known from before among them), and the seconds they took."""

    drawn: int = 0
    known: int = 0
    seconds: float = 0.0
    successes: int = 0
    tokens: int = 0
    at: tuple[int, int] | None = None  # the steps the last batch was about


Tell = Callable[[Progress], None]


class Conduct:
    """Draws for one study. `tell` hears of each rollout."""

    def __init__(
        self,
        setting: Setting,
        identity: str,
        journal: Journal,
        executor: Executor,
        *,
        price: Price | None = None,
        tell: Tell = lambda progress: None,
    ) -> None:
        self._setting = setting
        self._identity = identity
        self._journal = journal
        self._executor = executor
        self._price = price or Price()
        self._tell = tell
        self.progress = Progress()
        self.drawn: dict[Draw, Drawn] = {}
        self.interrupted = False
        self._recorded = setting.attempt.parents[2].name
        self._started_ms = int(setting.recording().header.data["t0_wall"]) // 1_000_000
        self._kept: dict[tuple[Any, ...], list[str]] = {}
        self._known = {
            entry.key: msgspec.convert({k: v for k, v in entry.data.items() if k in Drawn.__struct_fields__}, Drawn)
            for entry in journal.entries
            if entry.what == DRAWN
        }
        studies.clear_scratch(setting.folder)

    def answer(self, controller: Asking[Answer]) -> Answer:
        """The method's answer. Interrupted, or cancelled, it answers with what it knows (`interrupted`)."""
        try:
            batch = next(controller)
            while True:
                try:
                    outcomes = self.draw(batch)
                except (KeyboardInterrupt, Cancelled):
                    self.interrupted = True
                    self._journal.add(STOPPED, {"by": INTERRUPTED}, clock.wall_ns())
                    batch = controller.throw(BudgetSpent(INTERRUPTED))
                    continue
                batch = controller.send(outcomes)
        except StopIteration as end:
            answered: Answer = end.value
            return answered

    def draw(self, batch: list[Draw]) -> list[Outcome]:
        """The outcomes of a batch, in its order. Raises `KeyboardInterrupt`, or what writing the journal raises."""
        if batch:
            self.progress.at = (min(draw.at for draw in batch), max(draw.at for draw in batch))
        keys = [rollout_key(self._identity, draw) for draw in batch]
        due = [index for index, key in enumerate(keys) if key not in self._known]
        self._count_known(batch, keys)
        jobs = [Job(keys[index], msgspec.json.encode(Ask(batch[index], self._identity))) for index in due]
        latest = clock.monotonic_ns()

        def heard(index: int, done: Done) -> None:
            nonlocal latest
            now = clock.monotonic_ns()
            self._heard(batch[due[index]], done, (now - latest) / 1e9)
            latest = now

        settle(self._executor, jobs, heard)
        for draw, key in zip(batch, keys, strict=True):
            self.drawn[draw] = self._known[key]
        self._prune(batch, keys)
        return [self._known[key].outcome for key in keys]

    def _count_known(self, batch: list[Draw], keys: list[str]) -> None:
        for draw, key in zip(batch, keys, strict=True):
            if key in self._known and draw not in self.drawn:
                self.progress.known += 1
                self._count(self._known[key])

    def _heard(self, draw: Draw, done: Done, seconds: float) -> None:
        """Write a rollout down, durably, and say so. What was lost three times is undefined."""
        if done.value is None:
            drawn = Drawn(Outcome(None, why=done.lost))
            left = rollout_run(self._started_ms, done.key)  # of one whose process was killed
            studies.forget_rollout(self._setting.folder / left)
            studies.clear_scratch(self._setting.folder, left)
        else:
            drawn = msgspec.json.decode(done.value, type=Drawn)
        money = self._price.of(drawn.outcome.tokens)
        outcome = msgspec.structs.replace(drawn.outcome, seconds=round(seconds, 3), money=money)
        drawn = msgspec.structs.replace(drawn, outcome=outcome)
        said = {"draw": msgspec.to_builtins(draw), **msgspec.to_builtins(drawn)}
        if done.tries > 1:
            said["tries"] = done.tries
        self._journal.add(DRAWN, said, clock.wall_ns(), key=done.key)
        self._known[done.key] = drawn
        self._count(drawn)

    def _count(self, drawn: Drawn) -> None:
        progress = self.progress
        progress.drawn += 1
        progress.seconds += drawn.outcome.seconds
        progress.successes += drawn.outcome.success is True
        progress.tokens += drawn.outcome.tokens
        self._tell(progress)

    def _prune(self, batch: list[Draw], keys: list[str]) -> None:
        """Of what went well keep the first few of each prefix and stream, in the order of the draws."""
        if self._setting.keep:
            return
        for draw, key in zip(batch, keys, strict=True):
            drawn = self._known[key]
            run = drawn.outcome.run
            if run is None or drawn.fired or run == self._recorded:
                continue
            kept = self._kept.setdefault((draw.at, draw.tag, draw.do), [])
            if run not in kept and len(kept) < KEPT:
                kept.append(run)
            if run not in kept:
                studies.forget_rollout(self._setting.folder / run)

    def kept(self, run: str | None) -> bool:
        """Whether the rollout that became this run was kept."""
        return run is not None and (self._setting.folder / run).is_dir()
