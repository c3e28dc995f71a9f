"""The workspace of a branch: it begins as the run's was, and stands as it stood at the fork before anything goes live.

Where tools ran outside the recording they run again in it, and what they leave is compared with the checkpoint: a path
that differs ends the branch. Where all was served, the difference that the tools made is applied in their place.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from worldline.engine.checkpoints import Kept, checkpoints_of
from worldline.engine.lineage import said_workspace
from worldline.engine.recorder import Recorder
from worldline.engine.spec import WorkspaceSpec
from worldline.engine.substrates.apart import Note, secret_notes
from worldline.engine.substrates.choose import substrate_of
from worldline.engine.substrates.files import Files, FilesEnv
from worldline.engine.substrates.materialise import remove
from worldline.engine.substrates.substrate import Policy
from worldline.engine.workspace import Workspace
from worldline.errors import NotReproducible
from worldline.model.tree import File
from worldline.store import layout

if TYPE_CHECKING:
    from worldline.engine.fork_point import ForkPoint

DERIVED = ("__pycache__", "*.pyc")  # what programs make anew with times in it: not compared


class Restoring(msgspec.Struct, frozen=True):
    """How a branch comes to its workspace: from `first`, where the run began, to `arrives`, where it was forked.

    `step` is where the branch begins; `ran` that tools run in it on the way; `restores` that the
    agent goes on from the state that it dumped there, so that nothing before is driven again.
    """

    spec: WorkspaceSpec
    first: Kept
    arrives: Kept
    step: int
    ran: bool
    restores: bool = False

    @property
    def begins(self) -> Kept:
        """The checkpoint of which the branch's folder is made."""
        return self.arrives if self.restores else self.first

    @property
    def left_out(self) -> tuple[Note, ...]:
        """What is not in the branch's folder because it holds a secret: there is none but the user's own."""
        served = self.arrives.ref.notes if not self.ran else ()
        return secret_notes((*self.begins.ref.notes, *served))

    @property
    def exact(self) -> bool:
        """Whether `arrives` was taken at the very step."""
        return self.arrives.step == self.step and self.arrives.by is None

    @property
    def note(self) -> str | None:
        """What is not as it was at the fork, in words."""
        if self.exact:
            return None
        if self.ran and not self.restores:
            return f"what the tools left was not compared: no checkpoint was taken at step {self.step}"
        return f"the workspace is that of step {self.arrives.step}, the last checkpoint before the fork"


def restoring(point: ForkPoint) -> Restoring | None:
    """How a branch of this point comes to its workspace; None where its run kept none."""
    root = point.prefix.segments[0].recording
    said = said_workspace(root)
    kept = checkpoints_of(point.prefix) if said is not None else []
    if not kept:
        return None
    spec = msgspec.convert(root.loaded(said), WorkspaceSpec)
    return Restoring(spec, kept[0], kept[-1], point.step, point.plan.tools == "run", point.plan.restore)


class BranchWorkspace(Workspace):
    """The workspace of one branch, in `place`. Raises `StaleBase`, `Corrupt` and what copying raises."""

    def __init__(self, recorder: Recorder, point: ForkPoint, how: Restoring, place: Path, seed: str) -> None:
        self.how = how
        self._store = point.parent.run_directory.parent
        self._substrate = substrate_of(how.first.ref.substrate, self._store)
        self._secrets = recorder.vault
        for files in (self._substrate, getattr(self._substrate, "files", None)):
            if isinstance(files, Files):
                files.secrets = recorder.vault
        layout.make_private(place.parent)
        (env,) = self._substrate.fork(how.begins.ref, 1, branch_seed=seed, identity=recorder.run, into=[place])
        if isinstance(env, FilesEnv):
            env.keep_apart(how.left_out)
        self._seed = seed
        parents = [how.arrives.checkpoint_id]
        super().__init__(recorder, env, first_step=point.step, parents=parents, every=how.spec.every)

    def arrive(self) -> Sequence[str]:
        """The agent is at the fork and waits: its workspace becomes what it was there, and goes live.

        Returns what was drawn anew in it. Raises `NotReproducible` with the paths that tools have left otherwise than
        the recorded ones did.
        """
        if self.how.ran and not self.how.restores and self.how.exact:
            self._compare()
        elif not self.how.restores and not self.how.ran:
            self.env.restore(self.how.arrives.ref)
        drawn = self.env.reseed(self._seed)
        self.env.open_gate()
        return drawn

    def _compare(self) -> None:
        apart = secret_notes((*self.how.first.ref.notes, *self.how.arrives.ref.notes))
        policy = Policy(store=self._store, exclude=self.how.spec.exclude, secrets=self._secrets, apart=apart)
        looked = self._substrate.open(self.env.root, policy)
        found = self._substrate.diff(self.how.arrives.ref, looked.snapshot(self.how.arrives.ref.seq))
        differs = [change for change in found if not is_derived(os.fsdecode(change.path))]
        if not differs:
            return
        paths = [os.fsdecode(change.path) for change in differs]
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        what = f"the tools that ran again left {paths[0]}{more} otherwise than when the run was recorded"
        first = differs[0]
        facts = {"recorded": _said(first.old), "actual": _said(first.new), "paths": paths}
        hint = "a branch can only go on from files as they were; wrap that tool, or restore the agent's state"
        raise NotReproducible(what, kind="changed", name="workspace", call=None, path=paths[0], hint=hint, **facts)

    def discard(self) -> None:
        """Let go of it and remove its folder: the branch leaves no trace."""
        root = self.env.root
        self.env.close()
        remove(root)

    def let_go(self) -> None:
        """Nobody looks at its files any more: where it can be, the next branch is made of its folder."""
        if isinstance(self.env, FilesEnv):
            self.env.give_back()
        else:
            self.discard()


def is_derived(path: str) -> bool:
    """Whether programs make it anew with times in it."""
    return any(fnmatch.fnmatch(part, glob) for part in Path(path).parts for glob in DERIVED)


def _said(entry: Any) -> str:
    if entry is None:
        return "nothing there"
    if isinstance(entry, File):
        return f"a file of {entry.size:,} bytes, {entry.content[:12]}"
    return type(entry).__name__.lower()


def place_of(store: Path, run: str) -> Path:
    """Where the folder of a branch stands that is given no other place."""
    return store / layout.WORKSPACES / run
