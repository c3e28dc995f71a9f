"""A tool's failure as data, and back: recorded by type name, message and plain arguments, never pickled.

A replay raises the same class only where that costs no import: a builtin exception, or one that the tool's own module
names. Anything else comes back as `RecordedFailure`.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

from worldline.engine.content import Content
from worldline.errors import ValueRefused, WorldlineError


class RecordedFailure(WorldlineError):
    """A recorded failure of a class that is not at hand. `facts["type"]` names it."""


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: `type`, `message`, and `args` where they are plain."""
    described: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    try:
        described["args"] = Content.of(list(error.args)).data.decode()
    except ValueRefused:
        described["args"] = None  # arguments that are no plain data: the message has to do
    return described


def revive(described: Mapping[str, Any], scope: Mapping[str, Any]) -> BaseException:
    """The exception to raise for a recorded failure; `scope` holds the names of the tool's module."""
    name, message = described["type"], described["message"]
    known = scope.get(name, getattr(builtins, name, None))
    if not (isinstance(known, type) and issubclass(known, Exception)):
        return RecordedFailure(f"{name}: {message}", type=name)
    args = Content(described["args"].encode()).value() if described.get("args") else [message]
    error = known.__new__(known)
    error.args = tuple(args)
    return error
