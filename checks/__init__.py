"""What has to hold in this repository beside the tests, one check a module. `python -m checks` runs them all.

A check is a function without arguments that returns a `Verdict`: what it looked at, and every problem it found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The repository's root."""

SOURCE = ROOT / "src" / "worldline"
"""The package's root."""


@dataclass(frozen=True)
class Verdict:
    """What one check found. `seen` is a few words on what was looked at; an empty `problems` is a pass."""

    seen: str = ""
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
