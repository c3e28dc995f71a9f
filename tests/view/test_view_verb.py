"""`worldline view` as a user has it: one line with an address, a browser that is led there, an end with Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from worldline.store.bundle.pack import pack
from worldline.store.recording import Recording

VIEW = (sys.executable, "-m", "worldline", "view")


def environment(**more: str) -> dict[str, str]:
    """Without a display, whoever runs the tests."""
    left_out = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return {**{name: value for name, value in os.environ.items() if name not in left_out}, **more}


@contextmanager
def viewing(*words: str, **more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address that it prints, and the process; ended with Ctrl-C."""
    process = subprocess.Popen(
        [*VIEW, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**more)
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        if line == "{\n":
            said = json.loads(line + "".join(iter(process.stdout.readline, "}\n")) + "}")
            assert said["pid"] == process.pid
            url = said["url"]
        else:
            url = next(word for word in line.split() if word.startswith("http://"))
        yield url, process
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert process.stderr.read() == "" and process.stdout.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def get(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def failed(*words: str) -> tuple[int, str]:
    done = subprocess.run([*VIEW, *words, "--no-open"], capture_output=True, text=True, env=environment(), check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_a_run_two_runs_a_store_and_a_folder_of_bundles(sealed: Path, tmp_path: Path) -> None:
    pack(Recording(sealed), tmp_path / "run.skn")
    run, store = Recording(sealed).run_id, str(sealed.parent.parent)
    for words, mode, count in (
        ((run[-6:], "--store", store), "run", 1),
        ((str(tmp_path / "run.skn"), "--json"), "run", 1),
        ((str(sealed), str(tmp_path / "run.skn")), "compare", 2),
        ((store,), "runs", 0),
        ((str(tmp_path),), "runs", 0),
    ):
        with viewing(*words) as (url, _):
            session = get(url + "api/session")
            assert (session["mode"], len(session["runs"])) == (mode, count), words
            if mode == "runs":
                assert get(url + "api/runs")["total"] == 1
            else:
                assert get(f"{url}r/{session['runs'][0]}/about")["task"] == "look around"


def test_a_browser_is_led_to_the_page_once_and_its_command_line_holds_no_token(sealed: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o755)
    with viewing(str(sealed), BROWSER=f"{browser} %s") as (url, _):
        address = opened.read_text()
        token = url.rstrip("/").rpartition("/")[2]
        assert token not in address
        with urllib.request.urlopen(address) as page:
            assert page.geturl() == url and b"<title>Worldline</title>" in page.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address)


def test_without_a_display_or_with_no_open_nothing_is_opened(sealed: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\ntouch {tmp_path}/opened\n")
    browser.chmod(0o755)
    with viewing(str(sealed), "--no-open", BROWSER=f"{browser} %s") as (url, _):
        get(url + "api/session")
    assert not (tmp_path / "opened").exists()


def test_a_run_that_is_being_recorded_is_found_by_that(writer: Any) -> None:
    store = str(writer.store)
    with viewing("--live", "--store", store) as (url, _):
        session = get(url + "api/session")
        assert session["runs"] == [writer.run] and get(f"{url}r/{writer.run}/about")["kind"] == "live"
    writer.do("sealed", seal=True)
    code, said = failed("--live", "--store", store)
    assert code == 64 and "nothing is being recorded" in said
    code, said = failed(writer.run, "--live", "--store", store)
    assert code == 64 and "leave --live out" in said


def test_what_cannot_be_shown_is_one_line(sealed: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "no.skn").write_bytes(b"PK\x03\x04")
    for words, code, part in (
        (("nosuch",), 64, "no run 'nosuch'"),
        ((str(tmp_path / "gone.skn"),), 64, "no recording at"),
        ((str(tmp_path / "no.skn"),), 64, "no bundle"),
        ((str(tmp_path / "empty"),), 64, "no recording"),
        ((str(sealed), str(sealed), str(sealed)), 64, "two runs are compared"),
        ((str(sealed), "--port", "70000"), 64, "70000"),
    ):
        got, said = failed(*words)
        assert (got, part in said, said.count("\n")) == (code, True, 1), said


def test_a_port_that_is_taken_is_said_to_be(sealed: Path) -> None:
    with viewing(str(sealed)) as (url, _):
        port = url.split(":")[2].partition("/")[0]
        code, said = failed(str(sealed), "--port", port)
        assert code == 4 and port in said and "taken" in said
