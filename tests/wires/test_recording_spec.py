"""What a caller declares beyond the usual: restricted contents, retention, bounds. It is opt-in, to the byte."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

import worldline as wl
from worldline.errors import BoundReached, UsageError
from worldline.model.manifest import FORMAT
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.verify import verify
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

PRIVATE = "the patient in room nine has a rare condition"
ASKED = "please look up the person called Ada Quill"


def script(ask: Ask) -> Reply:
    if ask.tool_results:
        return Say(f"You should know that {PRIVATE}.")
    return Say("", [ToolCall("lookup", {"who": "Ada Quill"})])


@wl.tool(effect="pure")
def lookup(who: str) -> dict[str, str]:
    if who == "nobody":
        raise ValueError(f"{PRIVATE} is not {who}")
    return {"found": PRIVATE}


@wl.tool(effect="pure")
def weather() -> str:
    return "light rain over the harbour"


def agent() -> str:
    with openai.OpenAI(max_retries=0) as client:
        messages: list[Any] = [{"role": "user", "content": ASKED}]
        said = client.chat.completions.create(model="m", messages=messages).choices[0].message
        assert said.tool_calls
        messages += [
            {"role": "assistant", "tool_calls": [call.model_dump() for call in said.tool_calls]},
            {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": json.dumps(lookup("Ada Quill"))},
        ]
        with pytest.raises(ValueError, match="rare"):
            lookup("nobody")
        weather()
        with client.chat.completions.create(model="m", messages=messages, stream=True) as stream:
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream)


def recorded(spec: wl.RecordingSpec | None, monkeypatch: pytest.MonkeyPatch, store: str = "runs") -> Recording:
    with Provider(script) as provider, monkeypatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", provider.openai_url)
        patch.setenv("OPENAI_API_KEY", "not-a-real-" + "key")
        with wl.record(store, spec=spec) as run:
            patch.setenv("OPENAI_BASE_URL", run.proxy.openai)
            assert agent() == f"You should know that {PRIVATE}."
    assert run.path is not None
    return Recording(run.path)


def outside(attempt: Path, tier: str) -> Iterator[tuple[str, bytes]]:
    """Every file of an attempt but the contents of a tier."""
    for path in attempt.rglob("*"):
        name = str(path.relative_to(attempt))
        if path.is_file() and not name.startswith(f"{layout.BLOBS}/{tier}/"):
            yield name, path.read_bytes()


def replay(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> wl.ReplayReport:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-" + "key")
    return wl.open(str(recording.path)).replay(agent)


@pytest.mark.parametrize("rule", ["tool:look*", "field:found", "model"])
def test_restricted_content_and_every_digest_of_it_stays_in_its_tier(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(wl.RecordingSpec(restrict=(rule,)), monkeypatch)
    key = recording.tier_key
    assert key is not None and len(key) == 32
    restricted = [blob for blob in recording.manifest.blobs if blob[3] == layout.RESTRICTED]  # type: ignore[union-attr]
    contents = [recording.blob({"name": b[0], "type": b[2], "tier": b[3]}) for b in restricted]
    assert any(PRIVATE.encode() in content for content in contents) and {b[4] for b in restricted} == {
        "captured-restricted"
    }
    digests = {hashlib.sha256(content).hexdigest() for content in contents}
    for name, data in outside(recording.attempt, layout.RESTRICTED):
        assert ASKED.encode() not in data, name
        if rule != "model":
            assert PRIVATE.encode() not in data, name
        assert not [digest for digest in digests if digest.encode() in data], name
        assert key not in data and key.hex().encode() not in data
    assert verify(recording).ok
    assert b"light rain" in b"".join(event.raw for event in recording.events()), "an ordinary result stands in its row"
    assert wl.open(str(recording.path)).replay().equivalent, "level 0"
    assert replay(recording, monkeypatch).equivalent


def test_the_same_question_twice_has_keys_that_match_and_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = recorded(None, monkeypatch, "plain")
    first, second = (
        recorded(wl.RecordingSpec(restrict=("model", "tool:*")), monkeypatch, store) for store in ("first", "second")
    )
    # Keys, context hashes, links of context chains, digests of bodies: whatever could be compared.
    hashes = [
        {h for e in r.events() if e.seq for h in re.findall(rb"[0-9a-f]{32,64}", e.raw[:-75])}
        for r in (plain, first, second)
    ]
    assert len(hashes[0]) > 8 and len(hashes[1]) > 8
    assert not hashes[0] & hashes[1] and not hashes[1] & hashes[2]


@pytest.mark.parametrize(
    ("change", "verdict", "kind"),
    [("gone", "availability", "missing"), ("another", "evidence", "corrupt"), ("cut", "availability", "missing")],
)
def test_without_its_key_restricted_content_cannot_be_vouched_for(
    change: str, verdict: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(wl.RecordingSpec(restrict=("model",)), monkeypatch)
    path = layout.tier_key_path(recording.attempt)
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(os.urandom(32) if change == "another" else path.read_bytes()[:31])
    found = verify(Recording(recording.attempt))
    assert found.verdicts[verdict] in ("failed", kind) and {problem.kind for problem in found.problems} == {kind}
    assert wl.open(str(recording.path)).replay(agent).verdict == "ineligible"
    assert list(Recording(recording.attempt).events()), "its rows can be read all the same"


def test_a_key_that_came_to_name_nothing_is_no_stranger(tmp_path: Path) -> None:
    for spec, kinds in ((wl.RecordingSpec(restrict=("model",)), set()), (None, {"added"})):
        with wl.record("runs", spec=spec) as run:
            weather()
        assert run.path is not None
        recording = Recording(run.path)
        layout.make_private(layout.tier_key_path(recording.attempt).parent)
        layout.tier_key_path(recording.attempt).write_bytes(bytes(32))
        assert {problem.kind for problem in verify(Recording(recording.attempt)).problems} == kinds


def test_with_retention_every_content_stands_in_a_blob(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(
        wl.RecordingSpec(retention={"ordinary": 3600, "restricted": 60}, restrict=("tool:lookup",)), monkeypatch
    )
    assert recording.manifest is not None
    assert recording.manifest.retention == {"ordinary": 3600, "restricted": 60}
    rows = b"".join(event.raw for event in recording.events())
    for text in (ASKED, PRIVATE, "light rain", "Ada Quill", "You should know"):
        assert text.encode() not in rows
    assert {blob[3] for blob in recording.manifest.blobs} == set(layout.TIERS)
    assert verify(recording).ok and replay(recording, monkeypatch).equivalent


@pytest.mark.parametrize(
    "bounds", [wl.Bounds(rows=5), wl.Bounds(log_bytes=3000), wl.Bounds(content_bytes=1), wl.Bounds(seconds=1e-9)]
)
def test_a_recording_stops_cleanly_at_its_bound(bounds: wl.Bounds, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = wl.RecordingSpec(bounds=bounds, retention={"ordinary": 60} if bounds.content_bytes else {})
    with pytest.raises(BoundReached) as reached, wl.record("runs", spec=spec) as run:
        for _ in range(20):
            weather()
    assert run.path is not None
    recording = Recording(run.path)
    assert (recording.disposition, recording.manifest and recording.manifest.reason) == ("partial", str(reached.value))
    assert verify(recording).ok
    if bounds.rows:
        assert recording.manifest is not None and recording.manifest.rows == bounds.rows + 1, "the bound, and the end"
    replayed = wl.open(str(recording.path)).replay(lambda: [weather() for _ in range(20)])
    assert replayed.verdict == "prefix-equivalent" or not list(run_calls(recording))


def run_calls(recording: Recording) -> Iterator[str]:
    return (event.call for event in recording.events() if event.call)


def test_a_run_that_ends_at_its_bound_is_complete() -> None:
    with wl.record("runs", spec=wl.RecordingSpec(bounds=wl.Bounds(rows=3))) as run:
        weather()
    assert run.path is not None and Recording(run.path).disposition == "complete"


def test_past_a_bound_that_loses_the_run_goes_on_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = wl.RecordingSpec(bounds=wl.Bounds(content_bytes=100, past="loss"), retention={"ordinary": 60})
    recording = recorded(spec, monkeypatch)
    manifest = recording.manifest
    assert manifest is not None and manifest.disposition == "complete"
    assert manifest.coverage["losses"] == ["contents past 100 content_bytes"] and manifest.capabilities == ["L0"]
    [loss] = [event for event in recording.events() if event.name == "meta/loss"]
    assert (loss.data["bound"], loss.data["limit"]) == ("content_bytes", 100)
    late = [e for e in recording.events() if e.name == "observation/tool_result" and e.seq > loss.seq]
    assert late and all("$withheld" in e.data["result"] for e in late if "result" in e.data)
    assert verify(recording).ok
    refused = wl.open(str(recording.path)).replay(agent)
    assert refused.verdict == "ineligible" and "contents past 100" in refused.reasons[0]


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (wl.RecordingSpec(restrict=("everything",)), "no rule"),
        (wl.RecordingSpec(restrict=("tool:",)), "no rule"),
        (wl.RecordingSpec(retention={"secret": 5}), "retention is"),
        (wl.RecordingSpec(retention={"ordinary": -1}), "retention is"),
        (wl.RecordingSpec(bounds=wl.Bounds(rows=0)), "positive"),
        (wl.RecordingSpec(bounds=wl.Bounds(rows=9, past="loss")), "can only stop"),
        (wl.RecordingSpec(bounds=wl.Bounds(past="ignore")), "past is one of"),
        (wl.RecordingSpec(replay="L9"), "replay is one of"),
        (wl.RecordingSpec(writer="worldline/9"), "made for the writer"),
    ],
)
def test_a_spec_that_cannot_be_kept_is_refused_before_anything_is_written(
    spec: wl.RecordingSpec, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint), wl.record("runs", spec=spec):
        pass
    assert not list(Path("runs").glob("*")), "nothing is left"


def test_refs_cannot_promise_a_replay() -> None:
    with pytest.raises(UsageError, match="L1 needs"), wl.record("runs", capture="refs", spec=wl.RecordingSpec()):
        pass


def test_without_a_spec_nothing_of_a_record_changes() -> None:
    """The header's fields are those of the format before there were specs, in their order; with a spec, one more."""
    before = [
        *("format", "session", "run", "attempt", "nonce", "t0_wall", "t0_mono", "tz", "platform", "writer", "pid"),
        *("capture", "limits", "task", "agent", "environment", "parent", "continues", "origin", "secrets"),
        "durability",
    ]
    headers, keys = [], []
    for spec in (None, wl.RecordingSpec()):
        with wl.record("runs", spec=spec) as run:
            weather()
        assert run.path is not None
        recording = Recording(run.path)
        headers.append(json.loads(recording.header.raw)["data"])
        keys.append([event.keys["key"] for event in recording.events() if "key" in event.keys])
    assert list(headers[0]) == before and list(headers[1]) == [*before, "recording"]
    own = re.compile(r"^(session|run|attempt|nonce|t0_)")
    same = [json.dumps({k: v for k, v in h.items() if not own.match(k) and k != "recording"}) for h in headers]
    assert same[0] == same[1] and keys[0] == keys[1]
    assert headers[1]["recording"] == {
        "bounds": {"rows": None, "log_bytes": None, "content_bytes": None, "seconds": None, "past": "stop"},
        "replay": "L1",
        "restrict": [],
        "retention": {},
        "writer": FORMAT,
    }
