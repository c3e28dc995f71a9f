"""Is the record what was written? Five questions, each with its own verdict, and every problem with its place.

structure      rows chain, nothing is missing, out of place or added; head and root are what the seal says
evidence       every content that a row names is what was written
publication    the result that people see is this attempt's, whole
availability   what is kept is still here
authenticity   who vouches for it; a chain alone shows edits, not authors

Each question is a function; `verify` asks all of them in one pass. `check_manifest` judges a manifest's line alone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from worldline.errors import Damaged, WorldlineError
from worldline.model.events import Event
from worldline.model.manifest import Manifest, unseal
from worldline.model.merkle import Merkle
from worldline.store import layout, signature
from worldline.store.bundle.packed import PackedRecording
from worldline.store.bundle.verify_packed import Exports, judge_packed
from worldline.store.forget import availability as states
from worldline.store.note_lines import read_lines
from worldline.store.notes import stored
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verdicts import Problem, Verdict, Verification, collect_blobs, derivation, rows_against_seal

WATCHED_BYTES = 1 << 20
CANNOT_BE_EXCLUDED = "a forgery that was sealed anew cannot be excluded"
_FOLDERS = frozenset({layout.CHUNKS, layout.BLOBS})
_SEALED_FILES = _FOLDERS | {layout.TORN}  # what stands there is in the manifest by name
_Watch = Callable[[int], None]


def verify(
    recording: Recording,
    watch: _Watch = lambda size: None,
    *,
    signers: Path | None = None,
    exports: Exports | None = None,
    reading: Reading | None = None,
) -> Verification:
    """Read every byte of a recording and judge it. Raises only for what is no recording at all.

    `watch` is told, now and then, how many more bytes of the log have been read: for a progress line. `signers` is a
    file of allowed signers (`ssh-keygen`): then a recording that none of them signed does not verify. `exports` derive
    a bundle's further entries again, by name (`engine.export`); without them these are named as not derived.
    `reading` is that of a directory, where its caller has read the log for itself, too.
    Raises `UsageError` where there is no such file, `SignatureFailed` where it cannot be used.
    """
    if isinstance(recording, PackedRecording):
        answers, facts = judge_packed(recording, watch, exports)
        return Verification.of({**answers, "authenticity": authenticity(recording, signers)}, facts)
    reading = reading or Reading(recording, watch)
    answers = {
        "structure": structure(recording, reading),
        "evidence": evidence(recording, reading),
        "publication": publication(recording),
        "availability": availability(recording, reading),
        "authenticity": authenticity(recording, signers),
    }
    if answers["structure"].problems and recording.manifest is None:  # what is wrong there says enough
        answers["publication"] = Verdict("unsealed")
    manifest = recording.manifest
    facts = {
        "run": recording.run_directory.name,
        "attempt": recording.attempt.name,
        "rows": reading.rows.seq,
        "contents": len(reading.blobs),
        "disposition": manifest.disposition if manifest else recording.disposition,
        "fingerprint": recording.fingerprint if manifest else None,
        "unsealed": [name for name in layout.BESIDE if (recording.attempt / name).exists()],
    }
    return Verification.of(answers, facts)


def check_manifest(line: bytes) -> Verdict:
    """Whether a manifest's line (LF included) fits its seal and holds together. Nothing else is looked at."""
    try:
        unseal(line)
    except ValueError as error:
        return Verdict("failed", [Problem("manifest", layout.MANIFEST, str(error))])
    return Verdict("ok")


def structure(recording: Recording, reading: Reading | None = None) -> Verdict:
    """Whether the rows chain and are what was sealed, and no file is missing, changed or added: `ok` or `failed`."""
    if isinstance(recording, PackedRecording):
        return judge_packed(recording)[0]["structure"]
    reading = reading or Reading(recording)
    problems = list(_structure(recording, recording.manifest, reading))
    if recording.seal_problem is not None:
        problems.insert(0, Problem("manifest", layout.MANIFEST, recording.seal_problem))
    return Verdict("failed" if problems else "ok", problems)


def evidence(recording: Recording, reading: Reading | None = None) -> Verdict:
    """Whether every content that is here is what a row or the seal names: `ok` or `failed`."""
    if isinstance(recording, PackedRecording):
        return judge_packed(recording)[0]["evidence"]
    corrupt = (reading or Reading(recording)).contents.corrupt
    return Verdict("failed" if corrupt else "ok", corrupt)


def availability(recording: Recording, reading: Reading | None = None) -> Verdict:
    """Whether every content that should be here is: `ok`, `missing`, or `failed` (the record of what expired).

    `expired` (some went behind their retention) and `withheld` (left out of a bundle, and said) are no problems.
    """
    if isinstance(recording, PackedRecording):
        return judge_packed(recording)[0]["availability"]
    contents = (reading or Reading(recording)).contents
    return states.verdict(contents.counts, contents.missing, recording.expiry)


