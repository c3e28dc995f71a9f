"""A tool's failure as data, and back: recorded by type name, message and plain arguments, never pickled.

A replay raises the same class only where that costs no import: a builtin exception, or one that the tool's own module
can name (`Refused`, or `json.JSONDecodeError` where it has `json`). Anything else comes back as a `RecordedFailure` of
the same name. It reads as it did: agents put the text of a failure before the model.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from worldline.errors import EffectRefused, OutcomeUnknown, PolicyFailed, ValueRefused, WorldlineError
from worldline.model import values

_OURS = {
    kind.__name__: kind for kind in (EffectRefused, OutcomeUnknown, PolicyFailed)
}  # what a gate says in place of a tool


class RecordedFailure(WorldlineError):
    """A recorded failure of a class that is not at hand. `facts["type"]` names it."""


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: `type`, `message`, and `args` and `attributes` where they are plain."""
    args = list(error.args)
    if isinstance(error, OSError) and error.filename is not None and len(args) == 2:
        args.append(error.filename)  # an OSError takes it out of its arguments
    message = values.readable(str(error))
    described = {"type": type(error).__name__, "message": message, "args": None, **_carried({"args": args})}
    if attributes := _carried(vars(error)):
        described["attributes"] = attributes
    if isinstance(error, ExceptionGroup):
        described |= {"group": values.readable(error.message), "exceptions": [describe(e) for e in error.exceptions]}
    return described


def _carried(named: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that a record can carry, as JSON says them; for the rest the message has to do."""
    carried = {}
    for name, value in named.items():
        with suppress(ValueRefused, values.TooDeep):
            carried[name] = values.plain(value)
    return carried


def revive(described: Mapping[str, Any], scope: Mapping[str, Any]) -> BaseException:
    """The exception to raise for a recorded failure; `scope` holds the names of the tool's module."""
    name, message = described["type"], described["message"]
    args = [message] if described.get("args") is None else values.restore(described["args"])
    known = _known(name, scope)
    if known is ExceptionGroup and "exceptions" in described:
        args = [described["group"], [revive(inner, scope) for inner in described["exceptions"]]]
    error = (_made(known, args) if known else None) or _stand_in(name, message, known)
    for attribute, value in described.get("attributes", {}).items():
        with suppress(AttributeError, TypeError):  # a class may guard its attributes
            setattr(error, attribute, values.restore(value))
    return _reading_as(message, error)


def _reading_as(message: str, error: Exception) -> Exception:
    """`error`, or one of a class of that name beneath its own, whose text is `message`."""
    if values.readable(str(error)) == message:
        return error
    told = type(type(error).__name__, (type(error),), {"__str__": lambda self: message})
    try:
        error.__class__ = told
    except TypeError:  # an instance of a builtin class keeps it
        attributes, error = vars(error), told.__new__(told, *error.args)
        vars(error).update(attributes)
    return error


def _stand_in(name: str, message: str, known: type[Exception] | None) -> Exception:
    """A failure of that name where there is no class, or none that can be made; caught as its builtin class is."""
    builtin = _builtin(known) if known else Exception
    bases = (RecordedFailure,) if builtin is Exception else (RecordedFailure, builtin)
    made: Exception = type(name, bases, {})(message, type=name)
    return made


def _known(name: str, scope: Mapping[str, Any]) -> type[Exception] | None:
    """The class of that name which the scope can name itself, or through a module in it, or a builtin one."""
    modules = (vars(value).get(name) for value in list(scope.values()) if isinstance(value, ModuleType))
    for found in (scope.get(name), getattr(builtins, name, None), *modules, _OURS.get(name)):
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return None


def _builtin(known: type[Exception]) -> Any:
    """The builtin class that `known` is, or is made from."""
    return next(base for base in known.__mro__ if base.__module__ == "builtins")


def _made(known: type[Exception], args: list[Any]) -> Exception | None:
    """An instance, or None of a class that makes none without its own arguments.

    A builtin class takes its arguments apart; code of the agent's own classes is not run.
    """
    with suppress(TypeError, ValueError):
        return known(*args) if known.__module__ == "builtins" else known.__new__(known, *args)
    with suppress(TypeError, ValueError):
        error: Exception = _builtin(known).__new__(known)
        error.args = tuple(args)
        return error
    return None
