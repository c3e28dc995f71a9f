"""One row of the log: how its bytes are put together, hashed, and read back.

    {"seq":17,"t":48213004551,"dt":1204332,"sync":[17,"<h16>"],"kind":"observation","src":"tool_result","v":1,
     "lane":"main",...,"data":{...},"h":"<64 hex>"}\\n

The hash is over the bytes as written: `d = SHA256(0x00 | body)` where body is the line before `,"h":"` (the leaf of
RFC 9162), and `h = SHA256(0x02 | h_before | d)`. Nothing is canonicalised in order to verify.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

GENESIS = bytes(32)
SUFFIX = 73  # ,"h":" + 64 hex + "} + LF
MAX_ROW = 64 * 1024
DEEPEST = 256  # levels of a row's JSON: what values nest deeper stands in a content
_LARGEST = (1 << 63) - 1
KINDS = ("action", "observation", "decision", "permission", "marker", "snapshot_ref", "meta")
_HASH = re.compile(rb"[0-9a-f]{64}")
_TEXTS = ("call", "key", "mode", "effect", "parent_id", "action_id", "idempotency_key")  # keys that are texts
_FIXED = frozenset({"seq", "t", "dt", "sync", "kind", "src", "v", "lane", "data", "h"})

encode_json = msgspec.json.Encoder().encode


class Event(msgspec.Struct, frozen=True):
    """A row as read. `keys` holds the fields that are not of the envelope (call, mode, effect ...); `raw` the line."""

    seq: int
    t: int
    dt: int
    kind: str
    src: str
    v: int
    lane: str
    data: dict[str, Any]
    keys: dict[str, Any]
    sync: tuple[int, str] | None
    h: str
    raw: bytes

    @property
    def name(self) -> str:
        """Both levels of the kind: `decision/request`."""
        return f"{self.kind}/{self.src}"

    @property
    def call(self) -> str | None:
        """The id that pairs the started and the finished row of a crossing."""
        return self.keys.get("call")


def body(
    seq: int,
    t: int,
    dt: int,
    kind: str,
    src: str,
    lane: str,
    keys: Mapping[str, Any],
    data: bytes,
    sync: tuple[int, str] | None = None,
    v: int = 1,
) -> bytes:
    """The bytes of a row before its hash, fields in the fixed order. `data` is encoded JSON; t and dt are ns."""
    head = f'{{"seq":{seq},"t":{t},"dt":{dt}'
    if sync is not None:
        head += f',"sync":[{sync[0]},"{sync[1]}"]'
    head += f',"kind":"{kind}","src":"{src}","v":{v},"lane":'
    parts = [head.encode("ascii"), encode_json(lane)]
    for key, value in keys.items():
        parts += [b',"', key.encode("ascii"), b'":', encode_json(value)]
    parts += [b',"data":', data]
    return b"".join(parts)


def leaf(row_body: bytes) -> bytes:
    """`d`: the Merkle leaf of a row."""
    return hashlib.sha256(b"\x00" + row_body).digest()


def link(before: bytes, row_leaf: bytes) -> bytes:
    """`h`: the chain's next hash."""
    return hashlib.sha256(b"\x02" + before + row_leaf).digest()


def line(row_body: bytes, h: bytes) -> bytes:
    """The whole line, LF included."""
    return row_body + b',"h":"' + h.hex().encode("ascii") + b'"}\n'


def read(raw: bytes) -> Event:
    """Read one line (LF included). Raises `ValueError` where it is no row; the hash is checked by the caller."""
    if len(raw) <= SUFFIX or raw[-SUFFIX : -SUFFIX + 6] != b',"h":"' or raw[-3:] != b'"}\n':
        raise ValueError("not a row: no hash at its end")
    if not _HASH.fullmatch(raw, len(raw) - 67, len(raw) - 3):
        raise ValueError("not a row: its hash is not 64 lower-case hex digits")
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a row: {error}") from None
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and _deep(fields):
        raise ValueError(f"not a row: it nests over {DEEPEST} levels deep")
    try:
        return Event(
            seq=_of(int, fields["seq"]),
            t=_of(int, fields["t"]),
            dt=_of(int, fields["dt"]),
            kind=_of(str, fields["kind"]),
            src=_of(str, fields["src"]),
            v=_of(int, fields["v"]),
            lane=_of(str, fields["lane"]),
            data=_of(dict, fields["data"]),
            keys=_keys(fields),
            sync=_sync(fields.get("sync")),
            h=_of(str, fields["h"]),
            raw=raw,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a row: {error!r}") from None


def _of(kind: type[Any], value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")
    if kind is int and not 0 <= value <= _LARGEST:
        raise TypeError(f"{value!r:.40} is no count and no time")
    return value


def _keys(fields: dict[str, Any]) -> dict[str, Any]:
    for name in _TEXTS:
        if name in fields:
            _of(str, fields[name])
    return {key: value for key, value in fields.items() if key not in _FIXED}


def _deep(value: Any) -> bool:
    """Whether a value nests deeper than a row may; without recursion."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)


def _sync(value: Any) -> tuple[int, str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError("sync is no pair")
    return _of(int, value[0]), _of(str, value[1])
