"""A content of a run in a directory, by its name: its bytes with their media type, or why they are not here.

Whatever was recorded may have been made by somebody who wants it to run in the panel. So every content goes out as a
file to be saved, under a policy that lets nothing in it run, and as no other type than it was recorded as.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worldline.errors import Damaged
from worldline.model.manifest import Manifest
from worldline.store import layout
from worldline.store.blobs import blob_file
from worldline.store.forget.availability import AVAILABLE, CORRUPT, EXPIRED, MISSING, WITHHELD, state_of
from worldline.store.recording import Recording
from worldline.view.answers import Bytes, etag_of, missing, of_file

NAME = re.compile(r"[0-9a-f]{64}")
UNKNOWN_TYPE = "application/octet-stream"
MOST_CHECKED = 64 << 20  # bytes of a content that is hashed before it goes out; of larger ones the size is looked at
_MEDIA_TYPE = re.compile(r"[a-z]{1,40}/[a-z0-9.+-]{1,80}")
_TEXT = ("text/", "application/json", "application/x-worldline-deep+json", "application/x-asciicast", "image/svg+xml")
_EXTENSIONS = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp", "application/json": "json"}
_WORDS = {WITHHELD: "withheld", EXPIRED: "expired", MISSING: "lost", CORRUPT: "corrupt"}
_WHY = {
    WITHHELD: "It was left out of this copy of the run.",
    EXPIRED: "Its retention is over, and it was removed; expiry.jsonl says when.",
    MISSING: "It is gone, and nothing says that it may be.",
    CORRUPT: "Its bytes are not what was written.",
}
_REMEMBERED = 4096


class Contents:
    """The contents of one attempt. What was hashed once is not hashed again as long as its file is the same."""

    def __init__(self, attempt: Path) -> None:
        self._attempt = attempt
        self._lock = threading.Lock()
        self._good: dict[str, str] = {}
        self._of: Manifest | None = None
        self._sealed: dict[str, tuple[int, str, str]] = {}

    def get(self, recording: Recording, name: str, given_type: str | None = None) -> Bytes:
        """The content `name`. `given_type` is what its row calls it, for one that no manifest lists yet."""
        if not NAME.fullmatch(name):
            return missing("lost", "No content has such a name.")
        reference = self._reference(recording, name, given_type)
        if reference is None:
            return missing("lost", "The run has no content of this name.")
        state = self._state(recording, reference)
        if state != AVAILABLE:
            return missing(_WORDS[state], _WHY[state], 410)
        kind = reference["type"]
        charset = "; charset=utf-8" if kind.startswith(_TEXT) else ""
        saved_as = f"{name[:16]}.{_EXTENSIONS.get(kind, 'bin')}"
        headers = {"Content-Disposition": f'attachment; filename="{saved_as}"'}
        return of_file(blob_file(self._attempt, reference), kind + charset, headers=headers)

    def _reference(self, recording: Recording, name: str, given_type: str | None) -> dict[str, Any] | None:
        """How a row would name it: by the manifest, else by where it stands."""
        if (sealed := self._listed(recording).get(name)) is not None:
            size, kind, tier = sealed
            known = kind if _MEDIA_TYPE.fullmatch(kind) else UNKNOWN_TYPE
            return {"name": name, "size": size, "type": known, "tier": tier}
        kind = given_type if given_type and _MEDIA_TYPE.fullmatch(given_type) else UNKNOWN_TYPE
        for tier in layout.TIERS:
            path = layout.blob_path(self._attempt, tier, name)
            if path.is_file() and not path.is_symlink():
                return {"name": name, "size": path.stat().st_size, "type": kind, "tier": tier}
        return None

    def _listed(self, recording: Recording) -> Mapping[str, tuple[int, str, str]]:
        """What the manifest lists, by name; made once for each."""
        manifest = recording.manifest
        if manifest is None:
            return {}
        with self._lock:
            if self._of is not manifest:
                self._of = manifest
                self._sealed = {name: (size, kind, tier) for name, size, kind, tier, _ in manifest.blobs}
            return self._sealed

    def _state(self, recording: Recording, reference: dict[str, Any]) -> str:
        name = reference["name"]
        try:
            mark = etag_of(blob_file(self._attempt, reference))
        except FileNotFoundError:
            return state_of(recording, reference, read=False)
        with self._lock:
            if self._good.get(name) == mark:
                return AVAILABLE
        try:
            state = state_of(recording, reference, read=reference["size"] <= MOST_CHECKED)
        except Damaged:  # the key of its tier is gone: it cannot be told from another
            return CORRUPT
        if state == AVAILABLE:
            with self._lock:
                if len(self._good) >= _REMEMBERED:
                    self._good.clear()
                self._good[name] = mark
        return state
