"""Run every check, or those named on the command line, and print one line each: `python -m checks [NAME...]`.

Exit code 1 when one of them found a problem, 64 when a name names no check.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from checks import ROOT, Verdict, cli_reference, files, licences, links, names, panel, sizes, third_party


def tool(name: str, *arguments: str) -> Callable[[], Verdict]:
    """A check that is another program: it passes when the program exits with 0, its output is the problem."""

    def run() -> Verdict:
        program = Path(sysconfig.get_path("scripts")) / name
        done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return Verdict(problems=[] if done.returncode == 0 else [(done.stdout + done.stderr).strip()])

    return run


CHECKS: dict[str, Callable[[], Verdict]] = {
    "format": tool("ruff", "format", "--check", "--quiet", "--output-format", "concise", "."),
    "lint": tool("ruff", "check", "--quiet", "--output-format", "concise", "."),
    "types": tool("mypy", "--no-error-summary"),
    "layers": tool("lint-imports", "--no-cache", "--no-logo"),
    "third-parties": third_party.check,
    "sizes": sizes.check,
    "names": names.check,
    "cli-reference": cli_reference.check,
    "links": links.check,
    "files": files.check,
    "licences": licences.check,
    "viewer-licences": licences.check_viewer,
    "panel": panel.check,
}


def main(chosen: list[str]) -> int:
    """Run the checks named in `chosen` (all when empty) and return the exit code."""
    if unknown := [name for name in chosen if name not in CHECKS]:
        print(f"checks: no check {unknown[0]!r}, there are: {', '.join(CHECKS)}", file=sys.stderr)
        return 64
    failed = False
    for name in chosen or CHECKS:
        verdict = CHECKS[name]()
        failed = failed or bool(verdict.problems)
        print(f"{'✕' if verdict.problems else '✓'} {name:<14} {verdict.seen}".rstrip(), flush=True)
        for line in [*verdict.problems, *(f"warning: {warning}" for warning in verdict.warnings)]:
            print("  " + line.replace("\n", "\n  "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
