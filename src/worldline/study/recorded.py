"""The recorded run as a method of attribution needs it, and as a report shows it: its steps, what can be drawn anew.

A step can be drawn anew where something in it is chance: a model is asked, or numbers are drawn. A step that only runs
tools comes as it came; it is served, and nothing is attributed to it.
"""

from __future__ import annotations

from typing import Any

from worldline.analysis.attribution.asking import RecordedSteps
from worldline.engine.cassette import Cassette
from worldline.engine.lineage import opened
from worldline.engine.plan import ROTATE
from worldline.engine.steps import Step
from worldline.model.dialects.change import can_change
from worldline.run import Run
from worldline.study.rollout import action_of

SEEDED = "openai.chat"  # the route whose requests carry a seed for the provider's sampling
WITHHELD = "[withheld: restricted]"


def recorded_steps(run: Run, failed: bool, prior: str | None = None) -> RecordedSteps:
    """The recorded run for a method. `prior="errors"` looks first where a tool or a model failed."""
    steps = run.steps
    return RecordedSteps(
        length=len(steps),
        resamplable=_resamplable(run),
        outcome=not failed,
        prior=[4.0 if _in_trouble(step) else 1.0 for step in steps] if prior == "errors" else None,
    )


def _resamplable(run: Run) -> list[bool]:
    steps = run.steps
    samples = [e for e in Cassette(opened(run.recording)).exchanges if e.kind == "observation"]
    found = []
    for number, step in enumerate(steps):
        end = steps[number + 1].seq if number + 1 < len(steps) else float("inf")
        # A generator is seeded once and drawn from ever after; behind a fork it goes on from another seed.
        drawn = any(e.started < end for e in samples if e.name == "rng")
        taken = any(step.seq <= e.started < end for e in samples if e.name == "uuid")
        found.append(bool(step.decisions) or drawn or taken)
    return found


def _in_trouble(step: Step) -> bool:
    return bool(step.error) or any(call.error for call in step.calls)


def takes_seeds(run: Run) -> bool:
    """Whether all models of the run can be asked with another seed for each rollout."""
    names = {e.name for e in Cassette(opened(run.recording)).exchanges if e.kind == "decision"}
    return SEEDED in names and all(can_change(name) for name in names)


def seeded(run: Run, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan of rollouts: each with a seed of its own for the provider, where the plan does not say otherwise."""
    settled = "seed" in plan or "seed" in plan.get("set", {})
    return {**plan, "seed": ROTATE} if takes_seeds(run) and not settled else plan


def withheld(run: Run) -> bool:
    """Whether what the models said belongs to the restricted tier, which no report shows by itself."""
    declared = run.recording.header.data.get("recording") or {}
    return bool(declared.get("restrict"))


def told(run: Run, *, full: bool = False) -> list[dict[str, Any]]:
    """Each step in a line: its number, its row, what was done."""
    hidden = withheld(run) and not full
    return [
        {
            "step": step.index,
            "seq": step.seq,
            "action": WITHHELD if hidden else action_of([step], step.index),
            "model": step.model,
            "tokens": (step.input_tokens or 0) + (step.output_tokens or 0),
            "seconds": step.seconds,
            "error": None if hidden else step.error,
        }
        for step in run.steps
    ]
