"""One row of the log: how its bytes are put together, hashed, and read back.

    {"seq":17,"t":48213004551,"dt":1204332,"sync":[17,"<h16>"],"kind":"observation","src":"tool_result","v":1,
     "lane":"main",...,"data":{...},"h":"<64 hex>"}\\n

The hash is over the bytes as written: `d = SHA256(0x00 | body)` where body is the line before `,"h":"` (the leaf of
RFC 9162), and `h = SHA256(0x02 | h_before | d)`. Nothing is canonicalised in order to verify.
"""

from __future__ import annotations

import hashlib
import re
from binascii import hexlify
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET

GENESIS = bytes(32)
SUFFIX = 73  # ,"h":" + 64 hex + "} + LF
MAX_ROW = 64 * 1024
DEEPEST = 256  # levels of a row's JSON: what values nest deeper stands in a content
_LARGEST = (1 << 63) - 1
KINDS = ("action", "observation", "decision", "permission", "marker", "snapshot_ref", "meta")
_HASH = re.compile(rb"[0-9a-f]{64}")
_TEXTS = frozenset({"call", "key", "mode", "effect", "parent_id", "action_id", "idempotency_key"})  # if they are there

encode_json = msgspec.json.Encoder().encode
_LEAF, _LINK = hashlib.sha256(b"\x00"), hashlib.sha256(b"\x02")  # copies of a begun hash cost less than new ones
_decode = msgspec.json.Decoder().decode
_CONTAINERS = frozenset({dict, list})


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


_Count = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
_Text = str | msgspec.UnsetType


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    """A row that has none but the fields of this version: it is checked while it is parsed."""

    seq: _Count
    t: _Count
    dt: _Count
    kind: str
    src: str
    v: _Count
    lane: str
    data: dict[str, Any]
    h: str
    sync: tuple[_Count, str] | None = None
    call: _Text = UNSET
    mode: _Text = UNSET
    key: _Text = UNSET
    effect: _Text = UNSET
    idempotency_key: _Text = UNSET
    parent_id: _Text = UNSET
    action_id: _Text = UNSET

    def keys(self) -> dict[str, Any]:
        """What is not of the envelope."""
        found: dict[str, Any] = {}
        if self.call is not UNSET:
            found["call"] = self.call
        if self.mode is not UNSET:
            found["mode"] = self.mode
        if self.key is not UNSET:
            found["key"] = self.key
        if self.effect is not UNSET:
            found["effect"] = self.effect
        if self.idempotency_key is not UNSET:
            found["idempotency_key"] = self.idempotency_key
        if self.parent_id is not UNSET:
            found["parent_id"] = self.parent_id
        if self.action_id is not UNSET:
            found["action_id"] = self.action_id
        return found


_read_known = msgspec.json.Decoder(_Known).decode


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
    mark = "" if sync is None else f',"sync":[{sync[0]},"{sync[1]}"]'
    head = f'{{"seq":{seq},"t":{t},"dt":{dt}{mark},"kind":"{kind}","src":"{src}","v":{v},"lane":'.encode("ascii")
    if not keys:
        return b'%b%b,"data":%b' % (head, encode_json(lane), data)
    named = b"".join([b',"%b":%b' % (key.encode("ascii"), encode_json(value)) for key, value in keys.items()])
    return b'%b%b%b,"data":%b' % (head, encode_json(lane), named, data)


def leaf(row_body: bytes) -> bytes:
    """`d`: the Merkle leaf of a row."""
    digest = _LEAF.copy()
    digest.update(row_body)
    return digest.digest()


def link(before: bytes, row_leaf: bytes) -> bytes:
    """`h`: the chain's next hash."""
    digest = _LINK.copy()
    digest.update(before + row_leaf)
    return digest.digest()


def line(row_body: bytes, h: bytes) -> bytes:
    """The whole line, LF included."""
    return row_body + suffix(h)


def suffix(h: bytes) -> bytes:
    """The end of a line whose row has the hash `h`: its last `SUFFIX` bytes."""
    return b',"h":"%b"}\n' % hexlify(h)


def carried(raw: bytes) -> bytes | None:
    """The hash that a line says it has, true or not; None where it says none."""
    digest = raw[-SUFFIX + 6 : -3]
    if raw[-SUFFIX : -SUFFIX + 6] == b',"h":"' and raw[-3:] == b'"}\n':
        try:
            return bytes.fromhex(digest.decode("ascii"))
        except (UnicodeDecodeError, ValueError):
            return None
    return None


def read(raw: bytes) -> Event:
    """Read one line (LF included). Raises `ValueError` where it is no row; the hash is checked by the caller."""
    if len(raw) <= SUFFIX or raw[-SUFFIX : -SUFFIX + 6] != b',"h":"' or raw[-3:] != b'"}\n':
        raise ValueError("not a row: no hash at its end")
    if not _HASH.fullmatch(raw, len(raw) - 67, len(raw) - 3):
        raise ValueError("not a row: its hash is not 64 lower-case hex digits")
    return read_hashed(raw)


def read_hashed(raw: bytes) -> Event:
    """`read` for a line of which its caller knows that it ends with a hash."""
    try:
        row = _read_known(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_any(raw)  # it has a field that is not of this version, or it is no row
    data = row.data
    if len(raw) > 2 * DEEPEST and _nests(data, {}) and _deep(raw, {"data": data}):
        raise ValueError(f"not a row: it nests over {DEEPEST} levels deep")
    return Event(row.seq, row.t, row.dt, row.kind, row.src, row.v, row.lane, data, row.keys(), row.sync, row.h, raw)


def _read_any(raw: bytes) -> Event:
    """`read_hashed` for a row with whatever fields: those that are not known stand in `keys`."""
    try:
        keys = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a row: {error}") from None
    try:
        take = keys.pop
        seq, t, dt, v, sync = take("seq"), take("t"), take("dt"), take("v"), take("sync", None)
        kind, src, lane, h, data = take("kind"), take("src"), take("lane"), take("h"), take("data")
    except KeyError as error:
        raise ValueError(f"not a row: it has no {error}") from None
    if (
        not (type(seq) is type(t) is type(dt) is type(v) is int and type(data) is dict)
        or not (type(kind) is type(src) is type(lane) is type(h) is str)
        or not (0 <= seq <= _LARGEST and 0 <= t <= _LARGEST and 0 <= dt <= _LARGEST and 0 <= v <= _LARGEST)
        or not (sync is None or _is_sync(sync))
    ):
        raise ValueError("not a row: one of its fields is of another kind than it can be")
    for name, value in keys.items():
        if type(value) is not str and name in _TEXTS:
            raise ValueError(f"not a row: its {name} is no text")
    if len(raw) > 2 * DEEPEST and _nests(data, keys) and _deep(raw, {**keys, "data": data}):
        raise ValueError(f"not a row: it nests over {DEEPEST} levels deep")
    return Event(seq, t, dt, kind, src, v, lane, data, keys, sync and (sync[0], sync[1]), h, raw)


def _nests(data: dict[str, Any], keys: dict[str, Any]) -> bool:
    """Whether any of the values holds further ones: a row that is flat need not be looked through."""
    flat = _CONTAINERS.isdisjoint
    return not (flat(map(type, data.values())) and flat(map(type, keys.values())))


def _deep(raw: bytes, value: Any) -> bool:
    """Whether a value, whose text is `raw`, nests deeper than a row may; without recursion."""
    if raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)


def _is_sync(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and (type(value[0]) is int and 0 <= value[0] <= _LARGEST and type(value[1]) is str)
    )