def publication(recording: Recording) -> Verdict:
    """Whether the published result is this attempt's: `ok`, or `failed`.

    `withheld` is sealed as partial, `packed` a bundle of what was published, `unsealed` not sealed at all; `derived`
    was made of another recording, which published or not: this one never did.
    """
    if isinstance(recording, PackedRecording):
        return judge_packed(recording)[0]["publication"]
    manifest = recording.manifest
    if manifest is None and recording.seal_problem is not None:
        return Verdict("unsealed")
    if manifest is None:
        state = "its writer is still at work" if recording.live else "its writer died before sealing it"
        return Verdict("unsealed", [Problem("unsealed", recording.attempt.name, state)])
    problems = list(_publication(recording, manifest))
    if problems:
        return Verdict("failed", problems)
    if manifest.derived_from is not None:
        return Verdict("derived", facts=derivation(manifest))
    return Verdict("ok" if manifest.result["publish"] != "none" else "withheld")


def authenticity(recording: Recording, signers: Path | None = None) -> Verdict:
    """Who vouches for the recording: `signed` by one of `signers`, `unsigned`, or `failed`.

    `failed` is a signature that does not fit the manifest, and with `signers` also none, or a stranger's. Without them
    even a signature that fits leaves it `unsigned`: whoever forges can sign with a key of his own.
    The rest of the recording hangs on the manifest by the other verdicts.
    """
    try:
        path, line = signature.signature_path(recording), recording.manifest_line
    except WorldlineError:
        return Verdict("unsigned", facts={"authenticity": "unsigned: there is no seal that could be signed"})
    if path is None or line is None:
        found = signature.Signature(state="none")
    else:
        found = signature.check(line, path, signers)
    if found.state == "good":
        facts = {"authenticity": f"signed by {found.by}", "signer": found.by, "key": found.key}
        return Verdict("signed", facts=facts)
    if found.state == "bad":
        return Verdict("failed", [Problem("signature", path.name if path else "", found.detail)], {"key": found.key})
    if signers is not None:
        where = path.name if path else "its signature"
        detail = f"nobody signed it, and {signers.name} was to say who may; {CANNOT_BE_EXCLUDED}"
        return Verdict("failed", [Problem("unsigned", where, detail)])
    said = {"none": "unsigned", "stranger": f"{found.detail}, and no --signers say whose it is"}
    words = f"{said.get(found.state, found.detail)}: {CANNOT_BE_EXCLUDED}"
    return Verdict("unsigned", facts={"authenticity": words, "key": found.key})


class _Contents(NamedTuple):
    """The problems of contents, and how many are in which state."""

    corrupt: list[Problem]
    missing: list[Problem]
    counts: Counter[str]


