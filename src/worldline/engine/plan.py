"""The plan of a fork: where it leaves, what it changes, how chance and tools are treated; from words or a file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.masks import crossing_masks
from worldline.errors import UsageError

ROTATE = "rotate"
ROLES = ("system", "user")


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a fork does. `at` is `step:9` or `seq:88`: the first step, or the first row, that happens anew.

    `set` puts fields into live requests (`model`, `temperature`, `seed` ...); `edit` gives results by call (`c7`, or
    the provider's id of the call); `prompt` is the text of a prompt, `prompt_role` which one (`system` or `user`).
    `seed="rotate"` gives each branch a seed for the provider's sampling. `tools` is as for a replay; `allow_repeat`
    lets effects happen again whose declared key happened before. `match="position"` serves the prefix by its order
    where keys differ: for debugging, since what the agent asks is then no longer what was answered.
    `restore` lets the agent go on from the state that it dumped at the step, in place of being driven there again.
    What `mask` names is left out where the prefix is matched (`model.masks`), beside what the record itself declares.
    """

    at: str = "step:0"
    set: dict[str, Any] = {}
    edit: dict[str, Any] = {}
    prompt: str | None = None
    prompt_role: str = "system"
    seed: str | None = None
    tools: str = "refuse"
    allow_repeat: bool = False
    match: str = "key"
    restore: bool = False
    mask: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.seed not in (None, ROTATE):
            raise UsageError(f"a seed is {ROTATE!r}, not {self.seed!r}; set one for all branches: set seed=7")
        if self.prompt_role not in ROLES:
            raise UsageError(f"a prompt is one of {', '.join(ROLES)}, not {self.prompt_role!r}")
        if self.tools not in ("refuse", "run"):
            raise UsageError(f"tools outside the recording: refuse or run, not {self.tools!r}")
        if self.match not in ("key", "position"):
            raise UsageError(f"recorded calls are matched by key or by position, not by {self.match!r}")
        if any(not name for name in self.set):
            raise UsageError("a field to set has a name: set model=other")
        crossing_masks(self.mask)


def read_plan(path: Path) -> dict[str, Any]:
    """The fields of a plan in a TOML file; `prompt_file` is read, from beside it. Raises `UsageError`."""
    try:
        said = tomllib.loads(path.read_text("utf-8"))
        if "prompt_file" in said:
            said["prompt"] = read_prompt(path.parent / str(said.pop("prompt_file")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"no plan: {path}: {error}", path=str(path)) from None
    return said


def read_prompt(path: Path) -> str:
    """The text of a prompt's file, without the line's end that editors put behind it."""
    return path.read_text("utf-8").rstrip("\n")


def plan_of(fields: Mapping[str, Any]) -> Plan:
    """A plan from what was said of it. Raises `UsageError` for what is none."""
    try:
        return msgspec.convert(dict(fields), Plan)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, UsageError):
            raise error.__cause__ from None
        raise UsageError(f"no plan: {error}") from None
