"""What other programs rely on: the JSON of each verb, the exit codes, and which stream says what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Recorded
from tests.cli.terminal import ANEW, agent, clerks_model, environment, worldline
from worldline.testing.provider import Provider

VERBS = ["record", "list", "show", "verify", "sign", "prove", "replay", "reconcile", "gc"]
NOBODY = type(None)


def typed(value: dict[str, Any], **types: type | tuple[type, ...]) -> None:
    """Each key is there, with a value of exactly its type."""
    for key, kind in types.items():
        assert type(value[key]) in (kind if isinstance(kind, tuple) else (kind,)), (key, value[key])


def test_list(clerk: Recorded) -> None:
    worldline("record", "--", "true")
    newest, oldest = worldline("list", "--json").json
    for entry in (newest, oldest):
        typed(entry, run=str, path=str, task=(str, NOBODY), disposition=str, outcome=str)
        typed(entry, steps=int, started=float, seconds=float)
        assert worldline("verify", entry["path"]).code == 0
    assert (newest["task"], newest["steps"], newest["outcome"]) == (None, 0, "succeeded")
    assert (oldest["task"], oldest["steps"], oldest["disposition"]) == ("orders 812, 813", 3, "complete")
    assert worldline("list", ".worldline/runs", "--json").json == worldline("list", ".", "--json").json


def test_show(clerk: Recorded) -> None:
    shown = worldline("show", "latest", "--json").json
    typed(shown, run=str, attempt=str, session=str, path=str, task=str, disposition=str, outcome=str, exit=int)
    typed(shown, started=float, seconds=float, capture=str, agent=dict, coverage=dict, fingerprint=str, steps=list)
    assert (shown["reward"], shown["problems"]) == (None, [])
    assert shown["coverage"]["tools"] == {"recorded": {}, "outside": {"lookup_order": 2}, "unrecordable": {}}
    first, second, third = shown["steps"]
    assert [s["index"] for s in shown["steps"]] == [0, 1, 2]
    assert (first["model"], first["input_tokens"], first["output_tokens"]) == ("gpt-5", 1204, 96)
    assert [(c["id"], c["name"], c["arguments"], c["ran"], c["result"]) for c in first["calls"]] == [
        ("call_1", "lookup_order", '{"order":812}', "outside", "order 812: lamp, 2 pieces"),
        ("call_2", "lookup_order", '{"order":813}', "outside", "order 813: shade, 1 piece"),
    ]
    assert [second["text"], third["text"]] == ["Both are on their way.", "A lamp and a shade, on their way."]
    assert worldline("show", "latest", "--step", "1", "--json").json["steps"] == [second]


def test_verify(clerk: Recorded, tmp_path: Path) -> None:
    verified = worldline("verify", "latest", "--json")
    assert verified.code == 0
    assert verified.json["ok"] is True
    verdicts = {"structure": "ok", "evidence": "ok", "publication": "ok", "availability": "ok"}
    assert verified.json["verdicts"] == {**verdicts, "authenticity": "unsigned"}
    assert verified.json["problems"] == []
    [log] = (tmp_path / ".worldline").rglob("000000.jsonl")
    written = log.read_bytes()
    log.unlink()  # it is linked to the copy that other tests read
    log.write_bytes(written.replace(b"careful", b"careles"))
    damaged = worldline("verify", "latest", "--json")
    assert (damaged.code, damaged.json["ok"], damaged.json["verdicts"]["structure"]) == (1, False, "failed")
    for problem in damaged.json["problems"]:
        assert list(problem) == ["kind", "where", "detail"]
    first = damaged.json["problems"][0]
    assert first["kind"] == "changed"
    assert first["where"].startswith("row 1 (000000.jsonl, byte ")
    # What is good of it still opens; a replay is refused and says why.
    shown = worldline("show", "latest", "--json")
    assert (shown.code, len(shown.json["problems"])) == (0, 1)
    refused = worldline("replay", "latest", "--json", "--", "true")
    assert (refused.code, refused.json["verdict"]) == (3, "ineligible")
    assert "does not verify: changed at row 1" in refused.json["reasons"][0]


def test_replay(clerk: Recorded) -> None:
    keys = ["verdict", "divergence", "reasons", "served", "live", "projection"]
    inspected = worldline("replay", "latest", "--json")
    assert inspected.code == 0
    assert {key: inspected.json[key] for key in keys} == {
        "verdict": "equivalent",
        "divergence": None,
        "reasons": [],
        "served": 0,
        "live": 0,
        "projection": "worldline/1",
    }
    assert inspected.json["contexts"] == 3
    driven = worldline("replay", "latest", "--tools", "run", "--json", "--", *agent("clerk"))
    assert (driven.json["verdict"], driven.json["served"], driven.json["live"]) == ("equivalent", 3, 0)
    assert clerk.ended.out in driven.err  # the command's own output: not among the JSON
    ended_early = worldline("replay", "latest", "--tools", "run", "--json", "--", "true").json
    typed(ended_early["divergence"], kind=str, seq=int, call=str, path=str, recorded=str, actual=str)


def test_record_passes_the_commands_code_and_output_through_and_names_the_recording_last() -> None:
    script = "import sys; print('to stdout'); print('to stderr', file=sys.stderr); sys.exit(7)"
    ended = worldline("record", "--out", "runs", "--task", "Refund #812, now!", "--", sys.executable, "-c", script)
    assert (ended.code, ended.out) == (7, "to stdout\n")
    assert "to stderr" in ended.err
    assert Path(ended.last).is_file()
    assert Path(ended.last).name == "refund-812-now.json"
    assert worldline("verify", ended.last).code == 0
    as_json = worldline("record", "--out", "runs", "--json", "--", sys.executable, "-c", script)
    assert as_json.code == 7
    typed(as_json.json, run=str, path=str, disposition=str, steps=int, seconds=float, outcome=str, exit=int)
    assert (as_json.json["path"], as_json.json["exit"], as_json.json["task"]) == (as_json.last, 7, None)
    assert "to stdout" in as_json.err


def test_the_same_unchanged_agent_runs_plain_recorded_and_replayed(tmp_path: Path) -> None:
    """And nothing of it is recorded twice, although the proxy and the wrapper both hear it."""
    command = agent("joiner")
    with Provider(clerks_model) as provider:
        env = environment(provider)
        plain = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
        recorded = worldline("record", "--", *command, env=env)
        asked = len(provider.requests)
    assert recorded.code == 0, recorded.err
    assert recorded.out.splitlines()[0] == plain[0] == "Both are on their way."
    assert asked == 4
    ran = Path("ran.txt").read_text()
    replayed = worldline("replay", "latest", "--json", "--", *command)
    report = replayed.json
    assert (report["verdict"], report["live"]) == ("equivalent", 0), report
    assert report["served"] == 2 + 2 + 2  # decisions, tools, clock and seed
    assert recorded.out in replayed.err  # its clock and its chance too
    assert Path("ran.txt").read_text() == ran  # no tool ran again
    shown = worldline("show", "latest", "--json").json
    assert [len(step["decisions"]) for step in shown["steps"]] == [1, 1]
    assert (shown["coverage"]["decision"]["recorded"], shown["coverage"]["tools"]["outside"]) == (2, {})
    assert (shown["outcome"], shown["reward"]) == ("succeeded", 0.5)
    # Plain, it recorded itself; under `worldline record` and in the replay it opened no second run.
    assert [e["steps"] for e in worldline("list", "own", "--json").json] == [2]
    assert len(worldline("list", "--json").json) == 1
    assert "⛔ denied by money-over-50" in worldline("show", "latest").out
    # What it recorded by itself, without any proxy, replays under the command too.
    own = worldline("replay", str(next(Path("own").iterdir())), "--json", "--", *command)
    assert own.json["verdict"] == "equivalent", own.json


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_examples(verb: str) -> None:
    helped = worldline(verb, "--help" if verb != "show" else "-h", prefix=ANEW)
    assert (helped.code, helped.err) == (0, "")
    assert helped.out.startswith(f"Usage: worldline {verb} ")
    assert "Examples:" in helped.out
    assert f"  worldline {verb} " in helped.out
    assert "--json" in helped.out


def test_the_command_and_the_module_are_one() -> None:
    script = Path(sys.executable).parent / "worldline"
    for words in (["--version"], ["show", "nosuch"]):
        done = subprocess.run([script, *words], env=environment(), capture_output=True, text=True, check=False)
        module = worldline(*words, prefix=ANEW)
        assert (done.returncode, done.stdout, done.stderr) == (module.code, module.out, module.err)
    bare = worldline()
    assert bare.code == 64
    assert all(f"  {verb}" in bare.err for verb in VERBS)


def test_a_run_is_named_by_path_id_prefix_ending_or_latest(clerk: Recorded) -> None:
    run = clerk.shown["run"]
    [attempt] = Path(".worldline/runs", run, "trajectory/attempts").iterdir()
    names = [run, run[:-4], run.removeprefix("run_")[:12], run[-4:], "latest", f".worldline/runs/{run}", attempt]
    for name in names:
        assert worldline("verify", name, "--json").json["facts"]["run"] == run
