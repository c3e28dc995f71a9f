"""The door of a branch: its prefix is served from the record, and behind it what crosses goes live through the gate.

Prefix calls are matched by key against the recorded partial order; one that is not in it ends the branch, and nothing
goes live (`NotReproducible`). The first call behind the prefix opens the branch: its seeds are recorded, then it
crosses. What the agent says again of the prefix is in the record already and is not written again.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from worldline.engine.agent_state import Dumped
from worldline.engine.boundary import RecordBoundary
from worldline.engine.cassette import Answer, Cassette
from worldline.engine.changing import changed, variants
from worldline.engine.checkpoints import checkpoints_of
from worldline.engine.content import Content
from worldline.engine.crossing import Call, Live, Served
from worldline.engine.exchanges import Exchange, unsettled
from worldline.engine.family import Relatives
from worldline.engine.fork_point import ForkPoint
from worldline.engine.gate import Fired, Gate, PolicyEngine
from worldline.engine.live_tools import Counts, LiveTools
from worldline.engine.matcher import Divergence, Matcher
from worldline.engine.messages import Message, messages
from worldline.engine.plan import ROTATE
from worldline.engine.recorder import Recorder
from worldline.engine.restored import BranchWorkspace
from worldline.engine.spoken import Spoken, passed
from worldline.engine.steering import Steered, Steering
from worldline.engine.substrates.reseed import branched
from worldline.errors import Diverged, Ineligible, NotReproducible
from worldline.model.dialects.change import Change, held_at_provider
from worldline.model.effects import Mode

RESEEDED = ("rng", "uuid", "derived keys")  # what a branch draws anew
_Note = tuple[str, str, str, Mapping[str, Any], Mapping[str, Any]]


class ForkBoundary:
    """Serves the prefix of `point`, then records what crosses. Raises what opening a lineage raises.

    With a `seed` its chance is derived from that: the same seed draws the same again. `steering` decides about single
    calls behind the prefix.
    """

    mode = "fork"

    def __init__(
        self,
        recorder: Recorder,
        point: ForkPoint,
        policy: PolicyEngine,
        seed: str | None = None,
        steering: Steering | None = None,
    ) -> None:
        self.recorder = recorder
        self.point = point
        self.counts = Counts()
        self.failure: NotReproducible | None = None
        self._spoken = Spoken()
        cassette = Cassette(point.prefix, filled=False)
        for event in point.prefix.events():
            cassette.fold(event)
            self._spoken.fold(event, point.prefix)
        exchanges = cassette.exchanges
        self.unknown = unsettled(exchanges)
        known = [e for e in exchanges if e.finished is not None or e.given_up is not None]
        cassette.exchanges = [_edited(exchange, point) for exchange in known]
        by_position = point.plan.match == "position"
        self.matcher = Matcher(cassette, partial=False, goes_on=True, by_position=by_position, masks=point.masks)
        self._inner = RecordBoundary(recorder, [i for e in exchanges for i in e.start_data.get("results", ())])
        self.asks = self._inner.asks
        self.crossed = self._inner.crossed
        relatives = Relatives(recorder, point)
        gate = Gate(
            policy,
            [Fired(e, point.prefix) for e in exchanges if e.kind == "action"],
            [] if point.resumed else _later(point),
            elsewhere=relatives.fired,
            allow_repeat=point.plan.allow_repeat,
            resumed=point.resumed,
            unrecorded=point.unrecorded,
        )
        self._tools = LiveTools(self._inner, gate, self.counts, relatives.fired, point.plan.allow_repeat)
        self._changes = point.prefix.changes
        self._forks = point.prefix.forks()
        self._steered = Steered(self._inner, steering, point.step) if steering is not None else None
        self._own_seed = seed  # of a rollout: all its samples follow from it
        self._samples: Counter[str] = Counter()
        self.seed = seed or hashlib.sha256(f"{point.h}/{recorder.run}/{recorder.attempt_id}".encode()).hexdigest()
        rotated = Change(sampling_seed=int(self.seed[:8], 16) & 0x7FFFFFFF)  # 31 bits, which every provider takes
        self.change = point.change.then(rotated) if point.plan.seed == ROTATE else point.change
        self._waiting: list[_Note] = []
        self._lock = threading.RLock()
        self._is_live = False
        self.workspace: BranchWorkspace | None = None
        self._seen: tuple[bytes, bytes] | None = None
        self._restored = self._dumped() if point.plan.restore else None
        self._describe()
        self._own_rows = recorder.log.seq

    def works_in(self, workspace: BranchWorkspace, keeps: bool = True) -> None:
        """The branch has a workspace of its own; where it `keeps` that, checkpoints are taken of it, too."""
        self.workspace = workspace
        self._inner.workspace = workspace if keeps else None

    def sees(self, path: str, recorded: str) -> None:
        """The agent has its workspace at another path than the recorded one: of the prefix that is no difference."""
        self._seen = path.encode(), recorded.encode()

    def _as_recorded(self, call: Call) -> Call:
        """A call as it was with the recorded path of the workspace."""
        if self._seen is None:
            return call
        here, there = self._seen
        body = None if call.body is None else call.body.replace(here, there)
        inputs = msgspec.structs.replace(call.inputs, data=call.inputs.data.replace(here, there))
        return msgspec.structs.replace(call, inputs=inputs, body=body)

    def _dumped(self) -> Dumped:
        """The state of the agent at the fork. Raises `Ineligible` where it dumped none there."""
        kept = next((k for k in reversed(checkpoints_of(self.point.prefix)) if k.step == self.point.step), None)
        schema = kept.checkpoint.agent.schema if kept is not None else None
        if kept is None or schema is None:
            reason = f"the agent dumped no state at step {self.point.step}: give it one, `run.step(state=agent)`, and "
            reason += "record again; or drive it there again, without restore"
            raise Ineligible(reason, reasons=[reason])
        return Dumped(schema, kept.state)

    def restored(self) -> Dumped | None:
        """The state that the agent dumped at the fork, where it is to go on from that: then the branch is live."""
        if self._restored is not None:
            self._spoken.clear()
            self._go_live()
        return self._restored

    def _describe(self) -> None:
        """The branch's own first rows: where it left its parent, and what it changes."""
        point = self.point
        said = {
            "branch_id": self.recorder.run,
            "step": point.step,
            "at": point.at,
            "resumed": point.resumed,
            "changed": point.changed,
            "change": Content.of(msgspec.to_builtins(self.change)) if self.change else None,
            "seed": point.plan.seed,
            "side_effect_cursor": point.seq,
        }
        self.recorder.append("snapshot_ref", "branch", {}, said)
        for call, content in point.edits.items():
            self.recorder.append("meta", "edit", {"mode": str(Mode.MOCK)}, {"edited": call, "result": content})

    def begin(self, call: Call) -> Served | Live:
        """The recorded answer of a prefix call; behind the prefix what the gate lets. Raises `NotReproducible`."""
        if self.failure is not None:
            raise self.failure
        if self._restored is not None and not self._is_live and call.kind != "observation":
            reason = "the agent went on without its state: let it say `run.restore(agent)` first"
            raise Ineligible(reason, reasons=[reason])
        if not self._is_live and (exchange := self._in_prefix(call)) is not None:
            self._inner.count(call)
            return self._served(exchange)
        self._go_live()
        if (given := self._given(call)) is not None:
            return given
        if call.kind == "action":
            return self._tools.begin(call)
        return self._decision(call) if call.kind == "decision" else self._sample(call)

    def _given(self, call: Call) -> Served | None:
        """What a study gives in place of this call; None where it is as on any branch."""
        if self._steered is None or call.kind == "observation":
            return None
        given = self._steered.decision(call) if call.kind == "decision" else self._steered.action(call)
        with self._lock:
            self.counts.mocked += given is not None
        return given

    def _sample(self, call: Call) -> Live:
        """A sample of clock or chance; in a rollout it follows from the seed, by key and occurrence."""
        known = self._inner.known(call)
        live = self._inner.started(call, known)
        if self._own_seed is not None:
            with self._lock:
                self._samples[known.key] += 1
                occurrence = self._samples[known.key]
            live.seed = hashlib.sha256(f"{self._own_seed}/{known.key}/{occurrence}".encode()).hexdigest()
        return live

    def _in_prefix(self, call: Call) -> Exchange | None:
        known = [self._inner.known(each) for each in variants(self._as_recorded(call), self._changes)]
        try:
            return self.matcher.find(call, *known)
        except Diverged:
            found = self.matcher.first
            assert found is not None, "who says that it diverged says where"
            self.failure = self._not_reproducible(found)
            raise self.failure from None

    def _served(self, exchange: Exchange) -> Served:
        if exchange.kind != "observation":
            edited = exchange.call in self.point.edits
            with self._lock:
                self.counts.mocked += edited
                self.counts.prefix += not edited
        return Answer(self.matcher.cassette, exchange, self.matcher)

    def _not_reproducible(self, found: Divergence) -> NotReproducible:
        """The divergence, told by the row of the recording that has it."""
        if found.seq is not None:
            found = msgspec.structs.replace(found, seq=self.point.prefix.origin(found.seq)[1])
        where = f"{found.name}, {found.call}" if found.call else found.name
        what = (
            f"what comes before {self.point.at} cannot be served to this agent: {found.kind} at {where}: {found.path}"
        )
        return NotReproducible(what, **msgspec.structs.asdict(found))

    def _go_live(self, by: str = "call") -> None:
        """Open the branch, once: what it draws by chance is its own from here on, and on record.

        `by` is what the agent did there first: a `call`, or a `step` that it marked.
        """
        with self._lock:
            if self._is_live:
                return
            drawn = self._arrive()
            if not self.point.resumed:
                drawn = [*drawn, *branched(self.seed)]
                said = {"branch": self.recorder.run, "seed": self.seed, "reseeded": [*RESEEDED, *drawn], "by": by}
                self.recorder.append("meta", "branch_reseed", {}, said, durable=True)
            self._is_live = True
            self._say_waiting()

    def _arrive(self) -> Sequence[str]:
        """Everything of the branch is where the run was at the fork; its workspace, too. What that drew anew."""
        if self.workspace is None:
            return ()
        try:
            return self.workspace.arrive()
        except NotReproducible as differs:
            self.failure = differs
            raise

    def _decision(self, call: Call) -> Live:
        """A model call as the fork changes it. Raises `Ineligible` for one that cannot be asked on a branch."""
        if call.body is not None and not self.point.resumed and held_at_provider(call.body):
            reason = "the request leans on a conversation that the provider holds, which went on behind the fork"
            raise Ineligible(reason, reasons=[reason])
        try:
            asked, done = changed(call, self.change)
        except ValueError as error:
            raise Ineligible(f"{call.name} cannot be changed: {error}", reasons=[str(error)]) from None
        with self._lock:
            self.counts.live += 1
        if done:
            asked = msgspec.structs.replace(asked, facts={**asked.facts, "changed": done})
        live = self._inner.begin(asked)
        live.body = asked.body if done else None
        return live

    def forks(self) -> int | None:
        """Those of the lineage that the agent came past, and this one once it is live."""
        if self._is_live:
            return len(self._forks) + (not self.point.resumed)
        return passed(self._forks, self.matcher.reached, self._spoken)

    def heard(self, server: str) -> list[Message]:
        """Those of the prefix."""
        return messages(self.matcher.cassette.messages, self.point.prefix, server)

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """What the agent says again of the prefix is counted; what it says first is written once the branch is live.

        A step that it marks behind all of the prefix is behind the fork: with that the branch is live.
        """
        with self._lock:
            if self._spoken.again(kind, src, lane):
                return
            marks = (kind, src, data.get("phase")) == ("marker", "step", "begin")
            if marks and not self._is_live and self._spoken.all_said and not self.matcher.left():
                self._go_live("step")
            if self._is_live:
                self._inner.note(kind, src, lane, keys, data)
            else:
                self._waiting.append((kind, src, lane, keys, data))

    def _say_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for note in waiting:
            self._inner.note(*note)

    @property
    def is_empty(self) -> bool:
        """Whether nothing has happened in the branch yet."""
        return self.recorder.log.seq <= self._own_rows

    def end(self) -> bool:
        """The agent has ended. Whether anything happened that the parent does not have; then all of it is written.

        Raises `NotReproducible` where it ended before all of the prefix was served.
        """
        with self._lock:
            if self.failure is None and not self._is_live:
                self.matcher.end()
                if (first := self.matcher.first) is not None:
                    self.failure = self._not_reproducible(first)
            if self.failure is not None:
                raise self.failure
            self._say_waiting()
            return not self.is_empty


def _edited(exchange: Exchange, point: ForkPoint) -> Exchange:
    """An exchange of the prefix; one that was edited gives what it was edited to."""
    content = point.edits.get(exchange.call)
    if content is not None:
        exchange.data = {"name": exchange.name, "result": msgspec.json.decode(content.data), "elapsed_ns": 0}
    return exchange


def _later(point: ForkPoint) -> list[Fired]:
    """The tool calls that the parent made behind the fork."""
    parent = point.parent
    return [Fired(e, parent) for e in Cassette(parent).exchanges if e.kind == "action" and e.started > point.seq]
