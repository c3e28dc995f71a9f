"""A real language model on this machine: an agent that it drives is recorded until it fails, forked, and explained.

    make real-llm

No key, and no network once the packages are there. The agent and its planted fault are in `real_model/bulbs.py`, the
verifier in `real_model/grade.py`, the server in `real_model/server.py`. What was recorded stays in
`.worldline/real-llm`; a study that was broken off is gone on with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(os.path.relpath(Path(__file__).parent))
AGENT, SERVER = HERE / "real_model" / "bulbs.py", HERE / "real_model" / "server.py"
VERIFIER = f"{HERE / 'real_model' / 'grade.py'}:score"
STORE = Path(".worldline") / "real-llm"
REPORT = STORE / "report.html"
PLANTED = 3  # bulbs.PLANTED; that module needs the SDK, this script must be able to say that it is missing
MOST_RUNS = 20  # one run in three fails; that twenty in a row succeed happens once in three thousand times
ROLLOUTS = 240
PYTHON = os.path.relpath(sys.executable)


def main() -> int:
    """Run the acts in order; 0 when the study names the planted step, 2 when there is no model here."""
    began = time.perf_counter()
    with served() as facts:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": facts["url"],
            "OPENAI_API_KEY": "none-is-needed",
            "PYTHONPATH": str(HERE / "real_model"),
        }
        speed = measured(facts)
        line(f"{facts['model']} on {facts['runtime']}, there after {facts['seconds']} s; {speed}")
        run = unfinished(environment)
        if run is None:
            title(f"1. Record: a real model changes a light bulb, until it fails (at most {MOST_RUNS} times)")
            run = recorded(environment)
            if run is None:
                line(f"{MOST_RUNS} runs, and none failed: start again")
                return 1
            title("2. Show: which step did what")
            worldline(["show", run], environment)
            title(f"3. Fork: back to step {PLANTED}, three times. What was before is served, the rest is drawn anew")
            fork = ["fork", run, "--at", f"step:{PLANTED}", "-n", "3", "--verifier", VERIFIER]
            worldline([*fork, "--", PYTHON, str(AGENT)], environment)
        else:
            title(f"1. to 3. are done: run {run[-4:]} failed, and its study was broken off. It goes on")
        title("4. Attribute: which step caused it? The run is taken up again many times, at different steps")
        study = ["attribute", run, "--verifier", VERIFIER, "--budget", f"rollouts={ROLLOUTS}"]
        if (code := worldline([*study, "--agent", "bulbs:again"], environment)) > 2:
            return code  # it has said why there is no answer
        found = told(["report", "latest", "--json"], environment)
    REPORT.unlink(missing_ok=True)
    worldline(["report", "latest", "-o", str(REPORT)], environment)
    title("What was planted, what was found")
    line(f"planted   step {PLANTED}: `bulbs` has offered a bulb that does not fit, and the model takes one")
    line(f"found     step {found['step']}, {found['verdict']}, interval {found['interval']}")
    drop, (low, high) = found["drop"], found["ci"] or (None, None)
    if drop is not None and low is not None:
        line(f"          it lost {drop:.2f} of the chance to succeed ({low:.2f} to {high:.2f})")
    line(f"          {found['rollouts']} rollouts; {time.perf_counter() - began:.0f} s in all; {speed}")
    return 0 if found["step"] == PLANTED else 1


@contextmanager
def served() -> Iterator[dict[str, Any]]:
    """The model's server while the block runs: what it says of itself. Exits with 2 where it does not come up."""
    line("loading the model (the first time its weights are put together: 250 MB more)")
    with subprocess.Popen([sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            if not said:
                line(f"the model's server ended with code {server.wait()} before it could be asked: see above")
                sys.exit(2)
            yield json.loads(said)
        finally:
            server.terminate()


def measured(facts: dict[str, Any]) -> str:
    """Ask once, and say how fast it reads and writes here and now."""
    messages = [{"role": "user", "content": "Once upon a time there was a lamp in the hall. " * 8}]
    body = json.dumps({"model": facts["model"], "messages": messages, "max_tokens": 16}).encode()
    request = urllib.request.Request(f"{facts['url']}/chat/completions", body, {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
    with direct.open(request) as response:
        timings = json.load(response)["timings"]
    return (
        f"it reads {timings['prompt_per_second']:.0f} and writes {timings['predicted_per_second']:.0f} tokens a second"
    )


def recorded(environment: dict[str, str]) -> str | None:
    """Record runs until one fails: its id. None where none does."""
    for number in range(1, MOST_RUNS + 1):
        began = time.perf_counter()
        words = ["record", "--out", str(STORE), "--task", "light in the kitchen", "--", PYTHON, str(AGENT)]
        code = worldline(words, environment, shown=number == 1)
        line(f"run {number}: {'succeeded' if code == 0 else 'failed'} after {time.perf_counter() - began:.0f} s\n")
        if code:
            return str(told(["list", "--json"], environment)[0]["run"])
    return None


def unfinished(environment: dict[str, str]) -> str | None:
    """The run of the newest study, where that was broken off before its answer."""
    studies = told(["list", "--studies", "--json"], environment) if STORE.is_dir() else []
    broken_off = studies and studies[0]["state"] != "done" and studies[0]["rollouts"] < ROLLOUTS
    return str(studies[0]["run"]) if broken_off else None


def worldline(arguments: list[str], environment: dict[str, str], *, shown: bool = True) -> int:
    """Run the command line as a user would; its exit code."""
    if shown:
        line("$ worldline " + " ".join(f'"{word}"' if " " in word else word for word in arguments))
    return subprocess.run(
        [sys.executable, "-m", "worldline", *stored(arguments)], env=environment, check=False
    ).returncode


def told(arguments: list[str], environment: dict[str, str]) -> Any:
    """What a verb says as JSON."""
    command = [sys.executable, "-m", "worldline", *stored(arguments)]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)


def stored(arguments: list[str]) -> list[str]:
    """The same words, looked up in this script's own store; `record` is told by `--out`."""
    return arguments if arguments[0] == "record" else [arguments[0], "--store", str(STORE), *arguments[1:]]


def title(text: str) -> None:
    """An act begins."""
    line(f"\n=== {text}\n")


def line(text: str) -> None:
    """Print one line at once, so that it stands before what a command prints."""
    print(text, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        line("ended by you; `make real-llm` goes on with a study that had begun")
        sys.exit(130)
