"""JSON and open files over a socket between two of our processes: eight bytes of length, then the text."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from typing import Any

_MOST_FILES = 250  # that one message carries
_LENGTH = 8


class Frames:
    """One end of the conversation."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def send(self, message: Any, files: Sequence[int] = ()) -> None:
        """Send a message and what the descriptors name. Raises `OSError`, `TypeError` for what JSON has no word for."""
        data = json.dumps(message).encode()
        socket.send_fds(self.end, [len(data).to_bytes(_LENGTH, "big")], files)
        self.end.sendall(data)

    def receive(self) -> tuple[Any, list[int]]:
        """The next message and descriptors of its own. Raises `EOFError` where the other end is closed, `OSError`."""
        head, files, _, _ = socket.recv_fds(self.end, _LENGTH, _MOST_FILES)
        for each in files:
            os.set_inheritable(each, False)
        head += self._exactly(_LENGTH - len(head)) if head else b""
        if not head:
            raise EOFError("the other end is closed")
        return json.loads(self._exactly(int.from_bytes(head, "big"))), files

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self.end.recv(min(count, 1 << 20))
            if not part:
                raise EOFError("the other end closed in the middle of a message")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """The other end sees it at once."""
        self.end.close()
