"""A branch that is open: the next recording of a lineage, with its proxy and the gate behind which its agent goes live.

One is opened for each replica of a fork, and for a run that is resumed. When its agent has ended, what came of it is
told (`BranchResult`); a branch in which nothing happened leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.fork import ForkBoundary
from worldline.engine.fork_point import ForkPoint
from worldline.engine.gate import PolicyEngine
from worldline.engine.masks import MaskUse
from worldline.engine.replay import placeholder, resolve_secrets
from worldline.engine.restored import BranchWorkspace, place_of, restoring
from worldline.engine.spec import RecordingSpec, Spec
from worldline.engine.steering import Steering
from worldline.engine.substrates.apart import SECRET
from worldline.errors import NotReproducible
from worldline.seams import within
from worldline.seams.environment import absent_keys, provider_keys
from worldline.seams.session import RecordingSession
from worldline.store.recording import Recording
from worldline.store.secrets import shapes
from worldline.store.secrets.vault import MIN_LENGTH

CHANGED_AGENT = "the program is not the one that was recorded"
AS_IT_STANDS = "no checkpoint of the workspace was restored: its files are as they stand"
NOT_REPRODUCIBLE, NOTHING_NEW = "not_reproducible", "nothing_new"

WENT_ON = (
    "a run in its line failed open and broke off: what it did behind that is on no record, and nothing of that kind is "
    "done again by itself"
)


class BranchResult(msgspec.Struct, kw_only=True):
    """What came of a branch. Counts are of model calls and tool calls: from the record, live, mocked, refused.

    `outcome` is the run's, or `not_reproducible` where its prefix could not be served (then `divergence` says where),
    or `nothing_new` where a resumed run had nothing left to do. `run` and `path` are then its parent's. `unknown` names
    calls that had started when the record broke off; `workspace` is its folder, where the run kept one; `score` is a
    verifier's; `interrupted` says why it is partial. `masks` says what each mask left out of the prefix, `masked` how
    many answers were given to calls that differ from the record in that.
    """

    run: str
    path: str
    outcome: str
    prefix: int
    live: int
    mocked: int
    refused: int
    exit: int | None = None
    error: str | None = None
    divergence: dict[str, Any] | None = None
    unknown: list[str] = []
    workspace: str | None = None
    score: float | None = None
    interrupted: str | None = None
    masks: list[MaskUse] = []
    masked: int = 0

    @property
    def stands(self) -> bool:
        """Whether a recording of the branch was made."""
        return self.outcome not in (NOT_REPRODUCIBLE, NOTHING_NEW)


class Place(msgspec.Struct, frozen=True):
    """Where a branch is recorded that is a rollout of a study, and the seed that its chance is derived from."""

    run: Path
    seed: str


class BranchSession:
    """Opens a branch at `point`. Raises what opening a recorder, a lineage or a port raises.

    `secrets` gives the values of labels, as the environment does; a label without a value gets a placeholder. Without
    a `place` the branch stands beside its parent, and its chance is its own. `steering` is a study's. `folder`, which
    is not there yet, is where a workspace goes that the run has kept, else it stands in the store; none is restored
    where the agent works on files `as_it_stands`.
    """

    def __init__(
        self,
        point: ForkPoint,
        environment: Mapping[str, str],
        policy: PolicyEngine,
        *,
        agent: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        port: int = 0,
        place: Place | None = None,
        steering: Steering | None = None,
        folder: Path | None = None,
        as_it_stands: bool = False,
    ) -> None:
        self.point = point
        known = {**resolve_secrets(point.parent, environment), **(secrets or {})}
        missing = {key: placeholder(key) for key in absent_keys(environment, known)}
        surroundings = {**missing, **environment, **known}
        spec = _spec(point, {**provider_keys(environment, MIN_LENGTH), **known}, agent)
        seed = None
        if place is not None:
            spec = msgspec.structs.replace(spec, store=place.run.parent, run=place.run)
            seed = place.seed
        self.session = RecordingSession(
            spec, surroundings, port, lambda recorder: ForkBoundary(recorder, point, policy, seed, steering)
        )
        self.recorder = self.session.recorder
        boundary = self.session.boundary
        assert isinstance(boundary, ForkBoundary), "opened right above"
        self.boundary = boundary
        self.notes = [WENT_ON] if point.unrecorded else []  # what is not as it was, to be said
        self.workspace = None if as_it_stands else self._workspace(folder, keeps=place is None)
        self.environment = self.session.environment()

    def _workspace(self, folder: Path | None, keeps: bool) -> BranchWorkspace | None:
        """The workspace that the branch begins in, where its run kept one."""
        how = None if self.point.resumed else restoring(self.point)
        if how is None:
            return None
        place = folder or place_of(self.point.parent.run_directory.parent.absolute(), self.recorder.run)
        try:
            workspace = BranchWorkspace(self.recorder, self.point, how, place, self.boundary.seed)
        except BaseException:
            self.session.discard()
            raise
        self.boundary.works_in(workspace, keeps=keeps)
        return workspace

    def launch(self, command: Sequence[str]) -> tuple[list[str], Path | None]:
        """The words that start a command in the branch's workspace, and its folder; the command itself without one.

        Where it can be, the command finds the workspace at the path where the recorded run had it.
        """
        if self.workspace is None:
            return list(command), None
        root, spec, left_out = self.workspace.env.root, self.workspace.how.spec, self.workspace.how.left_out
        start = within.placed(root, spec, command, [note["path"] for note in left_out])
        files = [word for word in command if Path(word).is_file() and Path(word).absolute().is_relative_to(spec.path)]
        if start.masked is not None:
            self.notes.append(f"the agent sees its workspace at {root}, not at {spec.path}: {start.masked}")
            self.boundary.sees(str(root), spec.path)
        elif files:
            self.notes.append(f"{files[0]} stands in the workspace: the one of the checkpoint is run")
        self.notes += [_unkept(note, Path(spec.path), start.masked is None) for note in left_out]
        return start.words, start.folder

    def _discard(self) -> None:
        if self.workspace is not None:
            self.workspace.discard()
        self.session.discard()

    def close(self, outcome: Mapping[str, Any], reason: str | None = None) -> BranchResult:
        """The agent has ended, with this outcome: seal, or leave no trace where nothing happened.

        `reason` says why the recording is partial. Raises what sealing raises.
        """
        try:
            news = self.boundary.end()
        except NotReproducible as refused:
            self._discard()
            found, code = _plain(refused.facts), outcome.get("exit")
            return self._told(NOT_REPRODUCIBLE, error=str(refused), divergence=found, exit=code)
        if not news and self._adds_nothing(outcome):
            self.session.discard()
            return self._told(NOTHING_NEW, exit=outcome.get("exit"))
        self.recorder.outcome = {**outcome, **self.recorder.outcome}
        path = self.session.close("partial" if reason else "complete", reason)
        said, failure = self.recorder.outcome, self.session.proxy.failure
        error = said.get("error") or (None if failure is None else str(failure))
        return self._told(str(said.get("outcome")), path, exit=outcome.get("exit"), error=error, interrupted=reason)

    def _adds_nothing(self, outcome: Mapping[str, Any]) -> bool:
        """Whether the run that is resumed was at this end already."""
        before = self.point.parent.summary
        if not self.point.resumed:
            return False
        return self.point.parent.disposition == "complete" or before.get("outcome") == outcome.get("outcome")

    def leave(self) -> None:
        """Stop without sealing, after a failure of our own; where nothing has happened no trace is left."""
        if self.boundary.is_empty:
            self._discard()
        else:
            self.session.leave()

    def recording(self) -> Recording:
        """What was recorded."""
        return Recording(self.recorder.attempt)

    def _told(self, outcome: str, path: Path | None = None, **more: Any) -> BranchResult:
        counts, parent = self.boundary.counts, self.point.parent
        unknown = [f"{e.name} ({e.call})" for e in self.boundary.unknown]
        return BranchResult(
            run=self.recorder.run if path is not None else parent.run_id,
            path=str(path if path is not None else parent.path),
            outcome=outcome,
            prefix=counts.prefix,
            live=counts.live,
            mocked=counts.mocked,
            refused=counts.refused,
            unknown=unknown,
            masks=self.boundary.matcher.masking.uses(),
            masked=self.boundary.matcher.masking.relied,
            workspace=None if self.workspace is None or path is None else str(self.workspace.env.root),
            **more,
        )


def _unkept(note: Mapping[str, str], original: Path, placed: bool) -> str:
    """What a branch sees of a file that was not kept because a secret stands in it."""
    path, why = note["path"], f"it holds the secret {note[SECRET]} and was not kept"
    if not placed:
        return f"the branch is without {path}: {why}"
    if not (original / path).exists():
        return f"the branch is without {path}: {why}, and it is gone from {original}"
    return f"{path} is the one of {original} as it is now, read-only: {why}"


def _spec(point: ForkPoint, secrets: dict[str, str], agent: Mapping[str, Any] | None) -> Spec:
    """What a branch records: as its parent did, in its session, and bound to the row at which it leaves it."""
    header = point.parent.header
    data = header.data
    declared = data.get("recording")
    same_run = point.resumed and point.parent.published is None
    return Spec(
        store=point.parent.run_directory.parent,
        task=data["task"]["text"],
        task_id=data["task"].get("id"),
        task_type=data["task"].get("type"),
        agent=dict(data["agent"] if agent is None else agent),
        secrets=secrets,
        policy=data["secrets"].get("policy", "redact"),
        shapes=data["secrets"].get("shapes", 0) == shapes.VERSION,
        session=data["session"],
        run=point.parent.run_directory if same_run else None,
        continues={"run": data["run"], "attempt": data["attempt"], "h": header.h} if point.resumed else None,
        recording=msgspec.convert(declared, RecordingSpec) if declared else None,
        parent=point.binding,
        first_call=point.first_call,
        tier_key=point.prefix.tier_key,
        masks=tuple(mask.text for mask in point.masks.all),
    )


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = msgspec.to_builtins(dict(facts), enc_hook=str)
    return said


def differing_agent(point: ForkPoint, agent: Mapping[str, Any]) -> str | None:
    """In which way the program is another than the recorded one, where both are known; None where it is the same."""
    before, now = point.parent.header.data.get("agent", {}), agent
    known = before.get("program_sha256"), now.get("program_sha256")
    if not all(known) or known[0] == known[1]:
        return None
    was = f", where it was {before.get('name')}" if before.get("name") != now.get("name") else ""
    return f"{CHANGED_AGENT}: {now.get('name')}{was}"


def substrate(point: ForkPoint, as_it_stands: bool) -> tuple[str, str | None]:
    """What the workspace of a branch is restored from, and what of it is not as it was, in words."""
    how = restoring(point)
    if how is not None and not as_it_stands:
        return how.first.ref.substrate, how.note
    return "none", AS_IT_STANDS if as_it_stands or point.plan.tools == "run" else None


Drive = Callable[[BranchSession], BranchResult]


def replicate(
    count: int,
    opens: Callable[[], BranchSession],
    drive: Drive,
    grade: Callable[[Recording, BranchResult], float] | None = None,
    tell: Callable[[int, BranchResult], None] = lambda number, result: None,
) -> list[BranchResult]:
    """Run `count` branches of one point, one after the other, and grade each. `tell` hears of each as it ends.

    One whose prefix cannot be served ends it, since the others could not be either, and so does an interruption. Raises
    what opening and driving raises.
    """
    results: list[BranchResult] = []
    for number in range(count):
        branch = opens()
        try:
            result = drive(branch)
        except BaseException:
            branch.leave()
            raise
        if grade is not None and result.stands:
            result.score = grade(branch.recording(), result)
        results.append(result)
        tell(number, result)
        if result.outcome == NOT_REPRODUCIBLE or result.interrupted:
            break
    return results
