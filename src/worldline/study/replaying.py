"""Where an agent is run against its own record: in its workspace as it was at the beginning, where the run kept one.

Tools outside the recording run again on such a replay, so it must not happen where the user works.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worldline.engine.fork_point import fork_point
from worldline.engine.plan import plan_of
from worldline.engine.restored import restoring
from worldline.engine.substrates.choose import substrate_of
from worldline.engine.substrates.materialise import remove
from worldline.run import Run
from worldline.seams import within
from worldline.store.studies.folder import scratch_place
from worldline.study.agents import CommandAgent
from worldline.study.setting import Setting


@contextmanager
def begun(run: Run, setting: Setting, folder: Path | None, name: str) -> Iterator[tuple[tuple[str, ...], Path | None]]:
    """The words that start the agent and its folder: `folder`, or a workspace restored for the length of the block."""
    assert isinstance(setting.agent, CommandAgent), "a function runs where this process is"
    command = setting.agent.command
    how = restoring(fork_point(run.recording, plan_of({**setting.plan, "at": "step:0"}))) if folder is None else None
    if how is None:
        yield command, folder
        return
    store = run.recording.run_directory.parent
    place = scratch_place(setting.folder, name).absolute()
    (env,) = substrate_of(how.first.ref.substrate, store).fork(
        how.first.ref, 1, branch_seed="replay", identity="replay", into=[place]
    )
    try:
        start = within.placed(env.root, how.spec, command, [note["path"] for note in how.left_out])
        yield tuple(start.words), start.folder
    finally:
        env.close()
        remove(place)
