"""The workspace of a run under way: what an agent works on beside what it says, kept at its steps.

A checkpoint is taken before each step, and one more where the folder changed while the model was thinking: then nobody
of the agent's was at work, so that change is somebody else's, and a rewind leaves it alone. What cannot be taken is
told and costs the run nothing: an agent that works is not broken by its recorder.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from worldline.engine.agent_state import Dumped
from worldline.engine.cadence import Cadence
from worldline.engine.checkpoints import Checkpoints, Kept
from worldline.engine.recorder import Recorder
from worldline.engine.spec import WorkspaceSpec
from worldline.engine.substrates.apart import SECRET, secret_notes
from worldline.engine.substrates.choose import open_workspace
from worldline.engine.substrates.substrate import Degraded, Env, Policy
from worldline.errors import SubstrateError

OUTSIDE = "outside"  # who changed a workspace while the model was thinking


class Workspace:
    """Keeps one environment while it is recorded. Safe from several threads.

    `first_step` is the number of the recording's first step: a branch counts on from its parent's. `parents` are the
    checkpoints that its first one comes from.
    """

    def __init__(
        self,
        recorder: Recorder,
        env: Env,
        degraded: Sequence[Degraded] = (),
        *,
        first_step: int = 0,
        parents: Sequence[str] = (),
        every: int | None = 1,
    ) -> None:
        self.env = env
        self.degraded = "; ".join(map(str, degraded)) or None
        self.missed: list[str] = []  # why checkpoints could not be taken
        self.left_out: dict[str, str] = {}  # what holds a secret and was not kept: paths with the secret's label
        self._recorder = recorder
        self._checkpoints = Checkpoints(recorder, env, parents=parents, cadence=Cadence(every=every))
        self._first = first_step
        self._lock = threading.Lock()

    @classmethod
    def opened(cls, recorder: Recorder, spec: WorkspaceSpec) -> Workspace:
        """Take charge of the folder of a run that begins.

        Raises `Unavailable`, `UsageError`, and what keeping it raises.
        """
        policy = Policy(store=recorder.spec.store, exclude=spec.exclude, secrets=recorder.vault)
        choice = open_workspace(Path(spec.path), policy, spec.substrate)
        workspace = cls(recorder, choice.env, choice.degraded, every=spec.every)
        workspace._note(workspace._checkpoints.take(0, force=True))
        return workspace

    def step_begins(self, lane: str, key: str | None = None, state: Dumped | None = None) -> None:
        """A step begins: a decision with this key, or one that was marked. A retry, or a step inside one, is none."""
        with self._lock:
            if self._recorder.tally.counter.begins(lane, key):
                last = self._checkpoints.last
                again = last is not None and state is None and last.step == self._step and last.by is None
                self._take(state=state, only_changed=again)  # where the run begins one was taken already

    def answered(self) -> None:
        """A model begins to answer: what changed since it was asked is not the agent's work."""
        with self._lock:
            self._take(by=OUTSIDE, only_changed=True)

    def ends(self) -> None:
        """The agent has ended: keep what it leaves, and let go of the folder, which stays."""
        with self._lock:
            try:
                if self._recorder.broken is None:
                    self._take(only_changed=True)
            finally:
                self.env.close()

    @property
    def _step(self) -> int:
        return self._first + self._recorder.tally.counter.steps

    def _take(self, **how: Any) -> None:
        try:
            self._note(self._checkpoints.take(self._step, **how))
        except SubstrateError as error:
            self.missed.append(str(error))

    def _note(self, kept: Kept | None) -> None:
        for note in secret_notes(kept.ref.notes) if kept is not None else ():
            self.left_out[note["path"]] = note[SECRET]
