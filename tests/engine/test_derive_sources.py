"""Sources of every kind: compressed, restricted, expired, withheld, broken off, of an older format."""

from __future__ import annotations

import gzip
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.engine.derived import (
    APIS,
    SECRET,
    assert_nowhere,
    cut,
    derived,
    digests,
    everything,
    exchange,
    files,
    good,
    history,
    rich,
    say,
    sealed,
    streamed,
)
from tests.engine.recorded import answer, decision, recorder_in
from tests.store import forgetting
from worldline.engine.cassette import Cassette
from worldline.engine.redact.rules import marker
from worldline.engine.replay import inspect
from worldline.engine.spec import RecordingSpec
from worldline.errors import NothingRemoved
from worldline.model.dialects import read_response
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.secrets.vault import forms
from worldline.store.verify import verify

HELD = "secret-env:HELD"
VALUE = "rosebud-" + "1941"


def text_of(target: Path) -> str:
    return b"".join(event.raw for event in good(target).events()).decode()


@pytest.mark.parametrize("api", APIS)
def test_compressed_bodies(tmp_path: Path, api: str) -> None:
    recorder, boundary = recorder_in(tmp_path / "s")
    plain = streamed(api, say(VALUE))
    headers = [["Content-Type", "text/event-stream"], ["Content-Encoding", "gzip"]]
    packed = gzip.compress(plain)
    answer(boundary, decision(name=api), cut(packed), "gzip", headers=headers)
    answer(boundary, decision(name=api), cut(gzip.compress(b"quiet")), "gzip", headers=headers)
    odd = [["Content-Encoding", "br"]]
    answer(boundary, decision(name=api), [b"\x8b\x02\x80" + VALUE.encode() + b"\x03"], "br", headers=odd)
    source = sealed(recorder)
    done = derived(source, tmp_path / "out.skn", HELD, value=VALUE)
    assert done.removed[HELD] >= 2 and done.removed["unreadable"] == 1
    assert_nowhere(tmp_path / "out.skn", VALUE)
    cassette = Cassette(good(tmp_path / "out.skn"))
    first, second, third = cassette.exchanges
    told = read_response(api, 200, "text/event-stream", cassette.readable(first))
    assert told is not None and told.complete and told.text == f"before {marker(HELD)} after"
    assert (cassette.readable(second), first.data["decoded"]) == (b"quiet", "gzip")
    assert cassette.body(third) == b"[redacted:unreadable]"


@pytest.mark.parametrize("declared", [{"restrict": ("tool:*",)}, {"retention": {"ordinary": 1000, "restricted": 10}}])
def test_tiers_and_retention_are_kept_under_a_new_key(tmp_path: Path, declared: dict[str, Any]) -> None:
    source = rich(tmp_path / "s", recording=RecordingSpec(**declared))
    derived(source, tmp_path / "out.skn", HELD)
    opened = good(tmp_path / "out.skn")
    assert_nowhere(tmp_path / "out.skn", SECRET)
    old, new = source.manifest, opened.manifest
    assert old is not None and new is not None
    assert [blob[3] for blob in new.blobs].count("restricted") == [blob[3] for blob in old.blobs].count("restricted")
    assert len(new.blobs) == len(old.blobs) and new.retention == old.retention and new.recording == old.recording
    clean = {name for name, size, kind, tier, _ in old.blobs if tier == "ordinary" and is_clean(source, name)}
    assert {blob[0] for blob in new.blobs} & {blob[0] for blob in old.blobs} <= clean
    assert {"redacted"} < {blob[4] for blob in new.blobs} <= {"redacted", "captured", "captured-restricted"}
    assert [blob[4] for blob in new.blobs].count("redacted") > 3
    if "restrict" in declared:
        assert opened.tier_key not in (None, source.tier_key)
    before = digests(files(source.run_directory).values())
    known = {str(source.header.data["t0_wall"]), str(source.fingerprint), *clean}
    left = digests(everything(tmp_path / "out.skn").values()) & before
    assert {digest.decode() for digest in left} <= known


def is_clean(source: Recording, name: str) -> bool:
    data = source.blob({"name": name, "tier": layout.ORDINARY})
    return not any(form in data for form in forms(SECRET))


def test_what_a_source_lost_stays_lost(tmp_path: Path) -> None:
    """Expired contents and those left out for sharing: no digest of them is kept, and what became of them is said."""
    source = forgetting.recorded(tmp_path / "s", text=VALUE)
    pack(source, tmp_path / "shared.skn", share=True)
    expire(source, forgetting.after(source, 60), act=True)
    gone = forgetting.names(source, layout.RESTRICTED)
    for number, (recording, state) in enumerate(
        [(Recording(source.run_directory), "expired"), (open_recording(tmp_path / "shared.skn"), "withheld")]
    ):
        target = tmp_path / f"{number}.skn"
        derived(recording, target, HELD, value=VALUE)
        told = text_of(target)
        assert told.count(f'"state":"{state}"') == len(gone) == 4
        assert not any(name in told for name in gone)
        assert_nowhere(target, VALUE)


