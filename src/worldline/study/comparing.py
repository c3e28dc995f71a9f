"""`worldline.ab`: a causal comparison. Forks of one run at one step, one thing changed in each arm, and the difference.

Only siblings of one checkpoint are compared. Two independent runs differ in everything that came before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.attribution.ab import ABOptions, Arm, Comparison
from worldline.analysis.attribution.ab import ab as compared
from worldline.analysis.attribution.asking import Budget, Do
from worldline.errors import UsageError
from worldline.run import Run
from worldline.store.layout import homes
from worldline.store.studies.table import refresh
from worldline.study.attributing import write_answer
from worldline.study.conduct import INTERRUPTED, Tell
from worldline.study.forcing import read_action, refuse_unwritable
from worldline.study.opening import Opening, Options, opened_study, prepare
from worldline.study.repairing import steps_at
from worldline.study.setting import identity_digest
from worldline.view.report_arms import called

AS_IT_IS = "as-is"
FORCED = "action"


class ABStudy:
    """What a comparison found. `answer` is its JSON."""

    def __init__(self, answer: Mapping[str, Any], folder: Path) -> None:
        self.answer = dict(answer)
        self.folder = folder
        self.id: str = self.answer["study"]

    @property
    def differences(self) -> list[dict[str, Any]]:
        """Each pair of arms: the difference of their success, with its interval."""
        return list(self.answer["differences"])

    def to_json(self) -> dict[str, Any]:
        """The form of `worldline ab --json`."""
        return dict(self.answer)


def ab(
    run: Run,
    agent: Any,
    verifier: Any,
    *,
    at: int | str,
    arms: Sequence[str | Mapping[str, Any]],
    n: int = 40,
    delta: float = 0.05,
    peek: bool = False,
    budget: Budget = Budget(),  # noqa: B008 - frozen
    tell: Tell = lambda progress: None,
    **rollouts: Any,
) -> ABStudy:
    """Compare arms from the checkpoint before step `at` of `run`, `n` forks each.

    An arm is `model=a` (fields of requests), `as-is`, or `action=...` (that action is forced). `peek` stops as soon as
    every difference is clear, with intervals that allow for the looking. Raises as `attribute` does, but the run need
    not have failed.
    """
    opening = prepare(run, agent, verifier, Options(**rollouts), budget, must_have_failed=False)
    (step,) = steps_at(run, at)
    return made(opening, step, [arm_of(arm, step) for arm in arms], ABOptions(n=n, delta=delta, peek=peek), tell)


def arm_of(said: str | Mapping[str, Any], step: int) -> Arm:
    """An arm as people write it. Raises `UsageError`."""
    if isinstance(said, Mapping):
        pairs = [f"{name}={msgspec.json.encode(value).decode()}" for name, value in said.items()]
        return Arm(",".join(f"{name}={value}" for name, value in said.items()), _do(pairs, step))
    if said == AS_IT_IS:
        return Arm(said)
    return Arm(said, _do([said], step))


def _do(pairs: list[str], step: int) -> tuple[Do, ...]:
    found = []
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not (name and mark):
            raise UsageError(f"an arm is NAME=VALUE, {AS_IT_IS} or {FORCED}=..., not {pair!r}", arm=pair)
        if name == FORCED:
            found.append(Do(step, "force", read_action(value).as_json()))
        else:
            found.append(Do(step, "set", pair))
    return tuple(found)


def made(
    opening: Opening, step: int, arms: list[Arm], options: ABOptions, tell: Tell = lambda progress: None
) -> ABStudy:
    """Carry out a comparison that was prepared."""
    run = opening.run
    options = msgspec.structs.replace(options, budget=opening.budget)
    refuse_unwritable(run, sorted({do.step for arm in arms for do in arm.do if do.kind == "force"}))
    asked = {
        "method": "ab",
        "step": step,
        "arms": msgspec.to_builtins(arms),
        "options": {"delta": options.delta, "peek": options.peek},  # more of the same arms is no other question
    }
    asking = compared(len(run.steps), step, arms, options)
    with opened_study(opening, "ab", asked, tell) as study:
        found = study.conduct.answer(asking)
        if study.conduct.interrupted:
            found = msgspec.structs.replace(found, stopped=INTERRUPTED)
        kept = [msgspec.structs.replace(arm, runs=[r for r in arm.runs if study.conduct.kept(r)]) for arm in found.arms]
        found = msgspec.structs.replace(found, arms=kept)
        answer = _answer(opening, study.study, found, arms)
        write_answer(study.journal, answer)
    refresh(homes(run.recording.run_directory)[-1])
    return ABStudy(answer, study.folder)


def _answer(opening: Opening, study: str, found: Comparison, arms: list[Arm]) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.to_builtins(found)
    del answer["seconds"]
    run = opening.run
    state = identity_digest({"run": run.id, "head": opening.setting.identity(run)["head"], "step": found.at})
    forced = {arm.name: arm.do[0].value for arm in arms if len(arm.do) == 1 and arm.do[0].kind == "force"}
    return {
        **answer,
        "study": study,
        "kind": "ab",
        "run": run.id,
        "task": run.task,
        "step": found.at,
        "verdict": "clear" if any(difference.clear for difference in found.differences) else "open",
        "verifier": opening.setting.verifier.name,
        "agent": opening.setting.agent.described().get("name"),
        "triples": msgspec.to_builtins(found.triples(state, forced or {arm.name: arm.name for arm in arms})),
        "sentence": _sentence(found),
        "notes": opening.notes,
    }


def _sentence(found: Comparison) -> str:
    """The clearest difference in words."""
    best = max(found.differences, key=lambda difference: abs(difference.difference))
    low, high = best.ci
    first, second = called(best.first), called(best.second)
    better, worse = (first, second) if best.difference >= 0 else (second, first)
    size = abs(best.difference)
    between = (low, high) if best.difference >= 0 else (-high, -low)
    if not best.clear:
        return f"No difference between {first} and {second} could be shown ({low:.2f} to {high:.2f})."
    return (
        f"From step {found.at} on, {better} succeeds more often than {worse}: by {size:.2f} "
        f"(between {between[0]:.2f} and {between[1]:.2f})."
    )
