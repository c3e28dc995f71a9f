"""Content: a value on its way into the record, encoded once, and the way back.

What nests too deep for a row travels in the flat form of `model.values`; both are JSON text with a media type.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec

from worldline.errors import Damaged
from worldline.model import values
from worldline.model.events import encode_json
from worldline.store import layout
from worldline.store.recording import DEEP, JSON
from worldline.store.secrets.vault import MARKER, Vault


class Content(msgspec.Struct, frozen=True):
    """Encoded JSON, or bytes of another media type (a picture), and the tier that it is kept in."""

    data: bytes
    media_type: str = JSON
    tier: str = layout.ORDINARY

    @classmethod
    def of(cls, value: Any) -> Content:
        """Encode a Python value. Raises `ValueRefused` with the path of what no record can carry."""
        try:
            return cls(encode_json(values.plain(value)))
        except (values.TooDeep, RecursionError):
            return cls(encode_json(values.flatten(value)), DEEP)

    def value(self) -> Any:
        """The Python value. Raises `Damaged` where what was recorded is none."""
        try:
            decoded = msgspec.json.decode(self.data)
            return values.unflatten(decoded) if self.media_type == DEEP else values.restore(decoded)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise Damaged(f"a recorded value cannot be read: {error}", state="corrupt") from None

    @staticmethod
    def text(data: bytes) -> Any:
        """Bytes as a row carries them: a string where they are UTF-8 that JSON does not blow up much, else `$b64`."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return {"$b64": base64.b64encode(data).decode("ascii")}
        control = len(data) - len(data.translate(None, _ESCAPED_LONG)) if len(data) > 64 else 0
        return {"$b64": base64.b64encode(data).decode("ascii")} if control * 8 > len(data) else text


_ESCAPED_LONG = bytes(code for code in range(32) if code not in b"\b\t\n\f\r")


def redacted(content: Content, vault: Vault) -> Content:
    """A content without secrets. Of what is no JSON only whole contents can go: the markers stand alone, as text."""
    if content.media_type in (JSON, DEEP):
        return msgspec.structs.replace(content, data=redact_json(content.data, vault))
    if not vault.finds(content.data):
        return content
    markers = b"".join(MARKER.findall(vault.redact(content.data)))
    return Content(markers, "text/plain", content.tier)


def redact_json(data: bytes, vault: Vault) -> bytes:
    """Encoded JSON with secrets replaced, those inside its `$b64` and `$wtf8` bytes too; it is JSON still.

    What cannot be cut out of its place (a secret that is a number, or a stretch of JSON) takes its place's whole value
    with it: the marker stands there alone.
    """
    if holds_secret(data, vault):
        return encode_json(_redacted(msgspec.json.decode(data), vault))
    return data


def holds_secret(data: bytes, vault: Vault) -> bool:
    """Whether there may be a secret in encoded JSON, or in its `$b64` and `$wtf8` bytes. Nothing is counted."""
    return vault.active and (vault.finds(data) or (b'"$' in data and _finds_in_bytes(data, vault)))


_BYTES = re.compile(rb'"\$(?:b64|wtf8)":"([A-Za-z0-9+/]*={0,2})"')


def _finds_in_bytes(data: bytes, vault: Vault) -> bool:
    """Whether there may be a secret in the `$b64` and `$wtf8` bytes of encoded JSON."""
    view = memoryview(data)
    return any(vault.finds_in_base64(view[found.start(1) : found.end(1)]) for found in _BYTES.finditer(data))


def _redacted(value: Any, vault: Vault) -> Any:
    if isinstance(value, list):
        return _whole([_redacted(item, vault) for item in value], vault)
    if not isinstance(value, dict):
        return _whole(value, vault)
    if len(value) == 1:
        ((key, item),) = value.items()
        if key in ("$b64", "$wtf8") and isinstance(item, str):
            return {key: base64.b64encode(vault.redact(base64.b64decode(item))).decode("ascii")}
        if key == "$int" and vault.finds(str(item).encode()):
            return _whole(item, vault)
    return _whole({_whole(key, vault): _redacted(item, vault) for key, item in value.items()}, vault)


def _whole(value: Any, vault: Vault) -> Any:
    """A value whose parts are redacted already: what its own encoding still shows is replaced."""
    encoded = encode_json(value)
    if not vault.finds(encoded):
        return value
    redacted = vault.redact(encoded)
    try:
        return msgspec.json.decode(redacted)
    except msgspec.DecodeError:
        return b"".join(MARKER.findall(redacted)).decode("ascii")
