"""Faults in masks: a comparison that leaves out more than was declared, or does not say so."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PROPERTY = (
    "tests/model/test_masks.py::test_two_documents_are_equal_under_masks_exactly_where_they_differ_in_nothing_else"
)
CLI = "tests/cli/test_masks.py::"

MUTANTS = (
    Mutant(
        "a-mask-widens-beyond-its-path",
        promise=5,
        breaks="A mask of one member leaves out its neighbours, too.",
        file="model/masks.py",
        old="inner.append((value, step))\n            elif isinstance(value, list):",
        new="inner += [(value, name) for name in value]\n            elif isinstance(value, list):",
        tests=(PROPERTY,),
    ),
    Mutant(
        "a-pattern-leaves-out-the-whole-text",
        promise=5,
        breaks="What stands around that which a pattern finds does not count any more.",
        file="model/masks.py",
        old="                yield piece[at : match.start()]\n",
        new="",
        tests=(PROPERTY, f"{CLI}test_text_beside_what_is_left_out_still_diverges_and_no_mask_is_proposed_for_it"),
    ),
    Mutant(
        "a-strict-replay-lets-the-records-masks",
        promise=5,
        breaks="A replay as evidence leaves out what the record declares.",
        file="engine/replay.py",
        old="masks=NONE if masks is None else in_force(masks_of(recording), masks),",
        new="masks=in_force(masks_of(recording), masks or ()),",
        tests=(f"{CLI}test_masks_that_are_recorded_are_in_force_by_themselves_and_never_for_evidence",),
    ),
)
