"""A run as another process has it: joined over the door's HTTP, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from worldline.seams.active import ActiveRun, entered
from worldline.seams.remote import RemoteBoundary


class Joined(RemoteBoundary):
    """One that knows its connections, of which each thread has its own."""

    def __init__(self, url: str) -> None:
        self.connections: set[Any] = set()
        super().__init__(url)

    def _post(self, verb: str, body: bytes) -> Any:
        try:
            return super()._post(verb, body)
        finally:
            self.connections.add(self._local.connection[1])


@contextmanager
def joined(run: Any) -> Iterator[ActiveRun]:
    """Everything inside belongs to the same run, and reaches it as a child process does."""
    boundary = Joined(run.url)
    with entered(remote := ActiveRun(boundary, run.url, run.run, joined=True)):
        yield remote
    for connection in boundary.connections:
        connection.close()
