"""Damage to what `worldline/1` has and `worldline/0` had not: the restricted tier, expiry, what a bundle leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.golden.spoil import Bundle, Spoil, packed
from tests.store.forgery import replace, reseal
from worldline.model import events
from worldline.store import layout
from worldline.store.bundle.container import EXPIRY, STORED, TIER_KEY


def key_deleted(attempt: Path) -> None:
    layout.tier_key_path(attempt).unlink()


def key_edited(attempt: Path) -> None:
    replace(layout.tier_key_path(attempt), bytes(32))


def key_cut(attempt: Path) -> None:
    replace(layout.tier_key_path(attempt), layout.tier_key_path(attempt).read_bytes()[:31])


def restricted_edited(attempt: Path) -> None:
    path = sorted((attempt / "blobs" / "restricted").glob("??/*"))[0]
    replace(path, path.read_bytes()[:-1] + b"?")


def restricted_deleted(attempt: Path) -> None:
    sorted((attempt / "blobs" / "restricted").glob("??/*"))[0].unlink()


def key_added(attempt: Path) -> None:
    """A key where nothing is restricted."""
    path = layout.tier_key_path(attempt)
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(32))


def due_deleted(attempt: Path) -> None:
    """A content that may go one day, gone without a record."""
    sorted((attempt / "blobs" / "ordinary").glob("??/*"))[0].unlink()


def records(attempt: Path) -> list[bytes]:
    return (attempt / "expiry.jsonl").read_bytes().splitlines(keepends=True)


def chained(attempt: Path, change: Callable[[bytes], bytes]) -> None:
    """Every record changed, and the chain made anew: by somebody who can hash."""
    head, written = events.GENESIS, b""
    for line in records(attempt):
        body = change(line[: -events.SUFFIX])
        head = events.link(head, events.leaf(body))
        written += events.line(body, head)
    replace(attempt / "expiry.jsonl", written)


def expiry_deleted(attempt: Path) -> None:
    (attempt / "expiry.jsonl").unlink()


def expiry_edited(attempt: Path) -> None:
    replace(attempt / "expiry.jsonl", b"".join(records(attempt)).replace(b'"size":2', b'"size":3', 1))


def expiry_cut(attempt: Path) -> None:
    replace(attempt / "expiry.jsonl", b"".join(records(attempt))[:-40])


def expiry_swapped(attempt: Path) -> None:
    replace(attempt / "expiry.jsonl", b"".join(reversed(records(attempt))))


def expiry_too_early(attempt: Path) -> None:
    sealed = json.loads((attempt / "manifest.json").read_bytes())["sealed_at"]
    chained(attempt, lambda body: body[: body.index(b'"at":') + 5] + b"%d" % sealed + body[body.index(b',"seal"') :])


def expiry_of_another(attempt: Path) -> None:
    chained(attempt, lambda body: re.sub(rb'"seal":"\w+"', b'"seal":"%b"' % (b"0" * 64), body))


def expiry_shorter_retention(attempt: Path) -> None:
    chained(attempt, lambda body: body.replace(b'"retention":60', b'"retention":59'))


def expiry_other_deadline(attempt: Path) -> None:
    """Later by one nanosecond, and still before the removal."""
    chained(attempt, lambda body: re.sub(rb"(\d+)$", lambda found: b"%d" % (int(found[1]) + 1), body))


def retention_resealed(attempt: Path) -> None:
    """The manifest sealed anew with another retention: the records are another seal's then."""
    reseal(attempt, {"retention": {"ordinary": 1, "restricted": 1}})


def empty_chunk_deleted(attempt: Path) -> None:
    """A file that was sealed with no bytes in it."""
    next(path for path in (attempt / "chunks").iterdir() if not path.stat().st_size).unlink()


DIRECTORIES: dict[str, tuple[Spoil, ...]] = {
    "restricted": (key_deleted, key_edited, key_cut, restricted_edited, restricted_deleted),
    "short": (key_added,),
    "retained": (due_deleted,),
    "blobs": (empty_chunk_deleted,),
    "expired": (
        expiry_deleted,
        expiry_edited,
        expiry_cut,
        expiry_swapped,
        expiry_too_early,
        expiry_of_another,
        expiry_shorter_retention,
        expiry_other_deadline,
        retention_resealed,
    ),
}


def without(*names: str) -> Callable[[Bundle], bytes]:
    return lambda bundle: bundle.again([part for part in bundle.parts() if part[0].name not in names])


def left_out(bundle: Bundle) -> bytes:
    """An ordinary content, listed as left out."""
    name = next(entry.name for entry in bundle.entries if entry.name.startswith("resources/"))
    blob = next(blob for blob in json.loads(bundle.content("manifest.json"))["blobs"] if blob[0] in name)
    kept = [part for part in bundle.parts() if part[0].name != name]
    return bundle.again(kept, withheld=((blob[0], blob[1], blob[2]),))


def kept_all(bundle: Bundle) -> bytes:
    """What was left out for sharing, no longer listed."""
    return bundle.again(bundle.parts(), withheld=())


def other_key(bundle: Bundle) -> bytes:
    return bundle.again(bundle.with_entry(TIER_KEY, bytes(32)))


def unknown_entry(bundle: Bundle) -> bytes:
    return bundle.again([*bundle.parts(), packed("notes.md", b"by somebody", STORED)])


BUNDLES: dict[str, dict[str, Callable[[Bundle], bytes]]] = {
    "short": {"left-out-without-need": left_out, "unknown-entry": unknown_entry},
    "restricted": {"no-key": without(TIER_KEY), "other-key": other_key},
    "shared": {"not-listed": kept_all},
    "expired": {"no-expiry": without(EXPIRY)},
}
