"""The built-in policy: rules in TOML, the first that fits a call decides.

    [policy]
    id = "shop"

    [[policy.rule]]
    tool = "send_*"
    decision = "mock"
    mock = {sent = true}

    [[policy.rule]]
    id = "refunds"
    tool = "refund"
    decision = "ask"

A rule may name `tool`, `effect`, `capability` and `key` (each a pattern as file names have them); what it does not name
fits any call. It decides about calls whose outcome is unknown only where it says `outcome = "unknown"`.
"""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.gate import DECISIONS, MOCK, Asked, PolicyEngine, Ruling
from worldline.engine.masks import SETTINGS
from worldline.errors import UsageError
from worldline.model.effects import Capability, Effect

FILE = SETTINGS
LONGEST_WAIT = 86_400.0  # seconds in which somebody who is asked may answer


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule. `timeout` is how many seconds somebody who is asked has; then the answer is no."""

    id: str | None = None
    tool: str = "*"
    effect: str | None = None
    capability: str | None = None
    key: str | None = None
    outcome: str | None = None
    decision: str | None = None
    mock: Any = msgspec.UNSET
    timeout: float = 120.0

    def fits(self, asked: Asked) -> bool:
        """Whether the rule is about this call."""
        if (self.outcome == "unknown") != asked.unknown or not fnmatch.fnmatchcase(asked.tool, self.tool):
            return False
        named = ((self.effect, asked.effect), (self.capability, asked.capability), (self.key, asked.idempotency_key))
        return all(want is None or (has is not None and fnmatch.fnmatchcase(has, want)) for want, has in named)


class Rules:
    """A policy of rules, in order. Raises `UsageError` for a rule that cannot be kept."""

    def __init__(self, rules: Sequence[Rule] = (), identifier: str = "default") -> None:
        self.identifier = identifier
        self._rules = [(_name(rule, number), _checked(rule, number)) for number, rule in enumerate(rules)]

    def rule(self, asked: Asked) -> Ruling | None:
        """The ruling of the first rule that fits."""
        for name, rule in self._rules:
            if rule.fits(asked):
                value = None if rule.mock is msgspec.UNSET else rule.mock
                decision = rule.decision or MOCK
                return Ruling(decision=decision, policy=self.identifier, rule=name, value=value, timeout=rule.timeout)
        return None


def read_rules(path: Path) -> Rules:
    """The policy of a TOML file; no rules where it has no table `policy`. Raises `UsageError`."""
    try:
        table = tomllib.loads(path.read_text("utf-8")).get("policy", {})
        rules = msgspec.convert(table.get("rule", []), list[Rule])
        identifier = msgspec.convert(table.get("id", path.name), str)
        if strange := set(table) - {"id", "rule"}:
            raise ValueError(f"[policy] has no {', '.join(sorted(strange))}")
    except (OSError, UnicodeDecodeError, ValueError, AttributeError) as error:
        raise UsageError(f"no policy: {path}: {error}", path=str(path)) from None
    return Rules(rules, identifier)


def rules_here(path: Path | None = None) -> PolicyEngine:
    """The policy of `path` (TOML, or Cedar), or of the working directory's `worldline.toml` where it has one, or none.

    Raises `UsageError`.
    """
    if path is not None and path.suffix == ".cedar":
        from worldline.policy.cedar import read_cedar  # needs an engine that only some users have

        return read_cedar(path)
    if path is not None:
        return read_rules(path)
    here = Path(FILE)
    return read_rules(here) if here.is_file() else Rules()


def _name(rule: Rule, number: int) -> str:
    return rule.id or f"#{number + 1}"


def _checked(rule: Rule, number: int) -> Rule:
    where = f"rule {_name(rule, number)}"
    mocks = rule.mock is not msgspec.UNSET
    if rule.decision is None and not mocks:
        raise UsageError(f"{where} decides nothing: give it decision = one of {', '.join(DECISIONS)}")
    if rule.decision is not None and rule.decision not in DECISIONS:
        raise UsageError(f"{where}: a decision is one of {', '.join(DECISIONS)}, not {rule.decision!r}")
    if mocks != ((rule.decision or MOCK) == MOCK):
        raise UsageError(f'{where}: mock = ... is the result that decision = "mock" gives; neither goes alone')
    if rule.outcome not in (None, "unknown"):
        raise UsageError(f'{where}: an outcome is "unknown", not {rule.outcome!r}')
    for word, known in ((rule.effect, Effect), (rule.capability, Capability)):
        if word is not None and not any(fnmatch.fnmatchcase(each, word) for each in known):
            raise UsageError(f"{where}: no {known.__name__.lower()} is {word!r}; there are {', '.join(known)}")
    if not 0 <= rule.timeout <= LONGEST_WAIT:
        raise UsageError(f"{where}: a timeout is in seconds, up to a day, not {rule.timeout!r}")
    return rule
