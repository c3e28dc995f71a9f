"""Contents on their way into a derived record: without what goes, under the names of their new bytes.

A content that rules leave alone keeps its bytes; one of the restricted tier gets another name all the same, since the
derived record has a key of its own. Of what is no text only the whole can go.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from worldline.engine.content import Content
from worldline.engine.keeping import BYTES, Keeper
from worldline.engine.redact.erase import Eraser
from worldline.engine.redact.jsontext import applied
from worldline.engine.redact.recut import withheld
from worldline.engine.redact.rules import marker
from worldline.errors import Damaged, Ineligible
from worldline.model import values
from worldline.model.events import encode_json
from worldline.store import layout
from worldline.store.recording import DEEP, JSON, Recording


class Contents:
    """Moves the contents of one recording. `own` is how everything that a row says is looked at."""

    def __init__(self, recording: Recording, eraser: Eraser, keep: Keeper) -> None:
        self.eraser = eraser
        self.keep = keep
        self._recording = recording
        self._rules = eraser.rules
        self._moved: dict[tuple[str, bool | None], bytes] = {}
        manifest = recording.manifest
        self._before = {blob[0]: blob[4] for blob in manifest.blobs} if manifest is not None else {}

    def own(
        self,
        data: bytes,
        *,
        fields: bool = True,
        content: bool = False,
        quiet: bool = False,
    ) -> bytes:
        """A value in the form that our rows have. With `quiet` nothing is counted: it says again what was said."""
        edits = self.eraser.json(data, own=self.reference, fields=fields, content=content)
        return applied(data, edits if quiet else self.eraser.counted(edits))

    def check(self, data: bytes, where: str) -> None:
        """Raise `Ineligible` where a value that was to go still stands there."""
        if label := self._rules.residue(data):
            reason = f"{label} cannot be taken out of {where}: it stands there in a way that no rule can cut"
            raise Ineligible(reason, reasons=[reason], rule=label)

    def reference(self, reference: Any, fields: bool | None) -> bytes:
        """What stands for a content in the derived record: its new name, a marker, or that it is not here.

        Where `fields` is None its bytes stay as they are: they were looked into elsewhere.
        """
        place = (str(reference.get("name")), fields)
        if place not in self._moved:
            self._moved[place] = self._move(reference, fields)
        return self._moved[place]

    def _move(self, reference: dict[str, Any], fields: bool | None) -> bytes:
        media_type, tier = str(reference["type"]), reference.get("tier", layout.ORDINARY)
        label = self._rules.content(reference["name"]) if fields is not None else None
        if label is None and fields is not None and media_type.startswith("image/"):
            label = self._rules.pictures
        if label is not None:
            return self.eraser.taken_from(label, b"")
        try:
            data = self._recording.blob(reference)
        except Damaged as error:
            return encode_json(withheld(reference, error.facts.get("state")))
        before = self._before.get(reference["name"])
        content = Content(data, media_type, tier)
        new = content if fields is None else self._erased_content(content, fields)
        self.check(new.data, f"the content {reference['name'][:12]}")
        gone = new.data != data or before == "redacted"
        return encode_json(self.keep.blob(new.data, new.media_type, tier, gone))

    def _erased_content(self, content: Content, fields: bool) -> Content:
        if content.media_type == DEEP:
            edits = self.eraser.json(content.data, own=self.reference, fields=False)
            data = applied(content.data, self.eraser.counted(edits))
            return msgspec.structs.replace(content, data=self._deep(data) if fields else data)
        if content.media_type == JSON:
            with suppress(ValueError):
                return msgspec.structs.replace(content, data=self.own(content.data, fields=fields, content=True))
        if not content.media_type.startswith(("text/", BYTES, JSON)):
            found = next(self._rules.in_bytes(content.data), None)  # of what is no text only all can go
            if found is None:
                return content
            self.eraser.counts[found.label] += 1
            return Content(marker(found.label).encode("ascii"), "text/plain", content.tier)
        edits = self.eraser.counted(self.eraser.body(content.data))
        return msgspec.structs.replace(content, data=applied(content.data, edits))

    def _deep(self, data: bytes) -> bytes:
        """A flat deep value (`model.values.flatten`) without the members that rules name, and all below them."""
        nodes, work = msgspec.json.decode(data), []
        for tag, content in nodes:
            for name, index in content if tag == "o" else ():
                label = self._rules.fields.get(str(values.restore(name)))
                if label is not None and nodes[index] != ["v", marker(label)]:
                    self.eraser.counts[label] += 1
                    work.append((index, marker(label)))
        changed = bool(work)
        while work:
            index, said = work.pop()
            tag, content = nodes[index]
            work += (
                [(i, "") for i in content] if tag in ("a", "t") else [(i, "") for _, i in content] if tag == "o" else []
            )
            nodes[index] = ["v", said]
        return encode_json(nodes) if changed else data
