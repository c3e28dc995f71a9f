"""What differs between two runs: their steps aligned, the first divergence, and what differs in each pair of steps.

Two independent runs get a difference, never a cause. Each side is read twice, step by step (once for its keys, once
for its contents), so that a long run is never held; a branch is read with its lineage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from worldline.analysis.align import MOST_EDITS, Alignment, Keys, Row, align
from worldline.analysis.changes import Change, changes, unpacked
from worldline.analysis.files import CHANGED, ONLY_LEFT, FileChange, files_left
from worldline.analysis.keys import keys_of, name_of
from worldline.engine.lineage import opened
from worldline.engine.masks import MaskUse, masks_of
from worldline.engine.steps import Step, ToolCall, each_step
from worldline.errors import Damaged, Ineligible
from worldline.model.masks import REQUEST, TOOL, Left, Mask, Masks
from worldline.store.recording import Recording

PARTS = ("decision", "action", "observation")  # in the order in which they happen
KEYED = 1 << 20  # bytes of a content that are read for a key
SCREEN = "screen"  # the rule by which other pixels are no difference by themselves
PERMISSIONS = ("requested", "granted", "denied", "auto_approved", "escalated", "revoked")


class StepPair(msgspec.Struct, kw_only=True):
    """One row of the spine: the numbers of the step on either side, None on the side that has none.

    `same` where nothing that counts differs. `anchors` says what ties the two: the same `tool` call, the same
    `permission`, the same `screen`. The three lists hold what differs; `more` counts changes beyond those kept.
    """

    left: int | None
    right: int | None
    name: str
    same: bool
    anchors: list[str] = []
    decision: list[Change] = []
    action: list[Change] = []
    observation: list[Change] = []
    more: int = 0


class FirstDivergence(msgspec.Struct, kw_only=True):
    """Where two runs part: the steps, and `what`.

    `decision`, `action` or `observation` with its first change; `only_left` or `only_right` where one has a step that
    the other has not; `outcome` where all steps are the same and they ended differently, `files` where they left other
    files.
    """

    left: int | None
    right: int | None
    what: str
    change: Change | None = None


class RunDiff(msgspec.Struct, kw_only=True):
    """Two runs side by side. `aligned` counts the pairs of steps; the lists hold the numbers of steps without one.

    `files` is what differs in the workspaces that they left, where both kept one. `masks` says what each mask about
    tools or parts of steps left out, in both runs together.
    """

    aligned: int
    only_left: list[int]
    only_right: list[int]
    first_divergence: FirstDivergence | None
    steps: list[StepPair]
    files: list[FileChange] = []
    notes: list[str] = []
    masks: list[MaskUse] = []

    @property
    def same(self) -> bool:
        """Whether nothing that counts differs."""
        return self.first_divergence is None

    def to_json(self) -> dict[str, Any]:
        """The form of `worldline diff --json`."""
        out: dict[str, Any] = msgspec.to_builtins(self)
        return out


def compare(left: Recording, right: Recording, masks: Iterable[Mask] = ()) -> RunDiff:
    """Compare two recordings; what `masks` and their own leave out does not count.

    A mask about requests says nothing here, since steps are compared and not what was asked for them. Raises
    `LineageBroken`, or what reading a recording raises.
    """
    declared, unread = _declared((left, right))
    masking = _Masking(Masks(mask for mask in (*declared, *masks) if mask.where != REQUEST))
    sides = opened(left), opened(right)
    here, there = (_read(side) for side in sides)
    alignment = align(here.keys, there.keys)
    pairs = list(_pairs(sides, alignment, here, there, masking))
    files, why = files_left(*sides)
    found = RunDiff(
        aligned=sum(pair.left is not None and pair.right is not None for pair in pairs),
        only_left=[pair.left for pair in pairs if pair.left is not None and pair.right is None],
        only_right=[pair.right for pair in pairs if pair.right is not None and pair.left is None],
        first_divergence=_first(pairs) or _other_end(left, right) or _other_files(files),
        steps=pairs,
        files=files,
        masks=masking.uses(),
        notes=unread,
    )
    if why is not None:
        found.notes.append(why)
    if not alignment.shortest:
        found.notes.append(
            f"they differ in over {MOST_EDITS:,} places: aligned in parts, and steps that are the same may stand apart"
        )
    for name, side in zip(("left", "right"), sides, strict=True):
        if side.damages:
            found.notes.append(f"the {name} run is damaged, and was compared as far as it can be read")
        elif side.disposition in ("running", "interrupted"):
            found.notes.append(f"the {name} run is {side.disposition}: compared as far as it goes")
    return found


class _Side(msgspec.Struct):
    """What is kept of all steps of one run: their keys, and what ties them to those of another."""

    keys: Keys
    screens: list[str]
    permissions: list[str]


def _read(recording: Recording) -> _Side:
    whole: list[str] = []
    action: list[str] = []
    places: dict[int, int] = {}
    for step in each_step(recording, KEYED):
        places[step.seq] = len(whole)
        key, kind = keys_of(step)
        whole.append(key)
        action.append(kind)
    side = _Side(Keys(whole, action), [""] * len(whole), [""] * len(whole))
    current: dict[str, int] = {}
    last = -1
    for event in recording.events():
        if event.seq in places:
            last = current[event.lane] = places[event.seq]
        place = current.get(event.lane, last)
        if place < 0:
            continue
        if event.kind == "permission":
            capability = event.data.get("capability")
            word = event.src if event.src in PERMISSIONS else ""
            side.permissions[place] += f"{word} {capability if isinstance(capability, str) else ''};"
        elif event.name == "observation/screenshot":
            side.screens[place] = _content(event.data.get("value"))
    return side


def _content(form: Any) -> str:
    """The name of the content that a value stands in: equal contents have equal names."""
    reference = form.get("$blob") if isinstance(form, dict) else None
    return str(reference.get("name", "")) if isinstance(reference, dict) else ""


def _declared(runs: tuple[Recording, Recording]) -> tuple[list[Mask], list[str]]:
    """The masks that two runs declare, and in words which cannot be read."""
    found: list[Mask] = []
    notes: list[str] = []
    for run in runs:
        with suppress(Damaged):  # the notes say that it is damaged
            try:
                found += masks_of(run)
            except Ineligible as error:
                notes.append(str(error))
    return found, notes


class _Masking:
    """What masks leave out of steps, and how much."""

    def __init__(self, masks: Masks) -> None:
        self.masks = masks
        self._values: Counter[int] = Counter()
        self._steps: Counter[int] = Counter()

    def said(self, step: Step) -> list[Any]:
        """What a step said, in three parts, without what is left out."""
        parts = _said(step)
        if not self.masks:
            return [*parts]
        met, found = Counter[int](), []
        for name, part in zip(PARTS, parts, strict=True):
            calls = part.get("calls", [])
            names = [call.get("name", "") for call in calls]
            for call in calls:
                call |= {key: unpacked(call[key]) for key in ("arguments", "result") if isinstance(call.get(key), str)}
            applied = self.masks.applied(name, "", part)
            met += applied.met
            for tool, call in zip(names, calls, strict=True):
                if part.get("calls") is calls and isinstance(call, dict) and "arguments" in call:
                    met += self._argued(tool, call)
            found.append(applied.document)
        self._values.update(met)
        self._steps.update(met.keys())
        return found

    def _argued(self, tool: str, call: dict[str, Any]) -> Counter[int]:
        """Leave out what masks leave out of a call's arguments; how much that is."""
        if isinstance(call["arguments"], Left):  # all of them are left out as a part of the step
            return Counter()
        applied = self.masks.applied(TOOL, tool, call["arguments"])
        call["arguments"] = applied.document
        return applied.met

    def uses(self) -> list[MaskUse]:
        """The masks, with what each left out."""
        return [
            MaskUse(mask=mask.text, origin=mask.origin, values=self._values[n], exchanges=self._steps[n])
            for n, mask in enumerate(self.masks.all)
        ]


