"""Which layer may import which third party: a room's dependencies are the ones listed here, wherever the import stands.

The layers among themselves are import-linter's (pyproject.toml); it can forbid packages, but not "nothing else".
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from checks import SOURCE, Verdict

ALLOWED: dict[str, frozenset[str]] = {
    "": frozenset({"msgspec"}),
    "errors": frozenset(),
    "engine/pictures": frozenset({"PIL"}),
    "cli": frozenset({"msgspec", "click"}),
    "seams/bridges/graph_values": frozenset({"langchain_core", "langgraph", "pydantic"}),
    "seams/bridges/langchain": frozenset({"msgspec", "langchain_core", "pydantic_core"}),
    "seams/bridges/langgraph": frozenset({"langchain_core", "langgraph"}),
    "seams/bridges/pydantic_ai": frozenset({"msgspec", "pydantic", "pydantic_ai", "pydantic_core"}),
    "seams/wire": frozenset({"msgspec", "h11"}),
    "seams/wire/transport": frozenset({"msgspec", "httpx", "httpx2"}),
    "policy/cedar": frozenset({"msgspec", "cedarpy"}),
    "testing": frozenset({"msgspec", "h11", "pytest"}),
}
"""Third parties by the path in the package; the longest matching path decides."""


def check() -> Verdict:
    """Read the imports of every file of the package, those within functions and for type checkers too."""
    problems = []
    paths = sorted(SOURCE.rglob("*.py"))
    for path in paths:
        room = path.relative_to(SOURCE).with_suffix("").as_posix()
        allowed = allowed_in(room)
        problems += [
            f"src/worldline/{room}.py:{line}: imports {package}, here only: {', '.join(sorted(allowed)) or 'none'}"
            for line, package in third_parties(path)
            if package not in allowed
        ]
    return Verdict(f"{len(paths)} source files", problems)


def allowed_in(room: str) -> frozenset[str]:
    """The third parties open to the module at the path `room`, without suffix, below the package."""
    places = [place for place in ALLOWED if not place or room == place or room.startswith(place + "/")]
    return ALLOWED[max(places, key=len)]


def third_parties(path: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level name of each import that is neither ours nor the standard library's."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module or ""]
        else:
            continue
        for name in imported:
            package = name.partition(".")[0]
            if package != "worldline" and package not in sys.stdlib_module_names:
                yield node.lineno, package
