"""What an agent says itself in a record (markers, permissions, observations), to be met again when it is driven there.

No call asks for it and nothing is compared. But a step that is marked tells how far the agent has come: where it marks
one that stands behind a fork, it is behind that fork, though nothing has crossed there yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from worldline.engine.lineage import Forked, LineageRecording
from worldline.model.events import Event

_KINDS = ("marker", "permission", "observation")


class Spoken:
    """The places of what was said, by kind, source and lane. `reached` is the latest that was said again."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, str], deque[int]] = {}
        self._left = 0
        self.reached = -1

    def fold(self, event: Event, recording: LineageRecording) -> None:
        """Take in a row."""
        if _is_said(event, recording):
            self._places.setdefault((event.kind, event.src, event.lane), deque()).append(event.seq)
            self._left += 1

    def again(self, kind: str, src: str, lane: str) -> bool:
        """Whether what the agent says now is what it said in the record; then that was said."""
        places = self._places.get((kind, src, lane))
        if not places:
            return False
        self.reached = max(self.reached, places.popleft())
        self._left -= 1
        return True

    def clear(self) -> None:
        """Nothing is to be met again."""
        self._places.clear()
        self._left = 0

    @property
    def all_said(self) -> bool:
        """Whether nothing is left."""
        return self._left == 0


def _is_said(event: Event, recording: LineageRecording) -> bool:
    """Whether a row is what the agent said itself: no crossing, and not what the gate or who was asked wrote."""
    if event.call is not None or event.kind not in _KINDS or "parent_id" in event.keys:
        return False
    facts = recording.loaded(event.data.get("facts")) if event.kind == "permission" else None
    return not (isinstance(facts, dict) and "id" in facts)


def passed(forks: Iterable[Forked], reached: int, spoken: Spoken) -> int:
    """How many forks an agent came past that has asked for what stands up to row `reached`.

    Where a call opened the branch, what it drew by chance before that call was still its parent's.
    """
    return sum(fork.seq <= max(reached, spoken.reached if fork.by_step else -1) for fork in forks)
