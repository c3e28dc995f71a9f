"""A run in a real shell: each command's output as text, as it came, and the whole session as an asciicast.

The shell has a terminal of its own (a pty); a failing test ends the work.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import worldline as wl
from tests.panel.runs.minds import Turn, bundled, client, play, provided, work
from worldline.engine import clock

COLUMNS, ROWS = 100, 28
TASK = "Make the price test pass."
TURNS = [
    Turn("What is here?", "shell.run", {"command": "ls -x --color=always"}),
    Turn("The code.", "shell.run", {"command": "cat price.py"}),
    Turn("I run the test.", "shell.run", {"command": "python3 test_price.py"}),
    Turn("The sign is wrong.", "shell.run", {"command": "sed -i 's/cents + off/cents - off/' price.py"}),
    Turn("How does it look now?", "shell.run", {"command": "grep --color=always -n 'cents' price.py"}),
    Turn("Does it pass?", "shell.run", {"command": "python3 test_price.py"}),
    Turn("I publish it.", "shell.run", {"command": "git push origin main"}),
    Turn(
        "A long log to see the lines.",
        "shell.run",
        {"command": "for i in 1 2 3 4 5 6 7 8; do printf '\\033[3%dmline %d\\033[0m\\n' $((i % 7 + 1)) $i; done"},
    ),
    Turn("The test passes; it is not published, for that was denied."),
]
FILES = {
    "price.py": "def price(cents, off):\n    return cents + off\n",
    "test_price.py": "import sys\nfrom price import price\n\nfound = price(4900, 400)\n"
    "print('1 passed' if found == 4500 else f'FAILED: price(4900, 400) is {found}, not 4500')\n"
    "sys.exit(found != 4500)\n",
    ".inputrc": "set enable-bracketed-paste off\n",
}
END = "\x1b]1337;done:"  # an escape sequence that terminals leave out of sight; the exit code behind it, and BEL


class Shell:
    """A shell in a terminal. `cast` is the session so far, in asciicast v2."""

    def __init__(self, folder: Path) -> None:
        self._began = clock.monotonic_ns()
        self.cast = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS, "env": {"TERM": "xterm-256color"}})]
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            ["/bin/bash", "--norc", "--noprofile", "-i"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            start_new_session=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "TERM": "xterm-256color",
                "PS1": "$ ",
                "PROMPT_COMMAND": "printf '\\033]1337;done:%s\\007' $?",
                "PYTHONDONTWRITEBYTECODE": "1",
                "COLUMNS": str(COLUMNS),
            },
        )
        os.close(slave)
        self._prompt()

    def run(self, command: str) -> dict[str, Any]:
        """Type a command; its output as it came, and its exit code. Pushing is behind a gate."""
        if command.startswith("git push"):
            wl.permission("requested", "git.push", id="push", remote="origin")
            wl.permission(
                "denied", "git.push", id="push", policy="no-publish", by="policy v3", reason="nobody reviewed it"
            )
            return {"denied": "no-publish"}
        self.cast.append(self._event("i", command + "\r"))
        os.write(self._master, f"{command}\n".encode())
        output, code = self._prompt()
        wl.observe(output, src="terminal", name="bash")
        return {"exit": code, "output": output.partition("\n")[2]}

    def _prompt(self) -> tuple[str, int]:
        """What comes before the next prompt, and the exit code of what came before it."""
        output = self._until(END)
        code = int(self._until("\x07").rstrip("\x07"))
        self._until("$ ")
        return output.removesuffix(END), code

    def close(self) -> None:
        """The shell is left; the session is recorded as a cast."""
        os.write(self._master, b"exit\n")
        self._process.wait(timeout=60)
        os.close(self._master)
        text = "\n".join(self.cast) + "\n"
        wl.observe(text.encode(), src="terminal", name="session.cast", media_type="application/x-asciicast")

    def _until(self, mark: str) -> str:
        """What comes up to and with `mark`."""
        came = ""
        while not came.endswith(mark):
            if not select.select([self._master], [], [], 20)[0]:
                raise TimeoutError(f"the shell said nothing more after {came[-200:]!r}")
            came += os.read(self._master, 1).decode("utf-8", "replace")
        self.cast.append(self._event("o", came))
        return came

    def _event(self, kind: str, text: str) -> str:
        return json.dumps([round((clock.monotonic_ns() - self._began) / 1e9, 6), kind, text])


def record(store: Path) -> Path:
    """Record the agent in a folder of its own. Returns the run."""
    with tempfile.TemporaryDirectory() as place, provided(play(TURNS)):
        for name, text in FILES.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        with suppress(TimeoutError), wl.record(store, task=TASK, agent={"name": "coding-agent"}) as run:
            shell = Shell(Path(place))
            messages = [{"role": "user", "content": TASK}]
            try:
                work(client(), messages, {"shell.run": wl.tool(name="shell.run")(shell.run)})
            finally:
                shell.close()
            wl.outcome("partly", reward=0.5, done=False)
    assert run.path is not None
    return run.path


def make(folder: Path) -> list[Path]:
    """`terminal.skn`."""
    target = folder / "terminal.skn"
    if not target.exists():
        bundled(record(folder / "runs"), target)
    return [target]
