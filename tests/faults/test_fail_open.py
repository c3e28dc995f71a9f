"""A recording that fails open never ends its agent: what can't be written is not recorded, and nobody is deceived.

Wherever the disk fails, the agent makes every call once and ends by itself; what is on record is good as far as it
goes; and what may have happened behind it is never done again by itself.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openai import OpenAI

import worldline
from tests.faults.judged import clear, run_in, twice
from tests.faults.recorder_process import CALLS, RecorderServer
from worldline.cli.show_verb import GONE_ON
from worldline.engine.asking import Decision, Request
from worldline.engine.cassette import Cassette
from worldline.engine.eligibility import may_have_gone_on
from worldline.engine.fail_open import FailOpenBoundary
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.verify import verify
from worldline.testing.provider import Provider, Say

LET_AGAIN = '[[policy.rule]]\ntool = "pay"\noutcome = "unknown"\ndecision = "allow"\n'
PAYS = """
import pathlib, sys
import worldline
from worldline.errors import OutcomeUnknown
@worldline.tool(effect="side_effecting")
def pay(number):
    with pathlib.Path(sys.argv[1]).open("a") as paid:
        paid.write(f"{number}\\n")
    return str(number) + "x" * 3000
refused = 0
for number in range(60):
    try:
        pay(number)
    except OutcomeUnknown:
        refused += 1
