"""Faults in how two runs are compared: a step is taken for another, a difference goes unsaid."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "shifted-by-an-insertion",
        promise=5,
        breaks="The way back through the edits goes one diagonal too far: pairs are steps that differ.",
        file="analysis/align.py",
        old="before = k + 1 if inserts else k - 1",
        new="before = k - 1 if inserts else k + 1",
        tests=(
            "tests/diff/test_align.py::test_no_alignment_has_more_steps_in_common",
            "tests/diff/test_align.py::test_steps_that_were_inserted_are_found_and_no_others",
        ),
    ),
    Mutant(
        "any-change-of-a-text-with-a-date",
        promise=5,
        breaks="Two texts with a date in them are taken as the same, whatever else they say.",
        file="model/volatile.py",
        old="if settled(left, met) == settled(right, met) and met else None",
        new="if settled(left, met) and settled(right, met) and met else None",
        tests=("tests/diff/test_changes.py::test_a_change_has_its_path_and_its_rule",),
    ),
)
