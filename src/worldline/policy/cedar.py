"""Policies in Cedar: `--policy shop.cedar`. The extra `cedar` brings the engine.

    @id("mail-to-bob")
    permit(principal, action == Action::"send_mail", resource)
    when { context.arguments.to == "bob" };

    @id("refunds") @decision("ask") @timeout("600")
    permit(principal, action == Action::"refund", resource);

A tool call is the request of `Agent::"agent"` to do `Action::"<tool>"` with `Tool::"<tool>"`; the context has `tool`,
`effect`, `capability`, `key`, `unknown` and `arguments`. A `forbid` that applies refuses, and so does that no `permit`
applies. An annotation says what a permit permits: to run (none), to be asked for (`@decision("ask")`), to be answered
by `@mock("<JSON>")`, or what the gate does where no rule is about a call (`@decision("built_in")`). Beside
`shop.cedar`, entities are read from `shop.entities.json` and a schema from `shop.cedarschema` or `shop.schema.json`.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.gate import ALLOW, ASK, DENY, MOCK, Asked, Ruling
from worldline.errors import UsageError, WorldlineError
from worldline.model import values
from worldline.policy.rules import LONGEST_WAIT

SUFFIX = ".cedar"
ENTITIES, SCHEMAS = ".entities.json", (".cedarschema", ".schema.json")
BUILT_IN = "built_in"
NO_PERMIT = "default deny"  # the rule that decided where no policy applied
_STRICTEST = (MOCK, ASK, BUILT_IN, ALLOW)  # of several permits that apply, the first of these decides
_OWN = ("decision", "mock", "timeout", "outcome")  # the annotations that mean something here
_DEEPEST = 60  # levels of an argument that are looked at


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy says where it applies, read from its annotations. `mock` is the result that is given."""

    name: str
    decision: str
    mock: Any = None
    timeout: float = 120.0
    unknown: bool = False


class CedarPolicies:
    """A policy engine of Cedar policies. Raises `UsageError` for what cannot be read, or cannot be kept."""

    def __init__(self, text: str, identifier: str, entities: str = "[]", schema: str | None = None) -> None:
        self.identifier = identifier
        self._cedar = _engine()
        try:
            parsed = json.loads(self._cedar.policies_to_json_str(text))
            if parsed.get("templates"):
                raise ValueError("it has templates, and nothing here links them")
            policies: dict[str, Any] = parsed["staticPolicies"]
            self._permits = {key: _read(key, policy) for key, policy in policies.items()}
            twice = [name for name, count in Counter(p.name for p in self._permits.values()).items() if count > 1]
            if twice:
                raise ValueError(f"two policies have the id {twice[0]}")
            self._schema = None if schema is None else self._schema_of(schema)
            if self._schema is not None:
                self._validate(text)
            self._entities = self._cedar.Entities.from_json_str(entities, self._schema)
            # Of a call that may have happened already only those permits decide that say so; a forbid always does.
            self._sets = {unknown: self._of(parsed, policies, unknown) for unknown in (False, True)}
        except ValueError as error:
            raise UsageError(f"no policy: {identifier}: {error}", path=identifier) from None

    def _schema_of(self, text: str) -> Any:
        schema = self._cedar.Schema
        return schema.from_json_str(text) if text.lstrip().startswith("{") else schema.from_str(text)

    def _validate(self, text: str) -> None:
        found = self._cedar.validate_policies(text, self._schema)
        if not found.validation_passed:
            first = found.errors[0]
            known = self._permits.get(first.policy_id)
            raise ValueError(f"policy {known.name if known else first.policy_id} against the schema: {first.error}")

    def _of(self, parsed: dict[str, Any], policies: dict[str, Any], unknown: bool) -> Any:
        own = {
            key: policy
            for key, policy in policies.items()
            if policy["effect"] == "forbid" or self._permits[key].unknown == unknown
        }
        return self._cedar.PolicySet.from_json_str(json.dumps({**parsed, "staticPolicies": own}))

    def rule(self, asked: Asked) -> Ruling | None:
        """The ruling on a call; None where a policy leaves it to the gate. One that fails to evaluate refuses."""
        try:
            answer = self._cedar.is_authorized(
                {
                    "principal": {"type": "Agent", "id": "agent"},
                    "action": {"type": "Action", "id": asked.tool},
                    "resource": {"type": "Tool", "id": asked.tool},
                    "context": json.dumps(context_of(asked)),
                },
                self._sets[asked.unknown],
                self._entities,
                self._schema,
            )
        except (ValueError, WorldlineError) as error:
            return self._failed(NO_PERMIT, str(error))
        applied = [self._permits[key] for key in answer.diagnostics.reasons]
        names = ", ".join(sorted(permit.name for permit in applied)) or NO_PERMIT
        if answer.diagnostics.errors:
            return self._failed(names, min(map(self._in_its_words, answer.diagnostics.errors)))
        if not answer.allowed:
            return Ruling(decision=DENY, policy=self.identifier, rule=names)
        return self._permitted(applied)

    def _permitted(self, applied: list[Permit]) -> Ruling | None:
        """What the permits say that apply: the strictest of them decides."""
        decision = next(each for each in _STRICTEST if any(permit.decision == each for permit in applied))
        deciding = sorted((p for p in applied if p.decision == decision), key=lambda permit: permit.name)
        names = ", ".join(permit.name for permit in deciding)
        if decision == BUILT_IN:
            return None
        value = deciding[0].mock
        if any(permit.mock != value for permit in deciding):
            return self._failed(names, "they mock one call with different results")
        timeout = min(permit.timeout for permit in deciding)
        return Ruling(decision=decision, policy=self.identifier, rule=names, value=value, timeout=timeout)

    def _failed(self, rule: str, why: str) -> Ruling:
        return Ruling(decision=DENY, policy=self.identifier, rule=rule, failed=why)

    def _in_its_words(self, error: str) -> str:
        """The engine's error, with a policy named as its author named it."""
        for key, permit in self._permits.items():
            error = error.replace(f"`{key}`", permit.name)
        return error


