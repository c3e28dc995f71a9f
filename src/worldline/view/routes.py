"""What stands behind the token: the session, the list of runs, and of each run what is read and what is written.

    GET   api/session   api/runs?q=...   r/<id>/...   r/<id>/tree
    POST  r/<id>/annotations   r/<id>/audit   r/<id>/permission   r/<id>/fork

Reading is `view.opened`'s. What is written goes beside the seal, into the recorder's own door, or starts a child.
"""

from __future__ import annotations

import getpass
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from worldline.engine import clock
from worldline.errors import JoinError, UsageError
from worldline.seams.answering import answer
from worldline.store import notes
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording
from worldline.store.rendezvous import rendezvous_of
from worldline.view.answers import Answer, said
from worldline.view.forking import Forking
from worldline.view.listing import Listing
from worldline.view.shown import Shown
from worldline.view.tree import Family

VIA = "view"


class PanelRoutes:
    """Answers the requests of the page. `program` starts forks; None where there is no such verb."""

    def __init__(self, shown: Shown, closing: threading.Event, program: Sequence[str] | None = None) -> None:
        self._shown = shown
        self._forking = Forking(program)
        self._listing = Listing(shown.store, closing) if shown.store is not None else None
        self._family = Family(shown.store) if shown.store is not None else None
        self._who = _who()

    def close(self) -> None:
        """End what was started from the page."""
        self._forking.close()

    def get(self, path: list[str], query: Mapping[str, str], headers: Mapping[str, str]) -> Answer | None:
        """The answer to a GET; None where nothing is."""
        match path:
            case ["api", "session"]:
                return said(self._shown.session(fork=self._forking.there))
            case ["api", "runs"]:
                return said(self._listing.answer(query) if self._listing else {"total": 0, "pending": 0, "runs": []})
            case ["r", name, "tree"]:
                return said(self._tree(self._shown.run(name).recording()))
            case ["r", name, *words] if words:
                return self._shown.run(name).get(words, query, headers)
        return None

    def post(self, path: list[str], body: Mapping[str, Any]) -> Answer | None:
        """The answer to a POST; None where nothing is."""
        match path:
            case ["r", name, "annotations"]:
                return said(self._annotate(self._shown.run(name).recording(), body))
            case ["r", name, "audit"]:
                return said(self._audit(self._shown.run(name).recording(), body))
            case ["r", name, "permission"]:
                return said(self._permit(self._shown.run(name).recording(), body))
            case ["r", name, "fork"]:
                return said(self._forking.answer(self._shown.run(name).recording(), body))
        return None

    def _tree(self, recording: Recording) -> dict[str, Any]:
        if self._family is None or isinstance(recording, PackedRecording):
            return {"nodes": [], "more": 0}  # a bundle stands in no store that its family could be looked for in
        return self._family.tree(recording.run_id)

    def _annotate(self, recording: Recording, body: Mapping[str, Any]) -> dict[str, Any]:
        now = clock.wall_ns()
        if body.get("removed") is True:
            return notes.remove(recording, _text(body, "id"), now_ns=now)
        return notes.annotate(
            recording,
            now_ns=now,
            seq=_row(body),
            at=_text(body, "at"),
            text=_text(body, "text"),
            who=self._who,
            tag=_text(body, "tag", needed=False),
        )

    def _audit(self, recording: Recording, body: Mapping[str, Any]) -> dict[str, Any]:
        return notes.audit(
            recording,
            str(_text(body, "what")),
            str(_text(body, "scope")),
            _row(body) if body.get("seq") is not None else None,
            _text(body, "reason", needed=False),
            now_ns=clock.wall_ns(),
            who=self._who,
        )

    def _permit(self, recording: Recording, body: Mapping[str, Any]) -> dict[str, Any]:
        seq, decision = _row(body), str(_text(body, "decision"))
        reason = _text(body, "reason", needed=False) or None
        reached = None if isinstance(recording, PackedRecording) else rendezvous_of(recording)
        if reached is None:
            raise JoinError(f"nobody records {recording.run_id} any more, so nobody waits for an answer")
        answer(reached, seq, decision, by=self._who, via=VIA, reason=reason)
        return {"seq": seq, "decision": decision, "by": self._who}


def _who() -> str:
    """Who sits here, as the system knows them."""
    try:
        return getpass.getuser()[:100]
    except (OSError, KeyError, ImportError):  # a user that the system has no name for
        return f"user {os.getuid()}"


def _row(body: Mapping[str, Any]) -> int:
    seq = body.get("seq")
    if type(seq) is not int or seq < 0:
        raise UsageError(f"seq is the number of a row, not {seq!r:.40}")
    return seq


def _text(body: Mapping[str, Any], name: str, *, needed: bool = True) -> Any:
    """A text of a request. Raises `UsageError` where it is none, or missing."""
    value = body.get(name)
    if isinstance(value, str) or (value is None and not needed):
        return value
    raise UsageError(f"{name} is a text, not {value!r:.40}", name=name)
