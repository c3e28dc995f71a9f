"""The suite's own machinery: it goes on where it was broken off, judges by the truth, and says what it misses."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest

from benchmarks.attribution import __main__ as command
from benchmarks.attribution import figures, packages, suite
from benchmarks.attribution.families import BY_NAME, FAMILIES, SEED, case
from benchmarks.attribution.methods import METHODS, Answer, least_for_sure
from benchmarks.attribution.scoring import Cell, cells, judged

PLANS = [suite.Plan("last step", ("AND", "OR"), (20,), 30), suite.Plan("uniform", ("AND",), (20,), 20)]


def scored(journal: Path) -> tuple[list[object], str]:
    told = io.StringIO()
    found = suite.scores(PLANS, seed=SEED, jobs=2, journal=journal, tell=told)
    return [msgspec.to_builtins(score) for score in found], told.getvalue()


def test_a_suite_that_was_broken_off_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    whole, told = scored(tmp_path / "whole")
    assert len(whole) == 80 and "5 of 5 batches" in told
    assert [score["number"] for score in whole[:30]] == list(range(30))  # type: ignore[index]
    lines = [line for line in (tmp_path / "whole").read_text().splitlines() if line]
    (tmp_path / "broken").write_text("\n".join([lines[3], lines[0], lines[1][: len(lines[1]) // 2]]))
    again, told = scored(tmp_path / "broken")
    assert again == whole
    assert "2 of 5 batches are in" in told and "3 of 3 batches" in told
    assert scored(tmp_path / "broken") == (whole, "")


def test_what_other_code_has_measured_is_not_believed(tmp_path: Path) -> None:
    whole, _ = scored(tmp_path / "journal")
    lines = (tmp_path / "journal").read_text().replace(suite.digest("uniform"), "0" * 24)
    (tmp_path / "journal").write_text(lines)
    again, told = scored(tmp_path / "journal")
    assert again == whole and "5 of 5 batches" in told
    assert suite.digest("locate") != suite.digest("uniform") == suite.digest("last step")


def test_an_answer_is_judged_by_the_truth() -> None:
    found = case(BY_NAME["OR"], 20, number=0)
    drops = found.truth.drops
    best = max(range(20), key=drops.__getitem__)
    idle = next(step for step in range(20) if not drops[step] and step not in (best - 1, best + 1))
    right = Answer(best, "decisive", (best,), ((best, (0.0, 1.0)), (idle, (-0.1, 0.1))), (best, best + 1), 100, 900)
    score = judged(found, 0, "locate", right)
    assert (score.exact, score.near, score.false, score.covered, score.together, score.inside) == (
        *(True, True, False),
        *(True, True, True),
    )
    wrong = right._replace(step=idle, claims=(best, idle), intervals=((idle, (0.1, 0.2)), (best, (0.0, 1.0))))
    score = judged(found, 0, "locate", wrong)
    assert (score.exact, score.near, score.false, score.covered, score.together) == (False, False, True, False, False)
    beside = judged(found, 0, "locate", Answer(best + 1, "named"))
    assert (beside.exact, beside.near, beside.claimed, beside.covered) == (False, True, False, None)


def test_a_missed_limit_is_said_and_a_kept_one_is_not() -> None:
    found = case(BY_NAME["AND"], 50, number=0)
    drops = found.truth.drops
    best = max(range(50), key=drops.__getitem__)
    good = judged(
        found, 0, "locate", Answer(best, "decisive", (best,), ((best, (0.0, 1.0)),), (best, best + 1), 300, 9)
    )
    bad = judged(found, 0, "locate", Answer(0, "decisive", (0,), ((0, (0.5, 1.0)),), (0, 1), 500, 9))
    [kept] = cells([good] * 100)
    [broken] = cells([good] * 80 + [bad] * 20)
    assert figures.missed(kept) == "" and figures.missed(broken) == "**exact, coverage**"
    assert "**missed**" not in figures.target_table([kept])
    table = figures.target_table([broken])
    assert "| T=50, 1 planted families: exact, mean | 0.800 | ≥ 0.970 | **missed** |" in table
    assert "| interval coverage, the worst cell | 0.800 | ≥ 0.930 | **missed** |" in table
    assert "right, all families with a planted fault | 0.800 | ≥ 0.995 | **missed** |" in table
    assert figures.missed(msgspec.structs.replace(broken, runs=40)) == "", "40 runs say nothing about 93 in 100"
    flat: Cell = msgspec.structs.replace(kept, family="flat .05", false=0.06)
    assert figures.missed(flat) == "**false claims**"
    assert "0.060 | ≤ 0.050 | **missed**" in figures.target_table([flat])


def test_the_plans_ask_about_every_family_and_every_method() -> None:
    for plans in (suite.full(200), suite.smoke()):
        asked = {(plan.method, family) for plan in plans for family in plan.families}
        assert {family for method, family in asked if method == "locate"} == {family.name for family in FAMILIES}
    assert {plan.method for plan in suite.full(200)} >= set(METHODS)
    assert [least_for_sure(each) for each in (20, 50, 100)] == [4, 4, 4]


def test_the_page_takes_whole_measurements_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = ["--journal", str(tmp_path / "journal")]
    page = command.document.PAGE.read_bytes()
    for part in (["--write"], ["--write", "--full", "--only", "AND"], ["--write", "--full", "--method", "uniform"]):
        with pytest.raises(SystemExit) as refused:
            command.main([*part, *journal])
        assert refused.value.code == 2
    assert command.main(["--only", "no such family", *journal]) == 64
    capsys.readouterr()
    assert command.main(["--only", "AND", "--method", "last step", "--json", *journal]) == 0
    [cell] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (cell["family"], cell["method"], cell["runs"], cell["false"]) == ("AND", "last step", 40, 1.0)
    assert command.document.PAGE.read_bytes() == page
    text = page.decode()
    assert text.count(command.BEGIN) == text.count(command.END) == 1


@pytest.mark.parametrize("name", list(packages.MODULES))
def test_a_package_that_is_not_here_is_named(name: str) -> None:
    here = any(method.startswith(name) for method in packages.asked_of())
    assert here != any(missing.startswith(name) for missing in packages.missing())
