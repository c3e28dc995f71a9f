"""A recorder in a process of its own, told what to do line by line on stdin; it says what came of it on stdout.

{"rows": 40}          adds rows                              -> {"rows": the number of all rows}
{"large": 20000}      a tool call whose result is a content  -> {"rows": ...}
{"ask": {...}}        asks for permission, in a thread       -> {"answer": {...}}
{"child": "CODE"}     runs Python in a child of the run      -> {"child": what it printed}
{"seal": true}        seals                                  -> {"sealed": path}
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.boundary import Call
from worldline.engine.content import Content
from worldline.engine.spec import Spec
from worldline.seams.active import ActiveRun
from worldline.seams.session import RecordingSession

CHUNK_BYTES = 1500  # so that the log rotates under whoever follows it


def say(**fact: Any) -> None:
    print(json.dumps(fact), flush=True)


def main(store: str) -> None:
    session = RecordingSession(Spec(store=Path(store), task="followed"), os.environ)
    recorder = session.recorder
    recorder.log._chunk_bytes = CHUNK_BYTES
    run = ActiveRun(session.boundary, session.proxy.url, recorder.run)
    say(run=recorder.run, attempt=recorder.attempt_id, token=session.proxy.token)
    for line in sys.stdin:
        told = json.loads(line)
        if "rows" in told:
            for number in range(told["rows"]):
                run.observe({"n": number, "text": "grün\r\n" + "x" * (number % 90)}, src="note")
            say(rows=recorder.log.seq)
        elif "large" in told:
            live = session.boundary.begin(Call(kind="action", name="read", inputs=Content.of({}), effect="pure"))
            live.finish({}, Content.of("y" * told["large"]))
            say(rows=recorder.log.seq)
        elif "ask" in told:
            threading.Thread(target=ask, args=(run, told["ask"]), daemon=True).start()
        elif "child" in told:
            done = subprocess.run([sys.executable, "-c", told["child"]], env=run.environment(), capture_output=True)
            say(child=done.stdout.decode(), wrong=done.stderr.decode())
        elif "seal" in told:
            say(sealed=str(session.close()))


def ask(run: ActiveRun, words: dict[str, Any]) -> None:
    answer = run.ask(**words)
    say(answer=msgspec.structs.asdict(answer), true=bool(answer))


if __name__ == "__main__":
    main(sys.argv[1])
