"""Which run does a proxy belong to, and what does its server get of the environment?

Clients give the servers that they start a few variables only (the SDKs: HOME, PATH ...), so `WORLDLINE_URL` seldom
comes through. A run is also found by descent: the nearest process above us that has it in its environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from worldline.seams.environment import PROVIDERS, WORLDLINE_URL

PROCESSES = Path("/proc")
_DEEPEST = 64


def run_url(environment: Mapping[str, str]) -> str | None:
    """The URL of the run that this process belongs to, or None."""
    if url := environment.get(WORLDLINE_URL):
        return url
    pid = os.getppid()
    for _ in range(_DEEPEST):
        if pid <= 1:
            return None
        try:
            variables = (PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
            status = (PROCESSES / str(pid) / "stat").read_bytes()
        except OSError:  # another system, or another user's process
            return None
        mark = f"{WORLDLINE_URL}=".encode()
        if found := next((each[len(mark) :] for each in variables if each.startswith(mark)), b""):
            return found.decode("utf-8", "replace")
        pid = int(status.rpartition(b")")[2].split()[1])
    return None


def server_environment(environment: Mapping[str, str], url: str | None) -> dict[str, str]:
    """The environment of a server: what it does is behind its own crossings, so the run's addresses are not its own."""
    if url is None:
        return dict(environment)
    own = {variable for provider in PROVIDERS.values() for variable in provider.variables}
    return {
        name: value
        for name, value in environment.items()
        if name != WORLDLINE_URL and not (name in own and value.startswith(url))
    }
