"""What a row may carry: Python values to plain JSON and back, without a silent change.

Fast JSON libraries write NaN as `null` and read 2**64 as a float, so values are checked *before* encoding. What JSON
cannot say is escaped in a one-key object:

    int beyond +-(2**53 - 1)   {"$int": "18446744073709551616"}
    NaN, +-infinity            {"$f64": "nan" | "inf" | "-inf"}
    bytes                      {"$b64": "..."}
    text with lone surrogates  {"$wtf8": "<base64 of WTF-8>"}
    tuple                      {"$tuple": [...]}
    keys that start with "$"   the "$" doubled
    keys with lone surrogates  {"$items": [[key, value], ...]}

Sets, keys that are no text and objects are refused with the path of the offender. Subclasses of the plain types are
carried by value (a `StrEnum` comes back as an equal `str`).
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from worldline.errors import ValueRefused

MAX_DEPTH = 100
CODECS = ("$b64", "$blob", "$f64", "$int", "$items", "$tuple", "$withheld", "$wtf8")  # every escape a value may use
SAFE_INTEGER = 2**53 - 1
_PLAIN = frozenset({type(None), bool})
_SHALLOW, _MANY = 12, 100_000  # levels, and values of one level, up to which `plain` looks before it copies
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class TooDeep(Exception):
    """The value nests deeper than `MAX_DEPTH`; it goes to a blob in the form of `flatten`."""


class _Refused(Exception):
    def __init__(self, why: str) -> None:
        self.why = why
        self.steps: list[str] = []


def plain(value: Any) -> Any:
    """Return `value` as JSON can say it. Raises `ValueRefused` with a JSON path, or `TooDeep`."""
    if _is_plain(value):
        return value
    try:
        return _plain(value, MAX_DEPTH)
    except _Refused as refused:
        raise refusal(refused.why, "$" + "".join(reversed(refused.steps))) from None


def _is_plain(value: Any) -> bool:
    """Whether JSON says a value as it is: most are, and seeing it costs a third of making a copy. No recursion.

    False also where that is not worth finding out: many levels, lists of lists.
    """
    level = [value]
    for _ in range(_SHALLOW):
        inner: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                if not item.isascii() and not is_text(item):
                    return False
            elif kind is dict:
                for key in item:
                    if type(key) is not str or key[:1] == "$" or not (key.isascii() or is_text(key)):
                        return False
                inner += item.values()
            elif kind is list:
                inner += item
            elif kind is int:
                if not -SAFE_INTEGER <= item <= SAFE_INTEGER:
                    return False
            elif kind is float:
                if not math.isfinite(item):
                    return False
            elif item is not None and kind is not bool:
                return False
        if not inner:
            return True
        level = inner
        if len(level) > _MANY:
            return False
    return False


def refusal(why: str, path: str) -> ValueRefused:
    """The error for a value at `path` (a JSON path) that cannot be recorded."""
    return ValueRefused(f"cannot record {why} at {path}; return plain data instead", path=path, type=why)


def _plain(value: Any, room: int) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is str or kind is int or kind is float:
        return scalar(value)
    if room == 0 and isinstance(value, list | tuple | dict):
        raise TooDeep
    if isinstance(value, dict):
        return _mapping(value, room - 1)
    if isinstance(value, list | tuple):
        items = []
        for index, item in enumerate(value):
            try:
                items.append(_plain(item, room - 1))
            except _Refused as refused:
                refused.steps.append(f"[{index}]")
                raise
        return {"$tuple": items} if isinstance(value, tuple) else items
    return scalar(value)


def _mapping(value: dict[Any, Any], room: int) -> Any:
    items: list[tuple[str, Any]] = []
    for key, item in value.items():
        if not isinstance(key, str):
            raise _Refused(f"a key of type {type(key).__name__}")
        try:
            items.append((str.__str__(key), _plain(item, room)))
        except _Refused as refused:
            refused.steps.append(step(key))
            raise
    if all(is_text(key) for key, _ in items):
        return {"$" + key if key[:1] == "$" else key: item for key, item in items}
    return {"$items": [[scalar(key), item] for key, item in items]}


def scalar(value: Any) -> Any:
    """A leaf as JSON can say it; anything that is no leaf of the rules is refused."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if is_text(value):
            return str.__str__(value)  # a subclass may print as something else
        return {"$wtf8": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")}
    if isinstance(value, int):
        return int(value) if -SAFE_INTEGER <= value <= SAFE_INTEGER else {"$int": _digits(int(value))}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$f64": str(float(value))}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$b64": base64.b64encode(value).decode("ascii")}
    raise _Refused(f"a value of type {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", ""))


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # over sys.get_int_max_str_digits(): no reader would take it back
        raise _Refused(f"an integer of {value.bit_length():,} bits") from None


