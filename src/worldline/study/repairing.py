"""`worldline.repair`: the smallest change at a step that would have saved the run, tested by forcing it.

Candidates are what rollouts did that went well (of an attribution that was made before), then the user's, then a
model's. Out comes a pair: what was done, and what should have been, with the interval that shows it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.attribution import repair as repairs
from worldline.analysis.attribution.asking import Budget
from worldline.analysis.attribution.repair import Candidate, Repair, RepairOptions
from worldline.engine.steps import Step
from worldline.errors import UnknownStep, UsageError, WorldlineError
from worldline.run import Run
from worldline.store.layout import homes
from worldline.store.recording import Recording
from worldline.store.studies.folder import studies
from worldline.store.studies.journal import ANSWERED, read_journal
from worldline.store.studies.table import refresh
from worldline.study.agents import named_function
from worldline.study.attributing import write_answer
from worldline.study.conduct import INTERRUPTED, Tell
from worldline.study.forcing import Action, action_at, read_action, refuse_unwritable
from worldline.study.opening import Opening, Options, opened_study, prepare

Propose = Callable[[Run, int], Iterable[Any]]
DEFAULT_BUDGET = Budget(rollouts=400)


class Fix:
    """What a repair found. `answer` is its JSON."""

    def __init__(self, answer: Mapping[str, Any], folder: Path) -> None:
        self.answer = dict(answer)
        self.folder = folder
        self.id: str = self.answer["study"]

    @property
    def verdict(self) -> str:
        """`validated`, `none` or `budget`."""
        return str(self.answer["verdict"])

    @property
    def pair(self) -> dict[str, Any] | None:
        """The training pair: the wrong step, the minimal fix, and the interval of its success."""
        found: dict[str, Any] | None = self.answer["pair"]
        return found

    def to_json(self) -> dict[str, Any]:
        """The form of `worldline repair --json`."""
        return dict(self.answer)


def repair(
    run: Run,
    agent: Any,
    verifier: Any,
    *,
    at: int | str | Step | Sequence[int],
    candidates: Propose | str | Path | None = None,
    budget: Budget = DEFAULT_BUDGET,
    options: RepairOptions | None = None,
    tell: Tell = lambda progress: None,
    **rollouts: Any,
) -> Fix:
    """Search the smallest change at step `at` (or at several) that would have saved `run`.

    `candidates` proposes actions: a function from (run, step) to actions, or `FILE.py` with a function `propose`. An
    action is a text, or `{"text": ..., "calls": [{"name": ..., "arguments": {...}}]}`. Raises as `attribute` does.
    """
    opening = prepare(run, agent, verifier, Options(**rollouts), budget)
    return repaired(opening, steps_at(run, at), proposer(candidates), options or RepairOptions(), tell)


def steps_at(run: Run, at: int | str | Step | Sequence[int]) -> list[int]:
    """The steps that may be changed. Raises `UnknownStep`, `UsageError`."""
    given: list[Any] = [at] if isinstance(at, int | str | Step) else list(at)
    found = []
    for each in given:
        index = each.index if isinstance(each, Step) else each
        if isinstance(index, str):
            word = index.removeprefix("step:")
            if not word.isdigit():
                raise UsageError(f"a step is step:9, not {index!r}", at=index)
            index = int(word)
        if not 0 <= index < len(run.steps):
            raise UnknownStep.among(index, range(len(run.steps)))
        found.append(index)
    if not found:
        raise UsageError("a repair needs a step to change: --at step:9")
    return found


def proposer(candidates: Propose | str | Path | None) -> Propose | None:
    """The function that proposes. Raises `UsageError` where a file or module has none."""
    if candidates is None or callable(candidates):
        return candidates
    path = Path(str(candidates).rpartition(":")[0]) if ".py:" in str(candidates) else Path(candidates)
    name = str(candidates).rpartition(":")[2] if ".py:" in str(candidates) else "propose"
    if not path.is_file():
        return named_function(str(candidates)) if ":" in str(candidates) else _no_candidates(candidates)
    spec = importlib.util.spec_from_file_location(f"worldline_candidates_{path.stem}", path)
    assert spec is not None and spec.loader is not None, "a file has both"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{path} has no function {name!r}", candidates=str(candidates))
    found: Propose = function
    return found


def _no_candidates(given: object) -> Propose:
    raise UsageError(f"candidates are FILE.py with a function propose(run, step), not {str(given)!r}")


def repaired(
    opening: Opening,
    steps: list[int],
    propose: Propose | None,
    options: RepairOptions,
    tell: Tell = lambda progress: None,
) -> Fix:
    """Carry out a repair that was prepared."""
    run = opening.run
    options = msgspec.structs.replace(options, budget=opening.budget)
    refuse_unwritable(run, steps)
    actions = {step: action_at(run.steps[step]).as_json() for step in steps}
    rescued = rescues(run, steps)
    proposed = [] if propose is None else _proposed(run, steps, propose)
    asked = {
        "method": "repair",
        "steps": steps,
        "options": msgspec.to_builtins(msgspec.structs.replace(options, budget=Budget())),
        "candidates": msgspec.to_builtins([*rescued, *proposed]),
    }
    if not rescued and not proposed:
        raise UsageError(
            "there is nothing to try: run `worldline attribute` first, whose rollouts that went well are candidates, "
            "or propose some (--candidates propose.py)"
        )
    groups: list[Callable[[], Sequence[Candidate]]] = [lambda: rescued, lambda: proposed]
    asking = repairs.repair(len(run.steps), actions, groups, options)
    with opened_study(opening, "repair", asked, tell) as study:
        found = study.conduct.answer(asking)
        if study.conduct.interrupted:
            found = msgspec.structs.replace(found, stopped=INTERRUPTED)
        answer = _answer(opening, study.study, found)
        write_answer(study.journal, answer)
    refresh(homes(run.recording.run_directory)[-1])
    return Fix(answer, study.folder)


def _proposed(run: Run, steps: list[int], propose: Propose) -> list[Candidate]:
    found = []
    for step in steps:
        try:
            given = list(propose(run, step))
        except WorldlineError:
            raise
        except Exception as error:
            raise UsageError(f"the candidates could not be proposed: {type(error).__name__}: {error}") from error
        found += [Candidate(step, read_action(each).as_json(), "user") for each in given]
    return found


def rescues(run: Run, steps: list[int]) -> list[Candidate]:
    """What rollouts of earlier studies did at these steps and went well, each action once."""
    store = homes(run.recording.run_directory)[-1]
    found: dict[tuple[int, str], Candidate] = {}
    for folder in studies(store):
        lines = read_journal(folder)
        answered = lines.last(ANSWERED)
        if answered is None or answered.data.get("run") != run.id:
            continue
        for rescue in answered.data.get("rescued") or ():
            if rescue.get("run") and rescue["at"] in steps:
                candidate = _as_candidate(folder / rescue["run"], rescue["at"])
                if candidate is not None:
                    found.setdefault((candidate.step, candidate.action), candidate)
    return list(found.values())


def _as_candidate(run: Path, step: int) -> Candidate | None:
    try:
        steps = Run(Recording(run)).steps
    except (WorldlineError, OSError):  # it was removed since
        return None
    made = next((each for each in steps if each.index == step), None)
    return Candidate(step, action_at(made).as_json(), "rescued") if made is not None else None


def _answer(opening: Opening, study: str, found: Repair) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.to_builtins(found)
    del answer["seconds"]
    return {
        **answer,
        "study": study,
        "kind": "repair",
        "run": opening.run.id,
        "task": opening.run.task,
        "verifier": opening.setting.verifier.name,
        "agent": opening.setting.agent.described().get("name"),
        "pair": _pair(opening.run, found),
        "step": found.fix.changes[0].step if found.fix is not None else None,
        "sentence": _sentence(found),
        "notes": opening.notes,
    }


def _pair(run: Run, found: Repair) -> dict[str, Any] | None:
    """The validated pair as training data reads it: the same state, a rejected action and a chosen one."""
    if found.fix is None:
        return None
    chosen = sorted(found.fix.changes, key=lambda change: change.step)
    return {
        "run": run.id,
        "task": run.task,
        "steps": [change.step for change in chosen],
        "rejected": [_plain(change.action) for change in found.wrong],
        "chosen": [_plain(change.action) for change in chosen],
        "source": [change.source for change in chosen],
        "success": list(found.fix.interval),
        "n": found.fix.count.n,
        "successes": found.fix.count.successes,
        "minimality": found.minimality,
    }


def _plain(action: str) -> dict[str, Any]:
    out: dict[str, Any] = msgspec.to_builtins(msgspec.json.decode(action, type=Action))
    return out


def _sentence(found: Repair) -> str:
    if found.fix is None:
        why = "the budget ended first" if found.stopped else "none of them keeps it from failing often enough"
        return f"No change was found that saves the run: {why}."
    steps = ", ".join(str(change.step) for change in found.fix.changes)
    low, high = found.fix.interval
    word = "step" if len(found.fix.changes) == 1 else "steps"
    return (
        f"Changing {word} {steps} saves it: {found.fix.count.successes} of {found.fix.count.n} tries went well "
        f"(true share between {low:.2f} and {high:.2f})."
    )
