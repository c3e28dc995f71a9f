"""The report of a study that was made before: its answer from the journal, and what it quotes of two runs.

Several studies of failed runs of one task make one report, put together anew from their answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.attribution.asking import Attribution
from worldline.engine.steps import Step
from worldline.errors import UsageError, WorldlineError
from worldline.run import Run
from worldline.store import layout
from worldline.store.newfile import new_file
from worldline.store.recording import Recording
from worldline.store.studies.journal import ANSWERED, DRAWN, Entry, read_journal
from worldline.study.attributing import together
from worldline.study.recorded import WITHHELD, withheld
from worldline.study.sentences import explained
from worldline.view.report_arms import clearest, forced
from worldline.view.report_html import report_page
from worldline.view.report_page import Around
from worldline.view.report_weak import weak_page


class Made(msgspec.Struct, frozen=True):
    """A report's parts: the answer, how long the rollouts took (seconds), and two texts that stand side by side.

    `other` is a rollout that went well and was kept.
    """

    answer: dict[str, Any]
    took: float
    beside: tuple[str, str] | None = None
    other: str | None = None


def read_report(folder: Path, *, full: bool = False) -> Made:
    """What a study's folder says. Raises `UsageError` for one without an answer, `Damaged`."""
    lines = read_journal(folder)
    answered = lines.last(ANSWERED)
    drawn = [entry for entry in lines.entries if entry.what == DRAWN]
    if answered is None:
        what = f"the study {folder.name} has no answer yet ({len(drawn)} rollouts); run its command again"
        raise UsageError(what, study=folder.name)
    seconds = sum(entry.data["outcome"].get("seconds", 0.0) for entry in drawn)
    answer = answered.data
    if answer["kind"] == "repair":
        shown = answer if full or not _is_withheld(folder, answer) else _without_actions(answer)
        return Made(shown, seconds, other=_saved(folder, answer, drawn))
    if answer["kind"] == "ab":
        return Made(answer, seconds, _done_by_arms(folder, answer, full=full))
    rescued = next((rescue["run"] for rescue in answer.get("rescued") or () if rescue.get("run")), None)
    return Made(answer, seconds, quoted(folder, answer, full=full), rescued)


def quoted(folder: Path, answer: Mapping[str, Any], *, full: bool = False) -> tuple[str, str] | None:
    """What was done at the culprit, and what a rollout did that went well; None where that cannot be shown."""
    rescued = next((rescue for rescue in answer.get("rescued") or () if rescue.get("run")), None)
    if answer.get("step") is None or rescued is None:
        return None
    try:
        recorded = Run(Recording(_recorded(folder, answer)))
        other = Run(Recording(folder / rescued["run"]))
        if withheld(recorded) and not full:
            return None
        return _said(recorded.steps, answer["step"]), _said(other.steps, answer["step"])
    except (WorldlineError, OSError, StopIteration):  # removed since: then the answer's own line is all there is
        actions = {step["step"]: step["action"] for step in answer.get("recorded") or ()}
        return (actions.get(answer["step"]) or "", rescued["action"]) if rescued.get("action") else None


def _recorded(folder: Path, answer: Mapping[str, Any]) -> Path:
    """Where the run stands that a study is about."""
    return store_around(folder) / str(answer["run"])


def _is_withheld(folder: Path, answer: Mapping[str, Any]) -> bool:
    """Whether what the models said may not be quoted. Of a run that is gone nobody can say that it may."""
    try:
        return withheld(Run(Recording(_recorded(folder, answer))))
    except (WorldlineError, OSError):
        return True