def test_an_answer_of_which_a_part_expired(tmp_path: Path) -> None:
    spec = RecordingSpec(retention={"ordinary": 1})
    recorder, boundary = recorder_in(tmp_path / "s", task=VALUE, recording=spec)
    answer(boundary, decision(b'{"prompt":"long"}'), [b"x" * 20_000, b"y" * 20_000])
    source = sealed(recorder)
    expire(source, forgetting.after(source, 2), act=True)
    done = derived(Recording(source.run_directory), tmp_path / "out.skn", HELD, value=VALUE)
    assert done.removed == {HELD: 1}
    cassette = Cassette(good(tmp_path / "out.skn"))
    [exchange] = cassette.exchanges
    assert cassette.pieces(exchange) == [] and cassette.body(exchange) == b"" == cassette.request(exchange)
    assert "body_sha256" not in exchange.data


@pytest.mark.parametrize("api", APIS)
def test_calls_that_only_a_history_tells_of(tmp_path: Path, api: str) -> None:
    recorder, boundary = recorder_in(tmp_path / "s")
    sent = history(api, VALUE).replace(f"use {VALUE}, please".encode(), b"go on")
    answer(boundary, decision(sent, api), [b"{}"])
    done = derived(sealed(recorder), tmp_path / "out.skn", "tool:login")
    assert done.removed == {"tool:login": 2}
    assert_nowhere(tmp_path / "out.skn", VALUE)
    assert "go on" in text_of(tmp_path / "out.skn")


@pytest.mark.parametrize("rule", [HELD, "field:password"])
def test_a_run_that_broke_off(tmp_path: Path, rule: str) -> None:
    recorder, boundary = recorder_in(tmp_path / "s")
    exchange(boundary, "openai.chat", VALUE)
    live = boundary.begin(decision(json.dumps({"password": VALUE}).encode(), "openai.chat"))
    for piece in cut(streamed("openai.chat", say(VALUE, text="I log in."))[:-400], 3000):
        live.chunk(piece * 1)
    time.sleep(0.11)
    live.chunk(b"")
    source = sealed(recorder, disposition="partial", reason=f"cut off at {VALUE}")
    derived(source, tmp_path / "out.skn", rule, HELD, value=VALUE)
    opened = good(tmp_path / "out.skn")
    assert opened.manifest is not None and opened.manifest.disposition == "partial"
    assert opened.manifest.reason == f"cut off at {marker(HELD)}"
    assert_nowhere(tmp_path / "out.skn", VALUE)


def test_a_record_of_an_older_format(tmp_path: Path) -> None:
    place = ROOT / "tests" / "golden" / "v0" / "complete.skn"
    source, before = open_recording(place), place.read_bytes()
    derived(source, tmp_path / "out.skn", r"text:\w{4,}")
    opened = good(tmp_path / "out.skn")
    assert opened.header.data["format"] == "worldline/1" and opened.manifest is not None
    assert opened.manifest.derived_from is not None and opened.manifest.derived_from["format"] == "worldline/0"
    assert place.read_bytes() == before


def test_results_are_told_once_as_they_were(tmp_path: Path) -> None:
    """A result that an earlier request told of is not new in a later one, whichever of the two changed."""
    recorder, boundary = recorder_in(tmp_path / "s")
    for value in ("plain", VALUE, "plain"):
        answer(boundary, decision(history("openai.chat", value), "openai.chat"), [b"{}"])
    source = sealed(recorder)
    derived(source, tmp_path / "out.skn", HELD, value=VALUE)
    told = [
        [exchange.start_data.get("results") for exchange in Cassette(recording).exchanges]
        for recording in (source, good(tmp_path / "out.skn"))
    ]
    assert told[0] == told[1] == [["call_1"], None, None]


@pytest.mark.parametrize(
    "place", sorted((ROOT / "tests" / "golden").glob("v*/*.skn")), ids=lambda p: f"{p.parent.name}-{p.stem}"
)
def test_every_golden_recording_by_rules_that_hit_everywhere(tmp_path: Path, place: Path) -> None:
    """Whatever a pattern or a name hits, what comes of it is a record that verifies."""
    sweeping = [
        [r"text:\w{3,}"],
        ["field:type", "field:args", "field:content", "field:message"],
        ["tool:*", "text:[0-9]"],
    ]
    for number, rules in enumerate(sweeping):
        source, target = open_recording(place), tmp_path / f"{number}.skn"
        with suppress(NothingRemoved):
            derived(source, target, *rules)
            found = verify(open_recording(target))
            assert found.ok, (rules, found.problems)
            report = inspect(open_recording(target))
            assert report.equivalent or "--capture refs" in report.reasons[0], (rules, report)
