"""The panel that the package ships is the one that the sources beside it make; told without node, by digests.

A page carries the digest over its sources (the rule stands in `viewer/tools/sources.mjs`), and its policy the digest of
its one script. `make panel` builds the page and compares it byte for byte.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from checks import ROOT, SOURCE, Verdict

VIEWER = ROOT / "viewer"
PAGE = SOURCE / "view" / "viewer.html"
SINGLE = ("index.html", "package-lock.json", "tsconfig.json", "vite.config.ts")
FOLDERS = ("src", "tools")

_SOURCES = re.compile(r'<meta name="worldline-sources" content="([0-9a-f]{64})">')
_POLICY = re.compile(r"script-src 'sha256-([A-Za-z0-9+/=]{44})' blob: 'wasm-unsafe-eval';")
_SCRIPT = re.compile(r'<script type="module" async>(.*?)</script>', re.DOTALL)


def check(page: Path = PAGE, viewer: Path = VIEWER) -> Verdict:
    """Compare the digests that the page carries with its sources and its script."""
    if not page.is_file():
        return Verdict(problems=[f"{page.name} is not there: run make viewer"])
    text = page.read_bytes().decode("utf-8")
    problems = []
    if _SOURCES.findall(text) != [sources_digest(viewer)]:
        problems.append(f"{page.name} was made of other sources: run make viewer and commit what it makes")
    digests = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in _SCRIPT.findall(text)]
    if len(digests) != 1 or _POLICY.findall(text) != digests:
        problems.append(f"{page.name}: its policy names another script than the one it holds")
    return Verdict(f"{len(text) // 1000} kB", problems)


def sources_digest(viewer: Path = VIEWER) -> str:
    """SHA-256 in hex over a line for each source, by path: its SHA-256 in hex, two spaces, its path, LF."""
    within = (path for folder in FOLDERS for path in (viewer / folder).rglob("*") if path.is_file())
    paths = [*SINGLE, *(path.relative_to(viewer).as_posix() for path in within if not path.name.startswith("."))]
    lines = (f"{hashlib.sha256((viewer / path).read_bytes()).hexdigest()}  {path}\n" for path in sorted(paths))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
