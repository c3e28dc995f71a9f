"""The catalogue of mutants stays runnable: each can be planted in today's code, and the tests that it names exist."""

from __future__ import annotations

import re

from tests.mutants.mutant import ROOT, catalogue


def test_every_mutant_can_be_planted_and_names_tests_that_there_are() -> None:
    wrong = []
    for area, mutants in catalogue().items():
        for mutant in mutants:
            try:
                mutant.planted()
            except ValueError as error:
                wrong.append(f"{area}: {error}")
            for test in mutant.tests:
                file, _, name = test.partition("::")
                function = re.split(r"[\[:]", name.split("::")[-1])[0]
                if not (ROOT / file).is_file() or f"def {function}(" not in (ROOT / file).read_text(encoding="utf-8"):
                    wrong.append(f"{area}: {mutant.name} names a test that there is none of: {test}")
    assert not wrong, "\n".join(wrong)
