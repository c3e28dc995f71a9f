"""Faults in the quick looks of the vault, and in how a stream comes to its rows: secrets and borders show them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STRETCHES = "tests/store/test_stretches.py"
ROWS = "tests/engine/test_stream_rows.py"

MUTANTS = (
    Mutant(
        "stretch-one-too-long",
        9,
        "The quick look asks for a longer unbroken word than the shortest form has.",
        "store/secrets/scanner.py",
        "return Stretches(letters, min(lengths, default=least)), unbroken",
        "return Stretches(letters, min(lengths, default=least) + 1), unbroken",
        (f"{STRETCHES}::test_every_form_is_found_at_every_alignment_in_any_surroundings",),
    ),
    Mutant(
        "no-line-breaks",
        9,
        "The quick look takes no account of line breaks that part a form.",
        "store/secrets/scanner.py",
        'return self._breakable and (b"\\n" in data or b"\\r" in data or _PARTED.search(data) is not None)',
        "return False",
        (
            f"{STRETCHES}::test_the_quick_look_is_a_superset_of_the_exhaustive_search",
            "tests/engine/test_vault_forms.py::test_line_breaks_inside_an_encoding",
        ),
    ),
    Mutant(
        "no-indented-escaped-breaks",
        9,
        "Escaped line breaks with an indentation behind them count as none.",
        "store/secrets/scanner.py",
        'b"\\r" in data or _PARTED.search(data) is not None)',
        'b"\\r" in data)',
        (f"{STRETCHES}::test_the_quick_look_is_a_superset_of_the_exhaustive_search",),
    ),
    Mutant(
        "endings-at-one-alignment",
        9,
        "Of what a beginning of a secret may end with only every fourth place is known, so a window lets one go.",
        "store/secrets/scanner.py",
        'return frozenset(four for shift in range(4) for four in _words(strings[shift:], 4, "I"))',
        'return frozenset(four for shift in range(1) for four in _words(strings[shift:], 4, "I"))',
        (
            f"{STRETCHES}::test_what_may_still_become_a_secret_is_told_as_by_the_exhaustive_search",
            "tests/engine/test_vault.py::test_a_window_over_any_split_decides_as_over_the_whole",
        ),
    ),
    Mutant(
        "passwords-need-a-stretch",
        9,
        "Where no unbroken word is long the passwords in URLs are not looked for.",
        "store/secrets/vault.py",
        "return broken or (self._shapes and bool(shapes.passwords(part)))",
        "return broken",
        (f"{STRETCHES}::test_keys_are_found_where_the_rules_find_them_without_any_quick_look",),
    ),
    Mutant(
        "names-too-near",
        9,
        "The name that makes a value a key is looked for too few bytes before it.",
        "store/secrets/shapes.py",
        "_NEAR = 32",
        "_NEAR = 12",
        (f"{STRETCHES}::test_keys_are_found_where_the_rules_find_them_without_any_quick_look",),
    ),
    Mutant(
        "stop-waits-for-the-row",
        9,
        "Under the policy `stop` a secret in a stream is met only when the next row is due.",
        "engine/stream.py",
        "if self._is_due(now, self._waiting_bytes, len(self._waiting)) or self._at_once:",
        "if self._is_due(now, self._waiting_bytes, len(self._waiting)):",
        (f"{ROWS}::test_under_stop_a_secret_is_met_with_the_piece_in_which_it_comes",),
    ),
    Mutant(
        "times-of-the-row",
        6,
        "A piece that waited for its row has the time of the row, not that at which it came.",
        "engine/stream.py",
        "waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0",
        "waiting = [(data, when and clock.monotonic_ns()) for data, when in self._waiting]\n"
        "        self._waiting, self._waiting_bytes = [], 0",
        (f"{ROWS}::test_a_piece_after_100_ms_is_a_row_at_once_and_those_of_the_next_100_ms_are_one",),
    ),
    Mutant(
        "channels-forget-their-end",
        9,
        "What a channel holds back when its answer ends is not looked into.",
        "engine/assembled.py",
        "self._channels.pop(key).decide(last=True)",
        "self._channels.pop(key)",
        ("tests/engine/test_vault_assembled.py::test_in_a_text_and_in_arguments",),
    ),
)
