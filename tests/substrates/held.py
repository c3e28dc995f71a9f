"""An environment that holds on request what a fork of its memory would tear or share."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worldline.engine.substrates.reseed import on_branch

MEGABYTES = 40


class Held:
    """`let go` gives up what it holds."""

    def __init__(self) -> None:
        self.memory = bytearray(b"\1" * (MEGABYTES << 20))
        self.held: list[Callable[[], object]] = []
        self.reading: Any = None

    def __call__(self, action: str) -> Any:
        word, _, rest = action.partition(" ")
        return getattr(self, f"do_{word}")(rest)

    def do_socket(self, _: str) -> None:
        self.held.append(socket.socket().close)

    def do_tls(self, _: str) -> None:
        context = ssl.create_default_context()
        ours, theirs = socket.socketpair()
        wrapped = context.wrap_socket(ours, server_hostname="localhost", do_handshake_on_connect=False)
        self.held += [wrapped.close, theirs.close]

    def do_loop(self, _: str) -> None:
        self.held.append(asyncio.new_event_loop().close)

    def do_pipe(self, _: str) -> None:
        for descriptor in os.pipe():
            self.held.append(lambda descriptor=descriptor: os.close(descriptor))  # type: ignore[misc]

    def do_child(self, _: str) -> None:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.held.append(lambda: child.communicate())

    def do_file(self, _: str) -> None:
        self.held.append(Path("written").open("w").close)  # noqa: SIM115  # it stays open

    def do_thread(self, _: str) -> None:
        over = threading.Event()
        thread = threading.Thread(target=over.wait, name="the worker")
        thread.start()
        self.held += [over.set, thread.join]

    def do_let(self, _: str) -> None:
        for close in self.held:
            close()
        self.held.clear()

    def do_read(self, path: str) -> str:
        self.reading = open(path, "rb", buffering=0)  # noqa: SIM115  # it stays open over the snapshot
        return str(self.reading.readline().decode())

    def do_next(self, _: str) -> str:
        return str(self.reading.readline().decode())

    def do_private(self, _: str) -> int:
        """What this process shares with none, in kB."""
        rollup = Path("/proc/self/smaps_rollup").read_text()
        return sum(int(found) for found in re.findall(r"Private_\w+: +(\d+)", rollup))

    def do_cwd(self, _: str) -> str:
        return os.getcwd()

    def do_hook(self, _: str) -> None:
        def fail(seed: str) -> None:
            raise OSError("the token server is down")

        on_branch(fail)

    def do_raise(self, _: str) -> None:
        raise KeyError("no such thing")

    def do_spin(self, _: str) -> None:
        Path("spinning").touch()
        while True:
            pass
