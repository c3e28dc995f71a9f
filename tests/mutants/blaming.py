"""Faults in saying which step it was: a claim that nothing stands behind, an interval that does not hold."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CLAIMS = "tests/attribution/test_planted_claims.py::"
FLAT = f"{CLAIMS}test_a_flat_agent_is_seldom_blamed"

MUTANTS = (
    Mutant(
        "no-certificate",
        promise=8,
        breaks="What the search settles on is claimed, whatever fresh rollouts say.",
        file="analysis/attribution/findings.py",
        old="held = [one for one in self.certificates if one.holds]",
        new="held = list(self.certificates)",
        tests=(FLAT,),
    ),
    Mutant(
        "narrow-intervals",
        promise=8,
        breaks="An interval is half as wide as its level asks for.",
        file="analysis/attribution/intervals.py",
        old="    p, q, z = s / n, t / m, z_of(alpha)\n    (p_low, p_high), (q_low, q_high) = wilson(n, s",
        new="    p, q, z = s / n, t / m, z_of(alpha) / 2\n    (p_low, p_high), (q_low, q_high) = wilson(n, s",
        tests=(f"{CLAIMS}test_intervals_hold_the_true_drop",),
    ),
)
