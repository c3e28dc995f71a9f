"""The environment of a recorded or replayed child: base URLs that lead to the proxy, and what is recorded of it.

An existing base URL becomes the upstream. Of the environment and the command line only an allow-list is recorded;
a variable outside it shows its name alone, and only where a registered secret stands in it.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worldline.errors import CommandNotFound
from worldline.model.values import readable


class Provider(NamedTuple):
    """A provider: its own base URL, and the variables that SDKs read theirs from. `suffix` is part of the base."""

    base: str
    variables: tuple[str, ...]
    key: str


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "OPENAI_API_KEY"),
    "anthropic": Provider("https://api.anthropic.com", ("ANTHROPIC_BASE_URL",), "ANTHROPIC_API_KEY"),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com",
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL", "GEMINI_API_BASE"),
        "GEMINI_API_KEY",
    ),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1", ("OPENROUTER_BASE_URL", "OPENROUTER_API_BASE"), "OPENROUTER_API_KEY"
    ),
}
RECORDED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONHASHSEED", "NODE_ENV", "TERM")
WORLDLINE_URL = "WORLDLINE_URL"
LOOPBACK = "127.0.0.1,localhost"


def upstreams(environment: Mapping[str, str]) -> dict[str, str]:
    """The base URL behind each provider: the environment's where it names one, else the provider's own."""
    return {
        name: next((environment[v] for v in provider.variables if environment.get(v)), provider.base)
        for name, provider in PROVIDERS.items()
    }


def child_environment(
    environment: Mapping[str, str], url: str, base_url: Callable[[str], str], secrets: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment for a child whose model calls go through the proxy. `secrets` adds placeholders for a replay."""
    child = {**environment, **(secrets or {}), WORLDLINE_URL: url}
    for name, provider in PROVIDERS.items():
        child |= dict.fromkeys(provider.variables, base_url(name))
    for variable in ("NO_PROXY", "no_proxy"):
        others = environment.get(variable)
        child[variable] = f"{others},{LOOPBACK}" if others else LOOPBACK
    return child


def provider_keys(environment: Mapping[str, str], minimum: int) -> dict[str, str]:
    """The providers' keys that the environment holds and that are long enough to be found: `{variable: value}`."""
    keys = {provider.key: environment.get(provider.key, "") for provider in PROVIDERS.values()}
    return {name: value for name, value in keys.items() if len(value) >= minimum}


def recorded_environment(environment: Mapping[str, str], markers: Callable[[str], str | None]) -> dict[str, Any]:
    """What the header keeps of the environment: allow-listed variables, and markers of secrets under their names."""
    kept = {name: readable(environment[name]) for name in RECORDED_VARIABLES if name in environment}
    for name, value in sorted(environment.items()):
        if name not in kept and (found := markers(value)):
            kept[readable(name)] = found
    return {"variables": kept}


def described_agent(command: Sequence[str]) -> dict[str, Any]:
    """What the header keeps of the agent: its name, command line, and the digest of its program file."""
    program = next((Path(word) for word in command[1:] if Path(word).is_file()), Path(_located(command[0])))
    with program.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "name": readable(program.name),
        "command": [readable(word) for word in command],
        "program_sha256": digest,
        "interpreter": sys.version.split()[0],
    }


def _located(word: str) -> str:
    found = shutil.which(word)
    if found is None:
        why = "it is not executable" if word and Path(word).exists() else "no such command"
        raise CommandNotFound(f"cannot start '{word}': {why}", command=word)
    return found


def check_command(command: Sequence[str]) -> None:
    """Raises `CommandNotFound` where the command's program is not to be found or may not be run."""
    _located(command[0])
