"""A streamed body on its way into the record: rows as it comes, every border kept, secrets held back.

A row is written at most every 100 ms, from the beginning of the call on, or 16 KiB; what came in between is looked into
then, all at once. A body that is whole by then stands in the finished row alone. A piece is one transfer chunk; it may
span rows. The record waits for the vault, which holds back what may become a secret; whoever reads the stream never
does.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

from worldline.engine import clock
from worldline.engine.assembled import Assembled, Piece, without_spelled
from worldline.engine.codings import DECODERS
from worldline.engine.recorder import Recorder
from worldline.store import layout

ROW_BYTES = 16 * 1024
ROW_PIECES = 1000
ROW_NS = 100_000_000
KEPT = 8 << 20  # bytes of a body that stay in memory for those who read it whole


class BodyRecorder:
    """Records one body of one call."""

    def __init__(self, recorder: Recorder, keys: Mapping[str, Any], lane: str, tier: str = layout.ORDINARY) -> None:
        self._recorder = recorder
        self._tier = tier
        self._keys = keys
        self._lane = lane
        self._assembled = Assembled(recorder.vault)
        self._window = recorder.vault.window()
        self._at_once = recorder.vault.policy == "stop"  # a secret stops the run with the piece in which it comes
        self._waiting: list[Piece] = []  # what came since a row was due
        self._waiting_bytes = 0
        self._borders: list[tuple[int, int]] = []  # (bytes of the stream up to the border, when), not yet passed
        self._came = self._decided = 0  # bytes of the stream, before the vault
        self._pending = bytearray()
        self._pieces: list[list[int]] = []  # [bytes, ns since the piece before], of the pending row
        self._open_piece = 0  # bytes of the piece that has no border yet
        self._carried = 0  # bytes already written of the piece that no row has closed
        self._began = self._now = self._last_piece = self._last_row = clock.monotonic_ns()
        self._first: int | None = None
        self._rows = self._count = self.size = 0
        self._digest = hashlib.sha256()
        self._kept: list[bytes] = []
        self._closed = False
        self.encoding = "identity"
        self._encoded: list[tuple[bytes, bool]] = []  # a compressed body, held until it can be looked into
        self._decoded: bytes | None = None
        self.replaced = False
        self._withheld = None if recorder.keep.keeps else recorder.keep.commitment()
        self._lost = 0  # bytes that came past a bound of the recording

    def encoded_as(self, encoding: str) -> None:
        """The body that will come is compressed in this way. Raises `SecretFound` for one nobody can look into."""
        self.encoding = encoding
        if encoding not in DECODERS and encoding not in ("identity", ""):
            self._recorder.vault.not_scanned(f"a {encoding} body")

    def feed(self, data: bytes, ends_chunk: bool) -> None:
        """A piece came (or a part of one, then `ends_chunk` is False)."""
        if self.encoding in DECODERS and not self._closed:
            self._encoded.append((data, ends_chunk))
        else:
            self._feed(data, ends_chunk)

    def _feed(self, data: bytes, ends_chunk: bool) -> None:
        now = self._now = max(clock.monotonic_ns(), self._now)  # no clock is trusted not to step back
        if self._first is None:
            self._first = now - self._began
        self._waiting.append((data, now if ends_chunk else None))
        self._waiting_bytes += len(data)
        if self._is_due(now, self._waiting_bytes, len(self._waiting)) or self._at_once:
            self._advance(now)

    def due(self) -> None:
        """Time passed in which nothing came: what waits is written where its row is due."""
        now = max(clock.monotonic_ns(), self._now)
        if (self._waiting or self._pending) and not self._closed and self._is_due(now, 0, 0):
            self._advance(now)

    def _advance(self, now: int) -> None:
        self._look_into()
        if self._withheld is not None:
            self._last_row = now
        elif self._pending and self._is_due(now, 0, 0):
            self._write(now)

    def _is_due(self, now: int, more: int, pieces: int) -> bool:
        """Whether a row is, with so many bytes and pieces more."""
        full = len(self._pending) + more >= ROW_BYTES or len(self._pieces) + pieces >= ROW_PIECES
        return full or now - self._last_row >= ROW_NS

    def _look_into(self) -> None:
        """Let what waits through the vault."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self._pass(self._assembled.feed(waiting))

    def _pass(self, pieces: list[Piece]) -> None:
        for data, when in pieces:
            self._came += len(data)
            if when is not None:
                self._borders.append((self._came, when))
        self._take(b"".join(data for data, _ in pieces), last=False)

    def _take(self, data: bytes, last: bool) -> None:
        for span in self._window.feed(data, last):
            end = self._decided + span.size
            at = 0  # bytes of this span's text that belong to pieces already closed
            while self._borders and self._borders[0][0] <= end:
                border, when = self._borders.pop(0)
                # A border inside a secret moves behind its marker.
                here = len(span.text) if span.secret else border - self._decided
                self._close_piece(here - at, when)
                at = here
            self._open_piece += len(span.text) - at
            self._decided = end
            if self._withheld is None:
                self._pending += span.text
            else:
                self._withheld.update(span.text)
            self._digest.update(span.text)
            self.size += len(span.text)
            if self.size <= KEPT:
                self._kept.append(span.text)

    def _close_piece(self, more: int, when: int) -> None:
        size = self._open_piece + more
        if size:
            self._pieces.append([size, when - self._last_piece])
            self._last_piece, self._open_piece = when, 0
            self._count += 1

    def _write(self, now: int) -> None:
        while self._pending:
            if not self._recorder.keep.keeps:
                self._lose()
                return
            taken = _cut(self._pending, ROW_BYTES)
            if taken == 0:
                return
            data, pieces = self._row(taken)
            body = self._recorder.keep.text(data, self._tier)
            self._recorder.append("decision", "chunk", self._keys, {"body": body, "pieces": pieces}, self._lane)
            self._rows += 1
        self._last_row = now

    def _lose(self) -> None:
        """What came past the recording's bound is counted, not kept."""
        self._lost += len(self._pending)
        self._pending.clear()
        self._pieces.clear()

    def _row(self, taken: int) -> tuple[bytes, list[list[int]]]:
        """The next `taken` pending bytes, and the pieces that end in them. A piece counts all its bytes."""
        data = bytes(self._pending[:taken])
        del self._pending[:taken]
        pieces, room = [], taken + self._carried
        while self._pieces and self._pieces[0][0] <= room:
            room -= self._pieces[0][0]
            pieces.append(self._pieces.pop(0))
        self._carried = room
        return data, pieces

    def close(self) -> None:
        """The body is at its end: decide what was held back."""
        if self._closed:
            return
        self._closed = True
        if self._encoded:
            self._open_encoded()
        self._look_into()
        self._pass(self._assembled.close())
        self._take(b"", last=True)

    def _open_encoded(self) -> None:
        """Record a compressed body as it came, or, where a secret is inside, decoded and without it."""
        whole = b"".join(data for data, _ in self._encoded)
        try:
            plain = DECODERS[self.encoding](whole)
        except (zlib.error, EOFError, OSError):
            self._recorder.vault.not_scanned(f"a broken {self.encoding} body")
            plain = b""
        redacted = self._recorder.vault.redact(without_spelled(self._recorder.vault, plain))
        if redacted != plain:
            self._encoded, self._decoded = [(redacted, True)], redacted
            self.replaced = True
        else:
            self._decoded = plain
        for data, ends_chunk in self._encoded:
            self._feed(data, ends_chunk)

    def totals(self) -> dict[str, Any]:
        """What the finished row says of the body; it carries the whole body where no row did so before."""
        self.close()
        if self._withheld is not None:
            body = {"$withheld": {"size": self.size, "hmac": self._withheld.hexdigest()}}
            return {"body": body, "body_size": self.size, "body_pieces": self._count, "first_ns": self._first}
        fields: dict[str, Any] = {}
        if self._rows or len(self._pending) > ROW_BYTES:
            self._write(clock.monotonic_ns())
        if self._pending and not self._recorder.keep.keeps:
            self._lose()
        if self._pending:
            data, pieces = self._row(len(self._pending))
            fields = {"body": self._recorder.keep.text(data, self._tier), "pieces": pieces}
        if self._lost:
            fields["body_lost"] = self._lost
        elif self._tier == layout.ORDINARY:
            fields["body_sha256"] = self._digest.hexdigest()
        return {
            **fields,
            "body_size": self.size,
            "body_pieces": self._count,
            "first_ns": self._first,
            **({"decoded": self.encoding} if self.replaced else {}),
        }

    def readable(self) -> bytes:
        """The body as recorded and decoded, for those who read it whole; of a long one its first 8 MiB."""
        return self._decoded if self._decoded is not None else b"".join(self._kept)


def _cut(data: bytearray, limit: int) -> int:
    """How many bytes, up to `limit`, end at a code point; a lone cut character waits for the rest of it."""
    end = min(limit, len(data))
    for back in range(1, min(4, end) + 1):
        byte = data[end - back]
        if byte < 0x80:
            return end
        if byte >= 0xC0:
            whole = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end if back >= whole else end - back
    return end  # no UTF-8: bytes go as they are
