"""`worldline diff A B`: two runs side by side, the first difference first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from worldline.analysis.changes import Change, alike
from worldline.analysis.difference import PARTS, RunDiff, StepPair, compare
from worldline.analysis.files import CHANGED, ONLY_LEFT, FileChange
from worldline.cli import render
from worldline.cli.hints import name_of
from worldline.cli.options import json_option, recording_of, store_option
from worldline.engine.masks import masks_given, masks_here
from worldline.errors import Damaged, UsageError
from worldline.model.ids import short
from worldline.model.masks import REQUEST
from worldline.store.recording import Recording

MOST_STEPS = 30  # that differ and are shown
MOST_FILES = 12  # paths of which the same is said
MOST_LINES = 12  # changes that are shown of one of them
MOST_NAMED = 2  # of its changes that do not count
MOST_SHOWN = 200  # characters of a value
WAYS = "write 'tool:NAME $.argument', or a part and a path as they are printed: 'decision $.text=~PATTERN'"
SEEN_BEFORE = 20  # of them before the first that differs


@click.command(
    epilog="""\b
Examples:
  worldline diff 7f3a b21c
  worldline diff 7f3a b21c --mask 'tool:search $.now' --mask 'decision $.text=~ORD-\\d+'
  worldline diff runs/run_01k... refund.skn --json"""
)
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@click.option(
    "--mask",
    "mask",
    multiple=True,
    metavar="MASK",
    help="A value that is no difference: 'tool:NAME $.path', or as printed below, 'decision $.text', either with "
    "=~REGEX. May be repeated; those of the records and of worldline.toml are in force, too.",
)
@json_option
@store_option
def command(left: str, right: str, mask: tuple[str, ...], as_json: bool, store: Path | None) -> int:
    """Compare two runs: which step of A is which of B, where they part first, and what differs in each step.

    Steps that were inserted shift nothing. Ids, dates and times taken are named as such and are no difference by
    themselves. Exit code 0 where the runs are the same, 1 where they differ.
    """
    masks = masks_given(mask)
    for each in masks:
        if each.where == REQUEST:
            raise UsageError(f"{each.text!r} is about requests, and steps are compared here; {WAYS}", mask=each.text)
    runs = recording_of(left, store), recording_of(right, store)
    found = compare(*runs, (*masks_here(), *masks))
    if as_json:
        render.emit_json(found)
    else:
        _show(found, runs)
    return 0 if found.same else 1


def _show(found: RunDiff, runs: tuple[Recording, Recording]) -> None:
    labels = _labels(runs)
    divergence = found.first_divergence
    counts = f"{render.counted(found.aligned, 'step')} aligned"
    for label, only in zip(labels, (found.only_left, found.only_right), strict=True):
        counts += f", {len(only):,} only in {label}" if only else ""
    if divergence is None:
        render.verdict("ok", f"the same   {counts}")
    else:
        render.verdict("failed", f"{render.first_difference(divergence, labels)}   {counts}")
    for sign, label, run in zip("-+", labels, runs, strict=True):
        render.changed(sign, f"{label}{_of(run)}")
    for note in found.notes:
        render.verdict("warn", note)
    for use in found.masks:
        left_out = f"left out {render.counted(use.values, 'value')} in {render.counted(use.exchanges, 'step')}"
        render.line(f"  {use.mask}   {left_out if use.values else 'met nothing'}   ({use.origin})")
    _spine(found, labels[1])
    _files(found.files, labels)
    names = name_of(runs[0]), name_of(runs[1])
    at = (divergence.left, divergence.right) if divergence is not None else (None, None)
    shows = [f"worldline show {name} --step {step}" for name, step in zip(names, at, strict=True) if step is not None]
    render.line("  " + "    ".join([*shows, f"worldline view {names[0]} {names[1]}"]))


def _labels(runs: tuple[Recording, Recording]) -> tuple[str, str]:
    """What the two are called here: briefly, but never both the same."""
    brief = _id(runs[0]), _id(runs[1])
    return brief if brief[0] != brief[1] else (f"A ({brief[0]})", f"B ({brief[1]})")


def _id(run: Recording) -> str:
    """The end of a run's id, whatever its folder is called here."""
    try:
        return short(str(run.header.data["run"]))
    except Damaged:
        return short(run.run_id)


