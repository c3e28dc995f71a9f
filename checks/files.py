"""What no file of the repository may hold: paths of one machine, hosts of package registries, secrets' shapes.

Also: the changelog has a place for what comes next. The patterns are written so that they do not match themselves.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from checks import ROOT, Verdict

FORBIDDEN: dict[str, re.Pattern[str]] = {
    "a path of one machine": re.compile(
        r"(?<![\w.~-])/(work|farm|root)/(?!\.\.\.)|(?<![\w.~-])/(home|Users)/(?!you\b|user\b)[a-z]"
    ),
    "a package registry's host": re.compile(
        r"p[y]pi\.org|p[y]thonhosted|n[p]mjs\.(org|com)|d[e]bian\.org|y[a]rnpkg\.com|c[r]ates\.io"
    ),
    "what looks like a real key": re.compile(
        r"\b(s[k]-(ant-)?[A-Za-z0-9_-]{40,}|A[K]IA[A-Z0-9]{16}|g[h]p_[A-Za-z0-9]{36})\b"
    ),
    "a merge left open": re.compile(r"^(<<<<<<<|>>>>>>>) ", re.MULTILINE),
}


def check() -> Verdict:
    """Search every text file that is, or is about to be, in the repository."""
    problems = []
    paths = repository_files()
    for path in paths:
        text = text_of(path)
        problems += [f"{path.relative_to(ROOT)}:{line}: {what}: {found}" for line, what, found in findings(text)]
    if "\n## [Unreleased]\n" not in text_of(ROOT / "CHANGELOG.md"):
        problems.append("CHANGELOG.md: no section `## [Unreleased]`")
    return Verdict(f"{len(paths)} files", problems)


def repository_files(suffix: str = "") -> list[Path]:
    """Every file that git tracks or would add, sorted, those whose name ends with `suffix`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = (ROOT / name for name in listed.split("\0") if name.endswith(suffix) and name)
    return sorted({path for path in paths if path.is_file() and not path.is_symlink()})


def text_of(path: Path) -> str:
    """The file's text; empty for a missing or a binary file."""
    data = path.read_bytes() if path.is_file() else b""
    return "" if b"\0" in data[:8192] else data.decode("utf-8", errors="replace")


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, meaning and text of everything forbidden in `text`."""
    for what, pattern in FORBIDDEN.items():
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, what, match.group().strip()