def _without_actions(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A repair's answer with every action withheld."""

    def blank(change: Mapping[str, Any]) -> dict[str, Any]:
        return {**change, "action": WITHHELD}

    def of(tested: Mapping[str, Any]) -> dict[str, Any]:
        return {**tested, "changes": [blank(change) for change in tested["changes"]]}

    pair = answer.get("pair")
    hidden = {"text": WITHHELD, "calls": []}
    return {
        **answer,
        "fix": of(answer["fix"]) if answer.get("fix") is not None else None,
        "wrong": [blank(change) for change in answer["wrong"]],
        "tested": [of(tested) for tested in answer["tested"]],
        "pair": pair and {**pair, **{name: [hidden for _ in pair[name]] for name in ("rejected", "chosen")}},
    }


def _saved(folder: Path, answer: Mapping[str, Any], drawn: Sequence[Entry]) -> str | None:
    """A rollout of the change that was found which went well, and is still there."""
    if answer.get("fix") is None:
        return None
    wanted = sorted((change["step"], change["action"]) for change in answer["fix"]["changes"])
    for entry in drawn:
        forced = sorted((do["step"], do["value"]) for do in entry.data["draw"].get("do") or ())
        run = entry.data["outcome"].get("run")
        if forced == wanted and entry.data["outcome"].get("success") and run and (folder / run).is_dir():
            return str(run)
    return None


def _done_by_arms(folder: Path, answer: Mapping[str, Any], *, full: bool) -> tuple[str, str] | None:
    """What the two arms that the verdict is about did at the step: in a try that was kept, or as it was forced."""
    best = clearest(answer)
    if best is None or (not full and _is_withheld(folder, answer)):
        return None
    runs = {arm["name"]: next(iter(arm["runs"]), None) for arm in answer["arms"]}

    def done(name: str) -> str | None:
        run = runs[name]
        return forced(name) if run is None else _said(Run(Recording(folder / run)).steps, answer["at"])

    try:
        first, second = done(best["first"]), done(best["second"])
    except (WorldlineError, OSError, StopIteration):  # removed since
        return None
    return None if first is None or second is None else (first, second)


def _said(steps: list[Step], index: int) -> str:
    """Everything that was said and called at a step, one thing a line."""
    step = next(step for step in steps if step.index == index)
    lines = [step.text] if step.text else []
    for call in step.calls:
        try:
            arguments = json.dumps(json.loads(call.arguments), indent=2, ensure_ascii=False)
        except ValueError:
            arguments = call.arguments
        lines.append(f"{call.name} {arguments}")
    return "\n".join(lines)


def read_together(folders: Sequence[Path], *, full: bool = False) -> tuple[dict[str, Any], list[Made]]:
    """Several studies of one task put together, and each for itself.

    Raises `UsageError` for studies that are no attributions, or of one run twice, `RecordingNotFound` where a run is
    gone.
    """
    made = [read_report(folder, full=full) for folder in folders]
    for one in made:
        if one.answer["kind"] != "attribute":
            raise UsageError(
                f"{one.answer['study']} is a study of kind {one.answer['kind']}: only attributions are put together",
                study=one.answer["study"],
            )
    runs = [Run(Recording(_recorded(folder, one.answer))) for folder, one in zip(folders, made, strict=True)]
    found = [msgspec.convert(one.answer, Attribution) for one in made]
    return msgspec.to_builtins(together(found, runs)), made


def write_page(folders: Sequence[Path], target: Path, *, full: bool = False, panel: str | None = None) -> int:
    """Write the page of a study, or of several put together; its size. Raises `UsageError` where `target` is taken."""
    if len(folders) > 1:
        both, several = read_together(folders, full=full)
        answers = [one.answer for one in several]
        page = weak_page(both, answers, took=sum(one.took for one in several), panel=panel)
    else:
        made = read_report(folders[0], full=full)
        page = report_page(made.answer, Around(explained(made.answer), made.beside, made.other, made.took, panel))
    data = page.encode("utf-8")
    with new_file(target) as write:
        write(data)
    return len(data)


def store_around(folder: Path) -> Path:
    """The store that a study's folder stands in."""
    return folder.parent.parent if folder.parent.name == layout.STUDIES else folder.parent