def _of(run: Recording) -> str:
    """What a run was about, and how it ended."""
    try:
        task = run.header.data["task"]["text"]
    except Damaged:  # the notes say that it is damaged
        task = None
    outcome = run.summary.get("outcome") or run.disposition
    return (f'   "{render.shorten(task, 60)}"' if task else "") + f"   {outcome}"


def _spine(found: RunDiff, name: str) -> None:
    """The aligned steps: those that are the same as a number, the others with what differs."""
    same = shown = 0
    width = max((len(str(n)) for pair in found.steps for n in (pair.left, pair.right) if n is not None), default=1)
    for pair in found.steps:
        if pair.same:
            same += 1
            continue
        _fold(same, width)
        same = 0
        if shown == MOST_STEPS:
            break
        shown += 1
        _pair(pair, width, name)
    _fold(same, width)
    differing = sum(not pair.same for pair in found.steps)
    if differing > shown:
        render.line(f"  {'':{width}}  … {render.counted(differing - shown, 'more step')} that differ; --json has all")


def _files(found: list[FileChange], labels: tuple[str, str]) -> None:
    """What differs in the workspaces that they left, a line for each path."""
    if found:
        render.line(f"  the files that they left differ in {render.counted(len(found), 'path')}")
    for change in found[:MOST_FILES]:
        if change.what == CHANGED:
            render.line(f"    ≠ {change.path}", cut=True)
        else:
            left = change.what == ONLY_LEFT
            render.changed("-" if left else "+", f"{change.path}   only in {labels[not left]}", indent="    ")
    if len(found) > MOST_FILES:
        render.line(f"    … {len(found) - MOST_FILES:,} more; --json has all")


def _fold(count: int, width: int) -> None:
    if count:
        render.line(f"  {'':{width}}  {count:,} the same")


def _pair(pair: StepPair, width: int, name: str) -> None:
    if pair.left is None or pair.right is None:
        sign, number = ("-", pair.left) if pair.right is None else ("+", pair.right)
        render.changed(sign, f"{number:>{width}}  {pair.name or '(no answer yet)'}", indent="")
        return
    other = f"   ({pair.right} in {name})" if pair.left != pair.right else ""
    ties = f"   same {', '.join(pair.anchors)}" if pair.anchors else ""
    render.line(f"  {pair.left:>{width}}  {pair.name or '(no answer yet)'}{other}{ties}", cut=True)
    lines = [(part, change) for part in PARTS for change in getattr(pair, part)]
    counting = [(part, change) for part, change in lines if change.volatile is None]
    for part, change in counting[:MOST_LINES]:
        render.line(f"  {'':{width}}  {part}  {change.path}", cut=True)
        for sign, text in _sides(change):
            render.changed(sign, text, indent=f"  {'':{width}}  ")
    if (hidden := len(counting) - MOST_LINES) > 0 or pair.more:
        render.line(f"  {'':{width}}  … {render.counted(max(hidden, 0) + pair.more, 'more change')}; --json has them")
    volatile = sorted({f"{change.path} ({change.volatile})" for _, change in lines if change.volatile is not None})
    if volatile:
        rest = f" and {len(volatile) - MOST_NAMED} more" if len(volatile) > MOST_NAMED else ""
        render.line(f"  {'':{width}}  – not counted: {', '.join(volatile[:MOST_NAMED])}{rest}", cut=True)


def _sides(change: Change) -> Iterator[tuple[str, str]]:
    """The lines of a change, each with its sign."""
    left, right = _text(change.left), _text(change.right)
    begin = 0
    if change.kind == "changed":  # from right before the first character that differs
        same = alike(left, right)
        begin = same - SEEN_BEFORE if same > 2 * SEEN_BEFORE else 0
    cut = "…" if begin or change.at else ""
    if change.kind != "added":
        yield "-", cut + render.shorten(left[begin:], MOST_SHOWN, keep_spaces=True)
    if change.kind != "removed":
        yield "+", cut + render.shorten(right[begin:], MOST_SHOWN, keep_spaces=True)


def _text(value: object) -> str:
    """A value in one line."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8")
    return text.replace("\n", "\\n")
