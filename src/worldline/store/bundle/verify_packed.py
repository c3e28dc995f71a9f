"""Verifying a bundle: every byte of the file is read once, and what was sealed is asked of it as of a directory.

The container answers for each stored byte; the seal for rows, head, root and contents. What is derived from the log
(index, snapshots' metadata, and with the caller's functions decisions and network) is derived again and compared;
`facts["unsealed"]` names the entries of which nothing but their own digests can be said. The publication itself cannot
be seen from a bundle: `packed` says that it was sealed as complete by one attempt, `derived` that it was made of
another.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from worldline.errors import Damaged, WorldlineError
from worldline.model.events import encode_json
from worldline.model.merkle import Merkle
from worldline.store import layout
from worldline.store.blobs import KEY_BYTES, naming
from worldline.store.bundle.blocks import BlockCheck
from worldline.store.bundle.container import (
    ANNOTATIONS,
    AUDIT,
    CONTAINER,
    EVENTS,
    EXPIRY,
    INDEX,
    MANIFEST,
    MEDIA,
    RESOURCES,
    SNAPSHOTS,
    THUMBS,
    TIER_KEY,
    Entry,
    content_named,
    place_of,
    resource_name,
)
from worldline.store.bundle.index import Index, IndexBuilder
from worldline.store.bundle.index_0 import Index0, IndexBuilder0
from worldline.store.bundle.media import KEY_FRAMES, MOST_KEY_FRAME_BYTES, Screens, VideoForm, alone, key_frames
from worldline.store.bundle.packed import PackedRecording
from worldline.store.bundle.pictures import MOST_THUMB_BYTES, PICTURES, pictured, pixels_only
from worldline.store.bundle.snapshots import Snapshots
from worldline.store.forget import availability as states
from worldline.store.note_lines import MOST_BYTES, read_lines
from worldline.store.recording import Recording
from worldline.store.rows import RowReader
from worldline.store.verdicts import Problem, Verdict, collect_blobs, derivation, rows_against_seal

_READ = {THUMBS: MOST_THUMB_BYTES, ANNOTATIONS: MOST_BYTES, AUDIT: MOST_BYTES, KEY_FRAMES: MOST_KEY_FRAME_BYTES}
"""How much is read of an entry whose content is looked at, by the beginning or end of its name."""
MOST_STRANGERS = 1000  # problems of one kind that are listed one by one
Watch = Callable[[int], None]
Exports = Mapping[str, Callable[[Recording], Iterator[bytes]]]


def judge_packed(
    recording: PackedRecording, watch: Watch = lambda size: None, exports: Exports | None = None
) -> tuple[dict[str, Verdict], dict[str, Any]]:
    """Judge a bundle whose tail was good enough to be opened: the verdicts but authenticity's, and the facts."""
    manifest = recording.manifest
    judging = _Judging(recording, exports or {})
    judging.read(watch)
    publication = "packed" if manifest and manifest.result["publish"] != "none" else "withheld"
    if manifest and manifest.derived_from is not None:
        publication = "derived"
    answers = {
        "structure": Verdict("failed" if judging.structure else "ok", judging.structure),
        "evidence": Verdict("failed" if judging.corrupt else "ok", judging.corrupt),
        "publication": Verdict(publication, facts=derivation(manifest) if manifest else {}),
        "availability": states.verdict(judging.counts, judging.missing, recording.expiry),
    }
    facts = {
        "run": manifest.run if manifest else None,
        "attempt": manifest.attempt if manifest else None,
        "rows": judging.rows,
        "contents": len(manifest.blobs) if manifest else 0,
        "withheld": len(recording.container.withheld),
        "disposition": recording.disposition,
        "fingerprint": recording.fingerprint,
        "unsealed": judging.unsealed,
    }
    return answers, facts


