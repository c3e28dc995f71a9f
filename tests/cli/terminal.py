"""The command line as its users run it: a process of its own, what it printed, and how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli import warm
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

AGENTS = Path(__file__).parent / "agents"
PACKAGE = str(Path("worldline") / "cli")
KEY = "test-key-" + "0123456789"  # nobody's
ANEW = ("env",)  # the prefix of a command that starts from nothing
TIMEOUT = 180  # seconds; for what hangs, not for what is slow


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.out)

    @property
    def last(self) -> str:
        """The last line of standard error."""
        return self.err.splitlines()[-1]

    @property
    def complaint(self) -> str:
        """Standard error, which must be one line that begins with our name."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("worldline: "), self.err
        return lines[0].removeprefix("worldline: ")


def environment(provider: Provider | None = None, **more: str) -> dict[str, str]:
    """This process's environment, without keys of its own, its model calls led to `provider`."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    kept |= {"OPENAI_API_KEY": KEY, "PYTHONDONTWRITEBYTECODE": "1"}
    kept.pop("COLUMNS", None)  # a terminal has a width of its own
    if provider is not None:
        kept |= {"OPENAI_BASE_URL": provider.openai_url, "ANTHROPIC_BASE_URL": provider.anthropic_url}
    return kept | more


def worldline(*words: str | Path, env: dict[str, str] | None = None, prefix: tuple[str, ...] = ()) -> Ended:
    """Run `worldline WORDS` to its end. Fails where it lets a traceback of its own through.

    It is a process of its own, mostly of an interpreter that had its imports already; with a prefix, a new one.
    """
    spoken, env = [*map(str, words)], environment() if env is None else env
    ran = None if prefix else warm.run(spoken, env, TIMEOUT)
    if ran is None:
        command = [*prefix, sys.executable, "-m", "worldline", *spoken]
        done = subprocess.run(command, env=env, capture_output=True, timeout=TIMEOUT, check=False)
        ran = done.returncode, done.stdout, done.stderr
    ended = Ended(ran[0], ran[1].decode(), ran[2].decode())
    assert PACKAGE not in ended.err, ended.err
    return ended


def agent(name: str, edits: dict[str, str] | None = None) -> list[str]:
    """The command of an agent, copied into the working directory; each edit must find its place exactly once."""
    source = (AGENTS / f"{name}.py").read_text(encoding="utf-8")
    for before, after in (edits or {}).items():
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    Path(f"{name}.py").write_text(source, encoding="utf-8")
    return [sys.executable, f"{name}.py"]


def clerks_model(ask: Ask) -> Reply:
    """What the clerk's model says."""
    if ask.tool_results:
        return Say("Both are on their way.", usage=(40, 9))
    if "summary" in ask.last_user:
        return Say("A lamp and a shade, on their way.", usage=(52, 11))
    look = [ToolCall("lookup_order", {"order": 812}, "call_1"), ToolCall("lookup_order", {"order": 813}, "call_2")]
    return Say("I look both up.", look, usage=(1204, 96))
