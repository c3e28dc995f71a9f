"""Replay: does the agent do again what it did?

Level 0 runs nothing: every request is rebuilt from the log and its `context_hash` compared. Level 1 re-drives the
agent: its code runs, every crossing is served, and a call that the record does not have is refused, never sent out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from worldline.engine.agent_state import Dumped
from worldline.engine.calibrating import Calibrating, Calibration
from worldline.engine.cassette import Answer, Cassette, rebuild
from worldline.engine.changing import variants
from worldline.engine.crossing import Call, keyed
from worldline.engine.eligibility import Folding, broken, reasons_against, reasons_before, withheld
from worldline.engine.lineage import LineageRecording
from worldline.engine.masks import NONE, MaskUse, in_force, masks_of, projected
from worldline.engine.matcher import Divergence, Matcher
from worldline.engine.messages import Message, messages
from worldline.engine.recorder import described_platform
from worldline.engine.spec import Restriction
from worldline.engine.spoken import Spoken, passed
from worldline.errors import Damaged, Diverged, Ineligible, LineageBroken
from worldline.model.masks import Mask
from worldline.store import blobs, layout
from worldline.store.recording import Recording
from worldline.store.secrets import shapes
from worldline.store.secrets.vault import Vault

PROJECTION = "worldline/1"  # what is compared: keys of all crossings, their partial order, none left over
NOTHING_TO_COMPARE = (
    "nothing crossed the recording, so there is nothing to compare; see that the agent uses the base URLs set for it"
)
_Watch = Callable[[int], None]


class ReplayReport(msgspec.Struct, kw_only=True):
    """What came of a replay.

    `verdict` is `equivalent`, `diverged`, `prefix-equivalent` (a partial record, consumed whole) or `ineligible` (then
    `reasons` says why). `served` counts answers from the record; `live` is 0 by construction. `strict` is a replay of
    what `require_attested` let through; `projection` names what was compared, and its version.
    """

    verdict: str
    divergence: Divergence | None = None
    reasons: list[str] = []
    served: int = 0
    live: int = 0
    projection: str = PROJECTION
    strict: bool = False
    level: str = "L1"
    contexts: int = 0
    relaxed: int = 0
    notes: list[str] = []
    masks: list[MaskUse] = []
    masked: int = 0

    @property
    def equivalent(self) -> bool:
        """Whether the agent did again what the record says (as far as a partial record goes)."""
        return self.verdict in ("equivalent", "prefix-equivalent")

    @property
    def first_divergence(self) -> str | None:
        """The divergence in one line, for assertions."""
        d = self.divergence
        if d is None:
            return "; ".join(self.reasons) or None
        said = f"{d.kind} at {d.name} (seq {d.seq}, {d.call}) {d.path}: recorded {d.recorded!r}, actual {d.actual!r}"
        return f"{said}; it looks volatile, mask={d.masks!r} leaves it out" if d.masks else said

    def to_json(self) -> dict[str, Any]:
        """The form of `worldline replay --json`."""
        out: dict[str, Any] = msgspec.to_builtins(self)
        return out


def resolve_secrets(recording: Recording, environment: Mapping[str, str]) -> dict[str, str]:
    """A value for each secret label of the record: the environment's where it is set, else a placeholder.

    Both sides redact alike, so requests match with the real value and without it.
    """
    try:
        labels = recording.header.data.get("secrets", {}).get("labels", [])
    except Damaged:  # the boundary refuses such a record, and says why
        labels = []
    return {label: environment.get(label) or placeholder(label) for label in labels}


def placeholder(label: str) -> str:
    """What stands for a secret that is not at hand at replay; long enough to be found."""
    return f"worldline-placeholder-{label}"


def inspect(recording: Recording) -> ReplayReport:
    """Level 0: rebuild every context and compare its hash. A record that does not verify is refused, as it is at 1."""
    if away := withheld(recording):
        return ReplayReport(verdict="ineligible", reasons=[away], level="L0")
    contexts, unmet, lost = 0, None, []
    for call, body, met in rebuild(recording):
        contexts += 1
        if not met and not body:
            lost.append(f"damaged: the request of {call} cannot be rebuilt")
        elif not met and unmet is None:
            unmet = Divergence("context", None, call, "$", "the recorded context hash", "another", "context")
    damages = [f"damaged: {d.detail}" for d in recording.damages if d.kind not in ("torn", "zeros")]
    if damages or lost:
        return ReplayReport(verdict="ineligible", reasons=[*damages, *lost], level="L0", contexts=contexts)
    wrong, _ = broken(recording)
    if wrong:
        return ReplayReport(verdict="ineligible", reasons=[wrong], level="L0", contexts=contexts)
    if unmet is not None:
        return ReplayReport(verdict="diverged", divergence=unmet, level="L0", contexts=contexts)
    partial = recording.disposition != "complete"
    return ReplayReport(verdict="prefix-equivalent" if partial else "equivalent", level="L0", contexts=contexts)


def differences_of_place(recording: Recording) -> list[str]:
    """Where this machine differs from the one that recorded, as the header has it: said before any divergence."""
    before, here = recording.header.data.get("platform", {}), described_platform()
    differing = [key for key in here if before.get(key, here[key]) != here[key]]
    return [f"recorded on {key} {before[key]}, replayed on {here[key]}" for key in differing]


def _continues(recording: Recording, tools: str) -> LineageRecording | None:
    """The lineage of a recording that has one. Raises `Ineligible` where it is not whole."""
    if recording.header.data.get("parent") is None:
        return None
    try:
        lineage = LineageRecording(recording)
        reasons = reasons_before(lineage.ancestors(), tools)
    except LineageBroken as error:
        reasons = [str(error)]
    if reasons:
        raise Ineligible(reasons[0], reasons=reasons)
    return lineage


def _continued(lineage: LineageRecording) -> Cassette:
    """The exchanges of a lineage. What an ancestor had under way when it broke off was asked again in the next one."""
    cassette, own = Cassette(lineage), lineage.begins()
    cassette.exchanges = [
        e for e in cassette.exchanges if e.finished is not None or e.given_up is not None or e.started >= own
    ]
    return cassette


class ReplayBoundary:
    """Every crossing is served from a recording; nothing goes out. Raises `Ineligible` with all reasons.

    What `masks` and the record's own leave out is not compared; with None nothing is left out. With `calibrates`
    answers are given by position, and it says what differed (`calibration`).
    """

    mode = "replay"

    def __init__(
        self,
        recording: Recording,
        secrets: Mapping[str, str] | None = None,
        tools: str = "refuse",
        watch: Callable[[int], None] = lambda size: None,
        masks: Iterable[Mask] | None = (),
        calibrates: bool = False,
    ) -> None:
        with suppress(Damaged):  # whether its format can be read comes before anything that stands in it
            _ = recording.header
        folding = Folding(recording)
        if reasons := reasons_against(recording, tools, watch, folding):
            raise Ineligible(reasons[0], reasons=reasons)
        self.recording = recording
        self._lineage = _continues(recording, tools)
        self._changes = self._lineage.changes if self._lineage is not None else []
        self._forks = self._lineage.forks() if self._lineage is not None else None
        held = recording.header.data.get("secrets", {})
        self.vault = Vault(secrets or {}, key_shapes=held.get("shapes", 0) == shapes.VERSION)
        self._restriction = Restriction.of(recording.header.data)
        self.partial = recording.disposition != "complete"
        cassette = folding.cassette() if self._lineage is None else _continued(self._lineage)
        self._spoken = Spoken()
        if self._lineage is not None:
            for event in cassette.notes:
                self._spoken.fold(event, self._lineage)
        self._calibrating = Calibrating() if calibrates else None
        self.matcher = Matcher(
            cassette,
            self.partial,
            by_position=calibrates,
            moved=self._calibrating.moved_to if self._calibrating is not None else None,
            masks=NONE if masks is None else in_force(masks_of(recording), masks),
        )
        self._unmasked = len(masks_of(recording)) if masks is None else 0
        if unfit := [f"damaged: row {d.seq}: {d.detail}" for d in recording.damages if d.kind == "unfit"]:
            raise Ineligible(unfit[0], reasons=unfit)
        if not self.matcher.cassette.exchanges:
            raise Ineligible(NOTHING_TO_COMPARE, reasons=[NOTHING_TO_COMPARE])
        if lost := self._unrecordable():
            raise Ineligible(lost[0], reasons=lost)
        self.notes = 0

    def _key(self, key: str, tier: str) -> str:
        """A call's key as the rows of its tier carry it."""
        held = self.recording.tier_key if self._lineage is None else self._lineage.tier_key
        return blobs.keyed(key, held) if tier == layout.RESTRICTED and held is not None else key

    def _unrecordable(self) -> list[str]:
        """The results that no record could carry and that the agent would be given."""
        exchanges, optional = self.matcher.cassette.exchanges, self.matcher.optional
        lost = [
            (e.name, e.data["unrecordable"]) for e in exchanges if "unrecordable" in e.data and e.call not in optional
        ]
        return [
            f"{name} returned {what['type']} at {what['path']}, which is not in the record; return plain data"
            for name, what in lost
        ]

    def begin(self, call: Call) -> Answer:
        """The recorded answer. Raises `Diverged` or `RecordEnds`."""
        asked = variants(call, self._changes) if self._changes else [call]
        known = [keyed(each, self.vault, self._restriction, self._key) for each in asked]
        try:
            exchange = self.matcher.take(call, *known)
        except Diverged:
            self._tell_by_own_rows()
            raise
        return Answer(self.matcher.cassette, exchange, self.matcher)

    def _tell_by_own_rows(self) -> None:
        """A divergence names the row as the recording that has it does: a lineage counts its own."""
        first = self.matcher.first
        if self._lineage is not None and first is not None and first.seq is not None:
            self.matcher.first = msgspec.structs.replace(first, seq=self._lineage.origin(first.seq)[1])

    def forks(self) -> int | None:
        """How many forks of a lineage the agent came past; None for a recording without ancestors."""
        return None if self._forks is None else passed(self._forks, self.matcher.reached, self._spoken)

    def restored(self) -> Dumped | None:
        """None: a replay drives the agent from its beginning."""
        return None

    def heard(self, server: str) -> list[Message]:
        """All that the record has of them."""
        cassette = self.matcher.cassette
        return messages(cassette.messages, cassette.recording, server)

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Markers and observations of the re-driven agent are counted; the projection does not compare them."""
        self.notes += 1
        self._spoken.again(kind, src, lane)

    def report(self, ended: int | None = None) -> ReplayReport:
        """The verdict, once the agent has ended with the exit code `ended` (1 where it raised in process)."""
        matcher = self.matcher
        if matcher.first is None:
            matcher.end()
            self._tell_by_own_rows()
        if matcher.first is None and not self.partial and ended is not None:
            matcher.first = self._other_end(ended)
        verdict = "diverged" if matcher.first else "prefix-equivalent" if self.partial else "equivalent"
        return ReplayReport(
            verdict=verdict,
            divergence=matcher.first,
            served=matcher.served,
            relaxed=matcher.relaxed,
            notes=[*differences_of_place(self.recording), *matcher.passed_over(), *self._not_left_out()],
            projection=projected(PROJECTION, matcher.masking.masks),
            masks=matcher.masking.uses(),
            masked=matcher.masking.relied,
        )

    def calibration(self) -> Calibration:
        """What differed, once the agent has ended."""
        assert self._calibrating is not None, "it was not asked for"
        report, found = self.report(), self._calibrating.found()
        said = {use.mask for use in report.masks}
        found.proposals = [proposal for proposal in found.proposals if proposal.mask not in said]
        found.served, found.moved, found.ended = report.served, self.matcher.moved, report.divergence
        found.masks, found.notes = report.masks, report.notes
        return found

    def _not_left_out(self) -> list[str]:
        """The masks of the record are not in force where everything is compared."""
        masks = f"{self._unmasked} mask" + ("s" if self._unmasked > 1 else "")
        return [f"everything was compared: the record's {masks} left nothing out"] if self._unmasked else []

    def _other_end(self, ended: int) -> Divergence | None:
        """The divergence of an agent that made the same calls and then ended otherwise: well, or not."""
        summary = self.recording.summary
        before = summary.get("exit", 1 if "error" in summary else 0)
        if (before == 0) == (ended == 0):
            return None
        seq = self.matcher.cassette.last_seq
        return Divergence("outcome", seq, None, "$", f"it ended with {before}", f"it ended with {ended}", "the end")
