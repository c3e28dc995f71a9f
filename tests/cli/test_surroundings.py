"""A recorded command runs as it would plainly, whatever surrounds the recorder: outputs, signals, umask, bytes."""

from __future__ import annotations

import http.server
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import KEY, TIMEOUT, agent, environment, worldline
from worldline.testing.provider import Provider

RECORD = [sys.executable, "-m", "worldline", "record", "--out", "runs"]
COMMAND = ["--", "sh", "-c", "touch ran; exit 7"]


def record(*command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*RECORD, *command], env=environment(), timeout=TIMEOUT, check=False, **options)


def the_run() -> Any:
    [entry] = worldline("list", "runs", "--json").json
    return entry


@pytest.mark.parametrize("output", ["full", "closed", "unread"])
def test_nobody_hears_the_recorder_and_the_command_runs_all_the_same(output: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "wb") as full, os.fdopen(writer, "wb") as unread:
        options: dict[str, dict[str, Any]] = {
            "full": {"stderr": full},
            "unread": {"stderr": unread},
            "closed": {"preexec_fn": lambda: os.close(2)},
        }
        ended = record(*COMMAND, **options[output])
    assert (ended.returncode, Path("ran").exists()) == (7, True)
    assert (the_run()["disposition"], the_run()["outcome"]) == ("complete", "failed")


def test_a_result_that_no_disk_takes_does_not_hide_how_the_command_ended() -> None:
    with open("/dev/full", "wb") as full:
        ended = record("--json", *COMMAND, stdout=full, stderr=subprocess.PIPE)
        listed = subprocess.run(
            [*RECORD[:3], "list", "runs", "--json"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 7
    assert listed.returncode == 4
    assert b"Traceback" not in ended.stderr + listed.stderr
    assert listed.stderr.decode().startswith("worldline: No space left on device")


def test_with_json_the_commands_words_stay_out_of_the_result_where_there_is_no_stderr() -> None:
    ended = record("--json", "--", "echo", "words", stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2))
    assert ended.stdout.startswith(b"{") and b"words" not in ended.stdout


def test_an_exit_code_is_told_where_a_supervisor_ignores_the_end_of_children() -> None:
    ended = record(*COMMAND, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert (ended.returncode, the_run()["outcome"]) == (7, "failed")


def test_what_nohup_ignores_ends_neither_the_recorder_nor_the_command() -> None:
    command = "echo begun; read line; kill -HUP $$; echo survived"
    recorder = subprocess.Popen(
        [*RECORD, "--", "sh", "-c", command],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == b"begun\n"
    recorder.send_signal(signal.SIGHUP)
    out, _ = recorder.communicate(b"on\n", timeout=TIMEOUT)
    assert (recorder.returncode, out) == (0, b"survived\n")
    assert the_run()["disposition"] == "complete"


def test_bytes_that_are_no_text_are_shown_as_escapes_and_reach_the_command() -> None:
    odd = os.fsdecode(b"caf\xe9")
    ended = record("--task", odd, "--", "printf", "%s", odd, stdout=subprocess.PIPE)
    assert (ended.returncode, ended.stdout) == (0, b"caf\xe9")
    assert the_run()["task"] == "caf\\xe9"
    assert worldline("show", "latest", "--store", "runs").code == 0


@pytest.mark.parametrize("umask", [0o777, 0o277, 0o022])
def test_what_is_written_is_its_owners_whatever_the_umask(umask: int) -> None:
    ended = record(*COMMAND, umask=umask)
    assert ended.returncode == 7
    paths = list(Path("runs").rglob("*"))
    assert {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_dir()} == {0o700}
    assert {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_file()} == {0o600}


def test_a_user_without_a_home_can_list_and_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from worldline.store.catalog import default_store

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    (tmp_path / ".git").rmdir()
    assert default_store() == Path(".worldline/runs")


def test_every_provider_whose_base_can_be_set_is_heard_and_chosen_by_its_key_as_before() -> None:
    """The program asks the first one of which it finds a key, which on a replay must be the same one."""
    bases = {"AZURE_OPENAI": "AZURE_OPENAI_ENDPOINT", "MISTRAL": "MISTRAL_API_BASE", "OPENAI": "OPENAI_BASE_URL"}
    choosing = {
        'BASE = os.environ["OPENAI_BASE_URL"]': f"BASES = {json.dumps(bases)}\n"
        "NAME = next(name for name in BASES if name + '_API_KEY' in os.environ)\n"
        "BASE = os.environ[BASES[NAME]] + ('/v1' if NAME == 'AZURE_OPENAI' else '')",
        "os.environ['OPENAI_API_KEY']": "os.environ[NAME + '_API_KEY']",
    }
    plain = {name: value for name, value in environment().items() if name != "OPENAI_API_KEY"}
    command = agent("questions", choosing)
    for name, variable in bases.items():
        with Provider() as provider:
            base = provider.anthropic_url if name == "AZURE_OPENAI" else provider.openai_url
            there = plain | {variable: base, f"{name}_API_KEY": KEY}
            recorded = worldline("record", "--", *command, "one", env=there)
            assert (recorded.code, len(provider.requests)) == (0, 1), name
        assert worldline("show", "latest", "--json").json["coverage"]["decision"]["recorded"] == 1, name
        assert not subprocess.run(["grep", "-r", KEY, ".worldline"], capture_output=True, check=False).stdout
        here = plain | ({variable: "http://127.0.0.1:9"} if name == "AZURE_OPENAI" else {})
        replayed = worldline("replay", "latest", "--", *command, "one", env=here)
        assert (replayed.code, replayed.out.splitlines()[:1]) == (0, ["one"]), shlex.join(command)


class Other(http.server.BaseHTTPRequestHandler):
    """A server that is nobody's provider; `asked` counts."""

    asked = 0

    def do_GET(self) -> None:
        Other.asked += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """It says nothing."""


def test_nothing_goes_out_on_a_replay_and_what_would_is_named() -> None:
    """127.0.0.2 is this machine and no address that is let through: a client takes it for another one."""
    other = http.server.ThreadingHTTPServer(("127.0.0.2", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    address = f"127.0.0.2:{other.server_port}"
    command = [*agent("stray"), f"http://{address}/x", f"https://{address}/x"]
    try:
        with Provider() as provider:
            recorded = worldline("record", "--", *command, env=environment(provider))
        assert (recorded.code, recorded.out.split()) == (0, ["hello", "204", "URLError"])
        asked, away = Other.asked, environment() | {"NO_PROXY": "127.0.0.2"}
        ended = worldline("replay", "latest", "--", *command, env=away)
        assert (ended.code, Other.asked) == (0, asked) and ended.out.startswith("hello\nHTTPError\nURLError\n")
        assert ended.out.count(f"it asked for {address}, which is not in the record: refused") == 1
        ran = worldline("replay", "latest", "--tools", "run", "--", *command, env=away)
        assert (ran.code, Other.asked) == (0, asked + 1) and "which is not in the record" not in ran.out
    finally:
        other.shutdown()
        other.server_close()
