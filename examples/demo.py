"""The demo: a support agent fails at its task; the run is recorded, verified, replayed, shown, forked, and explained.

    python examples/demo.py

No key and no network: the models are scripts on this project's own provider server, spoken to over real HTTP by the
real OpenAI and Anthropic SDKs. The replay runs after that server has stopped; the fork asks another one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support_world import script

from worldline.testing.provider import Provider

HERE = Path(__file__).parent
AGENT = HERE / "support_agent.py"
SHOP, COPY = Path(".worldline") / "demo-shop", Path(".worldline") / "demo-shop-copy"
NEW, REPORT = Path(".worldline") / "demo-shop-new", Path(".worldline") / "demo-report.html"
POLICY = HERE / "sandbox.toml"
FAKE_KEY = "sk-demo-" + "0123456789" * 2  # no key of anybody; it shows that keys stay out of the record


def main() -> int:
    """Run the acts in order; 0 when each ended as it should."""
    for shop in (SHOP, COPY, NEW):
        shutil.rmtree(shop, ignore_errors=True)
    environment = {
        **os.environ,
        "SUPPORT_SHOP": str(SHOP),
        "OPENAI_API_KEY": FAKE_KEY,
        "ANTHROPIC_API_KEY": FAKE_KEY + "-anthropic",
    }
    agent = [os.path.relpath(sys.executable), os.path.relpath(AGENT), "refund #812"]
    with Provider(script) as provider:
        environment |= {"OPENAI_BASE_URL": provider.openai_url, "ANTHROPIC_BASE_URL": provider.anthropic_url}
        title("1. Record: an ordinary agent, its model calls and tools heard, its run sealed at the end")
        recorded = worldline(["record", "--task", "refund #812", "--", *agent], environment)
        asked, connections = len(provider.requests), provider.connections
        line(f"the provider answered {asked} requests; one of them with a 429 that the SDK retried")
    title("2. Verify: is the record what was written?")
    verified = worldline(["verify", "latest"], environment)
    title("3. Replay: the same agent again. The provider is stopped, the keys are gone")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        environment.pop(name)
    paid = ledger()
    replayed = worldline(["replay", "latest", "--", *agent], environment)
    line(f"connections to the provider: {provider.connections - connections}; refunds paid again: {ledger() - paid}")
    title("4. Show: which step did what")
    shown = worldline(["show", "latest"], environment)
    title("5. Fork: back to step 3, with another model, in a copy of the shop as it was. Steps 0 to 2 are served")
    with Provider(script) as provider:
        bases = {"OPENAI_BASE_URL": provider.openai_url, "ANTHROPIC_BASE_URL": provider.anthropic_url}
        keys = {"OPENAI_API_KEY": FAKE_KEY, "ANTHROPIC_API_KEY": FAKE_KEY + "-anthropic"}
        change = ["--at", "step:3", "--set", "model=gpt-4.1", "--policy", os.path.relpath(POLICY), "--allow-repeat"]
        branch = environment | bases | keys | {"SUPPORT_SHOP": str(COPY)}
        forked = worldline(["fork", "latest", *change, "--", *agent], branch)
        line(f"the provider answered {len(provider.requests)} requests; refunds paid again: {ledger() - paid}")
    title("6. Attribute: which step caused it? The run is taken up again many times, at different steps")
    with Provider(script) as provider:
        bases = {"OPENAI_BASE_URL": provider.openai_url, "ANTHROPIC_BASE_URL": provider.anthropic_url}
        there = {"PYTHONPATH": str(HERE), "SUPPORT_SHOP": str(NEW)}  # a shop of its own for each, as on its first day
        study = ["attribute", failed(environment), "--verifier", "outcome", "--agent", "support_agent:again"]
        sandbox = ["--policy", os.path.relpath(POLICY), "--allow-repeat", "--copy", "SUPPORT_SHOP"]
        explained = worldline([*study, *sandbox], environment | bases | keys | there)
        line(f"the provider answered {len(provider.requests)} requests; refunds paid again: {ledger() - paid}")
    REPORT.unlink(missing_ok=True)
    reported = worldline(["report", "latest", "-o", str(REPORT)], environment)
    title("Next")
    line("The run failed as it should: the agent pays the whole order back, although one lamp was fine (step 3).")
    line(f"{REPORT!s:<40}the same as a page: open it in your browser")
    line(f". {os.path.relpath(Path(sys.executable).parent / 'activate')}")
    line("worldline tree latest                   the run, its branch, and what they share")
    line("worldline view                          both runs in your browser: open one, compare them")
    line("worldline record -- python agent.py     your own agent, unchanged")
    good = (recorded, verified, replayed, shown, forked, explained, reported) == (1, 0, 0, 0, 0, 0, 0)
    good = good and ledger() == paid
    return 0 if good else 1


def worldline(arguments: list[str], environment: dict[str, str]) -> int:
    """Run the command line as a user would; its exit code."""
    shown = " ".join(f'"{word}"' if " " in word or "#" in word else word for word in arguments)
    line(f"$ worldline {shown}")
    command = [sys.executable, "-m", "worldline", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def failed(environment: dict[str, str]) -> str:
    """The last characters of the newest run that failed: the one that was recorded first here."""
    command = [sys.executable, "-m", "worldline", "list", "--json"]
    listed = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
    return str(next(run["run"] for run in listed if run["outcome"] == "failed"))[-4:]


def ledger() -> int:
    """How many refunds the shop has paid."""
    books = json.loads((SHOP / "shop.json").read_text(encoding="utf-8"))
    return len(books["refunds"])


def title(text: str) -> None:
    """An act begins."""
    line(f"\n=== {text}\n")


def line(text: str) -> None:
    """Print one line at once, so that it stands before what a command prints."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
