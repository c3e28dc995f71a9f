"""What people get wrong, and what machines do: one clear line on stderr, the exit code, nothing lost, no traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Recorded
from tests.cli.terminal import Ended, agent, environment, worldline
from tests.conftest import require
from worldline.testing.provider import Provider

UPGRADE = """
import http.client, os, urllib.parse
url = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
connection = http.client.HTTPConnection(url.hostname, url.port)
wants = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x" * 24, "Sec-WebSocket-Version": "13"}
connection.request("GET", url.path + "/realtime", headers=wants)
print(connection.getresponse().status)
"""
OTHER_FORMAT = """
import worldline.model.manifest as manifest
manifest.FORMAT = "worldline/9"
from worldline.cli.main import main
main(["record", "--", "true"])
"""


def runs() -> list[Path]:
    return list(Path(".worldline/runs").iterdir()) if Path(".worldline/runs").exists() else []


def unprivileged() -> tuple[str, ...]:
    """What makes a command obey file permissions even where the tests run as root."""
    if os.geteuid() != 0:
        return ()
    require("setpriv", shutil.which("setpriv"), "root passes every permission, and nothing here can drop that")
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("restrict = [", "no recording spec: spec.toml: "),
        ("\xff", "no recording spec: spec.toml: "),
        ("restrikt = []", "no recording spec: spec.toml: Object contains unknown field `restrikt`"),
        ("restrict = 5", "no recording spec: spec.toml: Expected `array`, got `int` - at `$.restrict`"),
        ('retention = { ordinary = "soon" }', "no recording spec: spec.toml: 'soon' is no age; write hours, days or"),
        ("retention = { attic = 5 }", "recording spec: retention is whole seconds by tier (ordinary, restricted)"),
        ('[bounds]\nrows = 5\npast = "loss"', "recording spec: rows are never lost"),
        ('restrict = ["everything"]', "recording spec: no rule: 'everything'; write model, tool:NAME or field:NAME"),
    ],
)
def test_a_recording_spec_that_cannot_be_kept(text: str, complaint: str) -> None:
    Path("spec.toml").write_bytes(text.encode("latin-1"))
    ended = worldline("record", "--spec", "spec.toml", "--", "true")
    assert (ended.code, ended.out) == (64, "")
    assert ended.complaint.startswith(complaint), ended.complaint
    assert runs() == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["show", "runs/nosuch.json"], "no recording at runs/nosuch.json"),
        (["verify", "folder"], "folder is no recording; `worldline list folder` looks for some inside"),
        (["replay", "./file.txt"], "file.txt is no recording"),
        (["show", "nosuch"], "no run 'nosuch' in .worldline/runs (0 runs; `worldline list`)"),
        (["show", "latest"], "no runs in .worldline/runs yet; `worldline record -- CMD` makes one"),
        (["record", "--continue", "latest", "--", "true"], "no runs in .worldline/runs yet; "),
        (["list", "nosuch"], "no folder nosuch"),
        (["recrod", "--", "true"], "no verb 'recrod'; did you mean 'record'? (worldline --help)"),
        (["frobnicate"], "no verb 'frobnicate'; there are record, mcp, list, show, "),
        (["show", "--wrong", "latest"], "no such option '--wrong'"),
        (["record", "--"], "missing argument '-- CMD...' (worldline record --help)"),
        (["record", "--out", "file.txt", "--", "true"], "invalid value for '--out': Directory 'file.txt' is a file"),
        (["record", "--secrets", "ignore", "--", "true"], "invalid value for '--secrets': 'ignore' is not one of"),
        (["replay", "latest", "--tools", "maybe"], "invalid value for '--tools': 'maybe' is not one of"),
    ],
)
def test_asked_for_in_a_way_that_cannot_be_answered(words: list[str], complaint: str) -> None:
    Path("folder").mkdir()
    Path("file.txt").write_text("hello\n")
    ended = worldline(*words)
    assert (ended.code, ended.out) == (64, "")
    assert ended.complaint.startswith(complaint), ended.complaint
    assert runs() == []


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (["no-such-command"], "cannot start 'no-such-command': no such command"),
        (["./plain.txt"], "cannot start './plain.txt': it is not executable"),
        ([""], "cannot start '': no such command"),
        (["./"], "cannot start './': it is not executable"),
    ],
)
def test_a_command_that_cannot_start(clerk: Recorded, command: list[str], complaint: str) -> None:
    Path("plain.txt").write_text("hello\n")
    for words in (["record"], ["replay", "latest", "--tools", "run"]):
        ended = worldline(*words, "--", *command)
        assert (ended.code, ended.complaint) == (4, complaint)
    assert len(runs()) == 1  # the clerk's


def test_a_program_that_the_system_refuses_is_on_record_as_partial() -> None:
    Path("garbage").write_bytes(b"\x7fnot a program")
    Path("garbage").chmod(0o755)
    ended = worldline("record", "--", "./garbage")
    assert ended.code == 4
    assert "worldline: cannot start './garbage': Exec format error" in ended.err.splitlines()
    assert worldline("verify", ended.last).code == 0
    assert worldline("list", "--json").json[0]["disposition"] == "partial"


def test_a_port_in_use_leaves_nothing_behind(provider: Provider) -> None:
    ended = worldline("record", "--port", str(provider.port), "--", "true")
    assert ended.code == 4
    assert str(provider.port) in ended.complaint
    assert runs() == []


def test_an_ambiguous_prefix_names_the_candidates() -> None:
    for _ in range(2):
        worldline("record", "--", "true")
    ended = worldline("show", "run_0")
    assert (ended.code, ended.complaint[:30]) == (64, "2 runs begin with 'run_0': run")
    assert all(run.name in ended.complaint for run in runs())
    asked = worldline("show", "run_0", "--json")
    assert asked.json["error"]["kind"] == "ambiguous-run"


def test_a_newer_format_is_refused_by_name_and_listed_all_the_same() -> None:
    subprocess.run([sys.executable, "-c", OTHER_FORMAT], env=environment(), capture_output=True, check=True)
    for words in (["show", "latest"], ["verify", "latest"], ["replay", "latest"], ["replay", "latest", "--", "true"]):
        ended = worldline(*words)
        assert (ended.code, ended.out) == (3, "")
        assert "is in the format 'worldline/9', this version reads worldline/1; upgrade worldline" in ended.complaint
    assert worldline("list", "--json").json[0]["disposition"] == "complete"


def test_no_permission(clerk: Recorded) -> None:
    prefix = unprivileged()
    [run] = runs()
    run.chmod(0o000)
    try:
        for verb in ("show", "verify"):
            ended = worldline(verb, run, prefix=prefix)
            assert (ended.code, ended.out) == (4, "")
            assert ended.complaint.startswith(f"no permission for {run}")
    finally:
        run.chmod(0o700)
    closed = Path("closed")
    closed.mkdir(mode=0o500)
    ended = worldline("record", "--out", closed / "runs", "--", "touch", "started", prefix=prefix)
    assert (ended.code, ended.complaint) == (4, "cannot record into closed/runs: Permission denied")
    assert not Path("started").exists()


def test_a_store_inside_a_file() -> None:
    Path("file.txt").write_text("hello\n")
    ended = worldline("record", "--out", "file.txt/runs", "--", "true")
    assert ended.code == 4
    assert ended.complaint.startswith("cannot record into file.txt/runs: ")
    assert Path("file.txt").read_text() == "hello\n"


def test_an_upgrade_is_refused_told_and_makes_the_run_ineligible(provider: Provider) -> None:
    Path("talker.py").write_text(UPGRADE)
    recorded = worldline("record", "--", sys.executable, "talker.py", env=environment(provider))
    assert (recorded.code, recorded.out) == (0, "501\n")
    assert "! not recorded: a websocket connection to openai; it cannot be replayed" in recorded.err.splitlines()
    assert provider.requests == []
    ended = worldline("replay", "latest", "--json", "--", sys.executable, "talker.py")
    assert (ended.code, ended.json["verdict"]) == (3, "ineligible")
    assert ended.json["reasons"] == ["something crossed that was not recorded: a websocket connection to openai"]


def damaged(clerk: Recorded, harm: str) -> Ended:
    [log] = Path(".worldline").rglob("000000.jsonl")
    written = log.read_bytes()
    log.unlink()
    rows = written.splitlines(keepends=True)
    if harm == "a row in the middle":
        rows[1] = rows[1].replace(b"gpt-5", b"gpt-6")
    elif harm == "the first row":
        rows[0] = rows[0].replace(b"orders 812", b"orders 999")
    else:
        rows = [written[: len(written) * 2 // 3]]
    log.write_bytes(b"".join(rows))
    return worldline("verify", "latest")


@pytest.mark.parametrize("harm", ["a row in the middle", "the first row", "the end"])
def test_a_damaged_record_says_where_and_shows_what_is_good(clerk: Recorded, harm: str) -> None:
    verified = damaged(clerk, harm)
    assert (verified.code, verified.err) == (1, "")
    assert verified.out.startswith("✕ structure")
    assert "(000000.jsonl, byte " in verified.out
    assert verified.out.splitlines()[-1].endswith("still opens what is good of it")
    shown = worldline("show", "latest")
    assert shown.code == 0
    assert "✕ " in shown.out
    assert len(json.loads(worldline("show", "latest", "--json").out)["steps"]) >= 1
    refused = worldline("replay", "latest", "--", *agent("clerk"))
    assert (refused.code, refused.out.splitlines()[0]) == (3, "✕ ineligible")
    assert worldline("list").code == 0
