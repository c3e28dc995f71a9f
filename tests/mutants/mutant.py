"""A mutant: one planted fault, the promise that it breaks, and the tests that must go red when it is there."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PACKAGE = "tests.mutants"


class Mutant(NamedTuple):
    """`promise` is its number in the format's list of promises, `breaks` one sentence on what is planted.

    `file` stands below `src/worldline`; `old` occurs in it exactly once and becomes `new`. Each of `tests` (pytest node
    ids) must fail then.
    """

    name: str
    promise: int
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self) -> str:
        """The source of the file with the fault in it. Raises `ValueError` where `old` does not occur exactly once."""
        source = (SOURCE / "worldline" / self.file).read_text(encoding="utf-8")
        if (found := source.count(self.old)) != 1:
            raise ValueError(f"{self.name}: what it replaces occurs {found} times in {self.file}")
        return source.replace(self.old, self.new)


def catalogue() -> dict[str, tuple[Mutant, ...]]:
    """Every mutant, by area: the modules of this package that have `MUTANTS`."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    areas = {}
    for name in names:
        if name not in ("__main__", "mutant", "in_force") and not name.startswith("test_"):
            areas[name] = importlib.import_module(f"{PACKAGE}.{name}").MUTANTS
    return areas