class _Judging:
    """One reading of a bundle, and what it found."""

    def __init__(self, recording: PackedRecording, exports: Exports) -> None:
        self._recording, self._manifest = recording, recording.manifest
        self._exports = exports
        blobs = self._manifest.blobs if self._manifest else []
        self._sealed = {name: (size, media_type, tier) for name, size, media_type, tier, _ in blobs}
        self._snapshots: dict[str, str] = {}  # the entries that the rows give, and the digests of their contents
        self.structure: list[Problem] = []
        self.corrupt: list[Problem] = []
        self.missing: list[Problem] = []
        self.counts: Counter[str] = Counter()
        self.unsealed: list[str] = []
        self._screens = Screens(recording.entries)
        self.rows = 0

    def read(self, watch: Watch) -> None:
        """Read everything."""
        recording, add = self._recording, self.structure.append
        if recording.seal_problem is not None:
            add(Problem("manifest", MANIFEST, recording.seal_problem))
        if recording.container.seal != recording.fingerprint:
            add(Problem("changed", CONTAINER, "it names another seal than the manifest has"))
        for before, after in pairwise(recording.container.entries):
            if place_of(after.name) < place_of(before.name):
                add(Problem("order", after.name, f"it stands behind {before.name}; nothing is packed so"))
        self.structure += self._log(watch)
        for entry in recording.container.entries:
            if entry.name != EVENTS:
                self._entry(entry)
        for name in alone(recording.entries):
            add(Problem("added", name, "a track has one video and the list of its key frames; this stands alone"))
        for name in sorted(self._snapshots.keys() - recording.entries.keys()):
            add(Problem("missing", name, "the rows name a snapshot of which nothing is said"))
        self._absent()

    def _log(self, watch: Watch) -> Iterator[Problem]:
        """The rows against the seal, the contents that they name, and the index against the rows."""
        given, builder = self._builder()
        check = BlockCheck(given.blocks.stored, given.blocks.raw) if given is not None else BlockCheck([], [])
        log, merkle = self._recording.log(check), Merkle()
        rows = RowReader([log])
        snapshots = Snapshots(self._recording)
        header, last, told = "", "", 0
        strangers: dict[str, dict[str, object]] = {}
        for event in rows:
            merkle.add(rows.leaf)
            header, last = header or event.h, event.name
            if b'"$blob"' in event.raw and len(strangers) < MOST_STRANGERS:
                collect_blobs(event.data, strangers)
                strangers = {name: said for name, said in strangers.items() if name not in self._sealed}
            if (made := snapshots.row(event)) is not None:
                self._snapshots[made[0]] = hashlib.sha256(made[1]).hexdigest()
            builder.row(event)
            self._screens.row(event)
            if rows.bytes - told >= 1 << 20:
                watch(rows.bytes - told)
                told = rows.bytes
        self.rows, entry = rows.seq, self._recording.entries[EVENTS]
        if log.failure is not None:
            yield Problem("changed", EVENTS, str(log.failure))
        elif (log.crc, log.size) != (entry.crc32, entry.size):
            yield Problem("changed", EVENTS, "not the size or CRC that the container says")
        yield from rows_against_seal(rows, merkle.root().hex(), header, last, self._manifest)
        if self._manifest is not None:
            for name in strangers:
                yield Problem("changed", f"blob {name[:12]}", "a row names a content that was not sealed")
            yield from self._index(given, builder, check)

    def _builder(self) -> tuple[Index | Index0 | None, IndexBuilder | IndexBuilder0]:
        """The index as packed, None where it cannot be read, and what derives it again."""
        try:
            given = self._recording.packed_index
        except Damaged:
            return None, IndexBuilder("")
        return given, IndexBuilder0(given) if isinstance(given, Index0) else IndexBuilder(given.result)

    def _index(
        self, given: Index | Index0 | None, builder: IndexBuilder | IndexBuilder0, check: BlockCheck
    ) -> Iterator[Problem]:
        """The index is what the rows give, and the result in it is the sealed one."""
        if given is None or self._manifest is None:
            yield Problem("changed", INDEX, "the index cannot be read")
            return
        derived = builder.index()
        derived.blocks.stored = given.blocks.stored  # checked by `check`
        packed = b"".join(self._recording.content_of(self._recording.entries[INDEX]))
        if encode_json(derived) != packed:
            yield Problem("changed", INDEX, "not the index of these rows")
        elif not check.fits:
            yield Problem("changed", INDEX, "a block does not begin where the index says")
        result = given.result.encode("utf-8", "surrogatepass")
        sealed = self._manifest.result
        if (len(result), hashlib.sha256(result).hexdigest()) != (sealed["size"], sealed["sha256"]):
            yield Problem("changed", "result", "not the result that was sealed")

    def _entry(self, entry: Entry) -> None:
        """An entry's header, stored bytes, size and CRC, and what its content has to be."""
        name = content_named(entry.name)
        sealed = self._sealed.get(name) if name is not None else None
        naming_digest = self._naming(sealed[2]) if sealed is not None else None
        crc, size, digest, parts = 0, 0, hashlib.sha256(), []
        most = next(
            (most for some, most in _READ.items() if entry.name.startswith(some) or entry.name.endswith(some)), 0
        )
        form = VideoForm(entry.name)
        try:
            for part in self._recording.content_of(entry):
                crc, size = zlib.crc32(part, crc), size + len(part)
                if naming_digest is not None:
                    naming_digest.update(part)
                elif not entry.name.startswith(RESOURCES):
                    digest.update(part)
                if entry.name.startswith(MEDIA):
                    form.part(part)
                if size <= most:
                    parts.append(part)
        except WorldlineError as error:
            self.structure.append(Problem("changed", entry.name, str(error)))
            if sealed is not None:
                self._lost(states.CORRUPT, str(name), str(error))
            return
        if (crc, size) != (entry.crc32, entry.size):
            self.structure.append(Problem("changed", entry.name, "not the size or CRC that the container says"))
        if name is not None:
            self._content(entry, name, sealed, size, naming_digest.hexdigest() if naming_digest else None)
        else:
            self._derived(entry, digest.hexdigest(), b"".join(parts), form)

    def _naming(self, tier: str) -> Any:
        """The digest that names contents of a tier; None where its key is not here."""
        try:
            return naming(tier, self._recording.tier_key)
        except Damaged:
            return None

    def _content(
        self, entry: Entry, name: str, sealed: tuple[int, str, str] | None, size: int, digest: str | None
    ) -> None:
        if sealed is None:
            self.corrupt.append(Problem("added", entry.name, "a content that was not sealed"))
        elif entry.name != resource_name(name, sealed[1]):
            self._lost(states.CORRUPT, name, "it stands there as of another media type")
        elif digest is None:
            self._lost(states.CORRUPT, name, "it cannot be checked: the key of the restricted tier is not here")
        elif digest != name or size != sealed[0]:
            self._lost(states.CORRUPT, name, "not what was written")
        else:
            self.counts[states.AVAILABLE] += 1

    def _lost(self, state: str, name: str, detail: str) -> None:
        self.counts[state] += 1
        problems = self.missing if state == states.MISSING else self.corrupt
        problems.append(Problem(state, f"blob {name[:12]}", detail))

    def _derived(self, entry: Entry, digest: str, content: bytes, form: VideoForm) -> None:
        """What stands beside log and contents: made again where that is possible."""
        add = self.structure.append
        if entry.name.startswith(SNAPSHOTS):
            if self._snapshots.get(entry.name) != digest:
                add(Problem("changed", entry.name, "not what the rows say of a snapshot"))
        elif entry.name.startswith(THUMBS):
            self.unsealed.append(entry.name)
            sealed = self._sealed.get(pictured(entry.name), (0, "", ""))
            if sealed[1] not in PICTURES or sealed[2] != layout.ORDINARY or not pixels_only(content):
                add(Problem("added", entry.name, "no thumbnail of a picture in this run, or more than its pixels"))
        elif entry.name in (ANNOTATIONS, AUDIT):
            self.unsealed.append(entry.name)
            attempt = self._manifest.attempt if self._manifest is not None else None
            whole = content if len(content) == entry.size else b"\0"  # too large to be read
            self.structure += read_lines(whole, entry.name, attempt, self.rows).problems
        elif entry.name.startswith(MEDIA):
            self.unsealed.append(entry.name)
            self._media(entry.name, content, form)
        elif entry.name in self._exports:
            if self._exported(entry.name) != digest:
                add(Problem("changed", entry.name, "not what is derived from these rows"))
        elif entry.name == TIER_KEY:
            if entry.size != KEY_BYTES:
                add(Problem("changed", entry.name, "not as long as a key is"))
            if all(tier != layout.RESTRICTED for _, _, tier in self._sealed.values()):
                self.unsealed.append(entry.name)  # no content says whether it is the one
        elif entry.name not in (INDEX, MANIFEST, EXPIRY):
            self.unsealed.append(entry.name)

    def _media(self, name: str, content: bytes, form: VideoForm) -> None:
        """A video has the form of one; a list of key frames names screenshots of this run."""
        if not name.endswith(KEY_FRAMES):
            if not form.fits:
                self.structure.append(Problem("added", name, "no video of the form that its name says"))
        elif (frames := key_frames(content)) is None or not self._screens.named(frames):
            self.structure.append(Problem("changed", name, "no list of key frames that are screenshots of this run"))

    def _exported(self, name: str) -> str | None:
        """The digest of an entry as it is derived again; None where the rows cannot be read for it."""
        digest = hashlib.sha256()
        try:
            for part in self._exports[name](self._recording):
                digest.update(part)
        except WorldlineError:
            return None
        return digest.hexdigest()

    def _absent(self) -> None:
        """Contents that have no entry: left out and listed, expired as declared, or missing."""
        recording = self._recording
        restricted = {name for name, said in self._sealed.items() if said[2] == layout.RESTRICTED}
        if self._manifest is not None and not recording.withheld <= restricted:
            self.structure.append(Problem("changed", CONTAINER, "it lists contents as left out that may not be"))
        for name in self._sealed:
            if recording.entry_of({"name": name}) is not None:
                continue
            if name in recording.withheld and name in restricted:
                self.counts[states.WITHHELD] += 1
            elif name in recording.expiry.removals:
                self.counts[states.EXPIRED] += 1
            else:
                self._lost(states.MISSING, name, f"the content {name[:12]} is missing")
