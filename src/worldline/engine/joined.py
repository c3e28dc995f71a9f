"""Where a secret stands in an answer of a model that no stretch of the log shows whole.

An answer that came in many pieces is cut at any place, and one that came token by token names a secret in fragments.
Both are joined here: the body, and the text that its fragments make.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from worldline.engine.assembled import without_spelled
from worldline.engine.cassette import Cassette
from worldline.errors import WorldlineError
from worldline.store.forget.quarantine import Place
from worldline.store.recording import Recording
from worldline.store.secrets.vault import Vault


def in_answers(attempt: Path, vault: Vault) -> Iterator[Place]:
    """The answers of an attempt that hold a secret of the vault once they are joined."""
    with suppress(WorldlineError):  # of what cannot be read as a record only the files can be searched
        cassette = Cassette(Recording(attempt))
        for exchange in cassette.exchanges:
            if exchange.kind != "decision":
                continue
            with suppress(WorldlineError):
                body = cassette.readable(exchange)
                if vault.finds(body) or without_spelled(vault, body) != body:
                    yield Place("answer", "the joined answer", exchange.started)
