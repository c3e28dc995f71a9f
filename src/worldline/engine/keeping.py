"""How a content is kept: in its row, in a blob of its tier, or not at all. Secrets are out of it when it comes here.

Restricted contents are always blobs, whatever their size, and where retention is declared all contents are. What the
capture level `refs` withholds, and what came past a bound, is stood for by its size and a commitment whose key is in
memory only. No digest of either stands in any row.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from worldline.engine import clock
from worldline.engine.content import Content
from worldline.model.chain import ContextWriter
from worldline.model.events import encode_json
from worldline.store import layout
from worldline.store.blobs import BlobStore, keyed
from worldline.store.recording import JSON

INLINE = 32 * 1024  # a payload whose encoding is larger becomes a blob
BYTES = "application/octet-stream"
CAPTURED = {layout.ORDINARY: "captured", layout.RESTRICTED: "captured-restricted"}


class Keeper:
    """Keeps the contents of one attempt. `fatal` is the log's: a failing write kills the log, too.

    `in_blobs` says that every content is a blob.
    """

    def __init__(
        self, blobs: BlobStore, fatal: Callable[[], AbstractContextManager[None]], keeps: bool, in_blobs: bool
    ) -> None:
        self.blobs = blobs
        self._fatal = fatal
        self.keeps = keeps
        self._in_blobs = in_blobs
        self._unkept = clock.key()  # never stored: what is withheld cannot be guessed from its commitment
        self._contexts: dict[str, ContextWriter] = {}
        self._redacted: set[str] = set()

    def field(self, content: Content, redacted: bool = False) -> bytes:
        """A content as the encoded field of a row. `redacted` says that something was taken out of it."""
        if not self.keeps:
            return encode_json(self.withheld(content.data))
        if self.apart(content.tier) or len(content.data) > INLINE or content.media_type != JSON:
            return encode_json(self.blob(content.data, content.media_type, content.tier, redacted))
        return content.data

    @property
    def inlines(self) -> bool:
        """Whether small contents of the ordinary tier stand in their rows."""
        return self.keeps and not self._in_blobs

    def apart(self, tier: str) -> bool:
        """Whether contents of a tier always stand in blobs."""
        return self._in_blobs or tier == layout.RESTRICTED

    def blob(
        self, content: bytes, media_type: str, tier: str = layout.ORDINARY, redacted: bool = False
    ) -> dict[str, Any]:
        """Store content beside the log and return what names it."""
        with self._fatal():
            kept = self.blobs.put(content, media_type, tier)
        if redacted:
            self._redacted.add(kept.name)
        return kept.reference()

    @property
    def size(self) -> int:
        """The bytes of all blobs so far, each once."""
        return self.blobs.bytes

    def listed(self) -> list[list[Any]]:
        """The blobs as the manifest lists them."""
        return sorted(
            [b.name, b.size, b.type, b.tier, "redacted" if b.name in self._redacted else CAPTURED[b.tier]]
            for b in self.blobs.written.values()
        )

    def key(self, key: str, tier: str) -> str:
        """A call's key as its row carries it: no digest of what is restricted or withheld."""
        if not self.keeps:
            return keyed(key, self._unkept)
        return keyed(key, self._tier_key()) if tier == layout.RESTRICTED else key

    def _tier_key(self) -> bytes:
        with self._fatal():
            return self.blobs.tier_key()

    def withheld(self, content: bytes) -> dict[str, Any]:
        """What stands for content that is not kept: its size and a keyed commitment."""
        keyed = self.commitment()
        keyed.update(content)
        return {"$withheld": {"size": len(content), "hmac": keyed.hexdigest()}}

    def commitment(self) -> hmac.HMAC:
        """A fresh keyed digest for content that is not kept; its key is in memory only."""
        return hmac.new(self._unkept, digestmod=hashlib.sha256)

    def text(self, data: bytes, tier: str) -> Any:
        """A stretch of a body as its row carries it."""
        return self.blob(data, BYTES, tier) if self.apart(tier) else Content.text(data)

    def body(self, call: str, body: bytes, tier: str) -> dict[str, Any]:
        """A request's body as its row carries it: what it adds to those before it."""
        if not self.keeps:
            return self.withheld(body)
        key = self._tier_key() if tier == layout.RESTRICTED else b""
        form = self._contexts.setdefault(tier, ContextWriter(key)).encode(call, body)
        room = 0 if self.apart(tier) else INLINE - 4096
        if isinstance(form["template"], bytes):
            form["template"], room = self._new_text(form["template"], room, tier)
        for array in form["arrays"]:
            array["add"], room = self._new_texts(array["add"], room, tier)
        return form

    def _new_text(self, text: bytes, room: int, tier: str) -> tuple[Any, int]:
        """A text as a row carries it, and the room that is left in the row; in a blob where it does not fit."""
        carried = Content.text(text)
        size = len(encode_json(carried))
        if size <= room:
            return carried, room - size
        return self.blob(text, BYTES, tier), room

    def _new_texts(self, texts: list[Any], room: int, tier: str) -> tuple[Any, int]:
        carried = [Content.text(text) if isinstance(text, bytes) else text for text in texts]
        encoded = encode_json(carried)
        # A list without texts holds only where they stand: nothing that could be kept apart.
        if len(encoded) <= room or (len(encoded) <= INLINE and not any(isinstance(text, bytes) for text in texts)):
            return carried, max(0, room - len(encoded))
        return self.blob(encoded, JSON, tier), room
