"""Commands run in a child of a process that has loaded them already: as a new process, without an interpreter's start.

A start of the command line is most of what a short command costs, and the tests make hundreds. Each process that runs
tests has one such `stove.py`, from the first command on. Whatever differs in what an interpreter reads when it starts
(a prefix, PYTHONPATH, the language) gets a start of its own; `test_contracts.py` and the snippets of the documentation
start their verbs from nothing.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

STOVE = Path(__file__).with_name("stove.py")
READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "OPENSSL_", "MALLOC")
HARMLESS = ("PYTHONDONTWRITEBYTECODE",)


class Stove:
    """The process, and the socket to it. One command at a time."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.lock = threading.Lock()
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self.process = subprocess.Popen(
                [sys.executable, str(STOVE), str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(other.fileno(),),
                cwd="/",
                env=START,
            )

    def close(self) -> None:
        """End it."""
        self.channel.close()
        if self.owner == os.getpid():
            self.process.terminate()
            self.process.wait()

    def run(self, words: list[str], environment: Mapping[str, str], timeout: float) -> tuple[int, bytes, bytes]:
        """Code, output and errors of a command in the working directory. Raises `TimeoutExpired` where it is late."""
        request = {"words": words, "folder": os.getcwd(), "environment": dict(environment)}
        (out, write_out), (err, write_err) = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            socket.send_fds(self.channel, [json.dumps(request).encode()], [nothing, write_out, write_err])
        finally:
            for file in (nothing, write_out, write_err):
                os.close(file)
        self.channel.settimeout(timeout)
        child = self._told()["pid"]
        try:
            got = read_all((out, err), timeout)
            return self._told()["code"], got[out], got[err]
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            self._told()
            raise subprocess.TimeoutExpired(["worldline", *words], timeout) from None

    def _told(self) -> dict[str, int]:
        data = self.channel.recv(1000)
        assert data, "the process that runs the commands has ended"
        told: dict[str, int] = json.loads(data)
        return told


def read_all(files: tuple[int, ...], timeout: float) -> dict[int, bytes]:
    """Everything that comes from some pipes until all are closed; closes them. Raises `TimeoutError`."""
    got = {file: bytearray() for file in files}
    end = time.monotonic() + timeout
    try:
        with selectors.DefaultSelector() as selector:
            for file in files:
                selector.register(file, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(end - time.monotonic())
                if not ready and time.monotonic() >= end:
                    raise TimeoutError
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 16)
                    got[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
    finally:
        for file in files:
            os.close(file)
    return {file: bytes(data) for file, data in got.items()}


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment an interpreter reads when it starts."""
    return {
        name: value for name, value in environment.items() if name.startswith(READ_AT_START) and name not in HARMLESS
    }


START = {name: value for name, value in os.environ.items() if not name.startswith("WORLDLINE_")}
_stoves: list[Stove] = []


def run(words: list[str], environment: Mapping[str, str], timeout: float) -> tuple[int, bytes, bytes] | None:
    """Code, output and errors of `worldline WORDS`; None where only a process of its own will do."""
    if not _stoves or _stoves[0].owner != os.getpid():
        _stoves[:] = [Stove()]
        atexit.register(_stoves[0].close)
    stove = _stoves[0]
    if read_at_start(environment) != read_at_start(START) or not stove.lock.acquire(blocking=False):
        return None
    try:
        return stove.run(words, environment, timeout)
    finally:
        stove.lock.release()