def read_cedar(path: Path) -> CedarPolicies:
    """The policies of a `.cedar` file, with the entities and the schema beside it. Raises `UsageError`."""
    try:
        text = path.read_text("utf-8")
        beside = path.with_suffix(ENTITIES)
        entities = beside.read_text("utf-8") if beside.is_file() else "[]"
        schemas = [path.with_suffix(suffix) for suffix in SCHEMAS]
        schema = next((found.read_text("utf-8") for found in schemas if found.is_file()), None)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"no policy: {path}: {error}", path=str(path)) from None
    return CedarPolicies(text, path.name, entities, schema)


def context_of(asked: Asked) -> dict[str, Any]:
    """The context of a request. What Cedar has no type for stands there as text: comparing it is an error, no miss."""
    said = {
        "tool": asked.tool,
        "effect": asked.effect,
        "capability": asked.capability,
        "key": asked.idempotency_key,
        "unknown": asked.unknown,
        "arguments": _value(asked.arguments.value(), _DEEPEST),
    }
    return {name: value for name, value in said.items() if value is not None}


def _value(value: Any, levels: int) -> Any:
    """A value as Cedar's JSON has it: a null is left out, a list is a set, a float a decimal, bytes are base64."""
    if levels == 0:
        raise ValueError(f"an argument nests deeper than {_DEEPEST} levels")
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, Mapping):
        if value.keys() & {"__entity", "__extn", "__expr"}:  # what a model says makes no entity
            return msgspec.json.encode(values.plain(value)).decode()
        return {str(key): _value(item, levels - 1) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_value(item, levels - 1) for item in value if item is not None]
    return base64.b64encode(value).decode("ascii")


def _decimal(value: float) -> Any:
    """A float as Cedar's `decimal` where that says it exactly (four places, up to about 9e14), else as text."""
    text = repr(value)
    try:
        exact = Decimal(text)
        short = exact.quantize(Decimal("0.0001"))
    except ArithmeticError:
        return text
    if short != exact or abs(exact) >= Decimal("922337203685477"):
        return text
    return {"__extn": {"fn": "decimal", "arg": f"{short:f}"}}


def _read(key: str, policy: dict[str, Any]) -> Permit:
    """What a policy's annotations say. Raises `ValueError` for what they cannot."""
    notes: dict[str, str] = policy.get("annotations", {})
    name = notes.get("id") or key
    said = {note: notes[note] for note in _OWN if note in notes}
    if policy["effect"] == "forbid":
        if said:
            raise ValueError(f"policy {name}: a forbid refuses; @{next(iter(said))} belongs to a permit")
        return Permit(name=name, decision=DENY)
    decision = said.get("decision", MOCK if "mock" in said else ALLOW)
    if decision not in (ALLOW, *_STRICTEST):
        raise ValueError(f"policy {name}: @decision is one of {', '.join(sorted(_STRICTEST))}, not {decision!r}")
    if (decision == MOCK) != ("mock" in said):
        raise ValueError(f'policy {name}: @mock("<JSON>") is the result that @decision("mock") gives; both or neither')
    if said.get("outcome", "unknown") != "unknown":
        raise ValueError(f'policy {name}: @outcome is "unknown", not {said["outcome"]!r}')
    return Permit(
        name=name,
        decision=decision,
        mock=_mock(name, said["mock"]) if "mock" in said else None,
        timeout=_timeout(name, said["timeout"]) if "timeout" in said else 120.0,
        unknown="outcome" in said,
    )


def _mock(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"policy {name}: @mock is no JSON: {error}") from None


def _timeout(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise ValueError(f"policy {name}: @timeout is in seconds, up to a day, not {text!r}")
    return seconds


def _engine() -> Any:
    try:
        import cedarpy
    except ImportError:
        raise UsageError("a policy in Cedar needs the extra: pip install 'worldline[cedar]'") from None
    return cedarpy
