"""What running a tool of an MCP server again would do: what its user says of it, else what the server hints.

A server's hints may come from anybody. Those that tighten the gate are always believed: a tool that says of itself that
it destroys is `irreversible_external`. Those that loosen it (read only, idempotent, closed and not destructive) count
only where the user trusts them, and the record says by whose word an effect is what it is.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from worldline.errors import UsageError
from worldline.model.effects import Capability, Effect

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)\}")


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's effect and capability, the key of one call of it, and what the record says of why."""

    effect: Effect
    capability: Capability | None = None
    idempotency_key: str | None = None
    facts: dict[str, Any] = {}


class Effects:
    """Judges calls. `declared` are the user's words, `PATTERN=WORD`: of effects, capabilities and keys of calls.

    A key is a text with arguments in braces: `send_*=mail:{to}`. Raises `UsageError` for a word that there is not.
    """

    def __init__(
        self,
        effects: Sequence[str] = (),
        capabilities: Sequence[str] = (),
        keys: Sequence[str] = (),
        trusts_hints: bool = False,
    ) -> None:
        self._effects = [_pair("--effect", text, Effect) for text in effects]
        self._capabilities = [_pair("--capability", text, Capability) for text in capabilities]
        self._keys = [_pair("--key", text) for text in keys]
        self._trusts = trusts_hints
        self._hints: dict[str, dict[str, bool]] = {}

    def learn(self, listed: Any) -> None:
        """Take the hints from an answer to `tools/list`."""
        tools = listed.get("tools") if isinstance(listed, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                said = tool.get("annotations")
                said = said if isinstance(said, dict) else {}
                self._hints[tool["name"]] = {hint: said[hint] for hint in HINTS if isinstance(said.get(hint), bool)}

    def of(self, tool: str, arguments: Mapping[str, Any]) -> Judged:
        """The judgement on one call."""
        hints = self._hints.get(tool, {})
        effect, by = self._effect(tool, hints)
        capability = self._capability(tool, hints)
        facts: dict[str, Any] = {"effect_by": by}
        if hints:
            facts["hints"] = hints
        if capability is not None:
            facts["capability"] = str(capability)
        return Judged(effect=effect, capability=capability, idempotency_key=self._key(tool, arguments), facts=facts)

    def advice(self, tool: str) -> str | None:
        """What would let a refused tool pass by the server's own word, where it gave one that is not believed."""
        hints = self._hints.get(tool, {})
        if (
            self._trusts
            or _first(self._effects, tool)
            or not (hints.get("readOnlyHint") or hints.get("idempotentHint"))
        ):
            return None
        word = "read-only" if hints.get("readOnlyHint") else "idempotent"
        return f"its server calls it {word}: --trust-hints believes that, --effect says it of single tools"

    def _effect(self, tool: str, hints: Mapping[str, bool]) -> tuple[Effect, str]:
        if (said := _first(self._effects, tool)) is not None:
            return Effect(said), "flag"
        if self._trusts and hints.get("readOnlyHint"):
            return Effect.PURE, "hints"
        if self._trusts and hints.get("idempotentHint"):
            return Effect.IDEMPOTENT, "hints"
        return Effect.SIDE_EFFECTING, "default"

    def _capability(self, tool: str, hints: Mapping[str, bool]) -> Capability | None:
        if (said := _first(self._capabilities, tool)) is not None:
            return Capability(said)
        if _first(self._effects, tool) is not None:
            return None  # whoever names the effect knows better than the hints
        if hints.get("readOnlyHint"):
            return Capability.READ_ONLY if self._trusts else None
        if hints.get("destructiveHint"):
            return Capability.IRREVERSIBLE_EXTERNAL
        closed = hints.get("destructiveHint") is False and hints.get("openWorldHint") is False
        return Capability.REVERSIBLE_LOCAL if closed and self._trusts else None

    def _key(self, tool: str, arguments: Mapping[str, Any]) -> str | None:
        template = _first(self._keys, tool)
        return None if template is None else _PLACE.sub(lambda found: _text(arguments, found[1]), template)


def _pair(option: str, text: str, words: type[Effect] | type[Capability] | None = None) -> tuple[str, str]:
    pattern, mark, word = text.partition("=")
    if not (pattern and mark and word):
        raise UsageError(f"{option} takes TOOL=WORD, not {text!r}", option=option)
    if words is not None and word not in tuple(words):
        raise UsageError(f"{option} {pattern}: it is one of {', '.join(words)}, not {word!r}", option=option)
    return pattern, word


def _first(pairs: Sequence[tuple[str, str]], tool: str) -> str | None:
    return next((word for pattern, word in pairs if fnmatch.fnmatchcase(tool, pattern)), None)


def _text(arguments: Mapping[str, Any], path: str) -> str:
    """The argument at `path`; one that is missing is the empty text, so that calls without it share a key."""
    value: Any = arguments
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
