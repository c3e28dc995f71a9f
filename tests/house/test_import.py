"""What `import worldline` costs: only what it has to load, the rest comes when a name is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

LOADED = {"worldline"}
"""The modules outside the standard library that a bare import loads."""

HEAVY = {
    "argparse",
    "asyncio",
    "email",
    "hashlib",
    "http",
    "inspect",
    "logging",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
}
"""Standard library that would be felt in the start of every command, and is loaded where it is used."""

SCRIPT = """
import sys
before = set(sys.modules)
import worldline
import json
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_a_bare_import_loads_only_the_listed_modules() -> None:
    python = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(python, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "src")})
    loaded = set(json.loads(done.stdout))
    outside = {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names}
    assert outside == LOADED
    assert not loaded & HEAVY


VERB = """
import json, sys
from worldline.cli.main import cli
cli.main(sys.argv[1:], standalone_mode=False)
print()
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("words", [["--help"], ["list", "."]], ids=" ".join)
def test_a_short_verb_loads_what_it_needs(words: list[str]) -> None:
    python = [sys.executable, "-c", VERB, *words]
    done = subprocess.run(python, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "src")})
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert {name for name in loaded if name.startswith("worldline.cli.") and name.endswith("_verb")} == {
        f"worldline.cli.{word}_verb" for word in words if word.isalpha()
    }
    assert not loaded & {"asyncio", "email", "http", "ssl", "sqlite3", "h11", "worldline.seams", "worldline.engine"}
