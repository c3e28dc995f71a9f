"""What a terminal shows and a pipe does not: colour beside a shape, lines cut at the width, Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

from tests.cli.conftest import Recorded
from tests.cli.terminal import TIMEOUT, agent, environment, worldline
from worldline.testing.provider import Provider

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
INTERRUPT = b"\x03"


def on_terminal(
    *words: str, columns: int = 80, env: dict[str, str] | None = None, interrupt_at: str = ""
) -> tuple[int, str]:
    """Run `worldline WORDS` on a terminal of its own; press Ctrl-C once `interrupt_at` is on the screen."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, columns))
    process = subprocess.Popen(
        [sys.executable, "-m", "worldline", *words],
        env=environment() if env is None else env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_sit_at_terminal,
    )
    os.close(theirs)
    screen = b""
    try:
        while data := _read(ours):
            screen += data
            if interrupt_at and interrupt_at.encode() in screen:
                interrupt_at = ""
                os.write(ours, INTERRUPT)
        return process.wait(TIMEOUT), screen.decode().replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _sit_at_terminal() -> None:
    """As a login gives it: the terminal is ours, and Ctrl-C is heard whoever started these tests in the background."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the last program has left the terminal
        return b""


def test_colour_never_comes_alone_and_a_pipe_gets_none(clerk: Recorded) -> None:
    for words in (["show", "latest"], ["verify", "latest"]):
        code, screen = on_terminal(*words, columns=300)
        piped = worldline(*words)
        assert code == piped.code
        assert COLOUR.search(screen)
        assert not COLOUR.search(piped.out)
        assert COLOUR.sub("", screen) == piped.out  # the marks say it all without their colour


def test_steps_and_lists_are_cut_at_the_width_of_the_terminal(clerk: Recorded) -> None:
    _, shown = on_terminal("show", "latest", columns=60)
    steps = [line for line in shown.splitlines() if re.match(r" +\d  gpt-5", line)]
    assert len(steps) == 3
    assert len(steps[0]) == 60
    assert steps[0].endswith("…")
    assert "lookup_order(order=813)  (ran outside)" in worldline("show", "latest").out
    _, listed = on_terminal("list", columns=40)
    heads, row, hint = COLOUR.sub("", listed).splitlines()
    assert (len(heads), heads.split()[:3], heads[-1]) == (40, ["run", "started", "state"], "…")
    assert len(row) == 40
    assert hint.split()[:3] == ["worldline", "show", clerk.shown["run"][-4:]]


def test_what_was_recorded_cannot_steer_the_terminal() -> None:
    task = "clear \x1b[2J and \x9b31m ring \x07 \u2028 end"
    assert worldline("record", "--task", task, "--", "true").code == 0
    for words in (["list"], ["show", "latest"]):
        told = worldline(*words)
        assert not set("\x1b\x9b\x07") & set(told.out)
        assert "\\x1b[2J" in told.out
    assert worldline("list", "--json").json[0]["task"] == task


def test_ctrl_c_ends_the_command_and_seals_what_there_is(provider: Provider) -> None:
    words = ["record", "--", *agent("sleeper")]
    code, screen = on_terminal(*words, env=environment(provider), interrupt_at="asked one")
    assert code == 130
    assert "KeyboardInterrupt" in screen  # the command's own word; the recorder has none
    path = screen.splitlines()[-1]
    assert Path(path).exists()
    assert worldline("verify", path).code == 0
    [entry] = worldline("list", "--json").json
    assert (entry["disposition"], entry["steps"]) == ("partial", 1)
    assert "interrupted by SIGINT" in worldline("show", "latest").out


def test_show_says_what_a_step_holds_in_full(clerk: Recorded) -> None:
    assert worldline("show", "latest", "--step", "0").out.splitlines() == [
        "step 0   seq 1   gpt-5   lane main",
        "  says        I look both up.",
        "  lookup_order   call_1   outside",
        '    arguments {"order":812}',
        "    result    order 812: lamp, 2 pieces",
        "  lookup_order   call_2   outside",
        '    arguments {"order":813}',
        "    result    order 813: shade, 1 piece",
    ]
    beyond = worldline("show", "latest", "--step", "3")
    assert (beyond.code, beyond.complaint) == (64, "no step 3: the run has steps 0 to 2")


def test_the_recorder_says_what_happened_and_what_to_type_next(clerk: Recorded) -> None:
    said = clerk.ended.err.splitlines()
    name = clerk.shown["run"][-4:]
    assert re.fullmatch(rf"● recording {name}   proxy 127\.0\.0\.1:\d+   1 secret held back", said[0])
    assert [line.split()[:2] for line in said[1:4]] == [["0", "gpt-5"], ["1", "gpt-5"], ["2", "gpt-5"]]
    took = r"(\d{1,4} ms|\d{1,3}\.\d s)"  # the unit is the machine's choice: below a second a run is told in ms
    assert re.fullmatch(rf"✓ succeeded   3 steps   {took}   1,412 tok   sealed, unsigned", said[4])
    assert said[5] == "! ran outside the recording: lookup_order x2; a replay would run them again"
    command, path = f"{sys.executable} clerk.py", said[7]
    again = f"worldline replay {path} --tools run -- {command}"  # refused without it: the tools ran outside
    assert said[6] == f"  worldline show {path}    worldline view {path}    {again}"


def test_an_empty_place_says_how_to_begin() -> None:
    told = worldline("list")
    assert (told.code, told.out) == (0, "no runs in .worldline/runs yet; `worldline record -- CMD` makes one\n")
    assert worldline("list", "--json").json == []
