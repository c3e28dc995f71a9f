"""What a framework's tools do to the world: said by `@worldline.tool` where the tool is such a function, or by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from worldline.engine.boundary import Call, inside
from worldline.engine.content import Content
from worldline.errors import UsageError, ValueRefused
from worldline.model.effects import Capability, Effect
from worldline.seams.lanes import lane
from worldline.seams.tool import crossing_of


class ToolEffect(msgspec.Struct, frozen=True, kw_only=True):
    """What running a tool again would do, the key of its effect made from its arguments, and what it must be allowed.

    The words are those of `worldline.tool`. Raises `UsageError` for others.
    """

    effect: str = Effect.SIDE_EFFECTING
    idempotency_key: Callable[..., str] | None = None
    capability: str | None = None

    def __post_init__(self) -> None:
        if self.effect not in tuple(Effect):
            raise UsageError(f"an effect is one of {', '.join(Effect)}, not {self.effect!r}", effect=self.effect)
        if self.capability is not None and self.capability not in tuple(Capability):
            raise UsageError(f"a capability is one of {', '.join(Capability)}, not {self.capability!r}")


class Tools:
    """The effects of a framework's tools by name. What is said nowhere is side-effecting."""

    def __init__(self, effects: Mapping[str, str | ToolEffect] | None = None) -> None:
        said = effects or {}
        self._effects = {n: e if isinstance(e, ToolEffect) else ToolEffect(effect=e) for n, e in said.items()}

    def call(self, name: str, arguments: Mapping[str, Any], function: object = None) -> Call:
        """The call that a run of a tool is; of a `function` under `@worldline.tool` the same as without a framework.

        Raises `ValueRefused` for arguments that no record can carry.
        """
        declared = crossing_of(function)
        if declared is not None and name not in self._effects:
            return declared.named(arguments)
        said = self._effects.get(name) or ToolEffect()
        return Call(
            kind="action",
            name=name,
            inputs=_inputs(name, arguments),
            effect=str(said.effect),
            idempotency_key=None if said.idempotency_key is None else str(said.idempotency_key(**arguments)),
            lane=lane(),
            parent=inside.get(),
            facts={} if said.capability is None else {"capability": str(said.capability)},
        )


def _inputs(name: str, arguments: Mapping[str, Any]) -> Content:
    try:
        return Content.of(dict(arguments))
    except ValueRefused as refused:
        what, path = refused.facts["type"], refused.facts["path"]
        message = f"{name} was not run: its call has {what} at {path}; a recorded tool takes plain data"
        raise ValueRefused(message, **refused.facts) from None
