"""`worldline diff` as its users meet it: the verdict first, same steps folded, what differs, what to type next."""

from __future__ import annotations

from pathlib import Path

import pytest

import worldline as wl
from tests.cli.terminal import worldline
from tests.cli.test_screens import COLOUR, on_terminal
from tests.diff.clerk import record
from worldline.model.ids import short


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[wl.Run, ...]:
    """One run, the same again, and one with a step more and another sum; in a store."""
    store = tmp_path_factory.mktemp("project")
    return record(store), record(store), record(store, rules=1, cents=7)


def paths(*runs: wl.Run) -> list[str | Path]:
    return [run.recording.run_directory for run in runs]


def test_runs_that_are_the_same_are_one_line_and_exit_code_0(runs: tuple[wl.Run, ...]) -> None:
    ended = worldline("diff", *paths(*runs[:2]))
    assert ended.code == 0
    verdict, left, right, same, hint = ended.out.splitlines()
    assert verdict == "✓ the same   3 steps aligned"
    assert left.startswith("  - ") and right.startswith("  + ")
    assert left.endswith('   "refund #812"   succeeded')
    assert same.strip() == "3 the same"
    assert hint.startswith("  worldline view ")


def test_the_verdict_comes_first_then_the_spine_then_what_to_type(runs: tuple[wl.Run, ...]) -> None:
    a, _, b = runs
    where = short(b.id)
    ended = worldline("diff", short(a.id), where, "--store", a.recording.run_directory.parent)
    assert ended.code == 1
    verdict, _, _, *spine, hint = ended.out.splitlines()
    assert verdict == f"✕ first difference at step 1, only in {where}   3 steps aligned, 1 only in {where}"
    assert spine == [
        "     1 the same",
        "+ 1  rules",
        f"  1  refund   (2 in {where})   same permission, screen",
        "     decision  $.calls[0].arguments.cents",
        "     - 64",
        "     + 7",
        "     – not counted: $.calls[0].id (id)",
        "     1 the same",
    ]
    assert f"worldline show {b.recording.path} --step 1" in hint


def test_colour_never_comes_alone_and_a_pipe_gets_none(runs: tuple[wl.Run, ...]) -> None:
    words = ["diff", *map(str, paths(runs[0], runs[2]))]
    code, screen = on_terminal(*words, columns=300)
    piped = worldline(*words)
    assert code == piped.code == 1
    assert {"\x1b[31m", "\x1b[32m"} <= set(COLOUR.findall(screen))
    assert not COLOUR.search(piped.out)
    assert COLOUR.sub("", screen) == piped.out


def test_json_says_the_same(runs: tuple[wl.Run, ...]) -> None:
    ended = worldline("diff", *paths(runs[0], runs[2]), "--json")
    assert (ended.code, ended.json) == (1, runs[0].diff(runs[2]).to_json())


def test_what_cannot_be_compared_is_one_line(runs: tuple[wl.Run, ...]) -> None:
    missing = worldline("diff", *paths(runs[0]), "nosuch")
    assert (missing.code, missing.out) == (64, "")
    assert "nosuch" in missing.complaint
    assert worldline("diff", *paths(runs[0])).code == 64
