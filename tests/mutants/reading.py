"""Faults in the quick ways of reading: each must give what the careful way gives, and a list what stands there now."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ROWS = "tests/store/test_rows_quick.py::"
LISTED = "tests/store/test_listed.py::"
SERVING = "tests/engine/test_serving_quick.py::"
CHANGED = f"{LISTED}test_a_run_that_has_changed_is_read_anew"

MUTANTS = (
    Mutant(
        "quick-row-in-any-place",
        promise=5,
        breaks="A row that chains is taken wherever it says it stands.",
        file="store/rows.py",
        old="        if event.seq != self.seq:\n            return None\n",
        new="",
        tests=(f"{ROWS}test_rows_that_chain_in_an_order_that_no_log_has",),
    ),
    Mutant(
        "quick-row-with-any-hash",
        promise=5,
        breaks="The quick way looks at no hash.",
        file="store/rows.py",
        old="            return None\n        try:",
        new="            pass\n        try:",
        tests=(f"{ROWS}test_a_log_is_read_the_same_whatever_happened_to_it",),
    ),
    Mutant(
        "leaves-folded-in-another-order",
        promise=8,
        breaks="The leaves that wait to be folded together come into the tree in another order.",
        file="model/merkle.py",
        old="        peak, trees = _subtree(self._leaves), self._folded",
        new="        peak, trees = _subtree(self._leaves[::-1]), self._folded",
        tests=("tests/model/test_merkle.py::test_a_tree_of_many_leaves_is_that_of_the_rfc_after_each_of_them",),
    ),
    Mutant(
        "contents-named-in-escapes",
        promise=5,
        breaks="A content that a row names in escapes is not looked for.",
        file="store/verify.py",
        old=' or (b"\\\\" in raw and b"\\\\u" in raw)',
        new="",
        tests=(f"{ROWS}test_a_content_that_is_named_in_escapes_is_looked_for",),
    ),
    Mutant(
        "packed-whatever-it-is",
        promise=5,
        breaks="A directory that does not verify is packed.",
        file="store/bundle/pack.py",
        old="                _refuse_unfit(recording, verify(recording, reading=Reading(recording, rows=row)))",
        new="                verify(recording, reading=Reading(recording, rows=row))",
        tests=(f"{ROWS}test_what_does_not_verify_is_packed_nowhere",),
    ),
    Mutant(
        "blocks-that-lean-on-others",
        promise=7,
        breaks="A block of a bundle's log is not flushed whole at its border.",
        file="store/bundle/squeeze.py",
        old="zlib.Z_FULL_FLUSH",
        new="zlib.Z_PARTIAL_FLUSH",
        tests=(f"{ROWS}test_blocks_that_are_deflated_side_by_side_are_one_stream",),
    ),
    Mutant(
        "listed-whatever-was-published-since",
        promise=7,
        breaks="The catalogue is believed although the published result has changed.",
        file="store/listed.py",
        old="c.st_ino, c.st_ctime_ns]",
        new="c.st_ino, 0]",
        tests=(f"{CHANGED}[a byte of the result]",),
    ),
    Mutant(
        "listed-whatever-the-seal-says",
        promise=7,
        breaks="The catalogue is believed although the manifest has changed.",
        file="store/listed.py",
        old="b.st_ino, b.st_ctime_ns, ",
        new="b.st_ino, 0, ",
        tests=(f"{CHANGED}[a byte of the manifest]",),
    ),
    Mutant(
        "listed-although-contained",
        promise=9,
        breaks="The catalogue is believed of a run that was contained since.",
        file="store/listed.py",
        old="a.st_ino, a.st_ctime_ns, ",
        new="a.st_ino, 0, ",
        tests=(f"{CHANGED}[contained, and killed before it was moved]",),
    ),
    Mutant(
        "listed-in-the-same-tick",
        promise=7,
        breaks="A run is kept that may change again in the tick of its last change.",
        file="store/listed.py",
        old=" and max(stamps[1::2]) < self._before",
        new="",
        tests=(f"{LISTED}test_what_changes_in_the_same_tick_is_not_remembered",),
    ),
    Mutant(
        "catalogue-behind-a-containment",
        promise=9,
        breaks="What was listed of a run stays on the disk when the run is contained for a secret.",
        file="store/forget/contain.py",
        old="            listed.forget([run.parent])",
        new="            pass",
        tests=(f"{LISTED}test_what_leaves_the_store_leaves_the_catalogue",),
    ),
    Mutant(
        "catalogue-over-a-containment",
        promise=9,
        breaks="A list that was begun before a containment writes down what it read then.",
        file="store/listed.py",
        old=" for run, line in self._held.items() if self._holds(run, line)}",
        new=" for run, line in self._held.items()}",
        tests=(f"{LISTED}test_a_run_that_is_contained_while_a_list_is_made_is_not_written_down",),
    ),
    Mutant(
        "damaged-catalogue-believed",
        promise=7,
        breaks="A catalogue is read whose check sum does not fit.",
        file="store/listed.py",
        old="    if head != begin + ",
        new="    if head == begin + ",
        tests=(f"{LISTED}test_a_second_list_opens_no_run_and_is_the_same",),
    ),
    Mutant(
        "answers-out-of-order",
        promise=6,
        breaks="An answer leaves at once although the record has another leave before it.",
        file="engine/order.py",
        old="            if exchange.call in self._waiting or not self._may_leave(exchange):\n",
        new="            if exchange.call in self._waiting:\n",
        tests=(f"{SERVING}test_an_answer_that_leaves_at_once_lets_go_of_those_that_wait_for_it",),
    ),
)
