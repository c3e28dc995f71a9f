"""`Run`: the user's handle on a recording. Open it, look at its steps, verify it, replay it.

`record` and the words of a running agent come from `seams.api`; this is the other half, for what was recorded.
"""

from __future__ import annotations

import contextvars
import importlib.util
import inspect
import math
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.difference import RunDiff, compare
from worldline.analysis.stats import PassRates, pass_rates
from worldline.engine import replay as replays
from worldline.engine.cassette import Cassette
from worldline.engine.eligibility import require_attested
from worldline.engine.export import EXPORTS
from worldline.engine.fork_point import ForkPoint, fork_point
from worldline.engine.gate import PolicyEngine
from worldline.engine.lineage import opened
from worldline.engine.masks import crossing_masks, masks_given, masks_here
from worldline.engine.plan import plan_of
from worldline.engine.replay import ReplayReport
from worldline.engine.steps import Step, each_step, steps
from worldline.errors import Ineligible, UsageError, VerifierIsWriter
from worldline.model import values
from worldline.model.events import KINDS, Event
from worldline.policy.rules import rules_here
from worldline.seams.active import ActiveRun, entered
from worldline.seams.branch import BranchResult, BranchSession, replicate, substrate
from worldline.seams.session import ReplaySession
from worldline.store.catalog import default_store, find
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording
from worldline.store.verdicts import Verification
from worldline.store.verify import verify

PASSED = 0.5  # the score from which a replica counts as passed
Verifier = Callable[["Run"], float]


class ForkReport(msgspec.Struct, kw_only=True):
    """What came of a fork. `pass_at_k` is there where a verifier graded more than nothing.

    `substrate` names what the branches' workspace was restored from, `degraded` what could not be restored.
    """

    branches: list[BranchResult]
    pass_at_k: PassRates | None = None
    substrate: str = "none"
    degraded: str | None = None
    notes: list[str] = []

    @property
    def runs(self) -> list[Run]:
        """The branches that were recorded, opened."""
        return [open(branch.path) for branch in self.branches if branch.stands]

    def to_json(self) -> dict[str, Any]:
        """The form of `worldline fork --json`."""
        out: dict[str, Any] = msgspec.to_builtins(self)
        return out


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
        """Its exchanges; of a branch its own."""
        return Cassette(self.recording)

    @cached_property
    def steps(self) -> list[Step]:
        """Its steps, numbered from 0; of a branch those of its lineage, too. Raises `LineageBroken`."""
        return steps(opened(self.recording))

    def events(self) -> list[Event]:
        """Its rows, those that can be read."""
        return list(self.recording.events())

    def each_event(self, *kinds: str) -> Iterator[Event]:
        """The same one by one, of a run of any length; of these kinds (`decision`, `action` ...) where some are given.

        Raises `UsageError` for a kind that there is none of.
        """
        if unknown := [kind for kind in kinds if kind not in KINDS]:
            raise UsageError(f"no kind of row is called {unknown[0]!r}: there are {', '.join(KINDS)}", kind=unknown[0])
        return (event for event in self.recording.events() if not kinds or event.kind in kinds)

    def each_step(self) -> Iterator[Step]:
        """The steps one by one, each as soon as the rows that were read say that it is over. Raises as `steps` does."""
        return each_step(opened(self.recording))

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
        mask: str | Iterable[str] | None = (),
    ) -> ReplayReport:
        """Replay it. Without `agent` every context is rebuilt; with one, it runs here and every crossing is served.

        `agent` takes no arguments and may be async. What it raises on the way is not raised here: an agent that
        failed when it was recorded fails again; one that did not is diverged (`outcome`). `tools="run"` lets tools run
        that ran outside the recording. What `mask` names (`$.messages[*].content=~REGEX`), the record's own masks and
        those of the folder's `worldline.toml` are left out of the comparison, and told in the report; with None
        nothing is left out. Raises `UsageError` for what is no mask.
        """
        if agent is None:
            return replays.inspect(self.recording)
        masks = None if mask is None else (*masks_here(), *crossing_masks(mask))
        try:
            session = ReplaySession(self.recording, os.environ, secrets, tools, masks=masks)
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
        """Replay it as evidence: only a sealed attempt that published its result, no tool is let run, no mask in force.

        The report's `projection` names and versions what was compared. Raises `VerifierIsWriter` in the process that
        recorded it; whatever else stands against it makes the verdict `ineligible`.
        """
        try:
            require_attested(self.recording)
        except VerifierIsWriter:
            raise
        except Ineligible as error:
            return ReplayReport(verdict="ineligible", reasons=error.facts["reasons"], strict=True)
        report = self.replay(agent, secrets=secrets, mask=None)
        report.strict = True
        return report

    def fork(
        self,
        agent: Callable[[], Any],
        *,
        at: str | Step = "step:0",
        plan: Mapping[str, Any] | None = None,
        n: int = 1,
        verifier: Verifier | str | None = None,
        policy: PolicyEngine | str | Path | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> ForkReport:
        """Fork it: what comes before `at` is served from the record, then `agent` goes on live, with `plan`'s changes.

        `at` is a step of `steps`, `step:9` or `seq:88`. `plan` may have `set`, `edit`, `prompt`, `prompt_role`, `seed`,
        `tools`, `allow_repeat` and `mask` (`engine.plan.Plan`); masks of `worldline.toml` are in force, too. `n`
        branches run one after the other; `verifier` grades each (`outcome`, or a function from its `Run` to a float in
        [0, 1]). `policy` decides about tools with effects: a file of TOML or Cedar, or the folder's `worldline.toml`.
        Raises `UnknownStep`, `UsageError`, `Ineligible`, `LineageBroken`; what the agent raises is its own outcome.
        """
        place = f"step:{at.index}" if isinstance(at, Step) else at
        point = fork_point(self.recording, plan_of({"at": place, **(plan or {})}), masks=masks_here())
        rules = rules_here(Path(policy)) if isinstance(policy, str | Path) else policy or rules_here()
        graded = None if verifier is None else grader(verifier)
        results = replicate(
            n,
            lambda: BranchSession(point, os.environ, rules, secrets=secrets),
            lambda branch: drive(branch, agent),
            None if graded is None else lambda recording, result: graded(Run(recording), result),
        )
        return fork_report(results, point)

    def diff(self, other: Run, *, mask: str | Iterable[str] = ()) -> RunDiff:
        """Compare it with another run: their steps aligned, the first divergence, what differs in each step.

        Ids, dates and times taken are named (`volatile`) and do not count. Two independent runs get a difference, never
        a cause. What `mask`, both records and the folder's `worldline.toml` leave out (an argument of a tool, a part
        of a step) does not count either. Raises `LineageBroken`, `UsageError`, or what reading a recording raises.
        """
        return compare(self.recording, other.recording, (*masks_here(), *masks_given(mask)))


def fork_report(results: list[BranchResult], point: ForkPoint, as_it_stands: bool = False) -> ForkReport:
    """What came of all branches of one point, in a folder as it stood or in their own."""
    scores = [result.score for result in results if result.score is not None]
    rates = pass_rates(len(scores), sum(score >= PASSED for score in scores)) if scores else None
    name, less = substrate(point, as_it_stands)
    return ForkReport(branches=results, pass_at_k=rates, substrate=name, degraded=less, notes=[*point.doubts])


def grader(verifier: Verifier | str) -> Callable[[Run, BranchResult], float]:
    """How branches are graded: `exit-code`, `outcome`, `FILE.py:FUNCTION`, or a function. Raises `UsageError`."""
    if not isinstance(verifier, str):
        return lambda run, result: _score(verifier(run))
    if verifier in ("exit-code", "outcome"):
        by_exit = verifier == "exit-code"
        return lambda run, result: float(
            result.exit == 0 if by_exit and result.exit is not None else result.outcome == "succeeded"
        )
    file, _, name = verifier.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"a verifier is exit-code, outcome, or FILE.py:FUNCTION, not {verifier!r}", verifier=verifier)
    spec = importlib.util.spec_from_file_location(f"worldline_verifier_{path.stem}", path)
    assert spec is not None and spec.loader is not None, "a file has both"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{path} has no function {name!r}", verifier=verifier)
    return lambda run, result: _score(function(run))


