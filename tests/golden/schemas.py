"""Checks a value against one of the JSON Schemas of `docs/format/schema`: the keywords that they use, no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "format" / "schema"
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
SAID = {"$schema", "$defs", "title"}  # what asserts nothing


def load(name: str) -> dict[str, Any]:
    """A schema by its name: `row`, `manifest` ..."""
    schema: dict[str, Any] = json.loads((FOLDER / f"{name}.schema.json").read_bytes())
    return schema


def names() -> list[str]:
    return sorted(path.name.removesuffix(".schema.json") for path in Path(FOLDER).iterdir())


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, at: str = "$") -> Iterator[str]:
    """Every place where `value` is not as `schema` says. Raises `KeyError` for a keyword that is not known here."""
    root = schema if root is None else root
    for keyword, said in schema.items():
        if keyword not in SAID:
            yield from CHECKS[keyword](value, said, schema, root, at)


def _type(value: Any, said: str, schema: Any, root: Any, at: str) -> Iterator[str]:
    if not isinstance(value, TYPES[said]) or (isinstance(value, bool) and said != "boolean"):
        yield f"{at}: {value!r:.60} is no {said}"


def _properties(value: Any, said: dict[str, Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    for name, inner in said.items():
        if isinstance(value, dict) and name in value:
            yield from problems(value[name], inner, root, f"{at}.{name}")


def _required(value: Any, said: list[str], schema: Any, root: Any, at: str) -> Iterator[str]:
    yield from (f"{at}: no {name}" for name in said if isinstance(value, dict) and name not in value)


def _additional(value: Any, said: Any, schema: dict[str, Any], root: Any, at: str) -> Iterator[str]:
    for name in [name for name in value if name not in schema.get("properties", {})] if isinstance(value, dict) else ():
        yield from [f"{at}: {name} is unknown"] if said is False else problems(value[name], said, root, f"{at}.{name}")


def _items(value: Any, said: dict[str, Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield from problems(item, said, root, f"{at}[{number}]")


def _prefix(value: Any, said: list[Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    for number, (item, inner) in enumerate(zip(value if isinstance(value, list) else (), said, strict=False)):
        yield from problems(item, inner, root, f"{at}[{number}]")


def _any(value: Any, said: list[Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    found = [list(problems(value, inner, root, at)) for inner in said]
    if all(found):
        yield f"{at}: none of {len(said)}: {'; '.join(each[0] for each in found)}"


def _ref(value: Any, said: str, schema: Any, root: dict[str, Any], at: str) -> Iterator[str]:
    yield from problems(value, root["$defs"][said.removeprefix("#/$defs/")], root, at)


def _holds(test: Any) -> Any:
    def check(value: Any, said: Any, schema: Any, root: Any, at: str) -> Iterator[str]:
        if not test(value, said):
            yield f"{at}: {value!r:.60} against {said!r:.60}"

    return check


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


CHECKS: dict[str, Any] = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "prefixItems": _prefix,
    "anyOf": _any,
    "$ref": _ref,
    "enum": _holds(lambda value, said: value in said),
    "const": _holds(lambda value, said: value == said),
    "pattern": _holds(lambda value, said: not isinstance(value, str) or re.search(said, value)),
    "minimum": _holds(lambda value, said: not _is_number(value) or value >= said),
    "maximum": _holds(lambda value, said: not _is_number(value) or value <= said),
    "minItems": _holds(lambda value, said: not isinstance(value, list) or len(value) >= said),
    "maxItems": _holds(lambda value, said: not isinstance(value, list) or len(value) <= said),
}
