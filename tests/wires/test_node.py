"""The Node SDKs under `worldline record -- node agent.mjs`, and the same program replayed with the provider stopped."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, require
from tests.wires.drive import Unreachable, worldline
from tests.wires.tap import Tap
from worldline.engine.cassette import Cassette
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Fail, Provider, Say, ToolCall

HERE = Path(__file__).parent / "node"
INSTALLED = ROOT / ".venv" / "node"
INSTALL_SECONDS = 600


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The packages of `node/package-lock.json`, installed once for each content of that file."""
    node, npm = shutil.which("node"), shutil.which("npm")
    require("node", node and npm, "node or npm is not installed")
    digest = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:16]
    place = INSTALLED / digest
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with (INSTALLED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            failed = install(str(npm), place)
            require("node", not failed, f"npm ci did not install the SDKs: {failed}")
            (place / "complete").touch()
    return place / "node_modules"


def install(npm: str, place: Path) -> str:
    """Why the packages could not be installed, or nothing."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, place)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=6"]
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {INSTALL_SECONDS} s"
    return "" if done.returncode == 0 else done.stderr.strip()[-300:] or f"exit code {done.returncode}"


def script(ask: Ask) -> Say | Fail:
    if ask.attempt == 0 and ask.api == "anthropic.messages":
        return Fail(529, headers={"retry-after-ms": "1"})
    if ask.api == "openai.chat" and not ask.tool_results:
        return Say("Ich schaue nach 💡", [ToolCall("lookup", {"order": 812})], pieces="awkward")
    said = f"{ask.tool_results[0][1]} – 98,00 €" if ask.tool_results else "Alles erledigt: 灯 ✓"
    return Say(said, pieces="awkward" if ask.stream else "events")


def test_a_node_agent_is_recorded_and_replayed_with_the_provider_stopped(node_modules: Path) -> None:
    shutil.copy(HERE / "agent.mjs", "agent.mjs")
    Path("node_modules").symlink_to(node_modules)
    agent = ["--", "node", "agent.mjs"]
    with Provider(script) as provider, Tap(provider.port) as upstream:
        base = f"http://127.0.0.1:{upstream.port}"
        bases = {"OPENAI_BASE_URL": f"{base}/v1", "ANTHROPIC_BASE_URL": base}
        recorded = worldline("record", *agent, **bases)
        asked = len(provider.requests)
    assert recorded.returncode == 0, recorded.stderr
    plan, answer, events, content, whole = told(recorded)
    assert [call["function"]["arguments"] for call in plan["calls"]] == ['{"order":812}']
    assert "".join(answer["parts"]) == "order 812: lamp, 2 pieces – 98,00 €"
    assert (events[0]["type"], content[0]["text"], whole) == (
        "message_start",
        "Alles erledigt: 灯 ✓",
        "Alles erledigt: 灯 ✓",
    )

    path = recorded.stderr.splitlines()[-1]
    cassette = Cassette(Recording(path))
    names = [exchange.name for exchange in cassette.exchanges]
    assert names == ["openai.chat", "openai.chat", "anthropic.messages", "anthropic.messages", "openai.responses"]
    assert asked == len(names)
    pieces = [[data for data, _ in cassette.pieces(exchange)] for exchange in cassette.exchanges]
    assert pieces == [seen.chunks for seen in upstream.answers()]

    nobody = Unreachable()
    bases = {"OPENAI_BASE_URL": nobody.url, "ANTHROPIC_BASE_URL": nobody.url}
    refused = worldline("replay", path, *agent, **bases)
    assert refused.returncode == 3, "the tool ran outside the recording"
    assert "lookup x1" in refused.stdout + refused.stderr
    replayed = worldline("replay", path, "--tools", "run", *agent, **bases)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert told(replayed) == told(recorded)
    assert "5 exchanges served, none passed on" in replayed.stdout
    assert nobody.connects() == 0
    nobody.close()


def test_the_lock_names_no_registry_and_pins_what_the_package_asks_for() -> None:
    lock = json.loads((HERE / "package-lock.json").read_text())
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    packages = lock["packages"]
    assert all("resolved" not in package for package in packages.values())
    assert all(package.get("integrity") for name, package in packages.items() if name)
    assert wanted == {name: packages[f"node_modules/{name}"]["version"] for name in wanted}


def told(done: subprocess.CompletedProcess[str]) -> list[Any]:
    [line] = [line for line in done.stdout.splitlines() if line.startswith("[")]
    found: list[Any] = json.loads(line)
    return found
