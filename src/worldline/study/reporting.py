"""The report of a study that was made before: its answer from the journal, and what it quotes of two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.steps import Step
from worldline.errors import UsageError, WorldlineError
from worldline.run import Run
from worldline.store import layout
from worldline.store.newfile import new_file
from worldline.store.recording import Recording
from worldline.store.studies.journal import ANSWERED, DRAWN, read_journal
from worldline.study.recorded import withheld
from worldline.study.sentences import EXPLAINED
from worldline.view.report_html import report_page


class Made(msgspec.Struct, frozen=True):
    """A report's parts: the answer, how long the rollouts took (seconds), and the two texts that stand side by side."""

    answer: dict[str, Any]
    took: float
    beside: tuple[str, str] | None


def read_report(folder: Path, *, full: bool = False) -> Made:
    """What a study's folder says. Raises `UsageError` for one without an answer, `Damaged`."""
    lines = read_journal(folder)
    answered = lines.last(ANSWERED)
    if answered is None:
        drawn = sum(entry.what == DRAWN for entry in lines.entries)
        what = f"the study {folder.name} has no answer yet ({drawn} rollouts); run its command again"
        raise UsageError(what, study=folder.name)
    seconds = sum(e.data["outcome"].get("seconds", 0.0) for e in lines.entries if e.what == DRAWN)
    return Made(answered.data, seconds, quoted(folder, answered.data, full=full))


def quoted(folder: Path, answer: Mapping[str, Any], *, full: bool = False) -> tuple[str, str] | None:
    """What was done at the culprit, and what a rollout did that went well; None where that cannot be shown."""
    rescued = next((rescue for rescue in answer.get("rescued") or () if rescue.get("run")), None)
    if answer.get("step") is None or rescued is None:
        return None
    try:
        recorded = Run(Recording(folder.parent.parent / answer["run"]))
        other = Run(Recording(folder / rescued["run"]))
        if withheld(recorded) and not full:
            return None
        return _said(recorded.steps, answer["step"]), _said(other.steps, answer["step"])
    except (WorldlineError, OSError, StopIteration):  # removed since: then the answer's own line is all there is
        actions = {step["step"]: step["action"] for step in answer.get("recorded") or ()}
        return (actions.get(answer["step"]) or "", rescued["action"]) if rescued.get("action") else None


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


def write_page(folder: Path, target: Path, *, full: bool = False, panel: str | None = None) -> int:
    """Write the page; its size in bytes. Raises `UsageError` where `target` is taken."""
    made = read_report(folder, full=full)
    page = report_page(
        made.answer,
        explained=EXPLAINED.get(made.answer["verdict"], ""),
        beside=made.beside,
        took=made.took,
        panel=panel,
    ).encode("utf-8")
    with new_file(target) as write:
        write(page)
    return len(page)


def store_around(folder: Path) -> Path:
    """The store that a study's folder stands in."""
    return folder.parent.parent if folder.parent.name == layout.STUDIES else folder.parent
