"""Answering for a person: how a program that watches a run reaches its recorder, and tells it what was decided.

It finds the door by the rendezvous that the recorder keeps while it works (`store.rendezvous`). Whether the recorder is
still at work it says itself, in time: one that is stopped or hangs does not answer.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from worldline.errors import AlreadyAnswered, JoinError, UsageError, WorldlineError
from worldline.store.rendezvous import Rendezvous

PATIENCE = 10.0  # seconds for an answer to be on the disk
_REFUSALS: dict[str, type[WorldlineError]] = {"AlreadyAnswered": AlreadyAnswered, "UsageError": UsageError}


def answer(
    rendezvous: Rendezvous, seq: int, decision: str, *, by: str, via: str | None = None, reason: str | None = None
) -> None:
    """Answer the request of row `seq`; on the disk when it returns.

    Raises `AlreadyAnswered`, `UsageError`, or `JoinError` where the recorder is gone or cannot record it.
    """
    said = {"word": rendezvous.answer, "seq": seq, "decision": decision, "by": by, "via": via, "reason": reason}
    _ask(rendezvous, "answer", said, PATIENCE)


def is_at_work(rendezvous: Rendezvous, patience: float) -> bool:
    """Whether the recorder answers within `patience` seconds."""
    try:
        return bool(_ask(rendezvous, "info", {}, patience).get("attempt") == rendezvous.attempt)
    except WorldlineError:
        return False


def _ask(rendezvous: Rendezvous, verb: str, body: Mapping[str, Any], patience: float) -> dict[str, Any]:
    try:
        parts = urlsplit(rendezvous.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=patience)
        try:
            connection.request("POST", f"{parts.path}door/{verb}", msgspec.json.encode(body))
            response = connection.getresponse()
            status, told = response.status, msgspec.json.decode(response.read(), type=dict[str, Any])
        finally:
            connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise JoinError(f"the recorder of {rendezvous.run} does not answer: {error}", run=rendezvous.run) from error
    if status != 200:
        refusal = told.get("error", {})
        kind = _REFUSALS.get(refusal.get("class", ""), JoinError)
        raise kind(refusal.get("message", f"the recorder refused: HTTP {status}"), **refusal.get("facts", {}))
    return told
