"""Faults in finding a row by its seq or its time."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TESTS = "tests/store/test_seek.py::"

MUTANTS = (
    Mutant(
        "seek-reads-all",
        7,
        "A row is sought from the beginning of the log on instead of by bisection.",
        "store/seek.py",
        "        first = self._next_row(0, self._source.size)\n",
        "        raise _NotWhole\n",
        (TESTS + "test_in_a_million_rows_at_most_24_reads_find_a_row",),
    ),
    Mutant(
        "seek-believes-the-row-behind",
        7,
        "The row behind the one that is found is believed to be what it says of itself.",
        "store/seek.py",
        "                _check(line, before)\n                break",
        "                break",
        (TESTS + "test_a_row_that_says_a_false_time_does_not_hide_another",),
    ),
    Mutant(
        "seek-takes-the-tail-twice",
        7,
        "A tail that became a chunk in the same moment counts as a further file.",
        "store/seek.py",
        "if tail is not None and all((state.st_dev, state.st_ino) != tail.inode for state in states):",
        "if tail is not None:",
        (TESTS + "test_a_tail_that_becomes_a_chunk_meanwhile_is_read_once",),
    ),
)
