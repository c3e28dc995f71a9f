"""Old formats, read as the newest says it. A file is never rewritten: what is raised here is the copy in memory.

worldline/0   was written before the record was complete. Its rows are those of worldline/1; some headers say nothing of
              key shapes, and its manifests nothing of ancestry, retention, derivation and what may be done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from worldline.model.events import Event
from worldline.model.manifest import FORMAT, Manifest

_Data = dict[str, Any]


def header(event: Event) -> Event:
    """The header row, its data as `worldline/1` has it; `raw` and `h` stay those that were written."""
    upcast = _HEADERS.get(str(event.data.get("format", FORMAT)))
    return event if upcast is None else msgspec.structs.replace(event, data=upcast(event.data))


def manifest(old: Manifest) -> Manifest:
    """The manifest with the fields of `worldline/1`; its seal is that of the line that was written."""
    upcast = _MANIFESTS.get(old.format)
    return old if upcast is None else upcast(old)


def _header_0(data: _Data) -> _Data:
    secrets = {"policy": "redact", "shapes": 0, **(data.get("secrets") or {})}
    return {"continues": None, "origin": None, **data, "secrets": secrets}


def _manifest_0(old: Manifest) -> Manifest:
    levels = ["L0", "L1"] if old.capture == "full" and not old.coverage.get("losses") else []
    secrets = {"shapes": {}, **old.secrets}
    return msgspec.structs.replace(old, secrets=secrets, genesis=old.genesis or old.header, capabilities=levels)


_HEADERS: dict[str, Callable[[_Data], _Data]] = {"worldline/0": _header_0}
_MANIFESTS: dict[str, Callable[[Manifest], Manifest]] = {"worldline/0": _manifest_0}
