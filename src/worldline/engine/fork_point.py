"""A fork before it begins: at which row it leaves its parent, what it changes, and whether that can be done at all.

Everything that can be refused is refused here, before an agent runs: a step that there is none of, an edit of a result
that the model knew already, a prompt that the request does not hold, a conversation that went on at the provider.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from worldline.engine.cassette import Cassette
from worldline.engine.content import Content
from worldline.engine.eligibility import may_have_gone_on, reasons_against, reasons_before
from worldline.engine.exchanges import Exchange
from worldline.engine.lineage import LineageRecording, attempts_in, branch_of, genesis_of
from worldline.engine.masks import NONE, in_force, masks_given, masks_of
from worldline.engine.plan import Plan
from worldline.engine.steps import Step, step_at, steps
from worldline.engine.tally import failed_response
from worldline.errors import Damaged, Ineligible, UnknownStep, UsageError
from worldline.model.dialects.change import (
    COMMON_FIELDS,
    Change,
    can_change,
    change_request,
    fields_of,
    held_at_provider,
    user_prompt,
)
from worldline.model.masks import Mask, Masks
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording

_AT = re.compile(r"(?:(step|seq):)?([0-9]{1,18})")


class ForkPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a branch leaves its parent, and what it does there.

    `prefix` reads the lineage up to and with row `seq` of `parent`; `step` is the number of the branch's first step;
    `change` holds for all its requests, what its parent changed included; `edits` holds results by call. Its calls are
    numbered on from `first_call`. `masks` are all that are in force in the prefix; `doubts` says of what was asked for
    that it may not be what was meant.
    """

    parent: Recording
    seq: int
    h: str
    step: int
    at: str
    prefix: LineageRecording
    first_call: int
    plan: Plan
    change: Change = Change()
    changed: list[str] = []
    edits: dict[str, Content] = {}
    doubts: list[str] = []
    resumed: bool = False
    masks: Masks = NONE

    @property
    def unrecorded(self) -> bool:
        """Whether a run of its lineage may have acted behind the end of its record."""
        return any(may_have_gone_on(segment.recording) for segment in self.prefix.segments)

    @property
    def binding(self) -> dict[str, Any]:
        """What the header of a branch says of its parent."""
        data = self.parent.header.data
        return {
            "run": data["run"],
            "attempt": data["attempt"],
            "seq": self.seq,
            "h": self.h,
            "genesis": genesis_of(self.parent),
        }


def fork_point(
    recording: Recording,
    plan: Plan,
    watch: Callable[[int], None] = lambda size: None,
    masks: Iterable[Mask] = (),
) -> ForkPoint:
    """Where a plan leaves a recording. `watch` is told of the bytes that were verified.

    `masks` are in force beside the plan's and the record's.

    Raises `UnknownStep`, `UsageError`, `Ineligible`, `LineageBroken`.
    """
    whole = _eligible(recording, "run" if plan.restore else plan.tools, watch)
    found = steps(whole)
    number, seq = _cut(whole, found, plan.at)
    segment, own = whole.origin(seq) if seq < len(whole.origins) else (whole.segments[-1], None)
    parent = segment.recording
    cut = own - 1 if own is not None else _last(parent)
    row = parent.event(cut)
    if row is None:
        raise Damaged(f"{parent.path}: row {cut:,} cannot be read", file=str(parent.attempt), seq=cut)
    prefix = whole.until(parent, cut)
    cassette = Cassette(whole)
    fork = ForkPoint(
        parent=parent,
        seq=cut,
        h=row.h,
        step=number,
        at=plan.at,
        prefix=prefix,
        first_call=_next_call(cassette, seq),
        plan=plan,
        change=prefix.change,
        masks=in_force(masks_of(recording), masks, masks_given(plan.mask)),
    )
    return _Planned(fork, cassette, found, seq).fork()


def resume_point(
    recording: Recording,
    tools: str = "refuse",
    watch: Callable[[int], None] = lambda size: None,
    masks: Iterable[Mask] = (),
) -> ForkPoint:
    """Where a recording is resumed, with nothing changed: its end, or the model calls that failed there.

    Raises as `fork_point` does.
    """
    whole = _eligible(recording, tools, watch)
    cassette = Cassette(whole)
    seq = _last_failures(whole, cassette)
    at_end = seq == len(whole.origins)
    parent = whole.segments[-1].recording
    last = _last(parent) if at_end else whole.origin(seq)[1] - 1
    row = parent.event(last)
    if row is None:
        raise Damaged(f"{parent.path}: row {last:,} cannot be read", file=str(parent.attempt), seq=last)
    return ForkPoint(
        parent=parent,
        seq=last,
        h=row.h,
        step=sum(step.seq < seq for step in steps(whole)),
        at="its end" if at_end else "the call that failed",
        prefix=whole.until(parent, last),
        first_call=_next_call(cassette, seq),
        plan=Plan(at=f"seq:{last + 1}", tools=tools),
        change=whole.change,
        resumed=True,
        masks=in_force(masks_of(recording), masks),
    )


