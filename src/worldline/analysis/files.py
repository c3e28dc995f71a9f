"""The files that two runs left: what one of them has and the other has not, and what is not the same in both.

Only runs that kept their workspace say it. What programs make anew with times in it (`DERIVED`) is left out.
"""

from __future__ import annotations

import os

import msgspec

from worldline.engine.lineage import LineageRecording, said_workspace
from worldline.errors import WorldlineError
from worldline.model.values import readable
from worldline.store.recording import Recording

CHANGED, ONLY_LEFT, ONLY_RIGHT = "changed", "only_left", "only_right"


class FileChange(msgspec.Struct, frozen=True):
    """A path below the workspace, and `what`: `changed`, `only_left` or `only_right`."""

    path: str
    what: str


def files_left(left: Recording, right: Recording) -> tuple[list[FileChange], str | None]:
    """What differs between the files that two runs left, by path; and why they could not be compared, if so."""
    kept = [_kept_workspace(side) for side in (left, right)]
    if not any(kept):
        return [], None
    if not all(kept):
        return [], f"the files were not compared: the {'right' if kept[0] else 'left'} run kept no workspace"
    try:
        return _compared(left, right)
    except WorldlineError as error:
        return [], f"the files were not compared: {error}"


def _kept_workspace(side: Recording) -> bool:
    return said_workspace(side.segments[0].recording if isinstance(side, LineageRecording) else side) is not None


def _compared(left: Recording, right: Recording) -> tuple[list[FileChange], str | None]:
    # Only runs with a workspace need them, and they are much to load.
    from worldline.engine.checkpoints import checkpoints_of
    from worldline.engine.restored import is_derived
    from worldline.engine.substrates.choose import substrate_of

    stores = {side.run_directory.parent.resolve() for side in (left, right)}
    last = [next(reversed(checkpoints_of(side)), None) for side in (left, right)]
    if last[0] is None or last[1] is None:
        return [], "the files were not compared: a run has no checkpoint of them"
    here, there = last[0].ref, last[1].ref
    if len(stores) > 1 or here.substrate != there.substrate:
        return [], "the files were not compared: the two runs kept them in different places"
    found = []
    for change in substrate_of(here.substrate, stores.pop()).diff(here, there):
        path = os.fsdecode(change.path)
        if not is_derived(path):
            what = ONLY_RIGHT if change.old is None else ONLY_LEFT if change.new is None else CHANGED
            found.append(FileChange(readable(path), what))
    return found, None
