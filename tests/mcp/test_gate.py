"""Tools of an MCP server on branches: what has effects happens once, or where somebody says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fork.outside import Outside
from tests.fork.shop import Desk, counts, only
from tests.mcp.pipe import BARE
from tests.mcp.scene import PROGRAMS
from worldline.model.events import Event
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

LIGHT = (sys.executable, str(PROGRAMS / "light.py"))
PROXY = (sys.executable, "-m", "worldline", "mcp", "--name", "bare", "--key", "post=post:{to}", "--", *BARE)
ALLOW = '[[policy.rule]]\ntool = "*"\ndecision = "allow"\ntimeout = 0.0\n'


def model(ask: Ask) -> Reply:
    said = sum(message["role"] == "assistant" for message in ask.messages)
    to = "eve" if ask.model == "other" else "bob"
    turns = [
        Say("I look.", [ToolCall("echo", {"order": 812}, "call_1")]),
        Say("I post.", [ToolCall("post", {"to": to}, "call_2"), ToolCall("drop", {"to": to}, "call_3")]),
        Say("Done."),
    ]
    return turns[min(said, 2)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / ".git").mkdir()
    with Outside() as outside, Provider(model) as provider:
        yield Desk(tmp_path, provider, outside, (*LIGHT, *PROXY))


def permissions(recording: Recording) -> list[tuple[str, str]]:
    rows: list[Event] = [row for row in recording.events() if row.kind == "permission"]
    return [(row.src, recording.loaded(row.data["facts"])["tool"]) for row in rows if "tool" in str(row.data["facts"])]


def test_an_effect_happens_once_over_all_branches_and_a_destructive_one_is_asked_about(desk: Desk) -> None:
    run = desk.record()
    assert desk.outside.posted == ["/post/bob", "/drop/bob"]

    refused = only(desk.fork(run, "step:1", set={"model": "other"}))
    assert counts(refused) == (2, 2, 0, 2)
    assert desk.outside.posted == ["/post/bob", "/drop/bob"], "nothing was allowed"

    for _ in range(2):
        branch = only(desk.fork(run, "step:1", set={"model": "other"}, rules=ALLOW))
        assert branch.refused == 1
    assert desk.outside.posted == ["/post/bob", "/drop/bob", "/post/eve"], "the second branch gave what the first got"
    asked = permissions(desk.recording(branch.run))
    assert ("requested", "drop") in asked, "a rule alone let it pass"

    same = only(desk.fork(run, "step:0", rules=ALLOW))
    assert same.mocked >= 1
    assert "/post/bob" not in desk.outside.posted[2:], "a declared key fired again"
    assert desk.replay(run).equivalent


def test_a_call_under_way_when_the_recorder_was_killed_is_not_made_again(desk: Desk) -> None:
    desk.outside.hold = threading.Event()
    words = [sys.executable, "-m", "worldline", "record", "--out", str(desk.store), "--", *desk.program]
    recorder = subprocess.Popen(words, env=desk.environment(), start_new_session=True, stderr=subprocess.DEVNULL)
    assert desk.outside.reached.wait(60)
    os.killpg(recorder.pid, signal.SIGKILL)
    recorder.wait()
    desk.outside.hold.set()
    desk.outside.hold = None
    result = desk.resume(desk.newest())
    assert desk.outside.posted.count("/post/bob") == 1
    assert result.refused == 1
    assert any(unknown.startswith("post") for unknown in result.unknown)
