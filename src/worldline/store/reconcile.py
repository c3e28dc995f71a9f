"""What state the attempts of a run are in, and completing what a dead writer began. Reading is not changed by it.

stillborn                no header is durable: left aside
live                     a writer holds it: untouched
sealed:partial           sealed without publishing, by its writer or here, with the reason
sealed:complete          sealed and published; a seal that was missing behind the commit point is completed here
superseded               sealed without publishing, and another attempt of its run published
published-unattested     a result is out that no sealed attempt vouches for: untouched, never run again
damaged                  not what was written, with file and offset: untouched
contained                a secret was found in it, and it is in quarantine or on its way: untouched

Before the commit point a death publishes nothing; behind it the seal is completed from what was staged. It may be run
again at any time, also after it was killed itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import ReadError, UnattestedResultError, WriterConflict
from worldline.model.manifest import Manifest, unseal
from worldline.store import layout, salvage
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget.quarantine import register_of
from worldline.store.log import take_lock
from worldline.store.recording import Recording
from worldline.store.salvage import Found
from worldline.store.seal import attest, chunks_of, publish
from worldline.store.verify import verify

HARMLESS = frozenset({"stillborn", "live", "sealed:partial", "sealed:complete", "superseded", "contained"})
DIED = "its writer died"


class State(msgspec.Struct, frozen=True):
    """One attempt, or one result without an attempt. `did` says what was done now: `sealed` or None.

    `file` and `offset` (bytes) are the place of a damage.
    """

    run: str
    attempt: str | None
    state: str
    reason: str | None = None
    did: str | None = None
    file: str | None = None
    offset: int | None = None


Account = Callable[[Recording, Found, str, str], tuple[str, dict[str, Any], dict[str, Any]]]
"""Gives for (recording, its log, disposition, reason) the result's name, the result, and the manifest's facts."""


def reconcile(run: Path, account: Account) -> list[State]:
    """Bring every attempt of a run into a state that holds; `account` says what its seal shall say.

    Returns the states, attempts oldest first. Raises `LogBroken` or `OSError` where the place cannot be written.
    """
    attempts = _open(run)
    first = publisher_of(run)  # that the others are superseded holds only once it is sealed
    states = {attempt: _attempt(attempt, account) for attempt in sorted(attempts, key=lambda path: path != first)}
    found = [states[attempt] for attempt in attempts]
    held = register_of(run).rows
    if publisher_of(run) is None and not any(attempt.name in held for attempt in layout.attempts(run)):
        lost = [f"{result.name} is the result of no attempt" for result in sorted(run.glob("*.json"))]
        found += [State(run.name, None, "published-unattested", reason) for reason in lost]
    found += [State(run.name, name, "contained", f"for the secret {row.label}") for name, row in held.items()]
    return found or [State(run.name, None, "stillborn")]


def _open(run: Path) -> list[Path]:
    """The attempts that were not contained, oldest first."""
    held = register_of(run).rows
    return [attempt for attempt in layout.attempts(run) if attempt.name not in held]


def publisher_of(run: Path) -> Path | None:
    """The attempt whose result is out, sealed or not."""
    begun = (attempt for attempt in _open(run) if (attempt / layout.CHUNKS).is_dir())
    return next((attempt for attempt in begun if Recording(attempt).published is not None), None)


def _attempt(attempt: Path, account: Account) -> State:
    run, name = attempt.parent.parent.parent.name, attempt.name
    if (link := layout.link_in(attempt)) is not None:  # what would be moved, cut or added to may be another's
        return State(run, name, "damaged", f"{link.name} is a symbolic link", file=link.name, offset=0)
    if (attempt / layout.MANIFEST).exists():
        return _sealed(attempt)
    if not any(path.stat().st_size for path in layout.log_files(attempt)):  # a newborn's lock is not taken from it
        begun = (attempt / layout.CHUNKS).is_dir()
        return State(run, name, "live" if begun and Recording(attempt).live else "stillborn")
    try:
        lock = take_lock(attempt)
    except WriterConflict:
        return State(run, name, "live")
    try:
        return _sealed(attempt) if (attempt / layout.MANIFEST).exists() else _unsealed(attempt, lock, account)
    finally:
        os.close(lock)


def _sealed(attempt: Path, did: str | None = None) -> State:
    recording = Recording(attempt)
    manifest, publisher = recording.manifest, publisher_of(recording.run_directory)
    here = recording.run_directory.name, attempt.name
    if manifest is None:
        return State(*here, "damaged", recording.seal_problem, file=layout.MANIFEST, offset=0)
    if manifest.result["publish"] == "none":
        layout.sync_directory(attempt)  # whoever died before he did so: sealed anew it would have another fingerprint
        return State(*here, "superseded" if publisher else "sealed:partial", manifest.reason, did)
    if attempt.name != (publisher.name if publisher else None):
        gone = "its published result is gone, or is not its own"
        return State(*here, "damaged", gone, file=manifest.result["name"], offset=0)
    return State(*here, "sealed:complete", manifest.reason, did)


def _unsealed(attempt: Path, lock: int, account: Account) -> State:
    recording = Recording(attempt)
    here, found = (recording.run_directory.name, attempt.name), salvage.read_log(recording)
    damage, publisher = found.damage, publisher_of(recording.run_directory)
    if damage is not None and not found.cut:
        reason = f"{damage.kind} at row {damage.seq}: {damage.detail}"
        return State(*here, "damaged", reason, file=damage.file, offset=damage.offset)
    if found.header is None:
        return State(*here, "stillborn")
    try:
        _ = recording.header
    except ReadError as error:  # no header, or one of a newer version
        return State(*here, "damaged", str(error), file=recording.files()[0].name, offset=0)
    if lost := [p for p in verify(recording).problems if p.kind in ("missing", "corrupt")]:
        return State(*here, "damaged", f"{lost[0].kind}: {lost[0].detail}", file=lost[0].where, offset=0)
    salvage.make_durable(recording.attempt)
    if recording.published is None:
        _seal_partial(recording, lock, found, publisher, account)
    elif doubt := _doubt(recording, found):
        return State(*here, "published-unattested", doubt)
    else:
        salvage.sweep(attempt)
        attest(attempt)
    return _sealed(attempt, "sealed")


def _seal_partial(recording: Recording, lock: int, found: Found, publisher: Path | None, account: Account) -> None:
    attempt = recording.attempt
    salvage.sweep(attempt)
    if found.damage is not None:
        salvage.cut_tail(attempt, found.damage.offset)
    done = found.last is not None and found.last.name == "meta/end"
    reason = f"{DIED} before the commit point" if done else DIED
    reason += f"; {publisher.name} published" if publisher is not None else ""
    salvage.end_log(attempt, lock, found, {"disposition": "partial", "reason": reason, "outcome": "unknown"})
    assert found.header is not None
    if not (attempt / layout.OPEN).exists():
        layout.write_durable(attempt / layout.OPEN, layout.opened(found.header.data))
    for staged in (layout.STAGED, layout.RESULT):  # of a publication that did not come about
        (attempt / staged).unlink(missing_ok=True)
    whole = salvage.read_log(recording)
    assert whole.last is not None
    said = whole.last.data
    name, result, facts = account(recording, whole, said["disposition"], said["reason"])
    facts |= {"chunks": chunks_of(attempt), "torn": salvage.torn_facts(attempt)}
    publish(attempt, name, result, facts, publishes=False)


def _doubt(recording: Recording, found: Found) -> str | None:
    """Why the attempt whose result is out cannot be vouched for; None where what it staged fits what stands there."""
    staged = recording.attempt / layout.STAGED
    try:
        manifest, _ = unseal(staged.read_bytes())
    except FileNotFoundError:
        return "the staged manifest is gone"
    except ValueError as error:
        return f"the staged manifest: {error}"
    return _mismatch(recording, manifest, found)


def _mismatch(recording: Recording, manifest: Manifest, found: Found) -> str | None:
    written, published = found.written, recording.published
    assert found.header is not None and published is not None
    log = (written.seq, written.bytes, written.h.hex(), found.merkle.root().hex(), found.header.h)
    sealed = (manifest.rows, manifest.bytes, manifest.head, manifest.root, manifest.header)
    result = (published.name, published.stat().st_size, layout.sha256_of(published))
    if found.damage is not None or log != sealed or manifest.chunks != chunks_of(recording.attempt):
        return "the log is not what was to be sealed"
    if result != (manifest.result["name"], manifest.result["size"], manifest.result["sha256"]):
        return "the published result is not what was to be sealed"
    return None


def refuse_doubt(recording: Recording) -> Recording:
    """The recording. Raises `UnattestedResultError` where a result is out that no attempt sealed as complete attests.

    A run with a live writer is not in doubt: the step that is missing is under way.
    """
    if isinstance(recording, PackedRecording):
        return recording
    run = recording.run_directory
    results = sorted(run.glob("*.json"))
    if not results:
        return recording
    recordings = [Recording(attempt) for attempt in _open(run) if (attempt / layout.CHUNKS).is_dir()]
    names = [m.result["name"] for r in recordings if (m := r.manifest) is not None and m.disposition == "complete"]
    if any(result.name in names for result in results) or any(each.live for each in recordings):
        return recording
    raise UnattestedResultError(
        f"no sealed attempt vouches for {results[0]}; `worldline reconcile {run}` seals it or says why not",
        path=str(results[0]),
    )