class Reading:
    """One pass over the log, and one over its contents, for the questions to share.

    For who needs the rows themselves, too: `rows` is given each good one as it stands, `fold` as `Recording.events`
    gives it, in the same pass. Then nothing that is used was read a second time, after it was verified.
    """

    def __init__(
        self,
        recording: Recording,
        watch: _Watch = lambda size: None,
        fold: Callable[[Event], None] | None = None,
        rows: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.recording = recording
        self.merkle = Merkle()
        self.header = self.last = ""
        self.blobs: dict[str, dict[str, Any]] = {}
        self._watch, self._give = watch, rows
        if fold is None:
            deque(self._passing(RowReader(recording.files())), maxlen=0)
        else:
            for event in recording.events(self._passing):
                fold(event)

    def _passing(self, rows: RowReader) -> Iterator[Event]:
        self.rows, add, give, told, event = rows, self.merkle.add, self._give, 0, None
        for event in rows:
            add(rows.leaf)
            if may_name_contents(event.raw):
                collect_blobs(event.data, self.blobs)
            self.header = self.header or event.h
            give(event)
            if rows.bytes - told >= WATCHED_BYTES:
                self._watch(rows.bytes - told)
                told = rows.bytes
            yield event
        self.last = event.name if event is not None else ""

    @cached_property
    def contents(self) -> _Contents:
        """What became of the contents that rows and manifest name."""
        return _contents(self.recording, self.recording.manifest, self.blobs)


def may_name_contents(raw: bytes) -> bool:
    """Whether a line may hold a `$blob`, spelled out or in escapes. One byte is found much sooner than several."""
    return (b"$" in raw and b"$blob" in raw) or (b"\\" in raw and b"\\u" in raw)


def _structure(recording: Recording, manifest: Manifest | None, reading: Reading) -> Iterator[Problem]:
    try:
        _ = recording.header
    except Damaged as error:
        yield Problem(error.kind, "row 0", str(error))
    root = reading.merkle.root().hex()
    yield from rows_against_seal(reading.rows, root, reading.header, reading.last, manifest)
    if manifest is not None:
        yield from _files(recording, manifest)
    yield from _notes(recording, manifest)


def _notes(recording: Recording, manifest: Manifest | None) -> Iterator[Problem]:
    """What people wrote beside it chains. While it grows, a note may be younger than what was read of the rows."""
    attempt, rows = (manifest.attempt, manifest.rows) if manifest is not None else (recording.attempt.name, None)
    for name in layout.BESIDE:
        try:
            yield from read_lines(stored(recording, name), name, attempt, rows).problems
        except Damaged as error:
            yield Problem("changed", name, str(error))


def _files(recording: Recording, manifest: Manifest) -> Iterator[Problem]:
    """Every file of a sealed attempt is what was sealed, and there is no other."""
    attempt = recording.attempt
    sealed = {f"{layout.CHUNKS}/{name}": (size, digest) for name, size, digest in manifest.chunks}
    if manifest.torn is not None:
        sealed[layout.TORN] = (manifest.torn["size"], manifest.torn["sha256"])
    known = {str(layout.blob_path(attempt, tier, name).relative_to(attempt)) for name, _, _, tier, _ in manifest.blobs}
    # A writer that dies between the key and the first content that it names leaves a key alone.
    if (manifest.recording or {}).get("restrict") or any(blob[3] == layout.RESTRICTED for blob in manifest.blobs):
        known.add(str(layout.tier_key_path(attempt).relative_to(attempt)))
    # Nothing expires whose retention was not declared.
    names = layout.SEALED_NAMES - ({layout.EXPIRY} if manifest.retention is None else set())
    for path in sorted(attempt.rglob("*")):
        name = str(path.relative_to(attempt))
        folder = path.is_dir() and not path.is_symlink()
        if name.split("/")[0] not in names or (folder and name in names - _FOLDERS):
            yield Problem("added", name, "a name that no sealed attempt has")
        elif not folder and name.split("/")[0] in _SEALED_FILES and name not in sealed and name not in known:
            yield Problem("added", name, "a file that was not sealed")
        elif not folder and (path.is_symlink() or not path.is_file()):
            yield Problem("changed", name, "no file of its own")
    for name, (size, digest) in sealed.items():
        if not (attempt / name).is_file():
            yield Problem("missing", name, "a sealed file is gone")
        elif ((attempt / name).stat().st_size, layout.sha256_of(attempt / name)) != (size, digest):
            yield Problem("changed", name, "not the bytes that were sealed")
    yield from _derived(recording)


def _derived(recording: Recording) -> Iterator[Problem]:
    try:
        opened = layout.opened(recording.header.data)
    except WorldlineError:
        return  # the header's own problem is reported already
    for name, bytes_due in ((layout.OPEN, opened), (layout.LOCK, b"")):
        path = recording.attempt / name
        # Gone is no loss: it can be derived again.
        if (found := layout.read_bounded(path, len(bytes_due))) is not None and found != bytes_due:
            yield Problem("changed", name, "not what the header says" if bytes_due else "the lock is not empty")


def _contents(recording: Recording, manifest: Manifest | None, named: dict[str, dict[str, Any]]) -> _Contents:
    references = dict(named)
    for name, size, media_type, tier, _ in manifest.blobs if manifest else ():
        references.setdefault(name, {"name": name, "size": size, "type": media_type, "tier": tier})
    found = _Contents([], [], Counter())
    for name, reference in sorted(references.items()):
        state, detail = states.AVAILABLE, ""
        try:
            size = sum(len(part) for part in recording.stream_blob(reference))
        except Damaged as error:
            state, detail = error.facts.get("state", states.CORRUPT), str(error)
        else:
            if size != reference["size"]:
                state, detail = states.CORRUPT, f"{size:,} bytes, not {reference['size']:,}"
        found.counts[state] += 1
        if state in (states.MISSING, states.CORRUPT):
            problems = found.missing if state == states.MISSING else found.corrupt
            problems.append(Problem(state, f"blob {name[:12]}", detail))
    return found


def _publication(recording: Recording, manifest: Manifest) -> Iterator[Problem]:
    own, name = recording.attempt / layout.RESULT, manifest.result["name"]
    if not own.is_file():
        yield Problem("missing", layout.RESULT, "the sealed result is gone")
    elif (own.stat().st_size, layout.sha256_of(own)) != (manifest.result["size"], manifest.result["sha256"]):
        yield Problem("changed", layout.RESULT, "not the bytes that were sealed")
    staged = recording.attempt / layout.STAGED
    if not staged.is_file():
        yield Problem("missing", layout.STAGED, "the staged manifest is gone")
    elif layout.read_bounded(staged, len(recording.manifest_line or b"")) != recording.manifest_line:
        yield Problem("changed", layout.STAGED, "not the manifest that was sealed")
    if manifest.result["publish"] == "none":
        return
    target = recording.run_directory / name
    if not target.is_file():
        yield Problem("unpublished", name, "the published result is gone from the run's directory")
    elif (target.stat().st_size, layout.sha256_of(target)) != (manifest.result["size"], manifest.result["sha256"]):
        yield Problem("changed", name, "the published result is not this attempt's")