print(f"the agent ended by itself, {refused} refused")
"""
BY_ITSELF = "the agent ended by itself, 0 refused\n"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_wherever_the_disk_fails_the_agent_goes_on_and_the_record_is_good_so_far(
    error: int, recorders: RecorderServer, quick: Path
) -> None:
    store, lost, ended = quick / "runs", set(), ""
    for number in range(1 + (error == errno.EIO), 400, 2):
        came = recorders.record(store, at=number, errno=error, fail_open=True)
        ended = judged(store, came.said("went_on"), came.lines)
        lost.update(came.said("lost"))
        clear(store)
        if ended == "sealed":
            break
    assert ended == "sealed" and lost == set(range(CALLS + 1)), lost


def judged(store: Path, made: list[str], lines: list[dict[str, object]]) -> str:
    """How one recording ended: `refused` before it began, `unsealed` where it lost something, or `sealed`."""
    said = {name: value for line in lines for name, value in line.items()}
    if not made:  # where no recording begins, there is an error before anything ran
        assert said["error"] in ("log-broken", "record-error") and "lost" not in said, lines
        return "refused"
    assert len(set(made)) == CALLS, lines
    run = run_in(store)
    assert run is not None
    if "sealed" in said and "error" not in said:
        recording = Recording(run)
        assert verify(recording).ok and not may_have_gone_on(recording) and said["lost"] == 0
        return "sealed"
    assert said["error"] == "log-broken" and said["why"] in (None, "log-broken"), lines
    twice(run)
    recording = Recording(run)
    if recording.published is not None:  # the last thing that failed came behind the publication
        return "published"
    assert verify(recording).ok and may_have_gone_on(recording)
    whole = [each for each in Cassette(recording).exchanges if each.finished is not None]
    assert len(whole) >= CALLS - int(str(said["lost"])), lines
    return "unsealed"


def command(store: Path, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "worldline", verb, "--store", str(store), *words], capture_output=True, text=True
    )


def test_a_command_ends_by_itself_on_a_full_disk_and_is_not_done_again_by_a_resume(
    small_disk: Path, tmp_path: Path
) -> None:
    store, paid, script, rules = small_disk / "runs", tmp_path / "paid", tmp_path / "pays.py", tmp_path / "rules.toml"
    script.write_text(PAYS)
    rules.write_text(LET_AGAIN)
    agent = ["--", sys.executable, str(script), str(paid)]
    came = command(store, "record", "--fail-open", *agent)
    assert (came.returncode, came.stdout) == (0, BY_ITSELF), came.stderr
    assert "the recording broke off and the command went on" in came.stderr and "No space left" in came.stderr
    assert paid.read_text().split() == [str(number) for number in range(60)]
    recorded = sum(
        exchange.finished is not None for exchange in Cassette(Recording(next(store.glob("run_*")))).exchanges
    )
    assert 10 < recorded < 60
    again = command(store, "record", "--fail-open", *agent)  # no recording begins, and the command runs all the same
    assert (again.returncode, again.stdout) == (0, BY_ITSELF), again.stderr
    assert again.stderr.count("\n") == 1 and "on no record" in again.stderr
    assert len(paid.read_text().split()) == 120
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    other = Path(shutil.copytree(store, tmp_path / "other"))
    assert GONE_ON in command(store, "show", "latest").stdout
    resumed = command(store, "resume", "latest", *agent)
    assert GONE_ON in command(store, "show", "latest").stdout, "also of the attempt that went on from it"
    assert resumed.stdout.startswith(f"the agent ended by itself, {60 - recorded} refused"), resumed.stdout
    assert "failed open and broke off" in resumed.stderr, resumed.stderr
    assert len(paid.read_text().split()) == 120, "a payment that nobody saw was made again"
    allowed = command(other, "resume", "latest", "--policy", str(rules), *agent)
    assert len(paid.read_text().split()) == 120 + 60 - recorded, allowed.stderr
    forked = command(store, "fork", "latest", "--at", "seq:20", *agent)
    assert forked.returncode == 0, forked.stderr
    assert GONE_ON not in command(store, "show", "latest").stdout, "what its parent did later is no part of a fork"


def test_in_process_a_streamed_answer_comes_whole_and_leaving_the_block_raises_nothing(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "".join(f"word {number} " for number in range(120))
    with Provider(lambda ask: Say(told)) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        heard = []
        with worldline.record(small_disk / "runs", fail_open=True) as run, run.wrap(OpenAI()) as client:
            for number in range(8):
                worldline.observe(f"{number}" * 20_000, src="terminal")
                asked = [{"role": "user", "content": f"{number}" * 20_000}]
                pieces = client.chat.completions.create(model="m", messages=asked, stream=True)  # type: ignore[call-overload]
                heard.append("".join(piece.choices[0].delta.content or "" for piece in pieces))
            worldline.outcome("succeeded")
            answer = worldline.ask("read", timeout=5.0, default="denied")
        assert heard == [told] * 8 and len(provider.requests) == 8
    assert not answer and answer.by == "nobody"
    recording = Recording(Path(str(run.path)))
    assert recording.manifest is None and recording.published is None and may_have_gone_on(recording)
    assert {damage.kind for damage in recording.damages} <= {"torn"}
    assert 0 < len([each for each in Cassette(recording).exchanges if each.finished is not None]) < 8


def test_an_answer_counts_whether_it_can_be_written_or_not(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who denied something must not find it granted by the default, because the disk was full."""
    recorder = Recorder(Spec(store=quick / "runs", fail_open=True))
    boundary = FailOpenBoundary(recorder)
    request = Request(id="c0", lane="main", capability="wire", facts={}, timeout=60.0, default="granted")
    with ThreadPoolExecutor(1) as agent:
        waiting = agent.submit(boundary.asks.ask, request)
        while not boundary.asks._open:
            time.sleep(0.005)
        (seq,) = boundary.asks._open

        def full(descriptor: int, data: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(layout, "write_all", full)
        boundary.asks.answer(seq, "denied", by="alice", reason="too much")
        assert waiting.result(60) == Decision("denied", "alice", "too much", waiting.result().waited)
        # What nobody can be asked any more has its default, at once.
        assert agent.submit(boundary.asks.ask, request).result(60).by == "nobody"
    assert boundary.losses.why is not None
    recorder.close()


def test_it_ends_what_a_run_declares_to_end_it_and_keeps_every_exit_code(tmp_path: Path) -> None:
    """A secret under `stop` is no failing disk; and where the store itself goes, the command's end is its own."""
    store = tmp_path / "runs"
    told = ["--fail-open", "--secrets", "stop", "--secret-env", "TOK", "--", "echo", "RAN", "supersecret-value-1"]
    os.environ["TOK"] = "supersecret-value-1"
    try:
        stopped = command(store, "record", *told)
    finally:
        del os.environ["TOK"]
    assert stopped.returncode == 4 and "RAN" not in stopped.stdout, stopped.stderr
    goes = f"import shutil; shutil.rmtree({str(store)!r}); raise SystemExit(7)"
    gone = command(store, "record", "--fail-open", "--json", "--", sys.executable, "-c", goes)
    assert gone.returncode == 7 and json.loads(gone.stdout)["lost"]["why"], gone.stderr
