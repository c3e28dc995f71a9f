"""May a recording be replayed? What it is not whole in, what would happen again, and whether it is evidence.

A recording is verified here before anything of it is served: by whoever replays, forks, resumes or studies it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from worldline.engine.cassette import Cassette
from worldline.engine.recorder import wrote
from worldline.engine.unread import Unread, objection, unread
from worldline.engine.verified import VERIFIED, stamp_of
from worldline.errors import Damaged, Ineligible, VerifierIsWriter
from worldline.model.events import Event
from worldline.store import layout
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget.availability import expired, when
from worldline.store.recording import Recording
from worldline.store.verify import Reading, publication, verify

_Watch = Callable[[int], None]
DERIVED = (
    "it is derived: with what was taken out it is the record of nothing that ran; give the recording it was made of"
)


def may_have_gone_on(recording: Recording) -> bool:
    """Whether the agent may have acted behind the end of its record: it failed open, and its recorder did not seal."""
    if recording.header.data.get("fail_open") is not True:
        return False
    manifest = recording.manifest
    return manifest is None or manifest.sealed_later


def reasons_against(
    recording: Recording,
    tools: str = "refuse",
    watch: _Watch = lambda size: None,
    folding: Folding | None = None,
    *,
    once: bool = False,
) -> list[str]:
    """Why a recording cannot be re-driven, each with a way on; empty where it can.

    `tools="run"` allows for tools that ran outside the recording: they will run again. With `once` it is not read whole
    where it verified in this process and has not changed since.
    """
    manifest = recording.manifest
    hidden = VERIFIED.unread(recording) if once else None
    if hidden is None:
        wrong, hidden = broken(recording, watch, folding)
        if wrong:
            return [wrong]
    reasons = [DERIVED] if manifest is not None and manifest.derived_from is not None else []
    if away := withheld(recording):
        reasons.append(away)
    coverage = manifest.coverage if manifest else {}
    outside: Mapping[str, int] = coverage.get("tools", {}).get("outside", {})
    if outside and tools != "run":
        ran = ", ".join(f"{name} x{count}" for name, count in outside.items())
        reasons.append(
            f"tools ran outside the recording ({ran}) and would run again; wrap them with @worldline.tool and record "
            "again; or start their server through the MCP proxy, `worldline mcp -- SERVER`, and record again; or let "
            "them run again: --tools run; files are as they were in a fork of a workspace checkpoint"
        )
    if hidden and tools != "run":
        reasons.append(objection(hidden))
    if heard := coverage.get("decision", {}).get("outside", {}):
        asked = ", ".join(f"{name} x{count}" for name, count in heard.items())
        reasons.append(
            f"models were asked outside the recording ({asked}): a callback heard it and cannot serve it; let their "
            "client talk to the run's proxy, or wrap it with worldline.wrap, and record again"
        )
    reasons.extend(f"something crossed that was not recorded: {loss}" for loss in coverage.get("losses", []))
    return reasons


def reasons_before(ancestors: Iterable[Recording], tools: str) -> list[str]:
    """Why what a branch continues cannot be served."""
    for ancestor in ancestors:
        if reasons := reasons_against(ancestor, tools, once=True):
            return [f"of its ancestor {ancestor.run_id}: {reason}" for reason in reasons]
    return []


class Folding:
    """A cassette that is filled while its recording is verified: what is served was read once, and is what verified."""

    def __init__(self, recording: Recording) -> None:
        self._cassette = Cassette(recording, filled=False)
        self._failed: Damaged | None = None
        self._folds = False

    def begins(self) -> Callable[[Event], None]:
        """What fills the cassette in a pass over the rows of a directory."""
        self._folds = True
        return self._fold

    def _fold(self, event: Event) -> None:
        if self._failed is None:
            try:
                self._cassette.fold(event)
            except Damaged as error:  # of a recording that does not verify that is to be said, not this
                self._failed = error

    def cassette(self) -> Cassette:
        """The cassette, once its recording has verified. Raises `Damaged` where it could not be filled."""
        if self._failed is not None:
            raise self._failed
        return self._cassette if self._folds else Cassette(self._cassette.recording)


def broken(
    recording: Recording, watch: _Watch = lambda size: None, folding: Folding | None = None
) -> tuple[str | None, dict[str, int]]:
    """What does not verify, with a way on, and None where all does; and the answers that nobody could read, by route.

    What a crash leaves is no reason.
    """
    packed = isinstance(recording, PackedRecording)  # is read in a pass of its own
    before = None if packed else stamp_of(recording)
    hidden, reading = Unread(), None
    if not packed:
        fold = None if folding is None else folding.begins()
        reading = Reading(recording, watch, fold, hidden.row)
    verification = verify(recording, watch, reading=reading)
    counts = unread(recording) if packed else hidden.counts()
    problems = [p for p in verification.problems if p.kind not in ("unsealed", "torn", "zeros")]
    if not problems:
        if not verification.problems:
            VERIFIED.add(recording, before, counts)
        return None, counts
    first = problems[0]
    said = f"the record does not verify: {first.kind} at {first.where}: {first.detail}; `worldline verify` lists all"
    return said, counts


def require_attested(recording: Recording) -> None:
    """What a replay must have before it verifies a recording: a sealed attempt, published by it, read by another.

    Raises `VerifierIsWriter` in the process that wrote it, `Ineligible` with all reasons otherwise.
    """
    if wrote(recording.header.data.get("nonce")):
        reason = (
            f"this process wrote {recording.path}; its replay is verified by another one: `worldline replay --strict`"
        )
        raise VerifierIsWriter(reason, reasons=[reason])
    if reasons := list(_unattested(recording)):
        raise Ineligible(reasons[0], reasons=reasons)


def _unattested(recording: Recording) -> Iterator[str]:
    found = publication(recording)
    if found.state == "packed":
        yield "it is a bundle, which cannot show which attempt published; give the run's directory"
    elif found.state == "derived":
        yield DERIVED
    elif found.state == "unsealed":
        yield "it is not sealed; `worldline reconcile` seals what a dead writer left"
    elif found.state == "withheld":
        yield "it was sealed without publishing a result; only what was published is verified"
    elif found.state == "failed":
        yield f"its publication does not verify: {found.problems[0].where}: {found.problems[0].detail}"
    elif not _published_it(recording):
        yield "the published result is a copy: that this attempt published it cannot be seen; give the store it ran in"


def _published_it(recording: Recording) -> bool:
    """Whether the result that stands published is the attempt's own: its inode, or its name where links cannot be."""
    manifest = recording.manifest
    assert manifest is not None
    if manifest.result["publish"] == layout.RENAME:
        return recording.summary.get("attempt") == recording.attempt_id
    return (recording.attempt / layout.RESULT).samefile(recording.run_directory / manifest.result["name"])


def withheld(recording: Recording) -> str | None:
    """Why contents of a recording are not to be had; None where they are."""
    if recording.header.data.get("capture") == "refs":
        return "it was recorded with --capture refs: contents are not in it; record with --capture full"
    if gone := expired(recording):
        contents = "1 of its contents" if len(gone) == 1 else f"{len(gone):,} of its contents"
        return f"{contents} expired, since {when(gone[0].deadline)}: nothing can serve them any more; record again"
    manifest = recording.manifest
    tiers = {blob[3] for blob in manifest.blobs} if manifest is not None else set()
    if layout.RESTRICTED in tiers and recording.tier_key is None:
        return "its restricted contents and their key were left out (`pack --share`); replay the run it was packed from"
    return None
