"""Several processes that want the same: one of them has it, the others are told so, and nothing of it is mixed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.faults.judged import results, twice
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verify import verify

RIVALS = 8
BEGIN = """
import json, os, sys
from pathlib import Path
from worldline.errors import WorldlineError
def told(**fact):
    print(json.dumps(fact), flush=True)
"""
WRITER = """
from worldline.store.log import LogWriter
told(ready=True)
sys.stdin.readline()
try:
    writer = LogWriter(Path(sys.argv[1]), iter(range(10**9)).__next__)
    for number in range(20):
        writer.append("marker", "step", "main", {}, b'{"by":%d}' % os.getpid(), durable=True)
    told(wrote=os.getpid())
except WorldlineError as error:
    told(error=error.kind)
sys.stdin.readline()
"""
PUBLISHER = """
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
recorder = Recorder(Spec(store=Path(sys.argv[1]).parent, run=Path(sys.argv[1]), task="one of many"))
told(ready=recorder.attempt_id)
sys.stdin.readline()
try:
    told(sealed=str(recorder.seal()), attempt=recorder.attempt_id)
except WorldlineError as error:
    told(error=error.kind, message=str(error))
"""


def race(script: str, place: Path) -> list[dict[str, Any]]:
    """Let the rivals begin, start at the same moment, and say what came of it."""
    command = [sys.executable, "-c", BEGIN + script, str(place)]
    rivals = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(RIVALS)
    ]
    pipes = [(rival.stdin, rival.stdout) for rival in rivals]
    for _, said in pipes:
        assert said is not None and "ready" in json.loads(said.readline())
    for ask, _ in pipes:
        assert ask is not None
        ask.write("go\n")
        ask.flush()
    told: list[dict[str, Any]] = [json.loads(said.readline()) for _, said in pipes if said is not None]
    for rival in rivals:
        rival.communicate()
    return told


def test_of_many_writers_of_one_attempt_one_writes(tmp_path: Path) -> None:
    told = race(WRITER, tmp_path)
    (winner,) = [each["wrote"] for each in told if "wrote" in each]
    assert {each["error"] for each in told if "error" in each} <= {"writer-conflict", "attempt-closed"}
    reader = RowReader([tmp_path / layout.TAIL])
    assert [row.data for row in reader] == [{"by": winner}] * 20 and not reader.damages


def test_of_many_attempts_that_publish_at_once_one_does(tmp_path: Path) -> None:
    first = Recorder(Spec(store=tmp_path / "runs"))
    first.close()
    run = first.run_directory
    told = race(PUBLISHER, run)
    (winner,) = [each for each in told if "sealed" in each]
    refused = [each for each in told if "error" in each]
    assert len(refused) == RIVALS - 1 and {each["error"] for each in refused} == {"record-error"}
    assert all("already published by another attempt" in each["message"] for each in refused)
    published = results(run)
    states = {state.attempt: state.state for state in twice(run)}
    assert states.pop(winner["attempt"]) == "sealed:complete" and states.pop(first.attempt_id) == "superseded"
    assert list(states.values()) == ["superseded"] * (RIVALS - 1)
    assert results(run) == published and Recording(run).attempt.name == winner["attempt"]
    assert all(verify(Recording(attempt)).ok for attempt in layout.attempts(run))
