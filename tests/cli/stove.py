"""A process that has loaded every verb, and forks one child per command: `python tests/cli/stove.py SOCKET_FD`.

What comes over the socket is a JSON object (`words`, `folder`, `environment`) with three files for the child: its
input, output and errors. What goes back is `{"pid": N}` and, when the child has ended, `{"code": N}` as `subprocess`
counts it. The child is a process like any other; only its interpreter was started and its imports were made before.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
from typing import Any

from worldline.cli.main import VERBS, main

SIZE = 1 << 20  # bytes that a request may have


def serve(channel: socket.socket) -> list[str]:
    """Fork for every request until the other end is closed. Returns in a child, with the words that it is to run."""
    while True:
        data, files, _, _ = socket.recv_fds(channel, SIZE, 3)
        if not data:
            os._exit(0)
        child = os.fork()
        if child == 0:
            channel.close()
            return prepared(json.loads(data), files)
        for file in files:
            os.close(file)
        channel.send(json.dumps({"pid": child}).encode())
        _, status = os.waitpid(child, 0)
        channel.send(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode())


def prepared(request: dict[str, Any], files: list[int]) -> list[str]:
    """Make this child what the request wants it to be: its files, its folder, its environment."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["folder"]  # as `python -m` has it
    words: list[str] = request["words"]
    sys.argv = [str(importlib.import_module("worldline").__path__[0]) + "/__main__.py", *words]
    return words


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for verb in VERBS:
        importlib.import_module(f"worldline.cli.{verb}_verb")
    gc.freeze()  # what is loaded stays shared with the children
    serve(socket.socket(fileno=int(sys.argv[1])))
    main()
