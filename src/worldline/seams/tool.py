"""`tool`: the decorator that lets a function's calls cross the door, and how a call becomes a `Call`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, overload

from worldline.engine import boundary as doors
from worldline.engine.boundary import Call, inside
from worldline.engine.content import Content
from worldline.errors import UsageError, ValueRefused
from worldline.model.effects import Capability, Effect
from worldline.seams.active import current
from worldline.seams.lanes import lane as lane_here
from worldline.seams.taken import is_tool_taken

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    effect: str = ...,
    idempotency_key: Callable[..., str] | None = None,
    capability: str | None = None,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    *,
    name: str | None = None,
    effect: str = Effect.SIDE_EFFECTING,
    idempotency_key: Callable[..., str] | None = None,
    capability: str | None = None,
) -> F | Callable[[F], F]:
    """Let a function's calls cross the door: recorded while a run records, served on a replay, plain otherwise.

    `name` is what the model calls it (default: the function's name); `effect` is `pure`, `idempotent` or
    `side_effecting` (the default: what is not known to be harmless is not); `idempotency_key` makes the key of a call
    from its arguments; `capability` is what it must be allowed to do, which rules for live branches may name
    (`model.effects.Capability`). Arguments and results must be plain data (`model.values`); `self` of a method is left
    out. Raises `UsageError` for a generator. Calls raise `ValueRefused` for arguments that no record can carry, and
    `EffectRefused` on a live branch whose gate refuses them.
    """
    if function is None:
        return lambda found: tool(  # type: ignore[call-overload]
            found, name=name, effect=effect, idempotency_key=idempotency_key, capability=capability
        )
    if isinstance(function, staticmethod | classmethod):  # whichever of the two decorators stands above the other
        inner = tool(name=name, effect=effect, idempotency_key=idempotency_key, capability=capability)(
            function.__func__
        )
        return cast(F, type(function)(inner))
    name = name or getattr(function, "__name__", None)
    if name is None:
        raise UsageError(f"a {type(function).__name__} has no name; give it one: tool(name=...)(function)")
    if effect not in tuple(Effect):
        raise UsageError(f"the effect of {name} is one of {', '.join(Effect)}, not {effect!r}", effect=effect)
    if capability is not None and capability not in tuple(Capability):
        raise UsageError(f"a capability is one of {', '.join(Capability)}, not {capability!r}", capability=capability)
    code: Any = function
    if not inspect.isroutine(function):  # an object that can be called
        code = type(function).__call__
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise UsageError(f"{name} is a generator; a tool returns its result whole")
    crossing = Crossing(function, name, Effect(effect), idempotency_key, capability)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(code):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            run = current()
            if run is None or is_tool_taken(crossing.name, awaited):
                return await function(*args, **kwargs)
            call = crossing.call(args, kwargs)
            return await doors.acall(run.boundary, call, lambda: function(*args, **kwargs), crossing.scope)

        return cast(F, _declared(awaited, crossing))

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        run = current()
        if run is None or is_tool_taken(crossing.name, called):
            return function(*args, **kwargs)
        call = crossing.call(args, kwargs)
        return doors.call(run.boundary, call, lambda: function(*args, **kwargs), crossing.scope)

    return cast(F, _declared(called, crossing))


def _declared(wrapper: Any, crossing: Crossing) -> Any:
    wrapper.__worldline__ = crossing
    return wrapper


def crossing_of(function: Any) -> Crossing | None:
    """How calls of a function under `@tool` cross; None of any other. For bridges, which then own its calls."""
    found = getattr(function, "__worldline__", None)
    return found if isinstance(found, Crossing) else None


class Crossing:
    """How one tool's calls become `Call`s."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        effect: Effect,
        idempotency_key: Callable[..., str] | None,
        capability: str | None = None,
    ) -> None:
        self._signature = inspect.signature(function)
        self.name = name
        self._effect = effect
        self._idempotency_key = idempotency_key
        self._facts = {} if capability is None else {"capability": str(capability)}
        self.scope: Mapping[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
        names = list(self._signature.parameters)
        simple = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in self._signature.parameters.values())
        self._names = names if simple else None
        # A function inside a class whose first parameter is self or cls is a method: the object is no input.
        self._skip = (
            names[0] if names and "." in getattr(function, "__qualname__", "") and names[0] in ("self", "cls") else None
        )

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """The call that these arguments make. Raises `ValueRefused`, or `TypeError` where they do not fit."""
        return self._call(self._bound(args, kwargs))

    def named(self, arguments: Mapping[str, Any]) -> Call:
        """The same for a framework that gives arguments by name and may add some that are its own, as a context."""
        bound = self._signature.bind_partial(**arguments)
        bound.apply_defaults()
        return self._call(dict(bound.arguments))

    def _call(self, arguments: dict[str, Any]) -> Call:
        if self._skip is not None:
            arguments.pop(self._skip, None)
        return Call(
            kind="action",
            name=self.name,
            inputs=self._inputs(arguments),
            effect=self._effect.value,
            idempotency_key=self._key(arguments),
            lane=lane_here(),
            parent=inside.get(),
            facts=self._facts,
        )

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, in the signature's order. Raises `TypeError` for a call that does not fit it."""
        names = self._names
        if names is not None and not kwargs and len(args) == len(names):
            return dict(zip(names, args, strict=True))
        if names is not None and not args and kwargs.keys() == set(names):
            return {name: kwargs[name] for name in names}
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _inputs(self, arguments: Mapping[str, Any]) -> Content:
        try:
            return Content.of(arguments)
        except ValueRefused as refused:
            what, path = refused.facts["type"], refused.facts["path"]
            message = f"{self.name} was not run: its call has {what} at {path}; a recorded tool takes plain data"
            raise ValueRefused(message, **refused.facts) from None

    def _key(self, arguments: Mapping[str, Any]) -> str | None:
        return None if self._idempotency_key is None else str(self._idempotency_key(**arguments))
