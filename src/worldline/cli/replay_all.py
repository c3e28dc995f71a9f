"""Replaying every recording of a folder against the agent as it is now, with a report that CI systems read (JUnit)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from worldline.cli import render
from worldline.cli.hints import from_here
from worldline.cli.options import store_of
from worldline.engine import clock
from worldline.engine.replay import ReplayReport
from worldline.engine.steps import step_at, steps
from worldline.errors import RecordingNotFound, UsageError, WorldlineError
from worldline.model.ids import short
from worldline.seams import process
from worldline.store.bundle.packed import open_recording
from worldline.store.catalog import entries
from worldline.store.listed import Entry
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording
from worldline.store.secrets.vault import unmarked

MARKS = {
    "equivalent": "ok",
    "prefix-equivalent": "ok",
    "diverged": "failed",
    "ineligible": "failed",
    "running": "live",
    "contained": "none",
}
GOOD = ("equivalent", "prefix-equivalent")
SKIPPED = ("running", "contained")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2: Char

Replay = Callable[[Recording], tuple[ReplayReport, process.Ended | None]]


class Replayed(msgspec.Struct, kw_only=True):
    """What came of one recording: its verdict, the step at which it diverged, and why in one line. Times in seconds.

    A run that is being recorded, or is contained, is not replayed: that is its verdict then.
    """

    run: str
    path: str
    task: str | None
    verdict: str
    step: int | None
    why: str | None
    seconds: float
    report: dict[str, Any] | None = None

    @property
    def said(self) -> list[str]:
        """Lines on what is wrong; none where nothing is."""
        if self.verdict in GOOD:
            return []
        return [line for line in (self.why, *(self.report or {}).get("notes", ())) if line]


class Came(msgspec.Struct):
    """What came of all: how often each verdict came, and which signal ended it before the others were replayed."""

    done: list[Replayed] = []
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    interrupted_by: str | None = None


def replay_all(folder: Path, replay: Replay, junit: Path | None, as_json: bool, level: str) -> Came:
    """Replay every run and bundle of a folder, and say what came of each.

    Raises `RecordingNotFound` where there is none: a check of nothing must not look like one that passed.
    """
    if junit is not None and not junit.parent.is_dir():
        raise UsageError(f"cannot write {junit}: no folder {junit.parent}", path=str(junit))
    found = _entries(folder)
    if not found:
        raise RecordingNotFound(f"no recording to replay in {folder}", path=str(folder))
    came = Came()
    for entry in found:
        each, came.interrupted_by = _replayed(entry, replay)
        if came.interrupted_by is not None:  # it was ended by us: nothing is said of it, and no other begun
            break
        came.done.append(each)
        came.counts[each.verdict] += 1
        if not as_json:
            _say(each)
    if junit is not None:
        _write(junit, came)
    if as_json:
        said = {"level": level, "counts": came.counts, "interrupted_by": came.interrupted_by, "runs": came.done}
        render.emit_json(said)
    else:
        _say_all(came, len(found), junit)
    return came


def own_command(recording: Recording) -> tuple[str, ...]:
    """The command that a recording was made with, secrets in it as the environment has them.

    Raises `UsageError` for one that was made in process, or with a secret that is not at hand.
    """
    words = recording.header.data["agent"].get("command")
    if not isinstance(words, list) or not words:
        raise UsageError("it was not recorded with a command: give one behind --")
    return tuple(unmarked(str(word), _value) for word in words)


def _value(label: str) -> str:
    if (value := os.environ.get(label)) is None:
        raise UsageError(f"the secret {label} stood in the words of its command: set the variable of that name")
    return value


def _entries(folder: Path) -> list[Entry]:
    return (folder.is_dir() and entries(folder)) or entries(store_of(folder))


def _replayed(entry: Entry, replay: Replay) -> tuple[Replayed, str | None]:
    """What came of one, and the signal to us that ended its command. What fails stops none of the others."""
    began = clock.monotonic_ns()
    report: ReplayReport | None = None
    ended: process.Ended | None = None
    verdict, step, why = entry.disposition, None, None
    if verdict not in SKIPPED:
        try:
            recording = refuse_doubt(open_recording(entry.path))
            report, ended = replay(recording)
            verdict, why = report.verdict, report.first_divergence
            if report.divergence is not None and report.divergence.seq is not None:
                step = step_at(steps(recording), report.divergence.seq)
        except WorldlineError as error:
            verdict, why = report.verdict if report is not None else "ineligible", str(error)
    replayed = Replayed(
        run=entry.run,
        path=str(from_here(Path(entry.path))),
        task=entry.task,
        verdict=verdict,
        step=step,
        why=why,
        seconds=(clock.monotonic_ns() - began) / 1e9,
        report=report.to_json() if report is not None else None,
    )
    return replayed, ended.interrupted_by if ended is not None else None


def _say(each: Replayed) -> None:
    at = f" at step {each.step}" if each.step is not None else ""
    name = Path(each.path).name if each.path.endswith(".skn") else short(each.run)
    task = f'   "{render.shorten(each.task, 48)}"' if each.task else ""
    render.verdict(MARKS[each.verdict], f"{name}   {each.verdict}{at}{task}")
    for line in each.said:
        render.line(f"  {line}", cut=True)


def _say_all(came: Came, total: int, junit: Path | None) -> None:
    counts = came.counts
    good = sum(counts[verdict] for verdict in GOOD)
    parts = [f"{count} {verdict}" for verdict, count in sorted(counts.items()) if verdict != "equivalent"]
    said = f"{good} of {render.counted(total, 'recording')} equivalent"
    if came.interrupted_by is not None:
        parts.append(f"interrupted by {came.interrupted_by}: {total - len(came.done)} were not replayed")
    bad = counts["diverged"] + counts["ineligible"]
    render.verdict("failed" if bad else "ok" if good == total else "warn", "   ".join([said, *parts]))
    if counts["diverged"]:
        render.line("  worldline replay RUN -- CMD shows one of them whole")
    if junit is not None:
        render.line(f"  {junit}")


def _write(path: Path, came: Came) -> None:
    """JUnit's XML: a test case for each recording. Raises `UsageError` where it cannot be written."""
    done, number = came.done, came.counts
    from xml.etree import ElementTree  # only the few who ask for it wait for it to load

    suite = ElementTree.Element(
        "testsuite",
        name="worldline replay",
        tests=str(len(done)),
        failures=str(number["diverged"]),
        errors=str(number["ineligible"]),
        skipped=str(sum(number[state] for state in SKIPPED)),
        time=f"{sum(each.seconds for each in done):.3f}",
    )
    for each in done:
        name = _text(f"{each.task} ({short(each.run)})" if each.task else short(each.run))
        case = ElementTree.SubElement(suite, "testcase", classname="replay", name=name, time=f"{each.seconds:.3f}")
        if each.verdict in SKIPPED:
            ElementTree.SubElement(case, "skipped", message=each.verdict)
        if kind := {"diverged": "failure", "ineligible": "error"}.get(each.verdict):
            at = f" at step {each.step}" if each.step is not None else ""
            wrong = ElementTree.SubElement(case, kind, type=each.verdict, message=f"{each.verdict}{at}")
            wrong.text = _text("\n".join([each.path, *each.said]))
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    try:
        path.write_bytes(ElementTree.tostring(whole, encoding="utf-8", xml_declaration=True) + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", path=str(path)) from error


def _text(text: str) -> str:
    """A text without what no XML may hold."""
    return _NO_XML.sub("\ufffd", text)
