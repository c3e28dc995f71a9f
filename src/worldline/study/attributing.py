"""`worldline.attribute`: which step caused it. Opens the study, lets a method ask, and says what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.attribution.aggregate import FailedRun, Weakness, aggregate
from worldline.analysis.attribution.asking import (
    Attribution,
    Budget,
    Draw,
    LocateOptions,
)
from worldline.analysis.attribution.shapley import ShapleyOptions
from worldline.engine import clock
from worldline.engine.steps import Step
from worldline.errors import UsageError
from worldline.run import Run
from worldline.store.layout import homes
from worldline.store.studies.journal import ANSWERED, Journal
from worldline.store.studies.table import refresh
from worldline.study.conduct import INTERRUPTED, Conduct, Tell
from worldline.study.methods import controller
from worldline.study.opening import Open, Opening, Options, opened_study, prepare
from worldline.study.recorded import WITHHELD, told, withheld
from worldline.study.sentences import sentence

DEFAULT_BUDGET = Budget(rollouts=400)


class Study:
    """What a study found. `answer` is its JSON: the attribution's fields, and what stands around them."""

    def __init__(self, answer: Mapping[str, Any], folder: Path, found: Attribution) -> None:
        self.answer = dict(answer)
        self.folder = folder
        self.found = found
        self.id: str = self.answer["study"]

    @property
    def verdict(self) -> str:
        """`decisive`, `partial`, `diffuse`, `systematic`, `not-reproducible`, `noisy-verifier` or `budget`."""
        return str(self.answer["verdict"])

    @property
    def step(self) -> int | None:
        """The step that cost most of the chance to succeed, where one is certified."""
        found: int | None = self.answer["step"]
        return found

    @property
    def drop(self) -> float | None:
        """How much of the chance to succeed it cost."""
        found: float | None = self.answer["drop"]
        return found

    @property
    def interval(self) -> tuple[int, int]:
        """[a, b]: the steps a <= step < b, the smallest that were tested."""
        first, last = self.answer["interval"]
        return first, last

    @property
    def ci(self) -> tuple[float, float] | None:
        """The interval of the drop."""
        found = self.answer["ci"]
        return None if found is None else (found[0], found[1])

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return str(self.answer["sentence"])

    def to_json(self) -> dict[str, Any]:
        """The form of `worldline attribute --json`."""
        return dict(self.answer)


def attribute(
    run: Run,
    agent: Any,
    verifier: str | Callable[[Run], float],
    *,
    method: str = "locate",
    budget: Budget = DEFAULT_BUDGET,
    options: LocateOptions | None = None,
    values: ShapleyOptions | None = None,
    prior: str | None = None,
    tell: Tell = lambda progress: None,
    **rollouts: Any,
) -> Study:
    """Which step caused the failure of `run`? Forks it many times, holds more or less of it, and compares.

    `agent` is a function without arguments, `module:function`, or the words of a command; `verifier` is `exit-code`,
    `outcome`, `FILE.py:FUNCTION` or a function from a `Run` to a float in [0, 1]. `rollouts` are fields of `Options`
    (`executor`, `flight`, `plan`, `workspace` ...). Raises `Ineligible` for a run that did not fail or cannot be
    forked, `UsageError`, `NoVerdict` where the verifier cannot judge the recorded run; nothing is drawn then.
    """
    said = _options(rollouts)
    opening = prepare(run, agent, verifier, said, budget, prior=prior)
    return attributed(opening, method, options or LocateOptions(), values, tell)


def _options(given: Mapping[str, Any]) -> Options:
    unknown = set(given) - set(Options.__struct_fields__)
    if unknown:
        raise UsageError(f"no option of a study: {', '.join(sorted(unknown))}")
    return Options(**given)


