"""Replaying every recording of a folder against the agent as it is now, with a report that CI systems read (JUnit)."""

from __future__ import annotations

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
from worldline.store.bundle.packed import open_recording
from worldline.store.catalog import entries
from worldline.store.listed import Entry
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording

MARKS = {"equivalent": "ok", "prefix-equivalent": "ok", "diverged": "failed", "ineligible": "warn"}
GOOD = ("equivalent", "prefix-equivalent")
SKIPPED = ("running", "contained")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2: Char


class Replayed(msgspec.Struct, kw_only=True):
    """What came of one recording: its verdict, the step at which it diverged, and why in one line. Times in seconds."""

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


def replay_all(
    folder: Path, replay: Callable[[Recording], ReplayReport], junit: Path | None, as_json: bool, level: str
) -> dict[str, int]:
    """Replay every run and bundle of a folder, say what came of each, and return how often each verdict came.

    Raises `RecordingNotFound` where there is none: a check of nothing must not look like one that passed.
    """
    found = [entry for entry in entries(store_of(folder)) if entry.disposition not in SKIPPED]
    if not found:
        raise RecordingNotFound(f"no recording to replay in {folder}", path=str(folder))
    done: list[Replayed] = []
    for each in _each(found, replay):
        done.append(each)
        if not as_json:
            _say(each)
    counts = Counter(each.verdict for each in done)
    if junit is not None:
        _write(junit, done)
    if as_json:
        render.emit_json({"level": level, "counts": counts, "runs": done})
    else:
        _say_all(counts, len(done), junit)
    return counts


def own_command(recording: Recording) -> tuple[str, ...]:
    """The command that a recording was made with. Raises `UsageError` for one that was made in process."""
    words = recording.header.data["agent"].get("command")
    if not isinstance(words, list) or not words:
        raise UsageError("it was not recorded with a command: give one behind --")
    return tuple(map(str, words))


def step_of(recording: Recording, seq: int | None) -> int | None:
    """The step in which a row stands; None before the first."""
    return None if seq is None else max((step.index for step in steps(recording) if step.seq <= seq), default=None)


def _each(found: list[Entry], replay: Callable[[Recording], ReplayReport]) -> Iterator[Replayed]:
    for entry in found:
        began = clock.monotonic_ns()
        report: ReplayReport | None
        why: str | None
        try:
            recording = refuse_doubt(open_recording(entry.path))
            report = replay(recording)
        except WorldlineError as error:  # the others are replayed all the same
            report, step, why = None, None, str(error)
        else:
            step = step_of(recording, report.divergence.seq) if report.divergence is not None else None
            why = report.first_divergence
        yield Replayed(
            run=entry.run,
            path=str(from_here(Path(entry.path))),
            task=entry.task,
            verdict=report.verdict if report is not None else "ineligible",
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


def _say_all(counts: Counter[str], total: int, junit: Path | None) -> None:
    good = sum(counts[verdict] for verdict in GOOD)
    parts = [f"{count} {verdict}" for verdict in ("diverged", "ineligible") if (count := counts[verdict])]
    said = f"{good} of {render.counted(total, 'recording')} equivalent"
    render.verdict("ok" if good == total else "failed", "   ".join([said, *parts]))
    if counts["diverged"]:
        render.line("  worldline replay RUN -- CMD shows one of them whole")
    if junit is not None:
        render.line(f"  {junit}")


def _write(path: Path, done: list[Replayed]) -> None:
    """JUnit's XML: a test case for each recording. Raises `UsageError` where it cannot be written."""
    from xml.etree import ElementTree  # only the few who ask for it wait for it to load

    number = Counter(each.verdict for each in done)
    suite = ElementTree.Element(
        "testsuite",
        name="worldline replay",
        tests=str(len(done)),
        failures=str(number["diverged"]),
        errors=str(number["ineligible"]),
        skipped="0",
        time=f"{sum(each.seconds for each in done):.3f}",
    )
    for each in done:
        name = _text(f"{each.task} ({short(each.run)})" if each.task else short(each.run))
        case = ElementTree.SubElement(suite, "testcase", classname="replay", name=name, time=f"{each.seconds:.3f}")
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