def _pairs(
    sides: tuple[Recording, Recording], alignment: Alignment, here: _Side, there: _Side, masking: _Masking
) -> Iterator[StepPair]:
    """The rows of the spine with what differs in them, both runs read once more beside each other."""
    left, right = each_step(sides[0]), each_step(sides[1])
    for row in alignment.rows:
        a = next(left) if row.left >= 0 else None
        b = next(right) if row.right >= 0 else None
        if a is None or b is None:
            step = a or b
            assert step is not None, "a row has a step on one side at least"
            index = (None if a is None else a.index, None if b is None else b.index)
            yield StepPair(left=index[0], right=index[1], name=name_of(step)[0], same=False)
            continue
        screens = here.screens[row.left], there.screens[row.right]
        pair = StepPair(
            left=a.index, right=b.index, name=name_of(b)[0], same=True, anchors=_anchors(row, here, there, b)
        )
        for part, (was, now) in zip(PARTS, zip(masking.said(a), masking.said(b), strict=True), strict=True):
            found, more = changes(was, now)
            setattr(pair, part, found)
            pair.more += more
            pair.same = pair.same and all(change.volatile is not None for change in found)
        if all(screens) and screens[0] != screens[1]:
            path = f"$.{SCREEN}"
            other = Change(path=path, kind="changed", left=screens[0], right=screens[1], volatile=SCREEN)
            pair.observation.append(other)
        yield pair


