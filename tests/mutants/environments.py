"""Faults in the substrates that are fast: layers lose something, a twin is born, a process or mount stays behind."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

OVERLAY = "tests/substrates/test_overlay.py::"
SAME = f"{OVERLAY}test_layers_hold_what_a_folder_would_hold"
UNIQUE = "tests/substrates/test_unique.py::"
FIFTY = f"{UNIQUE}test_fifty_branches_of_a_zygote_are_fifty_and_can_be_repeated"
ZYGOTE = "tests/substrates/test_zygote.py::"
PLACE = "engine/substrates/"

MUTANTS = (
    Mutant(
        "a-base-may-change",
        promise=6,
        breaks="What layers stand on is never looked at again.",
        file=f"{PLACE}base.py",
        old="if seen == [] or (",
        new="if seen != () or (",
        tests=(f"{OVERLAY}test_a_base_that_changes_is_found_out_and_named",),
    ),
    Mutant(
        "what-is-held-is-torn-off",
        promise=6,
        breaks="Layers are taken down under a process that writes to them.",
        file=f"{PLACE}holder.py",
        old="            mounts.unmount(self.workspace)\n",
        new="            mounts.unmount(self.workspace, mounts.DETACH)\n",
        tests=(f"{OVERLAY}test_who_holds_it_is_named_and_then_it_goes_on",),
    ),
    Mutant(
        "flat-layers-keep-what-went",
        promise=6,
        breaks="What layers removed is there again once they are flat.",
        file=f"{PLACE}bringing.py",
        old="        if wanted is None:\n            _remove(target / path, there)",
        new="        if wanted is None:\n            pass",
        tests=(SAME,),
    ),
    Mutant(
        "what-a-folder-hides-comes-back",
        promise=6,
        breaks="A folder that was made anew, or moved, is not looked into when layers are flattened.",
        file=f"{PLACE}bringing.py",
        old="                    self.whole.add(path)",
        new="                    self.paths.add(path)",
        tests=(SAME,),
    ),
    Mutant(
        "the-top-folder-is-the-layer's",
        promise=6,
        breaks="The workspace has the mode of the folder that its newest layer was made with.",
        file=f"{PLACE}layers.py",
        old="                dress(self.top(parent)",
        new='                dress(f"{new}/work"',
        tests=(SAME,),
    ),
    Mutant(
        "what-was-not-settled-is-lost",
        promise=2,
        breaks="What a process that was killed had not settled is not looked for.",
        file=f"{PLACE}overlay.py",
        old="in kept.layers.heads(workspace):",
        new="in kept.layers.heads(workspace)[:0]:",
        tests=(f"{OVERLAY}test_killed_at_any_moment_nothing_is_lost_or_left",),
    ),
    Mutant(
        "generators-are-not-found",
        promise=2,
        breaks="A branch goes on with the generators that its environment made itself.",
        file=f"{PLACE}reseed.py",
        old="                self._found.append(_weak(thing, self._seen))",
        new="                self._seen.add(id(thing))",
        tests=(FIFTY, f"{UNIQUE}test_every_generator_is_found_once_and_goes_on_from_a_seed_of_its_own"),
    ),
    Mutant(
        "a-failed-hook-is-passed-over",
        promise=2,
        breaks="A branch goes live although a token could not be made anew.",
        file=f"{PLACE}reseed.py",
        old='            raise ReseedFailed(f"the hook {name} of the branch failed: {said}", '
        'what=f"hook:{name}") from error',
        new="            continue",
        tests=(f"{ZYGOTE}test_the_gate_is_shut_on_both_sides_until_all_is_reseeded",),
    ),
    Mutant(
        "who-is-gated-acts",
        promise=2,
        breaks="The process of a branch acts before it is reseeded, whatever its owner thinks.",
        file=f"{PLACE}nursery.py",
        old="        if self.state != LIVE:",
        new="        if self.state == KEPT:",
        tests=(f"{ZYGOTE}test_the_gate_is_shut_on_both_sides_until_all_is_reseeded",),
    ),
    Mutant(
        "positions-are-shared",
        promise=6,
        breaks="Branches move each other's position in a file that was open.",
        file=f"{PLACE}nursery.py",
        old="        quiescence.reopen({control, self.lifeline})",
        new="        _ = quiescence.reopen",
        tests=(f"{ZYGOTE}test_branches_share_memory_and_have_positions_of_their_own",),
    ),
    Mutant(
        "threads-are-forked-away",
        promise=6,
        breaks="An environment with threads is forked, and its branches have none.",
        file=f"{PLACE}quiescence.py",
        old="    found = [thread.name for thread in known]",
        new="    found: list[str] = []",
        tests=(f"{ZYGOTE}test_a_thread_is_named_and_refused",),
    ),
    Mutant(
        "an-endless-loop-outlives-its-owner",
        promise=6,
        breaks="Only a process that listens hears that its owner has ended.",
        file=f"{PLACE}nursery.py",
        old="os.O_ASYNC | os.O_NONBLOCK)",
        new="os.O_NONBLOCK)",
        tests=(f"{ZYGOTE}test_nothing_outlives_who_is_killed",),
    ),
)
