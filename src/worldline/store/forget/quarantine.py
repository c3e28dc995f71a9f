"""Which attempts of a run were contained because a secret was found in them: `contained.jsonl` in the run's directory.

    {"seq":0,"at":<Unix ns>,"run":"run_...","attempt":"ainst_...","label":"SHOP_TOKEN","found":2,
     "where":[{"kind":"row","file":"chunks/000000.jsonl","seq":12,"offset":3120},...],"shared":[],
     "seal":"<fingerprint>" or null,"h":"<64 hex>"}

It is a chain of its own, made like the log's (`model.events`), and written before anything is moved: from then on the
attempt is not opened, wherever it stands. It holds the secret's label, never its value and no digest of it. The attempt
goes to `<store>/../quarantine/<run>/<attempt>`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from worldline.errors import Contained, Damaged
from worldline.model import events
from worldline.model.ids import is_id
from worldline.store import layout
from worldline.store.forget.chained import append, chain, chained

CONTAINED = "contained.jsonl"
QUARANTINE = "quarantine"
MOST_PLACES = 100  # that a record lists; `found` counts all
MOST_BYTES = 16 << 20  # of all records of a run


class Place(msgspec.Struct, frozen=True):
    """One place where a secret stands.

    `kind` is `row`, `content`, `answer` (whole only once its parts are joined), `result`, `manifest`, `name` (of a
    file), `snapshot` (`file` is the snapshot and the path in it), `workspace` (a branch's) or `file`. `seq` is the row,
    of a content the first that names it; `offset` is the byte in `file`. A content is not named: its name may be the
    digest of the secret.
    """

    kind: str
    file: str
    seq: int | None = None
    offset: int | None = None


class Containment(msgspec.Struct, frozen=True):
    """One record: which attempt, for which secret, where it was found, and which runs share contents that hold it."""

    seq: int
    at: int
    run: str
    attempt: str
    label: str
    found: int
    where: list[Place]
    shared: list[str]
    seal: str | None


class Register:
    """The records of a run. `size` is the bytes of those that chain; `broken` that one stands there that does not."""

    def __init__(self) -> None:
        self.rows: dict[str, Containment] = {}
        self.size = 0
        self.head = events.GENESIS
        self.broken = False


def register_of(run: Path) -> Register:
    """Read a run's records. What a crash leaves of a line is none, nor is what stands behind it: a cut, a hole."""
    found, data = Register(), layout.read_bounded(run / CONTAINED, MOST_BYTES)
    found.broken = len(data or b"") > MOST_BYTES or (data is None and os.path.lexists(run / CONTAINED))
    for line in io.BytesIO(data or b""):
        good = chained(line, Containment, len(found.rows), found.head) if not found.broken else None
        if good is None:
            found.broken = found.broken or (line.endswith(b"\n") and b"\0" not in line)
            break
        record, found.head = good
        found.rows[record.attempt] = record
        found.size += len(line)
    return found


def register(run: Path, records: Sequence[Containment]) -> None:
    """Add records, numbered anew, and make all of them durable. Raises `Damaged` where those before do not chain."""
    before = register_of(run)
    if before.broken:
        what = f"{run / CONTAINED} is not what was written; look at it, and move it aside"
        raise Damaged(what, file=str(run / CONTAINED), offset=before.size)
    lines, head = [], before.head
    for seq, record in enumerate(records, len(before.rows)):
        line, head = chain(msgspec.structs.replace(record, seq=seq), head)
        lines.append(line)
    append(run / CONTAINED, before.size, lines)


def place_of(run: Path) -> Path:
    """Where the contained attempts of a run go."""
    return run.resolve().parent.parent / QUARANTINE / run.name


def refuse(run: Path, attempt: str | None = None) -> None:
    """Raise `Contained` where this attempt of a run was contained; without `attempt`, where any was."""
    found = register_of(run)
    if found.broken:
        raise Contained(f"{run / CONTAINED} is not what was written: nothing of this run is opened", run=run.name)
    record = found.rows.get(attempt) if attempt is not None else next(reversed(found.rows.values()), None)
    if record is None:
        return
    place, standing = place_of(run) / record.attempt, [path.name for path in layout.attempts(run)]
    state = f"it is in quarantine, {place}"
    if record.attempt in standing:
        state = "its containment did not come to its end; run `worldline contain` again"
    rest = [name for name in standing if name not in found.rows]
    others = f"; of its other attempts the newest is {run / layout.ATTEMPTS / rest[-1]}" if rest else ""
    raise Contained(
        f"{run.name} was contained for the secret {record.label}, attempt {record.attempt}: {state}{others}",
        label=record.label,
        place=str(place),
        run=run.name,
        attempt=record.attempt,
    )


def refuse_moved(path: Path) -> None:
    """Raise `Contained` for a path into a quarantine, or one that named what was moved there."""
    parts = path.absolute().parts
    for place, run, attempt in zip(parts, parts[1:], parts[2:], strict=False):
        if place == QUARANTINE and is_id(run, "run") and is_id(attempt.partition(".")[0], "ainst"):
            raise Contained(f"{path} is in quarantine, for a secret", place=str(path))
    if not path.exists() and len(parts) > 4:
        refuse(path.absolute().parent)
        if path.absolute().parent.name == layout.ATTEMPTS.name:
            refuse(path.absolute().parents[2], path.name)
