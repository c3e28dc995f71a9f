"""Faults in forks, their gate and lineages: an effect happens twice, a prefix is computed again, twins are born."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GATE = "tests/fork/test_gate.py::test_the_gate_decides_as_the_table_says"
LINEAGE = "tests/fork/test_lineage.py::"
TWINS = "tests/fork/test_twins.py::test_fifty_branches_draw_fifty_times_and_each_replays"
FORK = "tests/fork/test_fork.py::"

MUTANTS = (
    Mutant(
        "a-key-fires-again",
        promise=2,
        breaks="An effect whose declared key happened before goes by the rules like any other.",
        file="engine/gate.py",
        old="if named is not None and not self._allow_repeat:",
        new="if named is not None and self._allow_repeat:",
        tests=(GATE,),
    ),
    Mutant(
        "a-marked-step-opens-nothing",
        promise=2,
        breaks="Branches in which nothing crosses are twins: a study of them names the wrong step.",
        file="engine/fork.py",
        old='self._go_live("step")',
        new="pass",
        tests=("tests/fork/test_twins.py::test_a_branch_in_which_nothing_crosses_is_no_twin_either",),
    ),
    Mutant(
        "unknown-runs-again",
        promise=2,
        breaks="What had started when a record broke off is taken for never begun.",
        file="engine/gate.py",
        old="        if self._unknown.get(key):\n            return UNKNOWN\n",
        new="",
        tests=(GATE,),
    ),
    Mutant(
        "any-rule-means-unknown",
        promise=2,
        breaks="A rule that does not speak of unknown outcomes decides about them, too.",
        file="policy/rules.py",
        old='if (self.outcome == "unknown") != asked.unknown or not',
        new='if (self.outcome == "unknown" and not asked.unknown) or not',
        tests=(GATE,),
    ),
    Mutant(
        "irreversible-by-itself",
        promise=2,
        breaks="A rule alone lets an irreversible effect happen; nobody is asked.",
        file="engine/gate.py",
        old="if kind == LIVE and capability in NEVER_BY_ITSELF:",
        new="if kind == ASK and capability in NEVER_BY_ITSELF:",
        tests=(GATE,),
    ),
    Mutant(
        "a-result-is-given-for-ever",
        promise=2,
        breaks="A later result of the parent stands for any number of calls.",
        file="engine/gate.py",
        old="fired=waiting.popleft())",
        new="fired=waiting[0])",
        tests=("tests/fork/test_gate.py::test_a_recorded_result_is_given_once",),
    ),
    Mutant(
        "relatives-are-not-asked",
        promise=2,
        breaks="What another branch let happen is not looked for.",
        file="engine/gate.py",
        old="return self._by_key.get(declared) or self._elsewhere(declared)",
        new="return self._by_key.get(declared)",
        tests=("tests/fork/test_no_double_fires.py::test_what_a_key_names_happens_once_in_the_whole_family",),
    ),
    Mutant(
        "a-miss-in-the-prefix-goes-live",
        promise=2,
        breaks="A call that the prefix does not have is asked live.",
        file="engine/fork.py",
        old="            raise self.failure from None",
        new="            return None",
        tests=(f"{FORK}test_a_changed_agent_before_the_fork_is_not_reproducible_and_nothing_goes_live",),
    ),
    Mutant(
        "the-edge-is-not-checked",
        promise=5,
        breaks="A branch that is bound to another row is read on.",
        file="engine/lineage.py",
        old='if row is None or row.h != bound.get("h"):',
        new="if row is None:",
        tests=(f"{LINEAGE}test_a_branch_bound_to_another_row_is_refused",),
    ),
    Mutant(
        "ancestors-are-not-verified",
        promise=5,
        breaks="Only the run that is forked is verified, and none that it continues.",
        file="engine/eligibility.py",
        old="for ancestor in ancestors:",
        new="for ancestor in ():",
        tests=(f"{LINEAGE}test_an_ancestor_that_is_gone_or_other_is_one_clear_error",),
    ),
    Mutant(
        "branches-are-twins",
        promise=2,
        breaks="A generator that was made before the fork goes on as it was, in every branch.",
        file="seams/active.py",
        old="while self._passed < (self._run.boundary.forks() or 0):",
        new="while self._passed > (self._run.boundary.forks() or 0):",
        tests=(TWINS,),
    ),
    Mutant(
        "what-was-said-is-written-again",
        promise=6,
        breaks="What the agent says again of the prefix is written into the branch.",
        file="engine/fork.py",
        old="if self._spoken.again(kind, src, lane):",
        new="if self._spoken.again(kind, src, lane) and lane == 0:",
        tests=(f"{LINEAGE}test_forks_of_forks_to_a_depth_of_22_keep_what_each_ancestor_saw",),
    ),
    Mutant(
        "parents-go-first",
        promise=5,
        breaks="A run goes to the trash although a branch that stays goes on from it.",
        file="store/forget/trash.py",
        old="kept = why_kept(each.path) or (_left_by(stays) if stays else None)",
        new="kept = why_kept(each.path)",
        tests=(f"{LINEAGE}test_a_run_goes_to_the_trash_with_its_branches_and_never_before",),
    ),
)