def continuation(recording: Recording) -> Recording | None:
    """The run that went on from a published one by `resume`, the newest of several; None where none did."""
    newest = None
    for member in attempts_in(recording.run_directory.parent):  # oldest first
        said = member.header.data
        if (said.get("parent") or {}).get("attempt") == recording.attempt_id and said["run"] != recording.run_id:
            branch = branch_of(member)
            newest = member if branch is not None and branch.resumed else newest
    return newest


def _last_failures(whole: LineageRecording, cassette: Cassette) -> int:
    """The row, in the lineage's numbers, of the first of the model calls that failed a run at its end; else its end.

    Served again they would fail it again. Behind them nothing but times and chances may stand: what an agent did about
    a failure is part of the run.
    """
    seq, first = len(whole.origins), whole.begins()
    if whole.own.summary.get("outcome") == "succeeded":
        return seq
    for exchange in reversed(cassette.exchanges):
        if exchange.instant:
            continue
        failed = exchange.kind == "decision" and exchange.finished is not None and failed_response(exchange.data)
        if not failed or exchange.started < first:
            break
        seq = exchange.started
    return seq


def _eligible(recording: Recording, tools: str, watch: Callable[[int], None]) -> LineageRecording:
    """The lineage of a recording that can be forked. Raises `Ineligible` with all reasons."""
    if isinstance(recording, PackedRecording):
        reason = f"it is a bundle, and a branch finds its parent in its store: {recording.way_in}"
        raise Ineligible(reason, reasons=[reason])
    if recording.manifest is None:
        live = "it is being recorded; fork it when it has ended"
        reason = live if recording.live else "it is not sealed: `worldline reconcile` seals what a dead writer left"
        raise Ineligible(reason, reasons=[reason])
    whole = LineageRecording(recording)
    if reasons := reasons_against(recording, tools, watch) or reasons_before(whole.ancestors(), tools):
        raise Ineligible(reasons[0], reasons=reasons)
    return whole


def _last(recording: Recording) -> int:
    manifest = recording.manifest
    assert manifest is not None, "only what is sealed is forked"
    return manifest.rows - 1


def _cut(whole: LineageRecording, found: list[Step], at: str) -> tuple[int, int]:
    """The number of the first step that happens anew, and the first row behind the prefix, in the lineage's numbers."""
    match = _AT.fullmatch(at)
    if match is None:
        raise UsageError(f"a place to fork at is step:9 or seq:88, not {at!r}", at=at)
    number = int(match[2])
    if match[1] != "seq":
        if number >= len(found):
            raise UnknownStep.among(number, range(len(found)))
        return number, found[number].seq
    own = len(whole.segments) - 1
    rows = _last(whole.segments[-1].recording)
    if not 0 < number <= rows:
        raise UnknownStep(f"no row {number} to fork at: the run has rows 1 to {rows:,} behind its header", at=at)
    origins = whole.origins
    seq = next((v for v, (which, row) in enumerate(origins) if which == own and row >= number), len(origins))
    return sum(step.seq < seq for step in found), seq


def _next_call(cassette: Cassette, seq: int) -> int:
    """The number behind those of all calls that began before row `seq`."""
    numbers = [e.call[1:] for e in cassette.exchanges if e.started < seq]
    return max((int(number) for number in numbers if number.isdigit()), default=-1) + 1


