"""Faults in the methods of attribution: a look that is not paid for, a rise that is overlooked, a hedge left out."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LOCATE = "tests/attribution/test_locate.py::"
SHAPLEY = "tests/attribution/test_shapley.py::"

MUTANTS = (
    Mutant(
        "certificate-believed",
        promise=8,
        breaks="Any certificate with a positive estimate is taken to hold, its interval is not asked.",
        file="analysis/attribution/certify.py",
        old="return not self.given_up and self.interval[0] > 0",
        new="return not self.given_up and self.drop > 0",
        tests=(f"{LOCATE}test_false_claims_stay_under_delta_where_no_step_lost_anything_that_matters",),
    ),
    Mutant(
        "no-look-to-the-right",
        promise=8,
        breaks="What lies right of a certified step is taken to be lost for good.",
        file="analysis/attribution/search.py",
        old="if self._ledger.value(spot) > floor:",
        new="if self._ledger.value(spot) > 1:",
        tests=(f"{LOCATE}test_a_chance_that_came_back_and_was_lost_again_is_found_to_the_right",),
    ),
    Mutant(
        "undefined-left-out",
        promise=8,
        breaks="Rollouts without a verdict are left out, and the answer is decisive all the same.",
        file="analysis/attribution/verdict.py",
        old="if best.bounds[0] <= 0 or not all(_leads(found, best, undefined) for undefined in READINGS):",
        new="if False:",
        tests=(f"{LOCATE}test_decisive_is_refused_where_undefined_rollouts_could_change_the_answer",),
    ),
    Mutant(
        "no-reverse",
        promise=8,
        breaks="The second order of an antithetic pair is the first one again.",
        file="analysis/attribution/shapley.py",
        old="added(coalitions, order[::-1], options.each",
        new="added(coalitions, order, options.each",
        tests=(f"{SHAPLEY}test_every_coalition_is_drawn_afresh_and_to_the_last_one",),
    ),
    Mutant(
        "one-level-for-all",
        promise=8,
        breaks="Every candidate of a repair has the whole level to itself.",
        file="analysis/attribution/repair.py",
        old="arm.alpha = self._options.delta / 2**self._round / len(arms)",
        new="arm.alpha = 0.5",
        tests=(
            "tests/attribution/test_repair.py::test_a_repair_that_does_not_reach_the_target_is_hardly_ever_validated",
        ),
    ),
    Mutant(
        "free-looks",
        promise=8,
        breaks="Arms that are compared after every batch have the interval of those that are compared once.",
        file="analysis/attribution/ab.py",
        old="between = difference_sequence if self._options.peek else newcombe",
        new="between = newcombe if self._options.n else difference_sequence",
        tests=("tests/attribution/test_ab.py::test_who_looks_in_between_stops_early_and_is_seldom_wrong",),
    ),
)
