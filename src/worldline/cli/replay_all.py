"""Replaying every recording of a folder against the agent as it is now, with a report that CI systems read (JUnit)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from worldline.cli import render
from worldline.cli.hints import from_here
from worldline.cli.options import store_of
from worldline.engine import clock
from worldline.engine.replay import ReplayReport
from worldline.engine.steps import steps
from worldline.errors import RecordingNotFound, UsageError, WorldlineError
from worldline.model.ids import short
from worldline.seams import process
from worldline.store.bundle.packed import open_recording
from worldline.store.catalog import entries
from worldline.store.listed import Entry
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording

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
_MARKER = re.compile(r"\[secret:([A-Za-z0-9_.-]{1,64})\]")
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
    for each in _each(found, replay, came):
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
    return tuple(_MARKER.sub(_value, str(word)) for word in words)


def _value(found: re.Match[str]) -> str:
    if (value := os.environ.get(found[1])) is None:
        raise UsageError(f"the secret {found[1]} stood in the words of its command: set the variable of that name")
    return value


def _entries(folder: Path) -> list[Entry]:
    return (folder.is_dir() and entries(folder)) or entries(store_of(folder))


def step_of(recording: Recording, seq: int | None) -> int | None:
    """The step in which a row stands; None before the first."""
    return None if seq is None else max((step.index for step in steps(recording) if step.seq <= seq), default=None)


def _each(found: list[Entry], replay: Replay, came: Came) -> Iterator[Replayed]:
    for entry in found:
        began = clock.monotonic_ns()
        report: ReplayReport | None = None
        step, why = None, None
        try:
            if entry.disposition not in SKIPPED:
                recording = refuse_doubt(open_recording(entry.path))
                report, ended = replay(recording)
                step = step_of(recording, report.divergence.seq) if report.divergence is not None else None
                why = report.first_divergence
                came.interrupted_by = ended.interrupted_by if ended is not None else None
        except WorldlineError as error:  # the others are replayed all the same
            why = str(error)
        if came.interrupted_by is not None:  # it was ended by us: nothing is said of it, and no other begun
            return
        missing = "ineligible" if why is not None else entry.disposition
        yield Replayed(
            run=entry.run,
            path=str(from_here(Path(entry.path))),
            task=entry.task,
            verdict=report.verdict if report is not None else missing,
            step=step,
            why=why,
            seconds=(clock.monotonic_ns() - began) / 1e9,
            report=report.to_json() if report is not None else None,
        )


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
