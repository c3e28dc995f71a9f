"""Make the recording of a run that a real model drove: `.venv-llm/bin/python -m tests.real_model.make`.

It records `examples/real_model/bulbs.py` with the worldline that is importable until a run has fallen for the planted
offer at the planted step, in surroundings that say nothing of this machine, and writes it into this folder: as a
directory, which can be forked, as a bundle, and what made it as `made.json`. What is there is never overwritten.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from unittest import mock

from examples.real_llm import MOST_RUNS, served
from examples.real_model import bulbs
from worldline.cli.main import main as worldline
from worldline.run import open as open_run
from worldline.store.bundle.pack import pack

HERE = Path(__file__).parent
PID = 1000  # every header holds the process's; which one it was is nobody's business
COMMAND = ("python", "examples/real_model/bulbs.py")


def main() -> int:
    """Record, check and write. Gives 1 when no run failed where it should."""
    if (HERE / "made.json").exists():
        print(f"{HERE / 'made.json'} is there: nothing is made over it", file=sys.stderr)
        return 1
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    os.environ.clear()
    os.environ |= {"PATH": path, "LANG": "C.UTF-8", "TZ": "UTC"}
    with tempfile.TemporaryDirectory() as folder, served() as facts:
        os.environ |= {"OPENAI_BASE_URL": facts["url"], "OPENAI_API_KEY": "none-is-needed"}
        for number in range(MOST_RUNS):
            store = Path(folder, str(number))
            words = ["record", "--out", str(store), "--task", "light in the kitchen", "--", *COMMAND]
            with mock.patch("os.getpid", return_value=PID), suppress(SystemExit):
                worldline(words)
            run = open_run("latest", store)
            taken = [(step.index, call.arguments) for step in run.steps for call in step.calls if call.name == "take"]
            if run.outcome == "failed" and taken == [(bulbs.PLANTED, '{"bulb":"Oak"}')]:
                break
        else:
            return 1
        shutil.copytree(Path(run.path).parent, HERE / "runs" / run.id)
        pack(run.recording, HERE / "kitchen.skn")
    made = {name: facts[name] for name in ("model", "weights", "runtime")} | {"temperature": bulbs.TEMPERATURE}
    (HERE / "made.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
