"""What a user is told of what expired: by `expire`, `show`, `verify`, `replay` and of a bundle, each with the date."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.store.forgetting import after, contents, here, names, recorded
from worldline.cli.main import cli
from worldline.engine import clock
from worldline.engine.replay import ReplayBoundary, inspect
from worldline.errors import ExpiryRefused, Ineligible
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.forget.availability import when
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.verify import verify


def say(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), standalone_mode=False)


def at(recording: Recording, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock stand so many seconds behind the seal."""
    monkeypatch.setattr(clock, "wall_ns", lambda: after(recording, seconds))


def test_the_verb_changes_nothing_without_now(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(quick / "runs")
    run, before = str(recording.run_directory), contents(quick)
    at(recording, 10, monkeypatch)
    early = say("expire", run, "--now")
    assert early.return_value == 0 and "no content due now" in early.output.replace("expired", "due")
    assert f"due {when(after(recording, 100))}" in early.output and f"due {when(after(recording, 50))}" in early.output
    at(recording, 60, monkeypatch)
    dry = say("expire", run)
    assert "4 contents (restricted" in dry.output and "--now" in dry.output
    assert contents(quick) == before
    report = json.loads(say("expire", run, "--json").output)
    assert (report["done"], len(report["due"]), len(report["later"])) == (False, 4, 4)
    assert report["retention"] == {"ordinary": 100, "restricted": 50} and contents(quick) == before
    (quick / "kept.json").write_bytes(
        before[f"runs/{recording.run_id}/{layout.ATTEMPTS}/{recording.attempt_id}/manifest.json"]
    )
    done = say("expire", run, "--now", "--manifest", str(quick / "kept.json"))
    assert "4 contents (restricted" in done.output and "expired" in done.output and "backups" in done.output
    assert here(recording) == names(recording, "ordinary")
    (quick / "kept.json").write_text("{}\n")
    refused = say("expire", run, "--now", "--manifest", str(quick / "kept.json"))
    assert isinstance(refused.exception, ExpiryRefused)


def test_what_is_missing_is_said_and_ends_with_1(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(quick / "runs")
    lost = min(names(recording, "ordinary"))
    layout.blob_path(recording.attempt, "ordinary", lost).unlink()
    at(recording, 1000, monkeypatch)
    said = say("expire", str(recording.run_directory), "--now")
    assert said.return_value == 1 and f"missing   {lost[:12]}" in said.output
    shown = say("show", str(recording.run_directory))
    assert "of 8 contents 7 expired, 1 missing" in shown.output
    assert f"worldline show {recording.path} still opens" in say("verify", str(recording.run_directory)).output


def test_show_and_verify_name_every_state(quick: Path) -> None:
    recording = recorded(quick / "runs")
    run = str(recording.run_directory)
    whole = json.loads(say("show", run, "--json").output)["contents"]
    assert [content["availability"] for content in whole] == ["available"] * 8
    assert "contents" not in say("show", run).output
    expire(recording, after(recording, 60), act=True)
    shown = say("show", run)
    assert f"of 8 contents 4 expired, since {when(after(recording, 50))}" in shown.output
    assert recording.manifest is not None
    for content, blob in zip(
        json.loads(say("show", run, "--json").output)["contents"], recording.manifest.blobs, strict=True
    ):
        assert [content[key] for key in ("name", "size", "type", "tier", "disposition")] == blob
        assert content["availability"] == ("expired" if content["tier"] == "restricted" else "available")
    verified = say("verify", run)
    assert verified.return_value == 0 and "4 here, 4 expired" in verified.output
    report = json.loads(say("verify", run, "--json").output)
    assert report["ok"] and report["verdicts"]["availability"] == "expired"
    assert report["facts"]["availability"]["expired"] == 4


def test_a_replay_of_what_expired_is_ineligible_with_the_date(quick: Path) -> None:
    recording = recorded(quick / "runs")
    assert inspect(recording).equivalent
    expire(recording, after(recording, 60), act=True)
    fresh = Recording(recording.attempt)
    reason = f"4 of its contents expired, since {when(after(recording, 50))}"
    found = inspect(fresh)
    assert found.verdict == "ineligible" and found.reasons[0].startswith(reason)
    with pytest.raises(Ineligible, match="4 of its contents expired"):
        ReplayBoundary(fresh)


def test_a_bundle_of_what_expired_carries_the_record(quick: Path) -> None:
    recording = recorded(quick / "runs")
    expire(recording, after(recording, 60), act=True)
    pack(Recording(recording.attempt), quick / "run.skn")
    packed = open_recording(quick / "run.skn")
    verification = verify(packed)
    assert verification.ok and verification.verdicts["availability"] == "expired"
    shown = json.loads(say("show", str(quick / "run.skn"), "--json").output)["contents"]
    assert Counter(content["availability"] for content in shown) == {"available": 4, "expired": 4}
    assert inspect(packed).verdict == "ineligible"
