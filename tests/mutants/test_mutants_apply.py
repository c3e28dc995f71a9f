"""Every mutant can still be planted: what it replaces is there once, the result compiles, its tests exist."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

import pytest

from tests.mutants.mutant import ROOT, SOURCE, Mutant, catalogue

MUTANTS = [mutant for mutants in catalogue().values() for mutant in mutants]


@cache
def defined_in(file: str) -> frozenset[str]:
    """The tests of a file, as their node ids name them: `test_x`, `TestY`, `TestY::test_z`."""
    names = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else []
        for prefix, each in [("", node), *((f"{getattr(node, 'name', '')}::", each) for each in inner)]:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(prefix + each.name)
    return frozenset(names)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_applies(mutant: Mutant) -> None:
    path = SOURCE / "worldline" / mutant.file
    planted = compile(mutant.planted(), str(path), "exec", dont_inherit=True)
    assert planted != compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)
    assert 1 <= mutant.promise <= 10 and mutant.breaks and mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file(), test
        if name:
            assert name.partition("[")[0] in defined_in(file), test


def test_no_name_stands_for_two() -> None:
    areas = list(catalogue())
    assert max(Counter([*areas, *(mutant.name for mutant in MUTANTS)]).values()) == 1


def test_every_promise_has_a_mutant() -> None:
    assert {mutant.promise for mutant in MUTANTS} == set(range(1, 11))
