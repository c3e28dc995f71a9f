"""The benchmarks run: each row gives a figure, or names the peer that is not installed. What they say is not judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

from benchmarks import page
from benchmarks.contests import CONTESTS
from benchmarks.measure import Result, Row, hold
from benchmarks.table import table
from tests.conftest import ROOT

PEERS = {"mcap", "mcap-zstd", "bare", "timefork", "langgraph", "agentrr", "OpenTelemetry", "vcrpy"}
PEERS |= {"trajectory-causal-attribution"}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=420,
    )


def test_every_row_that_needs_no_peer_is_measured() -> None:
    done = bench("--quick", "--json")
    assert done.returncode == 0, done.stderr
    found = {said["name"]: said for said in map(json.loads, done.stdout.splitlines())}
    assert len(found) == len(done.stdout.splitlines()), "two rows have one name"
    assert list(found) == [row.name for contest in CONTESTS for row in contest.rows]
    for said in found.values():
        missing = {name.removesuffix("-cpu") for name in said["missing"].split(", ")} if said["missing"] else set()
        assert missing <= PEERS, said
        assert missing or said["figure"] is not None, said
    assert found["verify-chain"]["figure"] > 0
    assert not any(Path().iterdir()), "it left something in the working directory"


def test_the_page_takes_no_part_of_a_measurement() -> None:
    before = page.PAGE.read_bytes()
    assert bench("--write", "--quick").returncode == 2
    assert bench("--write", "--only", "append").returncode == 2
    assert bench("--only", "no-such-row").returncode == 64
    assert page.PAGE.read_bytes() == before


def test_a_table_takes_the_place_of_the_one_before() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    once = page.with_table(text, "| one |")
    assert page.with_table(page.with_table(text, "| a |\n| b |"), "| one |") == once
    assert once.partition(page.BEGIN)[0] == text.partition(page.BEGIN)[0]
    assert once.partition(page.END)[2] == text.partition(page.END)[2]
    assert once.count("| one |") == 1


def test_a_missed_target_is_said() -> None:
    row = Row("row", "what", "ours", ("peer",), "peer", limit=1.2)
    assert "| 1.30x | ≤ 1.2x | **missed** |" in table([Result(row, 13.0, 10.0, 1.3)])
    assert "| 1.20x | ≤ 1.2x | met |" in table([Result(row, 12.0, 10.0, 1.2)])
    fast = row._replace(figure="rate", limit=50_000, at_least=True)
    assert "| 49,000 /s | ≥ 50,000 /s | **missed** |" in table([Result(fast, 20.4, None, 49_000.0)])
    assert "not measured" in table([Result(row, missing="peer")])


def test_sides_take_turns_and_the_first_round_does_not_count() -> None:
    turns: list[str] = []

    def work(name: str, figures: list[float]) -> float:
        turns.append(name)
        return figures[turns.count(name) - 1]

    contest = CONTESTS[0]._replace(
        prepare=lambda quick: nullcontext(
            {"a": lambda: work("a", [900, 3, 1, 2]), "b": lambda: work("b", [1, 1, 1, 1])}
        ),
        rows=(Row("row", "what", "a", ("b",)),),
        rounds=3,
    )
    (result,) = hold(contest, list(contest.rows), False, lambda said: None)
    assert turns == ["a", "b"] * 4
    assert result.figure == 2.0
