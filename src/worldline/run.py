"""`Run`: the user's handle on a recording. Open it, look at its steps, verify it, replay it.

`record` and the words of a running agent come from `seams.api`; this is the other half, for what was recorded.
"""

from __future__ import annotations

import contextvars
import inspect
import math
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from worldline.engine import replay as replays
from worldline.engine.cassette import Cassette
from worldline.engine.export import EXPORTS
from worldline.engine.replay import ReplayReport
from worldline.engine.steps import Step, steps
from worldline.errors import Ineligible, VerifierIsWriter
from worldline.model.events import Event
from worldline.seams.active import ActiveRun, entered
from worldline.seams.session import ReplaySession
from worldline.store.catalog import default_store, find
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording
from worldline.store.verdicts import Verification
from worldline.store.verify import verify


class Run:
    """A recorded run. `id`, `path`, `task`, `disposition` and `outcome` are what lists show."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        header = recording.header.data
        self.id: str = header["run"]
        self.task: str | None = header["task"]["text"]
        self.path: Path = recording.path

    @property
    def disposition(self) -> str:
        """`complete`, `partial`, `sanitized-partial`, `running` or `interrupted`."""
        return self.recording.disposition

    @property
    def outcome(self) -> str | None:
        """How it ended, in the agent's or the command's word."""
        return self.recording.summary.get("outcome")

    @cached_property
    def cassette(self) -> Cassette:
        """Its exchanges."""
        return Cassette(self.recording)

    @cached_property
    def steps(self) -> list[Step]:
        """Its steps, numbered from 0."""
        return steps(self.recording)

    def events(self) -> list[Event]:
        """Its rows, those that can be read."""
        return list(self.recording.events())

    def event(self, seq: int) -> Event | None:
        """Row `seq`, found without reading the rows before it, or None where no row that can be read is that."""
        return self.recording.event(seq)

    def event_at(self, seconds: float) -> Event | None:
        """The last row at or before `seconds` since the run began, found without reading those before it, or None."""
        return self.recording.event_at(math.floor(seconds * 1e9))

    def verify(self, *, signers: str | Path | None = None) -> Verification:
        """The five verdicts and every problem. `signers` is an allowed signers file: one of them must have signed."""
        return verify(self.recording, signers=None if signers is None else Path(signers), exports=EXPORTS)

    def replay(
        self,
        agent: Callable[[], Any] | None = None,
        *,
        tools: str = "refuse",
        secrets: Mapping[str, str] | None = None,
    ) -> ReplayReport:
        """Replay it. Without `agent` every context is rebuilt; with one, it runs here and every crossing is served.

        `agent` takes no arguments and may be async. What it raises on the way is not raised here: an agent that
        failed when it was recorded fails again; one that did not is diverged (`outcome`). `tools="run"` lets tools run
        that ran outside the recording.
        """
        if agent is None:
            return replays.inspect(self.recording)
        try:
            session = ReplaySession(self.recording, os.environ, secrets, tools)
        except Ineligible as error:
            return ReplayReport(verdict="ineligible", reasons=error.facts["reasons"])
        run = ActiveRun(session.boundary, session.proxy.url, self.id, secrets=session.boundary.vault.labels)
        raised: BaseException | None = None
        ended: int | None = None
        try:
            with entered(run, session.environment()):
                raised = _run(agent)
            left_well = raised is None or (isinstance(raised, SystemExit) and not raised.code)
            ended = 0 if left_well else 1
        finally:
            report = session.close(ended)
        if raised is not None:
            report.notes.append(f"the agent raised {type(raised).__name__}: {raised}"[:500])
        return report

    def verify_replay(
        self, agent: Callable[[], Any] | None = None, *, secrets: Mapping[str, str] | None = None
    ) -> ReplayReport:
        """Replay it as evidence: only a sealed attempt that published its result, and no tool is let run.

        The report's `projection` names and versions what was compared. Raises `VerifierIsWriter` in the process that
        recorded it; whatever else stands against it makes the verdict `ineligible`.
        """
        try:
            replays.require_attested(self.recording)
        except VerifierIsWriter:
            raise
        except Ineligible as error:
            return ReplayReport(verdict="ineligible", reasons=error.facts["reasons"], strict=True)
        report = self.replay(agent, secrets=secrets)
        report.strict = True
        return report


def _loop_of_its_own(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; in a thread where a loop runs already: an async test calls the sync `replay`."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="worldline-replay") as thread:
        thread.submit(contextvars.copy_context().run, asyncio.run, work).result()


def _run(agent: Callable[[], Any]) -> BaseException | None:
    """Run the agent to its end; what it raises is returned, SystemExit too (agents end with it)."""
    try:
        result = agent()
        if inspect.isawaitable(result):

            async def awaited() -> None:
                await result

            _loop_of_its_own(awaited())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an agent may raise anything; the report's notes tell it
        return error
    return None


def open(name: str | Path, store: str | Path | None = None) -> Run:  # noqa: A001 - the public verb, `worldline.open`
    """The recorded run that `name` means: a path, an id or its unambiguous prefix, `latest`.

    Raises `RecordingNotFound`, `AmbiguousRun`, `NotARecording`, `NewerFormat`, `Damaged`, or `UnattestedResultError`
    where the run's published result is in doubt.
    """
    return Run(refuse_doubt(find(str(name), default_store(Path(store) if store is not None else None))))
