"""One rollout: the recorded run forked at a step, the agent run to its end, the verifier asked, and what came of it.

It is a fork like any other, recorded in the study's folder. One that succeeded is kept, so that it can be looked at
beside the run that failed; of the others the journal's line stays. What is no verdict (a provider that is down, a
verifier that raises) is raised and asked again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.attribution.asking import Draw, Outcome
from worldline.engine.cassette import Cassette
from worldline.engine.fork_point import ForkPoint, fork_point
from worldline.engine.masks import masks_given
from worldline.engine.plan import plan_of
from worldline.engine.steps import Step
from worldline.engine.tally import failed_response
from worldline.errors import NoVerdict, ReplayError, UsageError
from worldline.policy.rules import Rules, rules_here
from worldline.run import Run
from worldline.seams.branch import NOT_REPRODUCIBLE, BranchResult, BranchSession, Place
from worldline.seams.session import ReplaySession
from worldline.store.recording import Recording
from worldline.store.studies import folder as studies
from worldline.study.agents import CommandAgent, run_quietly, surrounded
from worldline.study.forcing import Forcing, plan_at
from worldline.study.limits import TimeOver, bounded, late
from worldline.study.replaying import begun
from worldline.study.setting import Setting, rollout_key, rollout_run, rollout_seed
from worldline.study.verifying import recorded_end


class Drawn(msgspec.Struct, frozen=True):
    """What a rollout says: its outcome, and of one that went well what it did at the step that was drawn anew.

    `fired` says that an effect which the user named by a key happened in it: then its record is never removed.
    """

    outcome: Outcome
    action: str | None = None
    fired: bool = False


class Ask(msgspec.Struct, frozen=True):
    """What the work is given: a draw, and the word for all that rollouts of the study depend on."""

    draw: Draw
    identity: str


@dataclass
class Rollouts:
    """The work of a study's executor. Called with an `Ask`, gives a `Drawn`, both as JSON."""

    setting: Setting

    def __post_init__(self) -> None:
        self._points: dict[str, ForkPoint] = {}
        self._run: Run | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"setting": self.setting, "_points": {}, "_run": None}

    def __call__(self, spec: bytes) -> bytes:
        """Carry out one rollout. Raises what leaves it without a verdict."""
        ask = msgspec.json.decode(spec, type=Ask)
        run = self._recorded()
        whole = ask.draw.at >= len(run.steps) and not ask.draw.do
        return msgspec.json.encode(self._again(run, ask.draw) if whole else self._drawn(run, ask))

    def _recorded(self) -> Run:
        if self._run is None:
            self._run = Run(self.setting.recording())
        return self._run

    def _again(self, run: Run, draw: Draw) -> Drawn:
        """Everything held: the first time the agent is run against its own record, then the verifier judges again.

        Who matches by position has said that the agent asks for something else.
        """
        by_key = self.setting.plan.get("match", "key") == "key"
        if by_key and draw.k == 0 and (why := self._differs(run)) is not None:
            return Drawn(Outcome(None, diverged=True, why=why))
        score = self.setting.verifier.score(run, recorded_end(run))
        return Drawn(Outcome(self.setting.verifier.passes(score), score, run=run.id))

    def _differs(self, run: Run) -> str | None:
        """In which way the agent no longer does what it did; None where it does."""
        setting = self.setting
        scratch = self._scratch("replay")
        tools, mask = str(setting.plan.get("tools", "refuse")), setting.plan.get("mask", ())
        try:
            if not isinstance(setting.agent, CommandAgent):
                with surrounded(scratch.folder, scratch.environment) if setting.alone else nullcontext():
                    agent = bounded(setting.agent.loaded(), setting.limit)
                    report = run.replay(agent, tools=tools, secrets=setting.secrets, mask=mask)
            else:
                session = ReplaySession(run.recording, os.environ, setting.secrets, tools, masks=masks_given(mask))
                code: int | None = None
                try:
                    environment = {**session.environment(), **scratch.environment}
                    with begun(run, setting, scratch.folder, f"{scratch.name}/restored") as (words, folder):
                        ended = run_quietly(words, environment, folder, setting.limit)
                    if ended is None:
                        raise TimeOver
                    code = ended.code
                finally:
                    report = session.close(code)
        except ReplayError as error:
            return str(error)
        except TimeOver:
            return f"with everything held {late(setting.limit)}"
        finally:
            studies.clear_scratch(setting.folder, scratch.name)
        return None if report.equivalent else report.first_divergence or report.verdict

    def _drawn(self, run: Run, ask: Ask) -> Drawn:
        setting, draw = self.setting, ask.draw
        key = rollout_key(ask.identity, draw)
        home = setting.folder / rollout_run(int(run.recording.header.data["t0_wall"]) // 1_000_000, key)
        studies.forget_rollout(home)  # what a rollout of this key that was killed left
        scratch = self._scratch(home.name)
        kept = False
        try:
            branch, result, over = self._forked(run, draw, Place(home, rollout_seed(setting.root, draw)), scratch)
            try:
                drawn = self._judged(run, draw, branch, result, over)
            finally:
                _let_go(branch)
            fired = _let_a_key_fire(branch, result, setting)
            kept = result.stands and bool(drawn.outcome.success or setting.keep or fired)
            if kept:
                return msgspec.structs.replace(drawn, fired=fired)
            return msgspec.structs.replace(drawn, outcome=msgspec.structs.replace(drawn.outcome, run=None))
        finally:
            studies.clear_scratch(setting.folder, scratch.name)
            if not kept:
                studies.forget_rollout(home)

    def _forked(
        self, run: Run, draw: Draw, place: Place, scratch: _Scratch
    ) -> tuple[BranchSession, BranchResult, bool]:
        setting = self.setting
        plan = plan_at(run, draw, setting.plan)
        point = self._point(run, plan)
        rules = rules_here(setting.policy) if setting.policy is not None else Rules()
        forcing = Forcing(run, draw, point.step) if draw.do else None
        surroundings = {**os.environ, **_chance(place.seed, os.environ), **scratch.environment}
        agent = setting.agent.described() if isinstance(setting.agent, CommandAgent) else None
        branch = BranchSession(
            point,
            surroundings,
            rules,
            agent=agent,
            secrets=setting.secrets,
            place=place,
            steering=forcing,
            folder=studies.scratch_place(setting.folder, f"{scratch.name}/restored"),
            as_it_stands=scratch.folder is not None,
        )
        try:
            environment = {**_chance(place.seed, os.environ), **scratch.environment}
            result, over = setting.agent.run(
                branch, folder=scratch.folder, environment=environment, limit=setting.limit, alone=setting.alone
            )
        except BaseException:
            branch.leave()
            _let_go(branch)
            raise
        return branch, result, over

    def _judged(self, run: Run, draw: Draw, branch: BranchSession, result: BranchResult, over: bool) -> Drawn:
        """The outcome of a rollout. Raises `NoVerdict` where there is none, and it may be asked again."""
        if result.outcome == NOT_REPRODUCIBLE:
            return Drawn(Outcome(None, diverged=True, why=str(result.error)))
        recording = branch.recording()
        said = recording.summary
        outcome = Outcome(
            False,
            0.0,
            live_steps=int(said.get("steps") or 0),
            tokens=sum(int(count) for count in (said.get("tokens") or {}).values()),
            run=result.run,
            why=result.error,
        )
        if over:  # the limit is ours: whether it would have gone well nobody knows, and it is not asked again
            return Drawn(msgspec.structs.replace(outcome, success=None, score=None, why=late(self.setting.limit)))
        branched = Run(recording)
        score = self.setting.verifier.score(branched, result)
        success = self.setting.verifier.passes(score)
        if not success and (why := _provider_failed(recording)) is not None:
            raise NoVerdict(why)
        action = action_of(branched.steps, draw.at) if success else None
        told = None if success else result.error
        return Drawn(msgspec.structs.replace(outcome, success=success, score=score, why=told), action)

    def _point(self, run: Run, plan: Mapping[str, Any]) -> ForkPoint:
        word = msgspec.json.encode(plan, order="sorted").decode()
        if word not in self._points:
            self._points[word] = fork_point(run.recording, plan_of(plan))
        return self._points[word]

    def _scratch(self, name: str) -> _Scratch:
        """The copies of folders that a rollout works in."""
        setting = self.setting
        folder = None
        if setting.workspace is not None:
            folder = studies.scratch_copy(setting.workspace, setting.folder, f"{name}/workspace").absolute()
        environment = {}
        for variable in setting.copies:
            source = os.environ.get(variable)
            if not source:
                raise UsageError(f"{variable} names no folder to copy: it is not set", name=variable)
            copy = setting.folder / studies.SCRATCH / name / variable
            if Path(source).is_dir():
                copy = studies.scratch_copy(Path(source), setting.folder, f"{name}/{variable}")
            environment[variable] = str(copy.absolute())
        return _Scratch(name, folder, environment)


@dataclass(frozen=True)
class _Scratch:
    name: str
    folder: Path | None
    environment: dict[str, str]


def _let_go(branch: BranchSession) -> None:
    """The files that a rollout worked on are of no more use once it is judged: the next rollout's are made of them."""
    if branch.workspace is not None and branch.workspace.env.root.exists():
        branch.workspace.let_go()


def action_of(steps: list[Step], index: int) -> str | None:
    """What was done at a step, in one line: its tool calls, or its words."""
    step = next((step for step in steps if step.index == index), None)
    if step is None:
        return None
    calls = ", ".join(f"{call.name}({_arguments(call.arguments)})" for call in step.calls)
    return (calls or " ".join((step.text or "").split()))[:300] or None


def _arguments(text: str) -> str:
    try:
        said = msgspec.json.decode(text.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return text
    if not isinstance(said, dict):
        return text
    return ", ".join(f"{key}={msgspec.json.encode(value).decode()}" for key, value in said.items())


def _chance(seed: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The order of Python's sets is chance, too, where the environment has not settled it."""
    return {} if environment.get("PYTHONHASHSEED") else {"PYTHONHASHSEED": str(int(seed[:8], 16))}


def _provider_failed(recording: Recording) -> str | None:
    """Why a rollout that failed may say nothing of the agent: the last thing it heard of a model was no answer."""
    last: dict[str, Any] = {}
    for exchange in Cassette(recording).exchanges:
        if exchange.kind == "decision" and exchange.finished is not None:
            last[exchange.lane] = exchange.data
    for data in last.values():
        status = data.get("status")
        if "error" in data:
            return f"the provider could not be reached: {data['error'].get('message')}"
        if failed_response(data) and (not isinstance(status, int) or status == 429 or status >= 500):
            return f"the provider failed: HTTP {status}"
    return None


def _let_a_key_fire(branch: BranchSession, result: BranchResult, setting: Setting) -> bool:
    """Whether an effect that the user named by a key happened: the family has to find it on record."""
    if not result.stands or setting.plan.get("allow_repeat"):
        return False
    return any(
        event.keys.get("idempotency_key") and event.keys.get("mode") == "live" and event.name == "action/tool_call"
        for event in branch.recording().events()
    )
