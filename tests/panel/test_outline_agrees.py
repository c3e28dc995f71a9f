"""The panel's fold and the engine's agree: two programs that share no line give the same steps of the same bytes.

What `viewer/src/core` makes of a recording is asked of `viewer/tests/core/outline.mjs`; what the engine makes of it, of
`worldline.engine.steps`. Numbers, rows, lanes, models, tokens, what was said and called have to be the same.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, require
from tests.engine.recorded import action, recorder_in
from tests.engine.test_steps import play, say
from worldline.engine.boundary import RecordBoundary
from worldline.engine.boundary import call as run
from worldline.engine.cassette import rebuild
from worldline.engine.steps import Step, steps
from worldline.store.bundle.packed import open_recording
from worldline.store.recording import Recording

VIEWER = ROOT / "viewer"
GOLDEN = sorted(path for version in ("v0", "v1") for path in (ROOT / "tests" / "golden" / version).glob("*.skn"))


def outlines(paths: list[Path]) -> list[dict[str, Any]]:
    """What the panel makes of each of these files."""
    require("node", shutil.which("node"), "not installed")
    require("viewer", (VIEWER / "node_modules").is_dir(), "no viewer/node_modules: make viewer")
    done = subprocess.run(
        ["node", VIEWER / "tests" / "core" / "outline.mjs", *paths],
        capture_output=True,
        text=True,
        check=False,
        cwd=VIEWER,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def of_engine(step: Step) -> dict[str, Any]:
    """A step as the engine folds it, in the words that both know."""
    return {
        "index": step.index,
        "seq": step.seq,
        "lane": step.lane,
        "at": round(step.at * 1e9),
        "model": step.model or "",
        "tokens": (step.input_tokens or 0, step.output_tokens or 0),
        "text": step.text,
        "reasoning": step.reasoning,
        "finish": step.finish,
        "failed": step.error is not None,
        "calls": [(call.id or None, call.name, call.ran, call.error is not None) for call in step.calls],
    }


def of_panel(step: dict[str, Any]) -> dict[str, Any]:
    """A step as the panel folds it."""
    return {
        "index": step["index"],
        "seq": step["seq"],
        "lane": step["lane"],
        "at": step["at"],
        "model": step["model"],
        "tokens": (step["input_tokens"], step["output_tokens"]),
        "text": step["text"] or "",
        "reasoning": step["reasoning"] or "",
        "finish": step["finish"] or [],
        "failed": step["error"] is not None and not step["error"].startswith("the answer is not here"),
        "calls": [(call["id"], call["name"], call["ran"], call["error"] is not None) for call in step["calls"]],
    }


@pytest.fixture(scope="module")
def golden() -> dict[Path, dict[str, Any]]:
    return dict(zip(GOLDEN, outlines(GOLDEN), strict=True))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_golden_bundle_has_the_same_steps(golden: dict[Path, dict[str, Any]], path: Path) -> None:
    panel = golden[path]
    recording = open_recording(path)
    assert panel["rows"] == sum(1 for _ in recording.events())
    assert [of_panel(step) for step in panel["steps"]] == [of_engine(step) for step in steps(recording)]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_request_is_put_together_to_the_messages_that_were_sent(
    golden: dict[Path, dict[str, Any]], path: Path
) -> None:
    recording = open_recording(path)
    bodies = {call: json.loads(body) for call, body, met in rebuild(recording) if met and body.startswith(b"{")}
    for step, panel in zip(steps(recording), golden[path]["steps"], strict=True):
        sent = bodies.get(step.decisions[-1]) if step.decisions else None
        if sent is None or not all(isinstance(message.get("content"), str | None) for message in said_in(sent)):
            continue
        assert [(m["role"], m["text"]) for m in panel["messages"] if m["role"] != "system" or "messages" in sent] == [
            (message["role"], message.get("content") or "") for message in said_in(sent)
        ]
        assert panel["kept"] <= len(panel["messages"])


def said_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request to one of the older interfaces; none of another."""
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def test_whatever_happens_in_a_run_the_steps_are_the_same(tmp_path: Path) -> None:
    chance = random.Random(5)
    runs = []
    for number in range(40):
        recorder, boundary = recorder_in(tmp_path / str(number))
        happen(boundary, chance)
        runs.append((recorder, written(recorder.attempt, tmp_path / f"{number}.jsonl")))
    for (recorder, _), panel in zip(runs, outlines([log for _, log in runs]), strict=True):
        engine = steps(Recording(recorder.attempt))
        assert [shape(of_panel(step)) for step in panel["steps"]] == [shape(of_engine(step)) for step in engine]
        recorder.close()


def shape(step: dict[str, Any]) -> dict[str, Any]:
    """Which step it is and what was called in it. Of what was said, the engine keeps the last of several answers."""
    return {key: step[key] for key in ("index", "seq", "lane", "at", "model", "tokens")} | {
        "calls": [(identifier, name, ran) for identifier, name, ran, _ in step["calls"]]
    }


def happen(boundary: RecordBoundary, chance: random.Random) -> None:
    """A run in which steps, retries, lanes, markers, tools and answers come in any order."""
    happened: list[tuple[Any, ...]] = []
    for _ in range(chance.randrange(4, 40)):
        lane = chance.choice(["main", "a"])
        happened.append(
            chance.choice(
                [
                    ("ask", lane, chance.choice([b"1", b"2"]), chance.random() < 0.15),
                    ("answer", chance.randrange(10), chance.choice(["ok", "429", "error", "cut", "unknown"])),
                    ("step", lane, chance.choice(["begin", "end"])),
                    ("tool", lane, chance.random() < 0.8),
                    ("permission", lane),
                ]
            )
        )
    play(boundary, happened)
    asked = [(f"c{n}", chance.choice(["read", "bash"]), json.dumps({"p": n % 2})) for n in range(chance.randrange(4))]
    say(boundary, [{"role": "user", "content": "go"}], "I call", asked)
    for identifier, name, arguments in chance.sample(asked, len(asked)):
        if chance.random() < 0.6:
            run(boundary, action(name, json.loads(arguments)), lambda: "done")
        elif chance.random() < 0.5:
            result = {"role": "tool", "tool_call_id": identifier, "content": "from outside"}
            say(boundary, [{"role": "user", "content": "go"}, result], "more")


def written(attempt: Path, log: Path) -> Path:
    """The log of an attempt as one file."""
    parts = [*sorted((attempt / "chunks").glob("*.jsonl")), attempt / "tail.jsonl"]
    log.write_bytes(b"".join(part.read_bytes() for part in parts if part.exists()))
    return log
