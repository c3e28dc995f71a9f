"""What a verification says: verdicts, and every problem with its place. For a directory and a bundle alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from worldline.model.fields import is_reference
from worldline.model.manifest import Manifest
from worldline.store.rows import RowReader


class Problem(msgspec.Struct, frozen=True):
    """One thing that is not as it should be: its kind, where, and in words."""

    kind: str
    where: str
    detail: str


class Verdict(msgspec.Struct, frozen=True):
    """The answer to one question: a word, and every problem behind it. `facts` are for people."""

    state: str
    problems: list[Problem] = []
    facts: dict[str, Any] = {}


class Verification(msgspec.Struct):
    """The verdicts and the problems; `facts` holds counts for people."""

    verdicts: dict[str, str]
    problems: list[Problem]
    facts: dict[str, Any]

    @classmethod
    def of(cls, answers: dict[str, Verdict], facts: dict[str, Any]) -> Verification:
        """The verification that these answers make, by question."""
        problems = [problem for answer in answers.values() for problem in answer.problems]
        for answer in answers.values():
            facts = {**facts, **answer.facts}
        return cls({question: answer.state for question, answer in answers.items()}, problems, facts)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong. An unsigned record can be ok; an unsealed one cannot."""
        return not self.problems


def collect_blobs(value: Any, found: dict[str, dict[str, Any]]) -> None:
    """Every `$blob` reference inside a row's data, by its name."""
    if isinstance(value, dict):
        if is_reference(value):
            found[value["$blob"]["name"]] = value["$blob"]
        else:
            for item in value.values():
                collect_blobs(item, found)
    elif isinstance(value, list):
        for item in value:
            collect_blobs(item, found)


def rows_against_seal(
    rows: RowReader, root: str, header: str, last: str, manifest: Manifest | None
) -> Iterator[Problem]:
    """What is wrong with the rows that were read: their damage, and where they are not those that were sealed.

    `root` is their Merkle root and `header` the hash of the first, in hex; `last` is the name of the last row.
    """
    for damage in rows.damages:
        yield Problem(damage.kind, f"row {damage.seq} ({damage.file}, byte {damage.offset:,})", damage.detail)
    if rows.false_sync is not None:
        yield Problem("changed", f"row {rows.false_sync}", "its sync mark names other rows than those before it")
    if manifest is None:
        return
    found = (rows.seq, rows.head.hex(), root, header, rows.bytes)
    sealed = (manifest.rows, manifest.head, manifest.root, manifest.header, manifest.bytes)
    for name, here, there in zip(("rows", "head", "root", "header", "bytes"), found, sealed, strict=True):
        if here != there:
            yield Problem("changed", name, f"the seal says {there}, the log gives {here}")
    if last != "meta/end":
        yield Problem("gap", "the last row", f"a sealed log ends with meta/end, not {last or 'nothing'}")


def derivation(manifest: Manifest) -> dict[str, Any]:
    """What to say of a record that was made of another one (`derived_from`); nothing of one that was not."""
    said = manifest.derived_from
    if said is None:
        return {}
    removed, rules = said.get("removed"), said.get("rules")
    counts = [n for n in removed.values() if type(n) is int] if isinstance(removed, dict) else []
    by = f"{len(rules):,} rule{'' if len(rules) == 1 else 's'}" if isinstance(rules, list) else "rules"
    return {"derivation": f"derived from {said.get('seal')!s:.12}, {sum(counts):,} removed by {by}"}
