"""The values of a LangGraph state in a form that any language reads, and back: never pickled, no class by its name.

Plain data stays as it is. What more a graph is made of has a tag: `{"@": "message", "value": {...}}`. The tags are a
closed list, and what a tag makes is written here; a class of the agent's own comes back only where the agent names it
(`types=`). Anything else is refused with its path. A state in a stranger's recording can make nothing but data.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Overwrite, Send
from pydantic import BaseModel, TypeAdapter

from worldline.engine.content import Content
from worldline.engine.failure import describe, revive
from worldline.errors import ValueRefused

TAG = "@"
_PLAIN = (str, int, float, bytes, bytearray, type(None))

_TO: tuple[tuple[str, type, Callable[[Any], Any]], ...] = (
    ("message", BaseMessage, message_to_dict),
    ("send", Send, lambda send: [send.node, send.arg]),
    ("interrupt", Interrupt, lambda asked: {"value": asked.value, "id": asked.id}),
    ("overwrite", Overwrite, lambda given: given.value),
    ("snapshot", _DeltaSnapshot, lambda snapshot: snapshot.value),
    ("set", set, lambda found: _ordered(found)),
    ("frozenset", frozenset, lambda found: _ordered(found)),
    ("deque", deque, list),
    ("datetime", datetime.datetime, datetime.datetime.isoformat),
    ("date", datetime.date, datetime.date.isoformat),
    ("time", datetime.time, datetime.time.isoformat),
    ("seconds", datetime.timedelta, lambda span: [span.days, span.seconds, span.microseconds]),
    ("uuid", uuid.UUID, str),
    ("decimal", decimal.Decimal, str),
    ("path", pathlib.PurePath, pathlib.PurePath.as_posix),
    ("error", Exception, describe),
)
"""The first that fits a value: its tag, its class, and its parts."""

_FROM: dict[str, Callable[[Any], Any]] = {
    "message": lambda said: messages_from_dict([said])[0],
    "send": lambda parts: Send(*parts),
    "interrupt": lambda parts: Interrupt(**parts),
    "overwrite": Overwrite,
    "snapshot": _DeltaSnapshot,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "seconds": lambda parts: datetime.timedelta(*parts),
    "uuid": uuid.UUID,
    "decimal": decimal.Decimal,
    "path": pathlib.Path,
    "error": lambda described: revive(described, {}),
    "items": lambda pairs: {key: value for key, value in pairs},  # noqa: C416 - of lists, which no dict() takes
}


class Neutral:
    """LangGraph's serialiser protocol over this form. `types` are the agent's own classes that a state may hold."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        self._types = {kind.__name__: kind for kind in types}

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """A value as JSON text with its media type. Raises `ValueRefused` with the path of what it cannot carry."""
        return packed(self.tagged(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Undo `dumps_typed`. Raises `ValueRefused` for a class that nobody named."""
        media_type, text = data
        return self.untagged(Content(text, media_type).value())

    def tagged(self, value: Any, path: str = "$") -> Any:
        """A value made of plain data and tags."""
        kind = type(value)
        if kind is list or kind is tuple:
            return kind(self.tagged(item, f"{path}[{place}]") for place, item in enumerate(value))
        if isinstance(value, Mapping) and not self._own(value):
            return self._mapping(value, path)
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            return value
        if (own := self._own(value)) is not None:
            parts = TypeAdapter(own).dump_python(value, mode="json")
            return {TAG: "object", "type": own.__name__, "value": parts}
        for tag, known, parts_of in _TO:
            if isinstance(value, known):
                return {TAG: tag, "value": self.tagged(parts_of(value), path)}
        if isinstance(value, list | tuple):
            return [self.tagged(item, f"{path}[{place}]") for place, item in enumerate(value)]
        raise _refused(value, path)

    def _own(self, value: Any) -> type | None:
        found = self._types.get(type(value).__name__)
        return found if found is type(value) else None

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        if all(isinstance(key, str) for key in value) and TAG not in value:
            return {key: self.tagged(item, f"{path}.{key}") for key, item in value.items()}
        pairs = [[self.tagged(key, path), self.tagged(item, f"{path}[{key!r}]")] for key, item in value.items()]
        return {TAG: "items", "value": pairs}

    def untagged(self, value: Any) -> Any:
        """Undo `tagged`."""
        if isinstance(value, list | tuple):
            return type(value)(self.untagged(item) for item in value)
        if not isinstance(value, dict):
            return value
        if TAG not in value:
            return {key: self.untagged(item) for key, item in value.items()}
        tag = value[TAG]
        if tag == "object":
            own = self._types.get(value["type"])
            if own is None:
                message = f"the state holds a {value['type']}, which is no class of this agent's: name it in types="
                raise ValueRefused(message, type=value["type"])
            return TypeAdapter(own).validate_python(value["value"])
        if tag not in _FROM:
            raise ValueRefused(f"the state holds a {tag!r}, which this version does not read", type=tag)
        return _FROM[tag](self.untagged(value["value"]))


def packed(tagged: Any) -> tuple[str, bytes]:
    """A tagged value as LangGraph's savers hold it: its media type, and its bytes."""
    content = Content.of(tagged)
    return content.media_type, content.data


def _ordered(found: Iterable[Any]) -> list[Any]:
    """The members of a set, in an order of their own: the same set is the same text."""
    return sorted(found, key=lambda member: (type(member).__name__, repr(member)))


def _refused(value: Any, path: str) -> ValueRefused:
    name = type(value).__name__
    own = isinstance(value, BaseModel | enum.Enum) or dataclasses.is_dataclass(value)
    way = f"name it: WorldlineSaver(types=[{name}])" if own else "keep plain data in the state"
    return ValueRefused(f"the state holds a {name} at {path}; {way}", path=path, type=name)
