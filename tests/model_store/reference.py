"""The store as anybody would say it: runs, attempts, rows and contents in plain lists. No file, no hash, no sync.

What the real store does is compared with this after every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

RETENTION = {"ordinary": 100, "restricted": 50}  # seconds behind the seal
RESTRICTED = "pay"  # the tool whose contents are kept apart
GONE = "gone"  # stands for a content that nobody can read any more


@dataclass
class Row:
    """A note with a value, or the begin or end of a tool call with what it was given or gave."""

    kind: str  # note, begun, finished
    said: str
    tier: str | None = None  # of a content; a note has none


def readable(rows: list[Row], gone: set[str]) -> list[Row]:
    """The rows as they can be read once the contents of these tiers are gone."""
    return [Row(row.kind, GONE, row.tier) if row.tier in gone else row for row in rows]


@dataclass
class Attempt:
    """One recording. `rows` are those after the header; `durable` says how many of them no crash can take."""

    run: Run
    rows: list[Row] = field(default_factory=list)
    durable: int = 0
    state: str = "live"  # live, dead, complete, partial, contained
    gone: set[str] = field(default_factory=set)  # tiers that expired
    left: Attempt | None = None  # the attempt that it goes on from, of a fork
    expired_at: int = 0  # the latest second at which something expired

    def note(self, value: str, durable: bool) -> None:
        self.rows.append(Row("note", value))
        self.durable = len(self.rows) if durable else self.durable

    def call(self, tool: str, given: str, gave: str) -> None:
        tier = "restricted" if tool == RESTRICTED else "ordinary"
        self.rows += [Row("begun", given, tier), Row("finished", gave, tier)]
        self.durable = len(self.rows) - 1  # what an idempotent call gave waits for the next sync

    def die(self, kept: int) -> None:
        assert kept >= self.durable, "a row that was acknowledged is gone"
        self.state, self.rows = "dead", self.rows[:kept]

    def expire(self, seconds: int) -> set[str]:
        """The tiers whose contents go now, so many seconds behind the seal; those that have contents at all."""
        due = {tier for tier in self.tiers() - self.gone if RETENTION[tier] <= seconds}
        self.gone |= due
        self.expired_at = max(self.expired_at, seconds) if due else self.expired_at
        return due

    @property
    def lineage(self) -> list[Attempt]:
        """What it goes on from, oldest first, and itself."""
        return [*(self.left.lineage if self.left else []), self]

    @property
    def whole(self) -> bool:
        """Whether it, and all that it goes on from, is there to be served."""
        return all(each.sealed and not each.gone and not each.run.trashed for each in self.lineage)

    def calls(self) -> list[tuple[str, str]]:
        """The tool calls with an end, of the whole lineage: which tool, what it was given."""
        found = []
        for each in self.lineage:
            for begun, ended in pairwise([*each.rows, Row("note", "")]):
                if begun.kind == "begun" and ended.kind == "finished":
                    found.append((RESTRICTED if begun.tier == "restricted" else "look", begun.said))
        return found

    def tiers(self) -> set[str]:
        return {row.tier for row in self.rows if row.tier}

    def holds(self, secret: str) -> bool:
        """Whether a text stands in it now: in a note, or in a content that is still there."""
        return any(secret in row.said for row in self.rows if row.tier not in self.gone)

    @property
    def sealed(self) -> bool:
        return self.state in ("complete", "partial")


@dataclass
class Run:
    """The attempts at one task, oldest first. `trashed` is where it stands."""

    attempts: list[Attempt] = field(default_factory=list)
    trashed: bool = False

    @property
    def published(self) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.state == "complete"), None)

    @property
    def shown(self) -> str:
        """What a list says of it."""
        if self.published:
            return "complete"
        if any(attempt.state == "contained" for attempt in self.attempts):
            return "contained"
        return {"live": "running", "dead": "interrupted"}.get(self.attempts[-1].state, self.attempts[-1].state)

    def reconcile(self) -> list[str]:
        """Every dead attempt is sealed as partial; the states that are said."""
        for attempt in self.attempts:
            if attempt.state == "dead":
                attempt.state = "partial"
        partial = "superseded" if self.published else "sealed:partial"
        said = {"live": "live", "partial": partial, "complete": "sealed:complete", "contained": "contained"}
        return sorted(said[attempt.state] for attempt in self.attempts)
