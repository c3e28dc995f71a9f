"""The environment of a recorded or replayed child: base URLs that lead to the proxy, and what is recorded of it.

An existing base URL becomes the upstream. Of the environment and the command line only an allow-list is recorded;
a variable outside it shows its name alone, and only where a registered secret stands in it.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worldline.errors import CommandNotFound
from worldline.model.values import readable


class Provider(NamedTuple):
    """A provider: its own base URL, the variables that SDKs read theirs from, and the one with the key.

    One whose customers have a base URL each has none of its own.
    """

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
    "azure": Provider("", ("AZURE_OPENAI_ENDPOINT",), "AZURE_OPENAI_API_KEY"),
    "cerebras": Provider("https://api.cerebras.ai", ("CEREBRAS_BASE_URL",), "CEREBRAS_API_KEY"),
    "groq": Provider("https://api.groq.com", ("GROQ_BASE_URL",), "GROQ_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_BASE",), "MISTRAL_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_BASE_URL",), "TOGETHER_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_BASE",), "XAI_API_KEY"),
}
NOWHERE = "https://nowhere.invalid"  # the base in a replay of a provider that has none: it is never asked
RECORDED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONHASHSEED", "NODE_ENV", "TERM")
WORLDLINE_URL = "WORLDLINE_URL"
LOOPBACK = "127.0.0.1,localhost"


def upstreams(environment: Mapping[str, str]) -> dict[str, str]:
    """The base URL behind each provider: the environment's where it names one, else the provider's own."""
    named = {
        name: next((environment[v] for v in provider.variables if environment.get(v)), provider.base)
        for name, provider in PROVIDERS.items()
    }
    return {name: base for name, base in named.items() if base}


def child_environment(
    environment: Mapping[str, str], url: str, base_url: Callable[[str], str], secrets: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment for a child whose model calls go through the proxy. `secrets` adds placeholders for a replay."""
    child = {**environment, **(secrets or {}), WORLDLINE_URL: url}
    for name in upstreams(environment):
        child |= dict.fromkeys(PROVIDERS[name].variables, base_url(name))
    for variable in ("NO_PROXY", "no_proxy"):
        others = environment.get(variable)
        child[variable] = f"{others},{LOOPBACK}" if others else LOOPBACK
    return child


def no_way_out(port: int) -> dict[str, str]:
    """Variables by which HTTP clients send what is for any address but this machine's own to a port here."""
    proxy = f"http://{LOOPBACK.partition(',')[0]}:{port}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {
        **{name: proxy for upper in names for name in (upper, upper.lower())},
        **dict.fromkeys(("NO_PROXY", "no_proxy"), LOOPBACK),
    }


def absent_keys(environment: Mapping[str, str], held: Collection[str]) -> list[str]:
    """Variables of keys that an agent which is driven again may look for, and that are not here.

    Where the record `held` one of them back there are no others: an agent may choose its provider by the keys it finds.
    """
    keys = [provider.key for provider in PROVIDERS.values()]
    return [] if any(key in held for key in keys) else [key for key in keys if not environment.get(key)]


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


def differences_of_environment(recorded: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Where variables that change what programs do differ from those that a header keeps."""
    before = recorded.get("variables") or {}
    found = []
    for name in RECORDED_VARIABLES:
        then, now = before.get(name), environment.get(name)
        if name != "TERM" and then != (None if now is None else readable(now)):
            words = ["unset" if value is None else repr(value) for value in (then, now)]
            found.append(f"{name} was {words[0]} when it was recorded, here it is {words[1]}")
    return found


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
