"""The lines of `annotations.jsonl` and `audit.jsonl`, and which of them count: those that chain, up to the first that
does not. `store.notes` adds to them; here they are only read, for a directory and a bundle alike.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from worldline.model import events
from worldline.store import layout
from worldline.store.forget.chained import chained
from worldline.store.verdicts import Problem

MOST_BYTES = 64 << 20  # of one file


class Annotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of `annotations.jsonl`: a note to row `seq`, at a place as people name it; or that note `id` went.

    `n` is its number in the file, `when` in Unix ns; a note's id is made of the number of its line.
    """

    n: int
    when: int
    attempt: str
    id: str
    seq: int | UnsetType = UNSET
    at: str | UnsetType = UNSET
    who: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    removed: bool | UnsetType = UNSET


class Audit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of `audit.jsonl`: what was done (`reveal`), to which scope, at which row, and why."""

    n: int
    when: int
    attempt: str
    what: str
    scope: str
    seq: int | UnsetType = UNSET
    who: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


KINDS: dict[str, type[Annotation | Audit]] = {layout.ANNOTATIONS: Annotation, layout.AUDIT: Audit}


class Lines(NamedTuple):
    """The good lines of a file, what is wrong with the rest, and the bytes and last hash of those that chain."""

    good: list[Any]
    problems: list[Problem]
    size: int
    head: bytes


def read_lines(data: bytes, name: str, attempt: str | None, rows: int | None = None) -> Lines:
    """Read the bytes of `annotations.jsonl` or `audit.jsonl`. Behind a line that does not chain none counts.

    `attempt` is the recording's and `rows` how many it has, where these are known: a line names no other.
    """
    good: list[Any] = []
    problems: list[Problem] = []
    size, head, notes = 0, events.GENESIS, set[str]()
    if len(data) > MOST_BYTES:
        return Lines(good, [Problem("changed", name, f"over {MOST_BYTES:,} bytes")], 0, head)
    for line in io.BytesIO(data):
        where = f"{name}, byte {size:,}"
        if not line.endswith(b"\n") or b"\0" in line:  # half a line, or a hole: none has either
            problems.append(Problem("torn", where, "a crash cut it there; the next `worldline annotate` cuts it off"))
            break
        found = chained(line, KINDS[name], len(good), head)
        why = "not the line that the chain needs there" if found is None else _unfit(found[0], attempt, notes, rows)
        if found is None or why is not None:
            problems.append(Problem("changed", where, str(why)))
            break
        good.append(found[0])
        size, head = size + len(line), found[1]
    return Lines(good, problems, size, head)


def _unfit(line: Annotation | Audit, attempt: str | None, notes: set[str], rows: int | None) -> str | None:
    """Why a line that chains cannot be; None where it can. `notes` are the ids that stand before it."""
    if attempt is not None and line.attempt != attempt:
        return "it is another attempt's"
    if isinstance(line.seq, int) and not 0 <= line.seq < (rows if rows is not None else line.seq + 1):
        return f"it names row {line.seq:,}, which is not there"
    if isinstance(line, Audit):
        return None
    if line.removed is UNSET:
        notes.add(line.id)
        whole = all(said is not UNSET for said in (line.seq, line.at, line.text))
        return None if whole and line.id == f"a{line.n}" else "no note has such fields"
    said = (line.seq, line.at, line.who, line.tag, line.text)
    if line.removed is not True or any(each is not UNSET for each in said) or line.id not in notes:
        return "it removes no note that stands"
    notes.remove(line.id)
    return None


def standing(lines: list[Annotation]) -> list[Annotation]:
    """The notes that were not removed, in their order."""
    gone = {line.id for line in lines if line.removed is True}
    return [line for line in lines if line.id not in gone]
