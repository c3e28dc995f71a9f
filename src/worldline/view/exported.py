"""What an export came to: said by every format alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from worldline.store.bundle.container import RESOURCES
from worldline.store.bundle.packed import PackedRecording
from worldline.store.rows import RowReader

_BODIES = {
    "decision/request": "model requests",
    "decision/response": "model answers",
    "observation/tool_result": "tool results",
}
_RESTRICTED = b'"tier":"restricted"'


class Exported(NamedTuple):
    """One export. `size` is what was written, in bytes, and `bundle` the size of the bundle inside, if there is one.

    `holds` counts the bodies that are in it by what they are, `withheld` names the contents that were left out; `full`
    says that nothing was left out on purpose, `folder` that it is a folder.
    """

    format: str
    path: Path
    size: int
    holds: dict[str, int]
    withheld: list[str]
    bundle: int | None = None
    full: bool = False
    folder: bool = False


def bodies(packed: PackedRecording) -> dict[str, int]:
    """How many bodies are in a bundle, by what they are; those that were left out are not counted."""
    kinds = dict(zip(packed.index.kinds.name, packed.index.kinds.rows, strict=True))
    if packed.withheld:
        kinds = Counter(_open_rows(packed))
    held = {words: kinds.get(name, 0) for name, words in _BODIES.items()}
    return {**held, "contents": sum(name.startswith(RESOURCES) for name in packed.entries)}


def _open_rows(packed: PackedRecording) -> Iterator[str]:
    """The kinds of the rows that say what crossed, but of restricted crossings, whose bodies are elsewhere."""
    restricted = set[str | None]()
    for event in RowReader(packed.files()):
        if _RESTRICTED in event.raw:
            restricted.add(event.call)
        if event.name in _BODIES and event.call not in restricted:
            yield event.name
