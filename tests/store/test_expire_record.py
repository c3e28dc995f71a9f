"""The record of what expired: it authorises only what the sealed manifest gives."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.store.forgetting import after, contents, here, names, recorded, records
from worldline.errors import ExpiryRefused
from worldline.model import events
from worldline.store import layout
from worldline.store.forget.availability import SECOND
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.verify import verify

Rows = list[dict[str, Any]]


def opened(recording: Recording) -> Recording:
    return Recording(recording.attempt)


def chained(rows: Rows) -> bytes:
    """Rows as an owner with all the tools would write them: in the right form, each linked to the one before."""
    head, out = events.GENESIS, b""
    for row in rows:
        body = events.encode_json({key: value for key, value in row.items() if key != "h"})[:-1]
        head = events.link(head, events.leaf(body))
        out += events.line(body, head)
    return out


@pytest.fixture
def expired(quick: Path) -> Recording:
    """A recording whose restricted contents have expired, and whose ordinary ones have not."""
    recording = recorded(quick / "runs")
    expire(recording, after(recording, 60), act=True)
    assert verify(opened(recording)).ok
    return opened(recording)


def problems(recording: Recording) -> set[str]:
    return {problem.kind for problem in verify(opened(recording)).problems}


# ------------------------------------------------------------------------------------------------------ forged records


def test_every_changed_byte_of_the_record_is_reported(expired: Recording) -> None:
    path = expired.attempt / layout.EXPIRY
    written = path.read_bytes()
    for offset in range(0, len(written), 5):
        path.write_bytes(written[:offset] + bytes([written[offset] ^ 1]) + written[offset + 1 :])
        verification = verify(opened(expired))
        kinds = {problem.kind for problem in verification.problems}
        assert kinds & {"forged", "torn"} and "missing" in kinds, offset
        assert verification.verdicts["availability"] == "missing"
        if "forged" in kinds:
            with pytest.raises(ExpiryRefused, match=r"expiry\.jsonl"):
                expire(opened(expired), after(expired, 70))
    for size in range(0, len(written), 7):
        path.write_bytes(written[:size])
        assert "missing" in problems(expired), size
    path.unlink()
    assert problems(expired) == {"missing"}


def field(key: str, value: Any) -> Callable[[Rows, Recording], Rows]:
    def change(rows: Rows, recording: Recording) -> Rows:
        row = {**rows[0], key: value(rows[0][key]) if callable(value) else value}
        return [row, *rows[1:]]

    change.__name__ = key
    return change


def unknown_field(rows: Rows, recording: Recording) -> Rows:
    return [{**rows[0], "why": "asked"}, *rows[1:]]


def other_content(rows: Rows, recording: Recording) -> Rows:
    """An ordinary content as if it were of the tier whose retention is over."""
    return [{**rows[0], "name": min(names(recording, "ordinary"))}, *rows[1:]]


def not_due_yet(rows: Rows, recording: Recording) -> Rows:
    assert recording.manifest is not None
    name, size, *_ = next(blob for blob in recording.manifest.blobs if blob[3] == "ordinary")
    said = {"name": name, "size": size, "tier": "ordinary", "retention": 100, "deadline": after(recording, 100)}
    return [*rows, {**rows[-1], **said, "seq": len(rows)}]


def twice(rows: Rows, recording: Recording) -> Rows:
    return [*rows, {**rows[0], "seq": len(rows)}]


def reordered(rows: Rows, recording: Recording) -> Rows:
    return [rows[1], rows[0], *rows[2:]]


def first_cut_off(rows: Rows, recording: Recording) -> Rows:
    return rows[1:]


def earlier_than_before(rows: Rows, recording: Recording) -> Rows:
    return [{**rows[0], "at": rows[0]["at"] + 1}, *rows[1:]]


@pytest.mark.parametrize(
    "change",
    [
        field("at", lambda at: at - 10 * SECOND - 1),
        field("retention", 49),
        field("retention", True),
        field("deadline", lambda due: due - SECOND),
        field("seal", "0" * 64),
        field("tier", "ordinary"),
        field("size", lambda size: size + 1),
        field("name", "f" * 64),
        field("seq", 7),
        field("at", 2**70),
        unknown_field,
        other_content,
        not_due_yet,
        twice,
        reordered,
        first_cut_off,
        earlier_than_before,
    ],
    ids=lambda change: change.__name__,
)
def test_a_record_chained_anew_authorises_only_what_the_seal_gives(
    change: Callable[[Rows, Recording], Rows], expired: Recording
) -> None:
    path = expired.attempt / layout.EXPIRY
    rows = records(expired)
    assert chained(rows) == path.read_bytes()
    path.write_bytes(chained(change(rows, expired)))
    assert "forged" in problems(expired)
    if change is not_due_yet:  # what is still here is no loss, but taking it away now would be one
        layout.blob_path(expired.attempt, "ordinary", min(names(expired, "ordinary"))).unlink()
    assert ("missing" in problems(expired)) == (change not in (twice,))
    before = contents(expired.attempt)
    with pytest.raises(ExpiryRefused) as caught:
        expire(opened(expired), after(expired, 1000), act=True)
    assert caught.value.facts["why"] == "record" and contents(expired.attempt) == before


def test_the_records_of_another_run_authorise_nothing(quick: Path, expired: Recording) -> None:
    other = recorded(quick / "runs")
    expire(other, after(other, 60), act=True)
    mine, theirs = (each.attempt / layout.EXPIRY for each in (expired, other))
    own = mine.read_bytes()
    for data in (theirs.read_bytes(), own + theirs.read_bytes(), own.splitlines(True)[0] + theirs.read_bytes()):
        mine.write_bytes(data)
        assert "forged" in problems(expired)
        assert ("missing" in problems(expired)) == (not data.startswith(own))


def test_a_record_that_is_no_file_is_reported_and_left_alone(quick: Path, expired: Recording) -> None:
    path = expired.attempt / layout.EXPIRY
    shutil.move(path, quick / "outside")
    path.symlink_to(quick / "outside")
    assert {"forged", "missing"} <= problems(expired)
    with pytest.raises(ExpiryRefused):
        expire(opened(expired), after(expired, 1000), act=True)
    path.unlink()
    path.write_bytes((quick / "outside").read_bytes() + b"x" * 100_000)
    assert {"forged", "missing"} <= problems(expired)


def test_a_torn_last_line_authorised_nothing_and_is_cut(expired: Recording) -> None:
    path = expired.attempt / layout.EXPIRY
    whole = path.read_bytes()
    for torn in (whole.splitlines(True)[-1][:-1], b"\0" * 50, b"{"):
        path.write_bytes(whole + torn)
        assert problems(expired) == {"torn"}
        expire(opened(expired), after(expired, 70), act=True)
        assert path.read_bytes() == whole and verify(opened(expired)).ok
    path.write_bytes(whole + b"{")
    expire(opened(expired), after(expired, 200), act=True)
    assert len(records(expired)) == 8 and here(expired) == set() and verify(opened(expired)).ok