def _score(value: Any) -> float:
    """A verifier's answer as a float in [0, 1]."""
    if not (isinstance(value, int | float) and 0 <= value <= 1):
        raise UsageError(f"a verifier gives a number from 0 to 1, not {value!r}")
    return float(value)


def drive(branch: BranchSession, agent: Callable[[], Any], *, alone: bool = True) -> BranchResult:
    """Run an agent of this process in a branch.

    Not `alone`, with others in this process at once, it finds its run by context: the environment is no one's.
    """
    session = branch.session
    run = ActiveRun(branch.boundary, session.proxy.url, branch.recorder.run, secrets=branch.recorder.vault.labels)
    folder = branch.workspace.env.root if branch.workspace is not None and alone else None
    if folder is not None and branch.workspace is not None:
        branch.boundary.sees(str(folder), branch.workspace.how.spec.path)
    with entered(run, branch.environment if alone else None), nullcontext() if folder is None else chdir(folder):
        raised = _run(agent)
    left_well = raised is None or (isinstance(raised, SystemExit) and not raised.code)
    outcome: dict[str, Any] = {"outcome": "succeeded" if left_well else "failed"}
    if not left_well:
        told = values.readable(f"{type(raised).__name__}: {raised}"[:500])
        outcome["error"] = branch.recorder.vault.masked(told)
    return branch.close(outcome)


def _loop_of_its_own(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; in a thread where a loop runs already: an async test calls the sync `replay`."""
    import asyncio

    if not loop_runs():
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="worldline-replay") as thread:
        thread.submit(contextvars.copy_context().run, asyncio.run, work).result()


def loop_runs() -> bool:
    """Whether an event loop runs in this thread."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def to_its_end(agent: Callable[[], Any]) -> None:
    """Run an agent (async too) to its end. Raises what it raises."""
    result = agent()
    if inspect.isawaitable(result):

        async def awaited() -> None:
            await result

        _loop_of_its_own(awaited())


def _run(agent: Callable[[], Any]) -> BaseException | None:
    """Run the agent to its end; what it raises is returned, SystemExit too (agents end with it)."""
    try:
        to_its_end(agent)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an agent may raise anything; the report's notes tell it
        return error
    return None


def open(name: str | Path, store: str | Path | None = None) -> Run:  # noqa: A001 - the public verb, `worldline.open`
    """The recorded run that `name` means: a path, an id or its unambiguous prefix, `latest`.

    Raises `RecordingNotFound`, `AmbiguousRun`, `NotARecording`, `NewerFormat`, `Damaged`, or `UnattestedResultError`
    where the run's published result is in doubt.
    """
    return Run(refuse_doubt(find(str(name), default_store(Path(store) if store is not None else None))))
