"""A folder of recordings replayed against the agent as it is now: each is judged, none left out, and CI can read it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.terminal import ANEW, environment, worldline
from worldline.testing.provider import Provider

AGENT = """import json, os, sys
from urllib.request import Request, urlopen
print("what nobody wants to see in a report")
for number in range(2):
    asked = {"model": "m", "messages": [{"role": "user", "content": f"{sys.argv[1]}, part {number}"}]}
    head = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    urlopen(Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(asked).encode(), head)).read()
"""
STORE = Path("history")


def changed(old: str, new: str) -> None:
    Path("agent.py").write_text(AGENT.replace(old, new))


@pytest.fixture
def recorded(provider: Provider) -> list[str]:
    """The bundle of a run and two more runs, each made with words of its own. Gives their ids, oldest first."""
    Path("agent.py").write_text(AGENT)
    for task in ("one", "two", "three\x01<&"):
        env = environment(provider)
        command = [sys.executable, "agent.py", task]
        ended = worldline("record", "--out", STORE, "--task", task, "--", *command, env=env)
        assert ended.code == 0, ended.err
    ids = sorted(entry["run"] for entry in worldline("list", STORE, "--json").json)
    assert worldline("pack", ids[0], "--store", STORE, "--output", STORE / "first.skn").code == 0
    shutil.rmtree(STORE / ids[0])
    return ids


def test_each_is_judged_by_its_own_command_and_the_worst_is_the_exit_code(recorded: list[str]) -> None:
    same = worldline("replay", STORE, "--all", "--own-command")
    assert same.code == 0, same.out
    assert "3 of 3 recordings equivalent" in same.out and "nobody wants" not in same.out + same.err
    changed("part {number}", "part {number + (number == 1 and sys.argv[1] == 'two')}")
    report = Path("report.xml")
    one = worldline("replay", STORE, "--all", "--own-command", "--junit", report)
    assert one.code == 1 and "2 of 3 recordings equivalent   1 diverged" in one.out, one.out
    told = worldline("replay", STORE, "--all", "--own-command", "--json")
    assert told.code == 1 and told.json["counts"] == {"equivalent": 2, "diverged": 1}
    assert [(each["run"], each["verdict"], each["step"]) for each in told.json["runs"]] == [
        (recorded[0], "equivalent", None),
        (recorded[1], "diverged", 1),
        (recorded[2], "equivalent", None),
    ]
    suite = ElementTree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    failures = [(case.get("name"), wrong) for case in suite for wrong in case]
    assert len(failures) == 1 and str(failures[0][0]).startswith("two (")
    assert failures[0][1].get("message") == "diverged at step 1" and "two, part 2" in str(failures[0][1].text)


def test_one_command_for_all_meets_what_each_run_asked(recorded: list[str]) -> None:
    came = worldline("replay", STORE, "--all", "--json", "--", sys.executable, "agent.py", "two")
    assert came.code == 1 and [each["verdict"] for each in came.json["runs"]] == ["diverged", "equivalent", "diverged"]
    rebuilt = worldline("replay", STORE, "--all", "--json")  # nothing runs: what each asked is rebuilt
    assert (rebuilt.code, rebuilt.json["level"], rebuilt.json["counts"]) == (0, "L0", {"equivalent": 3})


def test_what_cannot_be_replayed_stops_none_of_the_others(recorded: list[str]) -> None:
    (log,) = (STORE / recorded[2]).rglob("000000.jsonl")
    log.write_bytes(log.read_bytes().replace(b"<&, part 1", b"<&, part 7"))
    Path("agent.py").rename("moved.py")
    came = worldline("replay", STORE, "--all", "--json", "--", sys.executable, "moved.py", "two")
    assert [each["verdict"] for each in came.json["runs"]] == ["diverged", "equivalent", "ineligible"]
    assert came.code == 1 and "does not verify: changed at row " in came.json["runs"][2]["why"], came.json["runs"][2]
    # Where the program does not even begin, its own words say why.
    gone = worldline("replay", STORE, "--all", "--own-command")
    assert gone.code == 1 and gone.out.count("the command ended with 2: ") == 2 and "agent.py" in gone.out, gone.out


def test_the_words_of_a_command_have_their_secrets_back_and_what_it_says_has_none(provider: Provider) -> None:
    Path("agent.py").write_text(AGENT + "print('no ' + sys.argv[1], file=sys.stderr)\nsys.exit(len(sys.argv) - 2)\n")
    secret = "first-line-of-it\nsecond-line-of-it"
    env = environment(provider, TOK=secret)
    command = [sys.executable, "agent.py", secret]
    assert worldline("record", "--out", STORE, "--secret-env", "TOK", "--", *command, env=env).code == 0
    same = worldline("replay", STORE, "--all", "--own-command", env=environment(TOK=secret))
    assert same.code == 0 and "1 of 1 recording equivalent" in same.out, same.out
    without = worldline("replay", STORE, "--all", "--own-command")
    assert without.code == 3 and "set the variable of that name" in without.out, without.out
    told = [*command, "more"]
    failed = worldline("replay", STORE, "--all", "--junit", "r.xml", "--", *told, env=environment(TOK=secret))
    assert failed.code == 1 and "the command ended with 1: no [secret:TOK]" in failed.out, failed.out
    assert "line-of-it" not in failed.out + Path("r.xml").read_text()


def test_an_interrupt_ends_all_of_it(recorded: list[str]) -> None:
    Path("agent.py").write_text("import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)\n")
    words = ["replay", STORE, "--all", "--json", "--", sys.executable, "agent.py"]
    came = worldline(*words, prefix=ANEW)
    assert came.code == 130, came.err
    assert came.json["interrupted_by"] == "SIGINT" and came.json["runs"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["empty", "--all"], "no recording to replay in empty"),
        (["missing", "--all"], "no folder missing"),
        ([".", "--junit", "x.xml"], "go with --all"),
        ([".", "--own-command"], "go with --all"),
        ([".", "--all", "--calibrate", "--", sys.executable], "no --calibrate"),
        ([".", "--all", "--own-command", "--", sys.executable], "one command, or --own-command"),
    ],
)
def test_a_check_of_nothing_is_an_error(words: list[str], said: str) -> None:
    Path("empty").mkdir()
    ended = worldline("replay", *words)
    assert ended.code == 64 and said in ended.complaint and ended.out == "", ended.err
