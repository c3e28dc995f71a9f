"""What other tools read, derived from the one log: `decisions.jsonl` and `network.jsonl`. Never a second record.

Each exporter is a function of the recording alone, so whoever verifies a bundle makes the same bytes again. None of
them opens a content: no message, argument, result or body gets into an export, and nothing of the restricted tier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from worldline.engine.export.decisions import decisions
from worldline.engine.export.network import network
from worldline.store.bundle.container import DECISIONS, NETWORK
from worldline.store.recording import Recording

EXPORTS: dict[str, Callable[[Recording], Iterator[bytes]]] = {DECISIONS: decisions, NETWORK: network}
"""By the name of the entry in a bundle."""

__all__ = ["EXPORTS", "decisions", "network"]
