"""Which masks are in force: those that the record declares, those of `worldline.toml`, and those that were given."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from worldline.errors import Ineligible, UsageError
from worldline.model.masks import Mask, Masks, parse
from worldline.store.recording import Recording

SETTINGS = "worldline.toml"
RECORD, GIVEN = "record", "given"
MOST = 4000  # characters of all masks of a run: in any script they have room in its header
NONE = Masks()


class MaskUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a mask left out: so many `values`, in so many `exchanges` (of a diff: steps). With none it met nothing.

    `origin` says who declared it: the `record`, `worldline.toml`, or `given` by who asked.
    """

    mask: str
    origin: str
    values: int
    exchanges: int


def masks_here() -> tuple[Mask, ...]:
    """The masks of the working directory's `worldline.toml`: `mask` of its table `matching`. Raises `UsageError`."""
    path = Path(SETTINGS)
    if not path.is_file():
        return ()
    try:
        table = tomllib.loads(path.read_text("utf-8")).get("matching", {})
        texts = msgspec.convert(table.get("mask", []), list[str])
        if strange := set(table) - {"mask"}:
            raise ValueError(f"[matching] has no {', '.join(sorted(strange))}")
    except (OSError, UnicodeDecodeError, ValueError, AttributeError) as error:
        raise UsageError(f"no masks: {path}: {error}", path=str(path)) from None
    return tuple(parse(text, SETTINGS) for text in texts)


def masks_of(recording: Recording) -> tuple[Mask, ...]:
    """The masks that a recording declares. Raises `Ineligible` where one of them cannot be read."""
    try:
        texts = msgspec.convert(recording.loaded(recording.header.data.get("masks")) or [], list[str])
        return tuple(parse(text, RECORD) for text in texts)
    except (UsageError, msgspec.ValidationError) as error:
        reason = f"the record declares a mask that cannot be read here: {error}"
        raise Ineligible(reason, reasons=[reason]) from None


def masks_given(texts: str | Iterable[str]) -> tuple[Mask, ...]:
    """Masks as somebody gives them, one or several. Raises `UsageError`."""
    return tuple(parse(text, GIVEN) for text in ([texts] if isinstance(texts, str) else texts))


def crossing_masks(texts: str | Iterable[str]) -> tuple[Mask, ...]:
    """The same, of what crosses: a mask about a part of a step is refused. Raises `UsageError`."""
    masks = masks_given(texts)
    for mask in masks:
        if mask.of_steps:
            raise UsageError(f"{mask.text!r} is about a part of a step, which only a diff compares", mask=mask.text)
    return masks


def in_force(*groups: Iterable[Mask]) -> Masks:
    """All of them that are about crossings; of the same one said twice the first. Raises `UsageError` for too many."""
    masks = Masks(mask for group in groups for mask in group if not mask.of_steps)
    if (size := sum(len(mask.text) for mask in masks.all)) > MOST:
        raise UsageError(
            f"masks have at most {MOST:,} characters together, not {size:,}: they stand in a run's first row"
        )
    return masks


def projected(projection: str, masks: Masks) -> str:
    """The name of what is compared, when masks leave something out of it."""
    count = len(masks.all)
    return f"{projection} + {count} mask{'s' if count > 1 else ''}" if count else projection
