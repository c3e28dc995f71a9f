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


def move_to(name: str) -> None:
    """This context goes on in lane `name`: for who hears of a beginning and of an end, and stands around neither."""
    _lane.set(name)


@contextmanager
def in_lane(name: str) -> Iterator[None]:
    """Everything inside belongs to the agent, thread or task `name`."""
    mark = _lane.set(name)
    try:
        yield
    finally:
        _lane.reset(mark)
