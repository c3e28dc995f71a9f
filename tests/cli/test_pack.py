"""`worldline pack` and what reads its files: what goes along is asked for, what stays here is said."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from tests.cli.conftest import Recorded
from tests.cli.terminal import worldline
from tests.store import rich


def test_a_run_is_packed_verified_and_shown_as_it_was(clerk: Recorded) -> None:
    ended = worldline("pack", "latest", "-o", "run.skn", "--json")
    assert ended.code == 0 and ended.json["path"] == "run.skn" and ended.json["withheld"] == []
    shown = worldline("show", "run.skn", "--json").json
    assert shown["steps"] == clerk.shown["steps"] and shown["fingerprint"] == clerk.shown["fingerprint"]
    for number, step in enumerate(shown["steps"]):
        assert worldline("show", "run.skn", "--step", str(number), "--json").json["steps"] == [step]
    beyond = worldline("show", "run.skn", "--step", "99")
    assert beyond.code == 64 and f"no step 99: the run has steps 0 to {len(shown['steps']) - 1}" in beyond.complaint
    assert worldline("pack", "latest", "-o", "run.skn").code == 64


def test_what_other_tools_read_goes_along_where_it_is_asked_for(clerk: Recorded) -> None:
    worldline("pack", "latest", "-o", "plain.skn")
    assert worldline("pack", "latest", "-o", "with.skn", "--with", "network,decisions").code == 0
    extra = set(zipfile.ZipFile("with.skn").namelist()) - set(zipfile.ZipFile("plain.skn").namelist())
    assert extra == {"decisions.jsonl", "network.jsonl"}
    lines = zipfile.ZipFile("with.skn").read("network.jsonl").splitlines()
    assert all(json.loads(line)["request"]["method"] == "POST" for line in lines) and lines
    verified = worldline("verify", "with.skn", "--json").json
    assert verified["ok"] and verified["facts"]["unsealed"] == []
    for names in ("decision", "", "decisions,,network"):
        refused = worldline("pack", "latest", "-o", "x.skn", "--with", names)
        assert refused.code == 64 and "decisions, network" in refused.complaint
    assert not Path("x.skn").exists()


def test_sharing_says_what_stayed_here_and_list_reads_bundles(tmp_path: Path) -> None:
    recording = rich.recorded(tmp_path / "runs")
    name = recording.run_id
    (tmp_path / "out").mkdir()
    shared = worldline("pack", name, "--store", "runs", "-o", "out/shared.skn", "--share")
    assert shared.code == 0 and "left out:" in shared.out and "restricted contents" in shared.out
    again = worldline("pack", "out/shared.skn", "-o", "out/again.skn", "--json").json
    assert len(again["withheld"]) >= 2
    (tmp_path / "out" / "broken.skn").write_bytes(b"PK\x03\x04 and no more")
    verified = worldline("verify", "out/shared.skn")
    assert verified.code == 0 and "withheld" in verified.out and "1 thumbnail" in verified.out
    listed = worldline("list", "out", "--json").json
    assert [(entry["path"], entry["disposition"]) for entry in listed] == [
        ("out/shared.skn", "complete"),
        ("out/again.skn", "complete"),
        ("out/broken.skn", "damaged"),
    ]
    assert listed[0]["task"] == "one of everything" and listed[0]["run"] == name
    table = worldline("list", "out").out
    assert "shared.skn" in table and "one of everything" in table
