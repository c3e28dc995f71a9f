"""The Merkle root over the leaves of a log (RFC 9162, section 2.1): node = SHA256(0x01 | left | right)."""

from __future__ import annotations

import hashlib


class Merkle:
    """Folds leaves (32 bytes each) one by one; memory grows with log2(n)."""

    def __init__(self) -> None:
        self._peaks: list[bytes] = []
        self.size = 0

    def add(self, leaf: bytes) -> None:
        """Add the next leaf."""
        size = self.size
        while size & 1:
            leaf = node(self._peaks.pop(), leaf)
            size >>= 1
        self._peaks.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """The root over all leaves so far; the hash of nothing for no leaves, as the RFC says."""
        if not self._peaks:
            return hashlib.sha256(b"").digest()
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = node(peak, root)
        return root


def node(left: bytes, right: bytes) -> bytes:
    """The parent of two nodes."""
    return hashlib.sha256(b"\x01" + left + right).digest()