def _anchors(row: Row, here: _Side, there: _Side, step: Step) -> list[str]:
    """What ties two steps together."""
    ties = {
        "permission": (here.permissions[row.left], there.permissions[row.right]),
        SCREEN: (here.screens[row.left], there.screens[row.right]),
    }
    tool = ["tool"] if row.exact and step.calls else []
    return tool + [what for what, (a, b) in ties.items() if a and a == b]


def _said(step: Step) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A step's decision (what the model chose), action (what was carried out) and observation (what came back)."""
    asked = [call for call in step.calls if _is_asked(call)]
    decision = {
        "model": step.model,
        "text": step.text,
        "reasoning": step.reasoning,
        "finish": step.finish,
        "error": step.error,
        "lost": step.lost,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in asked],
    }
    action = {
        "calls": [
            {"name": call.name, "ran": call.ran, "effect": call.effect}
            | ({} if _is_asked(call) else {"arguments": call.arguments})
            for call in step.calls
        ],
        "permissions": [{k: v for k, v in permission.items() if k != "seq"} for permission in step.permissions],
    }
    observation = {"calls": [{"result": call.result, "error": call.error} for call in step.calls]}
    return decision, action, observation


def _is_asked(call: ToolCall) -> bool:
    """Whether a model asked for it; else the agent made the call by itself."""
    return call.id is not None or call.seq is None


def _first(pairs: list[StepPair]) -> FirstDivergence | None:
    pair = next((pair for pair in pairs if not pair.same), None)
    if pair is None:
        return None
    if pair.left is None or pair.right is None:
        what = "only_left" if pair.right is None else "only_right"
        return FirstDivergence(left=pair.left, right=pair.right, what=what)
    counting = ((part, change) for part in PARTS for change in getattr(pair, part) if change.volatile is None)
    what, change = next(counting)
    return FirstDivergence(left=pair.left, right=pair.right, what=what, change=change)


def _other_end(left: Recording, right: Recording) -> FirstDivergence | None:
    """Two runs of the same steps that ended differently."""
    ends = left.summary.get("outcome"), right.summary.get("outcome")
    if None in ends or ends[0] == ends[1]:
        return None
    change = Change(path="$.outcome", kind="changed", left=ends[0], right=ends[1])
    return FirstDivergence(left=None, right=None, what="outcome", change=change)


def _other_files(files: list[FileChange]) -> FirstDivergence | None:
    """Two runs of the same steps that ended alike and left different files."""
    if not files:
        return None
    kind = {CHANGED: "changed", ONLY_LEFT: "removed"}.get(files[0].what, "added")
    change = Change(path=files[0].path, kind=kind)
    return FirstDivergence(left=None, right=None, what="files", change=change)
