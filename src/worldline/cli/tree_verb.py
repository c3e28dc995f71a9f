"""`worldline tree RUN`: where a run comes from, what left it and where, how each ended, and how much they share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.tree import Node, tree_of
from worldline.errors import UsageError
from worldline.model.ids import short
from worldline.store.bundle.packed import PackedRecording

MARKS = {"succeeded": "✓", "failed": "✕", "running": "●"}


@click.command(
    epilog="""\b
Examples:
  worldline tree latest
  worldline tree 7f3a --json"""
)
@run_argument
@json_option
@store_option
def command(run: str, as_json: bool, store: Path | None) -> int:
    """Show the tree of a run over its store: its ancestors, its branches, and what each of them changed.

    `shared` says how many bytes of what the runs asked stand in another one already. In JSON a hundred generations
    stand in one another; what is deeper stands in `deeper`, each run with its `parent`.
    """
    recording = recording_of(run, store)
    if isinstance(recording, PackedRecording):
        raise UsageError(f"it is a bundle, and a tree is read from a store: {recording.way_in}")
    tree = tree_of(recording)
    if as_json:
        roots, deeper = tree.nested()
        said = {"run": recording.run_id, "roots": roots, "shared": tree.shared.to_json()}
        render.emit_json({**said, "deeper": deeper} if deeper else said)
        return 0
    for root in tree.roots:
        if root.parent is not None:
            render.verdict("warn", f"{root.parent_run} is not in this store; what stands below left it")
        for text in _lines(root, recording.attempt_id, "", ""):
            render.line(text, cut=True)
    shared = tree.shared
    if shared.runs > 1:
        render.line(
            f"  {shared.share:.0%} shared: {shared.size - shared.distinct:,} of {shared.size:,} bytes that "
            f"{shared.runs} runs asked"
        )
    return 0


def _lines(node: Node, here: str, before: str, below: str) -> Iterator[str]:
    """A node and all below it, drawn. Many forks of forks in a row stay in one column: no recursion, no margin."""
    work = [(node, before, below)]
    while work:
        node, before, below = work.pop()
        yield before + _line(node, node.attempt == here)
        children = node.children
        for number, child in reversed(list(enumerate(children))):
            is_last = number == len(children) - 1
            branch, rest = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            if len(children) == 1 and node.parent is not None:  # a line of descent, not a fork in the tree
                branch, rest = "└─ ", ""
            work.append((child, below + branch, below + rest))


def _line(node: Node, is_here: bool) -> str:
    state = node.outcome if node.disposition not in ("running", "interrupted") else node.disposition
    mark = MARKS.get(str(state), "–")
    where = "" if node.at is None else f"   {'resumed at ' if node.resumed else '@ '}{node.at}"
    changed = f"   {', '.join(node.changed)}" if node.changed else ""
    counts = f"   {node.live} live" if node.parent is not None else ""
    counts += f", {node.mocked} mocked" if node.mocked else ""
    counts += f", {node.refused} refused" if node.refused else ""
    broken = f"   ! {node.broken}" if node.broken else ""
    steps = f"   {render.counted(node.steps, 'step')}" if node.steps is not None else ""
    return f"{short(node.run)}{' *' if is_here else ''}   {mark} {state}{where}{changed}{steps}{counts}{broken}"
