"""Running counts over the rows of an attempt: what a list shows, and the coverage that the manifest states.

Coverage says what a replay can rest on: how many tool calls of the model ran inside the recording and how many ran
outside it: their results came back in the next request, but no crossing of ours served them, or a framework's callback
heard them run and could do no more. It can hear of models, too, that no seam of ours heard, and knows the answers that
no dialect could read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from worldline.engine.unread import Unread
from worldline.model.effects import Effect

CHECKPOINT = ("checkpoint_id", "parent_checkpoint_ids", "branch_id", "snapshot_id", "created_from_step")


_COUNTED = frozenset({"request", "response", "tool_call", "tool_result", "sample", "step", "run", "checkpoint", "loss"})


class StepCounter:
    """Counts steps as `engine.steps` folds them: one per decision with its retries, or one per explicit marker."""

    def __init__(self) -> None:
        self.steps = 0
        self._open: Counter[str] = Counter()  # explicit steps open in each lane
        self._last: dict[str, tuple[str, bool]] = {}  # lane -> key of its last decision, whether that failed
        self._lanes: dict[str, str] = {}  # call -> lane

    def begins(self, lane: str, key: str | None) -> bool:
        """Whether what comes next opens a step: a decision with this key, or (None) an explicit marker."""
        if self._open[lane]:
            return False
        before, failed = self._last.get(lane, ("", False))
        return not (failed and before == key)

    def marker(self, lane: str, begins: bool) -> None:
        """An explicit step begins or ends in `lane`."""
        if begins and not self._open[lane]:
            self.steps += 1
        self._open[lane] = max(0, self._open[lane] + (1 if begins else -1))

    def action(self) -> None:
        """A tool runs: before any decision or marker it is a step of its own."""
        self.steps = self.steps or 1

    def request(self, lane: str, call: str, key: str) -> bool:
        """A decision starts. Returns whether it opens a new step (a retry of a failed one does not)."""
        opens = self.begins(lane, key)
        self._last[lane] = (key, False)
        self._lanes[call] = lane
        self.steps += opens
        return opens

    def upcoming(self, lane: str, key: str) -> int:
        """How many steps there are once a decision of this key starts in `lane`; nothing is counted yet."""
        return self.steps + self.begins(lane, key)

    def response(self, call: str, failed: bool) -> None:
        """The answer to a decision came, or it failed."""
        lane = self._lanes.pop(call, None)
        if lane is not None and lane in self._last:
            self._last[lane] = (self._last[lane][0], failed)


class Tally:
    """Fed with every row as it is appended. Not thread-safe: the recorder's lock holds."""

    def __init__(self) -> None:
        self.counter = StepCounter()
        self.decisions = 0
        self.tokens = {"input": 0, "output": 0}
        self.samples = 0
        self.losses: list[str] = []
        self.checkpoints: list[dict[str, Any]] = []  # the nodes of the manifest's `checkpoint_dag`
        self.unrecordable: Counter[str] = Counter()
        self.recorded: Counter[str] = Counter()
        self.heard: dict[str, Counter[str]] = {"decision": Counter(), "tools": Counter()}  # and not more than that
        self.unread = Unread()
        self._asked: Counter[str] = Counter()  # tool call ids; where the wire has none, one stands for many calls
        self._names: dict[str, str] = {}  # tool call id -> tool name
        self._answered: Counter[str] = Counter()
        self._nested: set[str] = set()
        self.side_effect_cursor: int | None = None  # the row of the last call that began with effects

    def add(
        self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any], seq: int = 0
    ) -> None:
        """Count one row."""
        if src not in _COUNTED:
            return
        match kind, src:
            case "decision", "request":
                self._request(lane, keys, data)
            case "decision", "response":
                self._response(keys, data)
            case "action", "tool_call":
                self.recorded[str(data.get("name"))] += 1
                self.counter.action()
                if keys.get("effect") == Effect.SIDE_EFFECTING:
                    self.side_effect_cursor = seq
            case "observation", "tool_result" if "unrecordable" in data:
                self.unrecordable[str(data.get("name"))] += 1
            case "observation", "sample":
                self.samples += 1
            case "marker", "step":
                self.counter.marker(lane, data.get("phase") == "begin")
            case "marker", "run" if data.get("crossed") is False:
                self.heard["decision" if data.get("of") == "model" else "tools"][str(data.get("name"))] += 1
            case "snapshot_ref", "checkpoint":
                self.checkpoints.append({**{name: data.get(name) for name in CHECKPOINT}, "seq": seq})
            case "meta", "loss":
                self.losses.append(str(data.get("what")))

    def _request(self, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        self._answered.update(set(data.get("results", ())))
        self.unread.asked(keys, data)
        if keys.get("parent_id"):
            self._nested.add(str(keys["call"]))
            return
        self.decisions += 1
        self.counter.request(lane, str(keys.get("call")), str(keys.get("key")))

    def _response(self, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        self.counter.response(str(keys.get("call")), failed_response(data))
        self.unread.answered(keys, data)
        for side in ("input", "output"):
            count = data.get(f"gen_ai.usage.{side}_tokens")
            self.tokens[side] += count if isinstance(count, int) else 0
        if str(keys.get("call")) not in self._nested:
            uses = {use["id"]: use["name"] for use in data.get("tool_uses", ())}
            self._asked.update(uses.keys())
            self._names.update(uses)

    def outside(self) -> dict[str, int]:
        """Tool calls that nothing of ours ran: {name: count}; their results came back, or they were heard to run."""
        ran = Counter[str]()
        for call, times in self._asked.items():
            if answered := min(times, self._answered[call]):
                ran[self._names[call]] += answered
        outside = (ran - self.recorded) | self.heard["tools"]
        return dict(sorted(outside.items()))

    def summary(self) -> dict[str, Any]:
        """The part of a result or progress file that is counted here."""
        return {"steps": self.counter.steps, "decisions": self.decisions, "tokens": dict(self.tokens)}

    def coverage(self, capture: str) -> dict[str, Any]:
        """The manifest's coverage per channel."""
        return {
            "decision": {
                "recorded": self.decisions,
                "capture": capture,
                **({"outside": dict(sorted(heard.items()))} if (heard := self.heard["decision"]) else {}),
                **({"unread": counts} if (counts := self.unread.counts()) else {}),
            },
            "tools": {
                "recorded": dict(sorted(self.recorded.items())),
                "outside": self.outside(),
                "unrecordable": dict(sorted(self.unrecordable.items())),
            },
            "samples": {"recorded": self.samples},
            "losses": self.losses,
        }


def failed_response(data: Mapping[str, Any]) -> bool:
    """Whether a finished decision is one that clients retry: an error, a broken body, a status of 400 or more."""
    status, broken = data.get("status"), data.get("closed_by") == "upstream"
    return "error" in data or broken or (isinstance(status, int) and status >= 400)