def attributed(
    opening: Opening,
    name: str,
    options: LocateOptions,
    values: ShapleyOptions | None = None,
    tell: Tell = lambda progress: None,
) -> Study:
    """Carry out an attribution that was prepared."""
    options = msgspec.structs.replace(options, budget=opening.budget)
    asked: dict[str, Any] = {
        "method": name,
        "options": msgspec.to_builtins(msgspec.structs.replace(options, budget=Budget())),
        "prior": opening.steps.prior,
    }
    if values is not None:
        asked["values"] = msgspec.to_builtins(msgspec.structs.replace(values, budget=Budget()))
    asking = controller(name, opening.steps, options, values)
    with opened_study(opening, "attribute", asked, tell) as open_:
        found = open_.conduct.answer(asking)
        found = _cut_short(found) if open_.conduct.interrupted else found
        answer = answer_of(opening, open_, found)
        write_answer(open_.journal, answer)
    refresh(homes(opening.run.recording.run_directory)[-1])
    return Study(answer, open_.folder, found)


def together(found: Sequence[Attribution], runs: Sequence[Run], delta: float = 0.05) -> Weakness:
    """Several failed runs of one task: where do they lose it? Steps that do the same count as one.

    Raises `UsageError` for a run that is given twice.
    """
    return aggregate(
        [FailedRun(run.id, one, [_called(step) for step in run.steps]) for one, run in zip(found, runs, strict=True)],
        delta,
    )


def _called(step: Step) -> str:
    """What a step is, in a word that other runs share: its own name, the tools it calls, or that it answers."""
    return step.name or ", ".join(dict.fromkeys(call.name for call in step.calls)) or "(answer)"


def _cut_short(found: Attribution) -> Attribution:
    """What was known when somebody ended it: nothing is decided by that."""
    verdict = {"decisive": "partial", "diffuse": "budget"}.get(found.verdict, found.verdict)
    return msgspec.structs.replace(found, verdict=verdict, stopped=INTERRUPTED)


def answer_of(opening: Opening, study: Open, found: Attribution) -> dict[str, Any]:
    """The answer as it is written down: the same outcomes give the same, so nothing of time is in it."""
    answer = found.to_json()
    del answer["seconds"]  # what it took is in the journal
    hidden = withheld(opening.run)
    return {
        **answer,
        "study": study.study,
        "kind": "attribute",
        "run": opening.run.id,
        "task": opening.run.task,
        "outcome": opening.run.outcome,
        "verifier": opening.setting.verifier.name,
        "agent": opening.setting.agent.described().get("name"),
        "sentence": sentence(found),
        "notes": opening.notes,
        "recorded": [step for step in told(opening.run) if _is_shown(step["step"], found)],
        "rescued": [_rescue(study.conduct, rescue, hidden) for rescue in answer["rescued"]],
    }


def _is_shown(step: int, found: Attribution) -> bool:
    """The recorded steps that an answer quotes: those that are named in it."""
    named = {drop.step for drop in (*found.certified, *found.tested)} | {point.at for point in found.curve}
    return step in named or found.interval[0] <= step < min(found.interval[1], found.interval[0] + 20)


def _rescue(conduct: Conduct, rescue: dict[str, Any], hidden: bool) -> dict[str, Any]:
    drawn = conduct.drawn.get(Draw(rescue["at"], rescue["k"], rescue["tag"]))
    kept = rescue["run"] if conduct.kept(rescue["run"]) else None
    action = drawn.action if drawn is not None else None
    return {**rescue, "run": kept, "action": WITHHELD if hidden and action else action}


def write_answer(journal: Journal, answer: dict[str, Any]) -> None:
    """Write an answer down, where the journal has not a better one: of as many rollouts, or the same."""
    plain = msgspec.json.decode(msgspec.json.encode(answer, enc_hook=str))
    last = next((entry.data for entry in reversed(journal.entries) if entry.what == ANSWERED), None)
    if last is None or (plain["rollouts"] >= last["rollouts"] and plain != last):
        journal.add(ANSWERED, plain, clock.wall_ns())
