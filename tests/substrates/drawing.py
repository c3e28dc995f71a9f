"""An environment that draws by chance from everywhere and runs commands; `twins` forks it without any cure."""

from __future__ import annotations

import json
import os
import random
import secrets
import ssl
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from worldline.engine.substrates.reseed import generated_key, on_branch
from worldline.engine.substrates.substrate import Policy
from worldline.engine.substrates.zygote import Zygote, ZygoteEnv

numpy: Any
try:
    import numpy
except ImportError:  # it is drawn from where it is installed
    numpy = None


class Drawing:
    """Every generator was drawn from before any snapshot, so each has a state that a fork shares."""

    def __init__(self) -> None:
        self.own = random.Random(7)
        self.wide = numpy.random.default_rng(7) if numpy is not None else None
        self.token = secrets.token_hex(8)
        self.branch = "parent"
        on_branch(self.renew, "token")
        self.draw()

    def renew(self, seed: str) -> None:
        """What twins must not share, and only its holder knows."""
        self.token, self.branch = secrets.token_hex(8), seed

    def draw(self) -> dict[str, str]:
        numbers = [self.own.random(), random.random()]
        if numpy is not None:
            numbers += [float(self.wide.random()), float(numpy.random.random())]
        return {
            "rng": str(numbers[0]),
            "rngs": " ".join(map(str, numbers)),
            "openssl": ssl.RAND_bytes(8).hex(),
            "uuid": str(uuid.uuid4()),
            "hooks": self.token,
            "keys": generated_key("run", self.branch, 7, "c1"),
        }

    def __call__(self, action: Any) -> Any:
        if action == "draw":
            return self.draw()
        done = subprocess.run(action, capture_output=True, check=False)
        return [done.returncode, done.stdout.decode(), done.stderr.decode()]


class Commands:
    """The substrate zygote with `Drawing` in it, whose commands come back as those of a folder do."""

    def __init__(self, store: Path) -> None:
        self._inner = Zygote(store, f"{__name__}:Drawing")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, workspace: Path, policy: Policy) -> ZygoteEnv:
        return _with_commands(self._inner.open(workspace, policy))

    def fork(self, *arguments: Any, **more: Any) -> list[ZygoteEnv]:
        return [_with_commands(env) for env in self._inner.fork(*arguments, **more)]


def _with_commands(env: ZygoteEnv) -> ZygoteEnv:
    act = env.exec

    def run(action: Any) -> Any:
        answer = act(action)
        return subprocess.CompletedProcess(action, answer[0], *answer[1:]) if isinstance(answer, list) else answer

    env.exec = run  # type: ignore[method-assign]
    return env


def twins(count: int) -> list[dict[str, str]]:
    """What as many bare forks draw of one `Drawing`, made in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(count)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    drawing = Drawing()
    for _ in range(int(sys.argv[1])):
        child = os.fork()
        if child == 0:
            os.write(1, json.dumps(drawing.draw()).encode() + b"\n")
            os._exit(0)
        os.waitpid(child, 0)
