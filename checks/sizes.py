"""A source file has one job: from 400 lines on it is asked whether it has two, above 600 it has."""

from __future__ import annotations

from checks import ROOT, SOURCE, Verdict

VIEWER = ROOT / "viewer" / "src"

ASKED = 400
REFUSED = 600


def check() -> Verdict:
    """Count the lines of every Python file of the package, and of every source of the viewer."""
    problems, warnings = [], []
    paths = [*sorted(SOURCE.rglob("*.py")), *sorted(path for path in VIEWER.rglob("*") if path.is_file())]
    for path in paths:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > REFUSED:
            problems.append(f"{path.relative_to(ROOT)}: {lines} lines, {REFUSED} are the limit: split it by its jobs")
        elif lines > ASKED:
            warnings.append(f"{path.relative_to(ROOT)}: {lines} lines: does it have two jobs?")
    return Verdict(f"{len(paths)} source files", problems, warnings)
