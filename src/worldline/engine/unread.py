"""Answers of models that nobody here can read: whether they called tools is not known, so no replay may rest on it.

A tool that ran outside the recording is seen by two things: the answer that called it and the request that brought its
result. Where no dialect reads them there is nothing to see, and a replay would run the tool again without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from worldline.engine.codings import DECODERS
from worldline.model.dialects import can_read, carries_tools
from worldline.model.events import Event
from worldline.store.recording import Recording

LATER = frozenset({"gemini.generate", "openai.responses.retrieve"})
"""Routes that a record may have from before there was a reader: their answers were read if a row has a fact of one."""

_FACTS = ("tool_uses", "said_error")
_OK, _REDIRECTS = 200, 300


class Unread:
    """Counts, by route, the answered model calls whose answers could not be read. Fed row by row."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}  # call under way -> route
        self._counts: Counter[str] = Counter()

    def asked(self, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """A model is asked. What a tool asks for itself runs no tool of the agent's."""
        if not keys.get("parent_id") and carries_tools(name := str(data.get("name")), data.get("inputs")):
            self._asked[str(keys.get("call"))] = name

    def answered(self, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Its answer came, or it failed."""
        name = self._asked.pop(str(keys.get("call")), None)
        if name is not None and _is_unread(name, data):
            self._counts[name] += 1

    def row(self, event: Event) -> None:
        """Take the next row of a record."""
        if event.kind != "decision":
            return
        if event.src == "request":
            self.asked(event.keys, event.data)
        elif event.src == "response":
            self.answered(event.keys, event.data)

    def counts(self) -> dict[str, int]:
        """How many there are of each route."""
        return dict(sorted(self._counts.items()))


def unread(recording: Recording) -> dict[str, int]:
    """The same of a whole record. Its rows are asked, whatever its manifest says: an older one counts nothing."""
    found = Unread()
    for event in recording.events():
        found.row(event)
    return found.counts()


def objection(counts: Mapping[str, int]) -> str:
    """Why a recording with such answers is not driven again by itself, with the ways on."""
    asked = ", ".join(f"{name} x{count}" for name, count in counts.items())
    return (
        f"answers of models came in a form that cannot be read here ({asked}), so a tool that they called and that is "
        "not wrapped would run again unseen; ask through an interface that is read (docs: record any command) and "
        "record again; or let such tools run again: --tools run"
    )


def _is_unread(name: str, data: Mapping[str, Any]) -> bool:
    status = data.get("status", _OK)
    # A refusal calls no tool, and neither does an answer without a body.
    if "error" in data or not isinstance(status, int) or not _OK <= status < _REDIRECTS or not data.get("body_size"):
        return False
    if not can_read(name) or _is_encoded(data):
        return True
    return name in LATER and not any(key in _FACTS or key.startswith("gen_ai.") for key in data)


def _is_encoded(data: Mapping[str, Any]) -> bool:
    """Whether the body came in a coding that nobody here can undo."""
    headers = data.get("headers")
    pairs = headers if isinstance(headers, list) and "decoded" not in data else []
    named = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2]
    coding = next((str(value) for name, value in named if str(name).lower() == "content-encoding"), "")
    return coding.strip().lower() not in {"", "identity", *DECODERS}
