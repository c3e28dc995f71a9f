"""However a run ends, its record says so: by a signal to the recorder, to the command, or with the recorder killed."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.terminal import TIMEOUT, agent, environment, worldline
from worldline.testing.provider import Provider


@contextmanager
def recording(provider: Provider, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A recorder whose command has had its answer and now waits."""
    command = [sys.executable, "-m", "worldline", "record", *words, "--", *agent("sleeper")]
    recorder = subprocess.Popen(
        command, env=environment(provider), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == "asked one\n"
        yield recorder
    finally:
        recorder.kill()
        recorder.communicate(timeout=TIMEOUT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_recorder_reaches_the_command_and_the_run_is_sealed_as_partial(
    provider: Provider, number: signal.Signals
) -> None:
    with recording(provider) as recorder:
        recorder.send_signal(number)
        _, err = recorder.communicate(timeout=TIMEOUT)
    assert recorder.returncode == 128 + number
    path = err.splitlines()[-1]
    assert worldline("verify", path).code == 0
    [entry] = worldline("list", "--json").json
    assert (entry["disposition"], entry["steps"], entry["outcome"]) == ("partial", 1, "failed")
    assert f"interrupted by {number.name}" in worldline("show", path).out
    # What it holds is a beginning: an agent that goes on behind it has not diverged.
    replayed = worldline("replay", path, "--json", "--", *agent("questions"))
    assert replayed.json["verdict"] == "diverged"  # it never asked
    again = worldline("replay", path, "--json")
    assert (again.code, again.json["verdict"]) == (0, "prefix-equivalent")


@pytest.mark.parametrize("name", ["KILL", "TERM"])
def test_a_command_killed_by_a_signal_is_a_complete_recording_that_says_so(name: str) -> None:
    ended = worldline("record", "--", "sh", "-c", f"kill -{name} $$")
    number = signal.Signals[f"SIG{name}"]
    assert ended.code == 128 + number
    assert worldline("verify", ended.last).code == 0
    [entry] = worldline("list", "--json").json
    assert (entry["disposition"], entry["outcome"]) == ("complete", "failed")
    shown = worldline("show", "latest", "--json").json
    assert (shown["exit"], shown["signal"]) == (128 + number, f"SIG{name}")


def test_a_killed_recorder_leaves_an_interrupted_run_that_opens_replays_and_goes_on(provider: Provider) -> None:
    with recording(provider, "--task", "one question") as recorder:
        [running] = worldline("list", "--json").json
        assert (running["disposition"], running["outcome"]) == ("running", None)
        recorder.send_signal(signal.SIGKILL)
        recorder.wait(TIMEOUT)
    [entry] = worldline("list", "--json").json
    assert (entry["disposition"], entry["outcome"], entry["task"]) == ("interrupted", None, "one question")
    shown = worldline("show", "latest")
    assert shown.code == 0
    assert "! interrupted   1 step   its writer died before sealing it" in shown.out.splitlines()
    verified = worldline("verify", "latest", "--json")
    assert (verified.code, verified.json["verdicts"]["publication"]) == (1, "unsealed")
    assert [problem["kind"] for problem in verified.json["problems"]] == ["unsealed"]
    assert worldline("replay", "latest", "--json").json["verdict"] == "prefix-equivalent"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path(".worldline").rglob("*") if path.is_file()}
    assert modes == {0o600}
    # The next attempt of the same run starts cleanly, beside what there is.
    before = {path: path.read_bytes() for path in Path(".worldline").rglob("*.jsonl")}
    next_one = worldline("record", "--continue", "latest", "--", *agent("questions"), "two", env=environment(provider))
    assert (next_one.code, next_one.out) == (0, "two\n")
    [entry_now] = worldline("list", "--json").json
    assert (entry_now["run"], entry_now["disposition"]) == (entry["run"], "complete")
    assert entry_now["session"] == worldline("show", "latest", "--json").json["session"]
    assert all(path.read_bytes() == data for path, data in before.items())


def test_continuing_a_complete_run_is_a_new_run_of_its_session() -> None:
    for words in ([], ["--continue", "latest"]):
        assert worldline("record", *words, "--", "true").code == 0
    first, second = worldline("list", "--json").json
    assert first["run"] != second["run"]
    assert first["session"] == second["session"]


def test_a_command_that_ends_at_once_is_a_whole_recording_of_no_steps() -> None:
    ended = worldline("record", "--", "echo", "hello")
    assert (ended.code, ended.out) == (0, "hello\n")
    assert worldline("verify", ended.last).code == 0
    assert "✓ succeeded   0 steps" in worldline("show", ended.last).out
    assert "nothing was recorded: the command did not use the base URLs" in ended.err
    replayed = worldline("replay", ended.last, "--", "echo", "hello")
    assert replayed.code == 3 and "there is nothing to compare" in replayed.out


def test_a_signal_that_comes_before_the_command_runs_is_passed_on_all_the_same() -> None:
    """The command itself signals its parent first thing; no run is left without its seal."""
    for _ in range(3):
        ended = worldline("record", "--", "sh", "-c", "kill -TERM $PPID; exec sleep 30")
        assert ended.code == 143
    states = [run["disposition"] for run in worldline("list", "--json").json]
    assert states == ["partial"] * 3
