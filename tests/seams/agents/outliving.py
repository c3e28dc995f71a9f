"""Forks a child inside a recording, which calls a tool after the recording has ended. Prints what the child met."""

from __future__ import annotations

import os
import signal
import sys

import worldline as wl


@wl.tool(effect="pure")
def leaf(i: int) -> int:
    return i


go, ready = os.pipe()
with wl.record(sys.argv[1]) as run:
    leaf(0)
    child = os.fork()
    if child == 0:
        os.close(ready)
        os.read(go, 1)
        signal.alarm(20)  # it may wait for ever
        try:
            print(leaf(1), flush=True)
        except wl.WorldlineError as error:
            print(type(error).__name__, flush=True)
        os._exit(0)
os.write(ready, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
