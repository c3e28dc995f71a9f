"""Worldline: the flight recorder and time machine for AI agents.

    import worldline as wl

    @wl.tool(effect="pure")
    def lookup(order: int) -> dict: ...

    with wl.record("runs/", task="refund #812") as run:
        client = run.wrap(OpenAI())
        ...

    wl.open("latest", "runs/").replay(agent).equivalent

Names are loaded when they are first used, so that `import worldline` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "ActiveRun": "worldline.seams.active",
    "Answer": "worldline.seams.permission",
    "Bounds": "worldline.engine.spec",
    "Budget": "worldline.analysis.attribution.asking",
    "RecordingSpec": "worldline.engine.spec",
    "ReplayReport": "worldline.engine.replay",
    "Run": "worldline.run",
    "Step": "worldline.engine.steps",
    "Upcasters": "worldline.engine.agent_state",
    "WorldlineError": "worldline.errors",
    "ab": "worldline.study.comparing",
    "ask": "worldline.seams.api",
    "attribute": "worldline.study.attributing",
    "current": "worldline.seams.active",
    "lane": "worldline.seams.api",
    "now": "worldline.seams.api",
    "observe": "worldline.seams.api",
    "open": "worldline.run",
    "outcome": "worldline.seams.api",
    "permission": "worldline.seams.api",
    "record": "worldline.seams.api",
    "repair": "worldline.study.repairing",
    "rng": "worldline.seams.api",
    "step": "worldline.seams.api",
    "tool": "worldline.seams.tool",
    "uuid": "worldline.seams.api",
    "wrap": "worldline.seams.bridges.clients",
}

__all__ = [
    "ActiveRun",
    "Answer",
    "Bounds",
    "Budget",
    "RecordingSpec",
    "ReplayReport",
    "Run",
    "Step",
    "Upcasters",
    "WorldlineError",
    "__version__",
    "ab",
    "ask",
    "attribute",
    "current",
    "lane",
    "now",
    "observe",
    "open",
    "outcome",
    "permission",
    "record",
    "repair",
    "rng",
    "step",
    "tool",
    "uuid",
    "wrap",
]

if TYPE_CHECKING:
    from worldline.analysis.attribution.asking import Budget
    from worldline.engine.agent_state import Upcasters
    from worldline.engine.replay import ReplayReport
    from worldline.engine.spec import Bounds, RecordingSpec
    from worldline.engine.steps import Step
    from worldline.errors import WorldlineError
    from worldline.run import Run, open  # noqa: A004 - the public verb, `worldline.open`
    from worldline.seams.active import ActiveRun, current
    from worldline.seams.api import ask, lane, now, observe, outcome, permission, record, rng, step, uuid
    from worldline.seams.bridges.clients import wrap
    from worldline.seams.tool import tool
    from worldline.study.attributing import attribute
    from worldline.study.comparing import ab
    from worldline.study.repairing import repair


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'worldline' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