class _Planned:
    """Works a plan out against the record."""

    def __init__(self, fork: ForkPoint, cassette: Cassette, found: list[Step], seq: int) -> None:
        self._fork, self._cassette, self._steps, self._seq = fork, cassette, found, seq
        self._next = self._first_decision()

    def fork(self) -> ForkPoint:
        plan, told = self._fork.plan, dict[str, Any]()
        edits: dict[str, Content] = {}
        changed = [f"{name}={_short(value)}" for name, value in plan.set.items()]
        for call, value in plan.edit.items():
            exchange = self._edited(call)
            if exchange is None:
                told[call] = value
            else:
                edits[exchange.call] = Content.of(value)
            changed.append(f"result of {call}")
        if plan.seed is not None:
            changed.append(f"seed={plan.seed}")
        change = Change(dict(plan.set), results=told)
        if plan.prompt is not None:
            prompt = self._prompt(plan.prompt, plan.prompt_role)
            change = change.then(prompt)
            changed.append("system prompt" if prompt.system is not None else "user prompt")
        self._check(change)
        total = self._fork.change.then(change)
        doubts = [*self._misspelled(plan.set)]
        return msgspec.structs.replace(self._fork, change=total, changed=changed, edits=edits, doubts=doubts)

    def _misspelled(self, fields: Iterable[str]) -> Iterator[str]:
        """Fields that no request here has, and whose name is nearly that of one: compatible servers may know them."""
        if self._next is None:
            return
        known = sorted({*COMMON_FIELDS, *fields_of(self._cassette.request(self._next))})
        for name in fields:
            if name not in known and (near := difflib.get_close_matches(name, known, 1, 0.75)):
                yield f"{name} is set, which is no field of the request: did you mean {near[0]}?"

    def _first_decision(self) -> Exchange | None:
        return next((e for e in self._cassette.exchanges if e.kind == "decision" and e.started >= self._seq), None)

    def _edited(self, call: str) -> Exchange | None:
        """The recorded tool call that an edit is about; None where its result came back without it."""
        by_id = {use.id: use for step in self._steps for use in step.calls if use.id is not None}
        exchange = self._cassette.by_call.get(call)
        if exchange is None and call in by_id:
            use = by_id[call]
            if use.seq is None:
                self._told_later(call)
                return None
            exchange = next(e for e in self._cassette.exchanges if e.started == use.seq)
        if exchange is None or exchange.kind != "action":
            raise UnknownStep(f"no tool call {call} in the run; `worldline show RUN --step N` names them", call=call)
        if exchange.started >= self._seq:
            raise UsageError(f"{call} ran behind the fork, where it would run anew: fork at a later step", call=call)
        if exchange.finished is None:
            raise UsageError(f"{call} has no result in the record that could be changed", call=call)
        known = [
            e
            for e in self._cassette.exchanges
            if e.kind == "decision" and exchange.finished < e.started < self._seq and e.lane == exchange.lane
        ]
        if known:
            raise UsageError(
                f"the model was told the result of {call} before the fork: fork at step:{self._step_of(known[0])}",
                call=call,
            )
        return exchange

    def _told_later(self, call: str) -> None:
        """A result that ran outside is told in a request: it can be changed where no request before the fork had it."""
        for exchange in self._cassette.exchanges:
            if call in exchange.start_data.get("results", ()):
                if exchange.started < self._seq:
                    raise UsageError(
                        f"the model was told the result of {call} before the fork: "
                        f"fork at step:{self._step_of(exchange)}",
                        call=call,
                    )
                return
        raise UnknownStep(f"{call} has no result in the run", call=call)

    def _step_of(self, exchange: Exchange) -> int:
        return step_at(self._steps, exchange.started) or 0

    def _prompt(self, text: str, role: str) -> Change:
        if self._next is None:
            raise UsageError("no model is asked behind the fork, so there is no prompt to change")
        name, body = self._next.name, self._cassette.request(self._next)
        if role == "user":
            was = user_prompt(name, body)
            if was is None:
                raise UsageError(f"the request behind the fork ({self._next.call}) has no message of the user")
            return Change(users=[[was, text]])
        return Change(system=text)

    def _check(self, change: Change) -> None:
        """Make the change in the request that was recorded behind the fork. Raises where it cannot be made there."""
        if self._next is None:
            if change:
                raise UsageError("no model is asked behind the fork, so nothing of a request can be changed")
            return
        name, body = self._next.name, self._cassette.request(self._next)
        if held_at_provider(body):
            reason = (
                "its requests lean on a conversation that the provider holds and that went on behind the fork; "
                "send the history with each request (previous_response_id, or all messages) and record again"
            )
            raise Ineligible(reason, reasons=[reason])
        if not change:
            return
        if not can_change(name):
            raise UsageError(f"requests of {name} cannot be changed on their way", name=name)
        try:
            _, done = change_request(name, body, self._fork.change.then(change))
        except ValueError as error:
            raise UsageError(f"the request behind the fork ({self._next.call}): {error}") from None
        for call in change.results:
            if f"result of {call}" not in done:
                raise UsageError(f"the request behind the fork does not hold the result of {call}", call=call)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else text[:39] + "…"
