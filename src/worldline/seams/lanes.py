"""The lane of a line of code: which agent, thread or task of a run it belongs to. It follows the context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MAIN = "main"
_lane: ContextVar[str] = ContextVar("worldline_lane", default=MAIN)


def lane() -> str:
    """The lane of this context; `main` where nothing else was said."""
    return _lane.get()


@contextmanager
def in_lane(name: str) -> Iterator[None]:
    """Everything inside belongs to the agent, thread or task `name`."""
    mark = _lane.set(name)
    try:
        yield
    finally:
        _lane.reset(mark)
