"""Whose a change of a workspace is, and what of the agent's can be taken back without touching anybody else's.

A workspace is known at its checkpoints. What came about while the model was thinking, or after the run, is somebody
else's; the rest is the agent's. Its changes are taken back path by path, newest first, as long as what stands there is
what the agent left. Where somebody changed it since, it stays as it is. A repository (`.git` with all in it) goes back
whole or not at all: half of it would be a broken one.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from worldline.engine.substrates.scan import told
from worldline.model.tree import Change, Entry, File, Folder, Text, itself, text_of

SINCE = "somebody changed it since"
BEFORE = "somebody changed it after the agent, in step {step}"
REPOSITORY = "somebody changed this repository since, so it stays as it is"
NO_FOLDER = "the folder it was in is not there any more"
HOLDS = "something of somebody else's is in it"
GIT = b".git"


class Interval(msgspec.Struct, frozen=True):
    """What changed from one checkpoint to the next; `step` is the agent's, None after the run.

    `agents` says whether it was the agent.
    """

    step: int | None
    agents: bool
    changes: Sequence[Change]


class Undoing(msgspec.Struct, frozen=True):
    """One path that goes back: from what stands there to what stood there; `step` is the first that is taken back."""

    change: Change
    step: int

    @property
    def action(self) -> str:
        """`remove` (the agent made it), `bring back` (it removed it) or `restore` (it changed it)."""
        if self.change.new is None:
            return "remove"
        return "bring back" if self.change.old is None else "restore"


class Left(msgspec.Struct, frozen=True):
    """A path that the agent changed and that stays as it is, and why."""

    path: Text
    why: str


class Plan(msgspec.Struct, frozen=True):
    """What goes back, sorted by path, and what stays."""

    undoing: list[Undoing]
    left: list[Left]


class _Step(msgspec.Struct, frozen=True):
    step: int | None
    agents: bool
    change: Change


def plan(
    intervals: Iterable[Interval],
    now: Callable[[bytes], Entry | None],
    inside: Callable[[bytes], Iterable[bytes]],
) -> Plan:
    """What of the agent's in these intervals, newest first, can be taken back.

    `now` says what stands at a path, `inside` which paths stand right in a folder.
    """
    history: defaultdict[bytes, list[_Step]] = defaultdict(list)
    for interval in intervals:
        for change in interval.changes:
            history[change.path].append(_Step(interval.step, interval.agents, change))
    whole = {unit for path, steps in history.items() if (unit := repository(path)) and not all(s.agents for s in steps)}
    undoing: dict[bytes, Undoing] = {}
    left: dict[bytes, str] = {}
    for path, steps in history.items():
        if not any(step.agents for step in steps):
            continue
        if (unit := repository(path)) in whole and unit is not None:
            left[unit] = REPOSITORY
            continue
        found, why = _taken_back(path, steps, now(path))
        if found is not None:
            undoing[path] = found
        if why is not None:
            left[path] = why
    for broken in {unit for path in left if (unit := repository(path)) is not None}:
        for path in [path for path in (*undoing, *left) if repository(path) == broken]:
            undoing.pop(path, None)
            left.pop(path, None)
        left[broken] = REPOSITORY
    _without_a_place(undoing, left, now, inside)
    ordered = [undoing[path] for path in sorted(undoing)]
    return Plan(_linked(ordered), [Left(text_of(path), left[path]) for path in sorted(left)])


def repository(path: bytes) -> bytes | None:
    """The repository's own folder (or file) that a path is in, or is; None of any other."""
    parts = path.split(b"/")
    return b"/".join(parts[: parts.index(GIT) + 1]) if GIT in parts else None


def _taken_back(path: bytes, steps: Sequence[_Step], current: Entry | None) -> tuple[Undoing | None, str | None]:
    """How far back a path can go, and why not further."""
    at, first, links = current, None, tuple[bytes, ...]()
    why: str | None = None
    for number, step in enumerate(steps):
        if not step.agents:
            if any(older.agents for older in steps[number:]):
                why = SINCE if step.step is None else BEFORE.format(step=step.step)
            break
        if itself(at) == itself(step.change.new):
            at, first, links = step.change.old, step.step, step.change.old_links
        elif itself(at) != itself(step.change.old):
            why = SINCE
            break
    if first is None and itself(current) == itself(steps[-1].change.old):  # it is there already, by somebody
        return None, None
    if first is None or itself(at) == itself(current):
        return None, why
    return Undoing(Change(path, current, at, new_links=links), first), why


def _without_a_place(
    undoing: dict[bytes, Undoing],
    left: dict[bytes, str],
    now: Callable[[bytes], Entry | None],
    inside: Callable[[bytes], Iterable[bytes]],
) -> None:
    """Leave what would have no folder to stand in, and folders in which something stays."""

    def then(path: bytes) -> Entry | None:
        return undoing[path].change.new if path in undoing else now(path)

    for path in sorted(undoing, reverse=True):
        change = undoing[path].change
        goes = isinstance(change.old, Folder) and not isinstance(change.new, Folder)
        if goes and any(then(each) is not None for each in inside(path)):
            del undoing[path]
            left[path] = HOLDS
    for path in sorted(undoing):
        above = path.rpartition(b"/")[0]
        if above and undoing[path].change.new is not None and not isinstance(then(above), Folder):
            del undoing[path]
            left[path] = NO_FOLDER


def _linked(undoing: list[Undoing]) -> list[Undoing]:
    """Hard links are made again among what goes back with the same content; any other is a file of its own."""
    back = {each.change.path: each.change.new for each in undoing}

    def of(change: Change) -> tuple[bytes, ...]:
        new = change.new
        if not isinstance(new, File):
            return ()
        others = ((path, back.get(path)) for path in change.new_links)
        return tuple(path for path, other in others if isinstance(other, File) and other.content == new.content)

    return [
        msgspec.structs.replace(each, change=msgspec.structs.replace(each.change, new_links=of(each.change)))
        for each in undoing
    ]


def shown(path: bytes) -> str:
    """A path as people read it."""
    return told(os.fsdecode(path))
