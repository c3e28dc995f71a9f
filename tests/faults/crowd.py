"""An agent of eight threads and eight forked processes in one run, whose recorder can be killed at any file operation.

    python -m tests.faults.crowd STORE AT CALLS

Each of the sixteen carries out CALLS calls and says on stdout, one JSON line each, when one has left (`begun`) and when
the record has its end (`finished`). At the AT-th file operation (0: never) the recorder is killed, and so are the
calls of the processes that lose it. A run that comes to its end says `sealed`.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import worldline as wl
from tests.faults.recorder_process import WRAPPED, meet, say
from worldline.errors import JoinError

THREADS = PROCESSES = 8


@wl.tool(effect="side_effecting")
def pay(who: str) -> str:
    say(begun=who)
    return who


def work(name: str, calls: int) -> None:
    for number in range(calls):
        say(finished=pay(f"{name}-{number}"))


def process(name: str, calls: int) -> None:
    try:
        work(name, calls)
    except JoinError:  # the recorder died: nothing leaves any more
        os._exit(3)
    os._exit(0)


def main(store: Path, at: int, calls: int) -> None:
    with wl.record(store, task="a crowd") as run:
        if at:
            meet(at, None, WRAPPED)
        children = []
        for number in range(PROCESSES):
            if (child := os.fork()) == 0:
                process(f"process-{number}", calls)
            children.append(child)
        threads = [
            threading.Thread(target=run.bind(work), args=(f"thread-{number}", calls)) for number in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    say(sealed=str(run.path))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
