"""One unchanged program by itself, under `worldline record` and `worldline replay`: it joins and never doubles."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import worldline as wl
from tests.seams.agents.crossings import AGENTS, crossings, program, worldline

DIARY = (sys.executable, str(AGENTS / "diary.py"))


def test_the_same_file_runs_plain_recorded_and_replayed(tmp_path: Path) -> None:
    store, own = tmp_path / "runs", tmp_path / "own"
    recorded = worldline("record", "--out", str(store), "--", *DIARY, str(own))
    assert recorded.returncode == 0, recorded.stderr
    assert not own.exists(), "wl.record() under a recorder opened a second recording"
    [directory] = store.iterdir()
    assert len(list((directory / "trajectory" / "attempts").iterdir())) == 1
    run = wl.open(directory)
    assert [c.arguments["line"].split()[0] for c in crossings(run) if c.name == "append"] == [
        "parent",
        "first",
        "second",
        "third",
        "parent",
    ]
    assert run.verify().problems == []
    written = Path("diary.txt").read_text()
    assert written.count("\n") == 5

    replayed = worldline("replay", str(directory), "--json", "--", *DIARY, str(own))
    report = json.loads(replayed.stdout)
    assert (replayed.returncode, report["verdict"], report["live"]) == (0, "equivalent", 0), report
    assert replayed.stderr == recorded.stdout, "clock, ids and random numbers came out otherwise"
    assert Path("diary.txt").read_text() == written, "a recorded tool ran again"

    plain = program("diary.py", str(own))
    assert plain.returncode == 0 and len(list(own.iterdir())) == 1, plain.stderr
    assert plain.stdout.splitlines() != recorded.stdout.splitlines()
    assert len(plain.stdout.splitlines()) == 5


def test_the_steps_outcome_and_permissions_of_all_processes_are_in_the_one_run(tmp_path: Path) -> None:
    assert worldline("record", "--out", str(tmp_path / "runs"), "--", *DIARY, "unused").returncode == 0
    [directory] = (tmp_path / "runs").iterdir()
    run = wl.open(directory)
    assert [step.name for step in run.steps] == [
        "entry parent",
        "entry first",
        "entry second",
        "entry third",
        "entry parent again",
    ]
    assert all(step.permissions and step.calls for step in run.steps)
    assert (run.outcome, run.recording.summary["reward"], run.recording.summary["done"]) == ("succeeded", 0.5, True)


def test_a_replayed_program_in_process_joins_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def agent() -> None:
        with wl.record(tmp_path / "runs") as run:
            seen.append(f"{wl.now()} {wl.uuid()} {run.rng().random()} {run.mode}")

    agent()
    [directory] = (tmp_path / "runs").iterdir()
    assert wl.open(directory).replay(agent).equivalent
    assert len(list((tmp_path / "runs").iterdir())) == 1
    assert seen[1] == seen[0].replace("record", "replay")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/gone/", "http://127.0.0.1:9", "nonsense", "http://[::1"])
def test_a_run_that_cannot_be_reached_stops_the_program_with_one_line(tmp_path: Path, url: str) -> None:
    failed = program("diary.py", str(tmp_path / "own"), WORLDLINE_URL=url)
    assert failed.returncode != 0
    last = failed.stderr.strip().splitlines()[-1]
    assert last.startswith("worldline.errors.JoinError: ") and "WORLDLINE_URL" in last
    assert not (tmp_path / "own").exists(), "it must not record elsewhere what it was told to join"
    assert not Path("diary.txt").exists(), "what would cross unrecorded does not cross"


def test_a_stranger_without_the_token_is_refused(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        stranger = f"{run.url.rsplit('/', 2)[0]}/guessed/"
        failed = program("marking.py", str(tmp_path / "own"), "x", WORLDLINE_URL=stranger)
    assert failed.returncode != 0
    assert failed.stderr.strip().splitlines()[-1].startswith("worldline.errors.JoinError: ")
    assert run.path is not None and crossings(run.path) == []


def test_joining_a_run_that_does_not_hold_back_a_secret_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run froze its secrets when it began: to write one of ours there would be silent."""
    secret = "-".join(["token", "of", "the", "shop"])
    monkeypatch.setenv("SHOP_TOKEN", secret)
    with wl.record(tmp_path, secrets={os.environ["SHOP_TOKEN"]}):
        for declared in ({secret}, {"SHOP_TOKEN": secret}, {"its other name": secret}):
            with wl.record(secrets=declared):
                pass
    refused = pytest.raises(wl.WorldlineError, match=r"SHOP_TOKEN.*--secret-env")
    with wl.record(tmp_path), refused, wl.record(secrets={secret}):
        raise AssertionError("nothing may run unprotected")
