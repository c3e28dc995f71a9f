"""What a recording holds of its crossings, in the words of the tests here: who called what, from where, with what."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import worldline as wl
from tests.cli import terminal

AGENTS = Path(__file__).parent


class Crossing(NamedTuple):
    """One recorded call: its tool, the tool that it ran inside, its lane and arguments, and how often it ended."""

    name: str
    inside: str | None
    lane: str
    arguments: Any
    ends: int


def crossings(run: wl.Run | Path) -> list[Crossing]:
    """Every crossing of a recording, in starting order. A parent that is no call of the record fails here."""
    run = run if isinstance(run, wl.Run) else wl.open(run)
    ends: dict[str, int] = {}
    for event in run.events():
        if event.name in ("observation/tool_result", "observation/sample", "decision/response"):
            ends[str(event.call)] = ends.get(str(event.call), 0) + 1
    by_call = run.cassette.by_call
    return [
        Crossing(
            e.name, by_call[e.parent].name if e.parent else None, e.lane, run.cassette.inputs(e), ends.get(e.call, 0)
        )
        for e in run.cassette.exchanges
    ]


def names(run: wl.Run | Path) -> list[tuple[str, str | None]]:
    """(tool, tool around it) of every crossing, sorted."""
    return sorted((c.name, c.inside) for c in crossings(run))


def environment(**more: str) -> Mapping[str, str]:
    """The environment for a program of these tests: no run to join, no provider."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WORLDLINE_", "OPENAI_", "ANTHROPIC_"))}
    return {**kept, **more}


def program(name: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run an agent program of this folder by itself."""
    return command(sys.executable, str(AGENTS / name), *arguments, **more)


def worldline(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    ended = terminal.worldline(*arguments, env=dict(environment(**more)))
    return subprocess.CompletedProcess(arguments, ended.code, ended.out, ended.err)


def command(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, output kept as text."""
    return subprocess.run(words, env=environment(**more), capture_output=True, text=True, timeout=180, check=False)
