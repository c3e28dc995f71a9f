"""All studies of a store in one SQLite file beside them, for lists and questions: `<store>/studies/studies.sqlite`.

It is derived from the journals and may be deleted at any time: whoever opens it reads again what is not in it, or has
grown since. Tables: `study`, `rollout` (one row for each line of a journal), `attribution` (certified drops).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import Damaged
from worldline.store import layout
from worldline.store.studies.folder import studies
from worldline.store.studies.journal import ANSWERED, DRAWN, JOURNAL, OPENED, Entry, Lines, read_journal

FILE = "studies.sqlite"
_VERSION = 1
_SCHEMA = """
CREATE TABLE study (
    study TEXT PRIMARY KEY, kind TEXT, run TEXT, task TEXT, method TEXT, verifier TEXT, state TEXT, started REAL,
    verdict TEXT, step INTEGER, drop_value REAL, low REAL, high REAL, rollouts INTEGER, asked TEXT, answer TEXT,
    stamp TEXT NOT NULL);
CREATE TABLE rollout (
    study TEXT, number INTEGER, key TEXT, at INTEGER, k INTEGER, tag TEXT, success INTEGER, score REAL,
    live_steps INTEGER, tokens INTEGER, seconds REAL, run TEXT, why TEXT, PRIMARY KEY (study, number));
CREATE TABLE attribution (
    study TEXT, rank INTEGER, step INTEGER, drop_value REAL, low REAL, high REAL, PRIMARY KEY (study, rank));
"""


class Listed(msgspec.Struct, frozen=True):
    """One study in a list. `started` is Unix seconds; `state` is `done`, `stopped` or `open`."""

    study: str
    kind: str
    run: str
    task: str | None
    method: str | None
    verifier: str | None
    state: str
    started: float
    verdict: str | None
    step: int | None
    drop: float | None
    ci: tuple[float, float] | None
    rollouts: int


def listed(store: Path) -> list[Listed]:
    """Every study of a store, newest first."""
    with closing(_opened(store)) as table:
        rows = table.execute(
            "SELECT study, kind, run, task, method, verifier, state, started, verdict, step, drop_value, low, high, "
            "rollouts FROM study ORDER BY started DESC, study"
        ).fetchall()
    return [_listed(*row) for row in rows]


def _listed(*row: Any) -> Listed:
    low, high, rollouts = row[-3:]
    fields = (*row[:-3], None if low is None else (low, high), rollouts)
    return Listed(**dict(zip(Listed.__struct_fields__, fields, strict=True)))


def about_run(store: Path, run: str) -> dict[str, Any] | None:
    """The newest answer about a run: what `answered` says; None where no study of it has one."""
    with closing(_opened(store)) as table:
        found = table.execute(
            "SELECT answer FROM study WHERE run = ? AND kind = 'attribute' AND answer IS NOT NULL "
            "ORDER BY started DESC LIMIT 1",
            (run,),
        ).fetchone()
    return msgspec.json.decode(found[0], type=dict[str, Any]) if found is not None else None


def refresh(store: Path) -> None:
    """Bring the file up to what the journals say."""
    _opened(store).close()


def _opened(store: Path) -> sqlite3.Connection:
    """The table, brought up to the journals. In memory where the folder cannot be written to."""
    folder = store / layout.STUDIES
    if not folder.is_dir():
        return _made(sqlite3.connect(":memory:"))
    path = folder / FILE
    try:
        table = _made(sqlite3.connect(path, timeout=30))
        _bring_up(table, store)
        return table
    except sqlite3.DatabaseError:  # not ours, cut short, or the folder is read-only: it is derived
        table = _made(sqlite3.connect(":memory:"))
        _bring_up(table, store)
        return table


def _made(table: sqlite3.Connection) -> sqlite3.Connection:
    with table:
        (version,) = table.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            for name in ("study", "rollout", "attribution"):
                table.execute(f"DROP TABLE IF EXISTS {name}")
            for statement in _SCHEMA.split(";"):
                table.execute(statement)
            table.execute(f"PRAGMA user_version = {_VERSION}")
    return table


def _bring_up(table: sqlite3.Connection, store: Path) -> None:
    known = dict(table.execute("SELECT study, stamp FROM study"))
    here = {folder.name: folder for folder in studies(store)}
    with table:
        for gone in known.keys() - here.keys():
            _forget(table, gone)
        for name, folder in here.items():
            stamp = _stamp(folder)
            if known.get(name) != stamp:
                _forget(table, name)
                _take(table, name, folder, stamp)


def _stamp(folder: Path) -> str:
    state = (folder / JOURNAL).stat()
    return f"{state.st_ino} {state.st_size} {state.st_mtime_ns}"


def _forget(table: sqlite3.Connection, study: str) -> None:
    for name in ("study", "rollout", "attribution"):
        table.execute(f"DELETE FROM {name} WHERE study = ?", (study,))


def _take(table: sqlite3.Connection, study: str, folder: Path, stamp: str) -> None:
    try:
        lines = read_journal(folder)
    except Damaged:
        lines = Lines([], 0, b"")
    opened = lines.last(OPENED)
    asked = opened.data if opened is not None else {}
    answered = lines.last(ANSWERED)
    answer = answered.data if answered is not None else {}
    drawn = [entry for entry in lines.entries if entry.what == DRAWN]
    low, high = answer.get("ci") or (None, None)
    state = "damaged" if opened is None else "open" if answered is None else _state(answer)
    row = (
        study,
        asked.get("kind"),
        asked.get("run"),
        asked.get("task"),
        asked.get("method"),
        asked.get("verifier"),
        state,
        opened.when / 1e9 if opened is not None else 0.0,
        answer.get("verdict"),
        answer.get("step"),
        answer.get("drop"),
        low,
        high,
        answer.get("rollouts", len(drawn)),
        msgspec.json.encode(asked).decode(),
        msgspec.json.encode(answer).decode() if answer else None,
        stamp,
    )
    table.execute(f"INSERT INTO study VALUES ({','.join('?' * len(row))})", row)
    table.executemany(f"INSERT INTO rollout VALUES ({','.join('?' * 13)})", _rollouts(study, drawn))
    for rank, drop in enumerate(answer.get("certified") or ()):
        table.execute(
            "INSERT INTO attribution VALUES (?, ?, ?, ?, ?, ?)", (study, rank, drop["step"], drop["drop"], *drop["ci"])
        )


def _state(answer: dict[str, Any]) -> str:
    return "stopped" if answer.get("stopped") else "done"


def _rollouts(study: str, drawn: list[Entry]) -> Iterator[tuple[Any, ...]]:
    for number, entry in enumerate(drawn):
        draw, outcome = entry.data.get("draw", {}), entry.data.get("outcome", {})
        yield (
            study,
            number,
            entry.key,
            draw.get("at"),
            draw.get("k"),
            draw.get("tag"),
            outcome.get("success"),
            outcome.get("score"),
            outcome.get("live_steps"),
            outcome.get("tokens"),
            outcome.get("seconds"),
            outcome.get("run"),
            outcome.get("why"),
        )
