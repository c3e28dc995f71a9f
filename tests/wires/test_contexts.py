"""`worldline replay RUN` runs nothing: it rebuilds every request from the log, and notices any byte that changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.wires.drive import Wire, recording
from worldline.engine.cassette import Cassette
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Say, ToolCall

MARK = "a lamp with the number one"
LONG = "a very long order: " + "lamp, " * 9000
TURNS = 4


def script(ask: Ask) -> Say:
    return Say(f"turn {len(ask.messages)}", [ToolCall("lookup", {"order": len(ask.messages)})])


def converse(wire: Wire, first: str) -> None:
    """A conversation that grows, through two APIs; every turn sends all that was said before."""
    messages: list[Any] = [{"role": "user", "content": first}]
    talk: list[Any] = [{"role": "user", "content": "ü€💡 " + first}]
    with wire.openai() as gpt, wire.anthropic() as claude:
        for turn in range(TURNS):
            said = gpt.chat.completions.create(model="m", messages=messages).choices[0].message
            messages += [
                said.model_dump(exclude_none=True),
                *({"role": "tool", "tool_call_id": call.id, "content": f"{turn}"} for call in said.tool_calls or []),
            ]
            answer = claude.messages.create(model="c", max_tokens=9, messages=talk)
            talk += [
                {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]},
                {"role": "user", "content": f"go on, {turn}"},
            ]


@pytest.fixture(params=[MARK, LONG], ids=["in the row", "in a blob"])
def recorded(request: pytest.FixtureRequest) -> tuple[Path, list[bytes], str]:
    """A sealed run, the bodies that its provider was sent, and a text that stands in its first request."""
    with Provider(script) as provider:
        with recording(provider.openai_url, provider.anthropic_url) as wire:
            converse(wire, request.param)
        bodies = [request.body for request in provider.requests]
    assert wire.path is not None
    return wire.path, bodies, request.param


def replay(path: Path) -> tuple[int, str, dict[str, Any]]:
    command = [sys.executable, "-m", "worldline", "replay", str(path), "--json"]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, timeout=240, check=False)
    report: dict[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return done.returncode, done.stdout + done.stderr, report


def test_every_context_is_rebuilt_to_the_bytes_that_were_sent(recorded: tuple[Path, list[bytes], str]) -> None:
    path, bodies, _ = recorded
    code, output, report = replay(path)
    assert code == 0, output
    assert (report["verdict"], report["level"], report["contexts"]) == ("equivalent", "L0", len(bodies))
    cassette = Cassette(Recording(path))
    assert [cassette.request(exchange) for exchange in cassette.exchanges] == bodies


def test_a_message_is_stored_once_however_often_it_is_sent(recorded: tuple[Path, list[bytes], str]) -> None:
    path, bodies, text = recorded
    assert sum(body.count(text.encode()) for body in bodies) == 2 * TURNS
    stored = [file.read_bytes() for file in Recording(path).attempt.rglob("*") if file.is_file()]
    assert sum(data.count(text.encode()) for data in stored) == 2, "once for each API's own message"


def test_a_flipped_byte_in_a_stored_message_is_found(recorded: tuple[Path, list[bytes], str]) -> None:
    path, _, text = recorded
    attempt = Recording(path).attempt
    [file, *_] = [file for file in attempt.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]
    data = bytearray(file.read_bytes())
    data[data.index(text.encode()) + 3] ^= 0x01
    file.chmod(0o600)
    file.write_bytes(data)
    code, output, _ = replay(path)
    assert code in (1, 3), output
    assert "damaged" in output.lower() or "corrupt" in output.lower() or "changed" in output.lower(), output
    assert "equivalent" not in output


def test_a_store_named_from_here_stays_where_it_was_when_the_agent_changes_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    with Provider(script) as provider, recording(provider.openai_url, provider.anthropic_url) as wire:
        monkeypatch.chdir(tmp_path / "elsewhere")
        converse(wire, LONG)
    assert wire.path is not None
    assert wire.path.is_relative_to(tmp_path / "runs") and not [*Path().iterdir()]
    code, output, report = replay(wire.path)
    assert (code, report.get("verdict")) == (0, "equivalent"), output