def is_text(text: str) -> bool:
    """Whether a text has no lone surrogate, so that it can be encoded."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def readable(text: str) -> str:
    """A text with its lone surrogates (bytes that were no UTF-8) as backslash escapes: for what is only shown."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # surrogates that stand for no byte
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def step(key: str) -> str:
    """One key as a step of a JSON path: `.name`, or `["any text"]` where the key is no identifier."""
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"


def restore(value: Any) -> Any:
    """Undo `plain`. Raises `ValueError` for what `plain` never gives."""
    try:
        return _restored(value)
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"no value as it is written: {error!r:.80}") from None


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, item),) = value.items()
        if key[:1] == "$" and key[:2] != "$$":
            return _unescape(key, item)
    return {key[1:] if key[:1] == "$" else key: _restored(item) for key, item in value.items()}


def _unescape(key: str, item: Any) -> Any:
    match key:
        case "$int":
            return int(item)
        case "$f64":
            return _SPECIAL[item]
        case "$b64":
            return base64.b64decode(item)
        case "$wtf8":
            return base64.b64decode(item).decode("utf-8", "surrogatepass")
        case "$tuple":
            return tuple(_restored(part) for part in item)
        case "$items":
            return {_restored(name): _restored(part) for name, part in item}
    return {key: _restored(item)}


def flatten(value: Any) -> list[Any]:
    """A deep value as a flat list of nodes, children before parents, the root last; no recursion.

    A node is `["v", leaf]`, `["a", [index, ...]]`, `["t", [index, ...]]` (tuple) or `["o", [[key, index], ...]]`.
    Raises `ValueRefused` for what the rules refuse and for a value that contains itself.
    """
    nodes: list[Any] = []
    open_ids: set[int] = set()
    done: list[int] = []  # indices of finished children, as a stack beside `work`
    work: list[tuple[Any, bool]] = [(value, False)]
    while work:
        item, children_done = work.pop()
        if not isinstance(item, dict | list | tuple):
            try:
                nodes.append(["v", scalar(item)])
            except _Refused as refused:
                raise refusal(refused.why, "$ (deep value)") from None
            done.append(len(nodes) - 1)
        elif not children_done:
            if id(item) in open_ids:
                raise refusal("a value that contains itself", "$ (deep value)")
            open_ids.add(id(item))
            work.append((item, True))
            children = item.values() if isinstance(item, dict) else item
            work.extend((child, False) for child in reversed(list(children)))
        else:
            open_ids.discard(id(item))
            indices = done[len(done) - len(item) :]
            del done[len(done) - len(item) :]
            nodes.append(_container(item, indices))
            done.append(len(nodes) - 1)
    return nodes


def _container(item: Any, indices: list[int]) -> list[Any]:
    if not isinstance(item, dict):
        return ["t" if isinstance(item, tuple) else "a", indices]
    if any(not isinstance(key, str) for key in item):
        raise refusal("a key that is no text", "$ (deep value)")
    return ["o", [[scalar(key), index] for key, index in zip(item, indices, strict=True)]]


def unflatten(nodes: list[Any]) -> Any:
    """Undo `flatten`. Raises `ValueError` for what it never gives: a node that is nobody's child, or two nodes'."""
    built: dict[int, Any] = {}
    try:
        for number, (tag, content) in enumerate(nodes):
            match tag:
                case "v":
                    built[number] = _restored(content)
                case "a":
                    built[number] = [built.pop(index) for index in content]
                case "t":
                    built[number] = tuple(built.pop(index) for index in content)
                case _:
                    built[number] = {_restored(key): built.pop(index) for key, index in content}
        (root,) = built.values()
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"no flat value as it is written: {error!r:.80}") from None
    return root
