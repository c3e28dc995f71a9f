"""Nothing is recorded twice: the outermost seam owns what crosses, and the seams inside it let it through.

A bridge says here what it has taken over. What it says follows the context, into tasks and threads that copy it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_model: ContextVar[bool] = ContextVar("worldline_model_taken", default=False)
_tool: ContextVar[object] = ContextVar("worldline_tool_taken", default=None)


@contextmanager
def model_taken() -> Iterator[None]:
    """The model call inside is a crossing already: transports in this context do not record it."""
    mark = _model.set(True)
    try:
        yield
    finally:
        _model.reset(mark)


def is_model_taken() -> bool:
    """Whether a seam further out owns the model call of this context."""
    return _model.get()


@contextmanager
def tool_taken(name: str, function: object = None) -> Iterator[None]:
    """The run of a tool inside is a crossing already: this `function`, or where it is not known the tool of that name.

    The model calls that it makes are crossings of their own.
    """
    mark, model = _tool.set(name if function is None else getattr(function, "__func__", function)), _model.set(False)
    try:
        yield
    finally:
        _tool.reset(mark)
        _model.reset(model)


def is_tool_taken(name: str, function: object) -> bool:
    """Whether a seam further out owns this run of a tool. Said once: a tool that calls itself crosses again."""
    taken = _tool.get()
    if taken is None or (taken is not function and taken != name):
        return False
    _tool.set(None)
    return True
