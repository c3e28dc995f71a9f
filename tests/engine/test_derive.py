"""A derived bundle: what rules took out is nowhere in it, nor a digest of that, and all else is as it was."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

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
from tests.engine.recorded import action, answer, decision, recorder_in
from worldline.engine.cassette import Cassette, rebuild
from worldline.engine.content import Content
from worldline.engine.eligibility import reasons_against, require_attested
from worldline.engine.redact.rules import marker
from worldline.engine.replay import ReplayBoundary
from worldline.errors import Ineligible, NothingRemoved, Unsealed, UsageError
from worldline.model.dialects import read_response
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.recording import Recording
from worldline.store.secrets.vault import forms

HELD = "secret-env:HELD"
MARK = marker(HELD)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return rich(tmp_path_factory.mktemp("source"))


def test_a_secret_is_gone_in_every_form_and_the_source_is_as_it_was(source: Recording, tmp_path: Path) -> None:
    before = files(source.run_directory)
    done = derived(source, tmp_path / "out.skn", HELD, why=f"it was {SECRET}")
    assert files(source.run_directory) == before
    good(tmp_path / "out.skn")
    assert_nowhere(tmp_path / "out.skn", SECRET)
    assert done.removed == {HELD: done.removed[HELD]} and done.removed[HELD] > 40
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.skn"]


def test_every_encoding_in_every_kind_of_place(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path / "s")
    coded = sorted(forms(SECRET))[::7]  # some of every kind: they are sorted by their beginnings
    texts = [form.decode() for form in coded if form.isascii()]
    body = b"<" + b"> <".join(coded) + b">"
    answer(boundary, decision(json.dumps({"prompt": [f"<{text}>" for text in texts]}).encode()), cut(body, 1000))
    boundary.note("observation", "file", "main", {}, {"value": Content.of([b"<" + form + b">" for form in coded])})
    boundary.begin(action("read", {f"<{n} {text}>": n for n, text in enumerate(texts)})).finish({}, Content.of(texts))
    derived(sealed(recorder), tmp_path / "out.skn", HELD)
    assert len(coded) > 400
    assert_nowhere(tmp_path / "out.skn", SECRET)
    opened = good(tmp_path / "out.skn")
    first, second = Cassette(opened).exchanges
    around = [f"<{MARK}>"] * len(texts)  # of base64 a form is only what the secret alone determines: all of it goes
    assert json.loads(Cassette(opened).request(first)) == {"prompt": around}
    assert Cassette(opened).body(first) == b" ".join([f"<{MARK}>".encode()] * len(coded))
    assert list(Cassette(opened).inputs(second)) == [f"<{n} {MARK}>" for n in range(len(texts))]


def test_no_digest_of_what_held_it_is_left(source: Recording, tmp_path: Path) -> None:
    """Hashes of rows, keys, contexts and their chains, bodies, contents, result, manifest: the source's are gone."""
    derived(source, tmp_path / "out.skn", HELD)
    before = digests(files(source.run_directory).values())
    header = source.header.data
    known = {str(header["t0_wall"]).encode(), str(source.fingerprint).encode()}
    assert len(before) > 90
    assert digests(everything(tmp_path / "out.skn").values()) & before - known == set()
    names = {name for name in everything(tmp_path / "out.skn") if any(d.decode() in name for d in before)}
    assert names == set()


def test_every_row_keeps_its_place_and_the_text_around_is_whole(source: Recording, tmp_path: Path) -> None:
    derived(source, tmp_path / "out.skn", HELD)
    opened = good(tmp_path / "out.skn")
    pairs = list(zip(source.events(), opened.events(), strict=True))
    for old, new in pairs:
        assert len({(e.seq, e.t, e.dt, e.kind, e.src, e.v, e.call) for e in (old, new)}) == 1
        assert new.lane == old.lane.replace(SECRET, MARK)
        assert (old.sync is None) == (new.sync is None)
        if new.sync is not None and new.sync[0]:
            assert new.sync == (old.sync[0], pairs[new.sync[0] - 1][1].h[:16])  # type: ignore[index]
    before, after = Cassette(source), Cassette(opened)
    for old, new in zip(before.exchanges, after.exchanges, strict=True):
        assert (old.call, old.name, old.started, old.finished) == (new.call, new.name, new.started, new.finished)
        whole, kept = before.body(old), after.body(new)
        assert b"".join(data for data, _ in after.pieces(new)) == kept
        decisions = [read_response(old.name, 200, "text/event-stream", body) for body in (whole, kept)]
        if all(decisions):
            first, second = decisions
            assert first is not None and second is not None
            assert second.text == first.text.replace(SECRET, MARK) and second.complete == first.complete
            for use, redacted in zip(first.tool_uses, second.tool_uses, strict=True):
                assert json.loads(use.arguments) == {"password": SECRET, "user": "bob"}
                assert json.loads(redacted.arguments) == {"password": MARK, "user": "bob"}
        elif old.kind == "decision" and whole[:1] == b"x":
            assert kept == whole.replace(SECRET.encode(), MARK.encode())
    requests = zip(rebuild(source), rebuild(opened), strict=True)
    for (_, old_body, _), (_, new_body, met) in requests:
        spelled = old_body.replace(json.dumps(json.dumps(SECRET)[1:-1])[1:-1].encode(), MARK.encode())
        assert met and new_body == spelled.replace(json.dumps(SECRET)[1:-1].encode(), MARK.encode())


def test_a_bundle_and_its_directory_give_the_same_and_derivations_name_their_line(
    source: Recording, tmp_path: Path
) -> None:
    pack(source, tmp_path / "packed.skn")
    derived(source, tmp_path / "one.skn", "field:token", why="first")
    derived(open_recording(tmp_path / "packed.skn"), tmp_path / "two.skn", "field:token", why="first")
    logs = [[(e.data, e.keys) for e in good(tmp_path / name).events()] for name in ("one.skn", "two.skn")]
    nonces = {log[0][0].pop("nonce") for log in logs} | {source.header.data["nonce"]}
    assert logs[0] == logs[1] and len(nonces) == 3  # without it nobody can guess his way to the source's fingerprint
    one = good(tmp_path / "one.skn")
    derived(one, tmp_path / "three.skn", HELD, why="second")
    three = good(tmp_path / "three.skn")
    assert_nowhere(tmp_path / "three.skn", SECRET)
    assert three.manifest is not None and three.manifest.derived_from is not None
    line = three.manifest.derived_from
    assert (line["seal"], line["why"], line["rules"]) == (one.fingerprint, "second", [HELD])
    assert line["derived_from"]["seal"] == source.fingerprint and line["derived_from"]["why"] == "first"
    assert line["derived_from"]["removed"] == {"field:token": line["derived_from"]["removed"]["field:token"]}
    assert (line["run"], line["attempt"]) == (source.run_id, source.attempt_id) == (three.run_id, three.attempt_id)
    assert three.manifest.genesis == three.manifest.header
    assert three.manifest.capabilities == ["L0"] and three.manifest.result["publish"] == "none"


def test_it_is_not_driven_again_and_not_evidence(source: Recording, tmp_path: Path) -> None:
    derived(source, tmp_path / "out.skn", HELD)
    opened = good(tmp_path / "out.skn")
    assert any("the record of nothing that ran" in reason for reason in reasons_against(opened))
    with pytest.raises(Ineligible, match="derived"):
        ReplayBoundary(opened)
    with pytest.raises(Ineligible, match="derived"):
        require_attested(opened)


def test_what_cannot_be_derived_is_refused(source: Recording, tmp_path: Path) -> None:
    target = tmp_path / "out.skn"
    with pytest.raises(NothingRemoved, match="nothing was written"):
        derived(source, target, "field:nothing", "shapes")
    done = derived(source, target, HELD, "field:nothing")
    assert done.idle == ["field:nothing"]
    with pytest.raises(UsageError, match="never overwritten"):
        derived(source, target, HELD)
    recorder, boundary = recorder_in(tmp_path / "open")
    exchange(boundary, "openai.chat", SECRET)
    with pytest.raises(Unsealed):
        derived(Recording(recorder.attempt), tmp_path / "no.skn", HELD)
    damaged = sealed(recorder)
    [chunk] = (damaged.attempt / layout.CHUNKS).iterdir()
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(Ineligible, match="cannot redact"):
        derived(Recording(damaged.run_directory), tmp_path / "no.skn", HELD)
    assert not (tmp_path / "no.skn").exists()


def test_killed_on_the_way_it_leaves_no_bundle_and_nothing_of_what_goes(source: Recording, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for moment in ("publish", "pack"):
        child = os.fork()
        if child == 0:  # a process of its own, that dies before the step
            import tempfile

            from worldline.store import seal
            from worldline.store.bundle import pack as bundle

            tempfile.tempdir = str(work)
            module = {"publish": seal, "pack": bundle}[moment]
            setattr(module, moment, lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL))
            try:
                derived(source, tmp_path / "out.skn", HELD)
            finally:
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert not (tmp_path / "out.skn").exists()
    left = files(work)
    assert len(left) > 4 and not any(SECRET[-9:].encode() in data for data in left.values())
    assert all((work / name).stat().st_mode & 0o77 == 0 for name in os.listdir(work))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("rule", ["field:password", "tool:log*"])
def test_values_by_their_names_go_from_calls_streams_and_histories(tmp_path: Path, api: str, rule: str) -> None:
    """The arguments of a tool as the model spells them, as the tool gets them, as later requests repeat them."""
    value = "swordfish-" + "0001"
    recorder, boundary = recorder_in(tmp_path / "s")
    told = f"the user is bob, at {api}"
    answer(boundary, decision(json.dumps({"prompt": told}).encode(), api), cut(streamed(api, say("nobody"))))
    body = streamed(api, say(value, text="I log in."))
    answer(boundary, decision(b'{"messages":[{"role":"user","content":"log in"}]}', api), cut(body))
    live = boundary.begin(action("login", {"password": value, "user": "bob"}))
    live.finish({}, Content.of({"token": value if rule.startswith("tool") else "fine"}))
    sent = history(api, value).replace(f"use {value}, please".encode(), b"log in")
    sent = sent if rule.startswith("tool") else sent.replace(b'token\\": \\"' + value.encode(), b'token\\": \\"fine')
    answer(boundary, decision(sent, api), [b"{}"])
    source = sealed(recorder)
    assert any(value.encode() in event.raw for event in source.events())
    derived(source, tmp_path / "out.skn", rule)
    opened = good(tmp_path / "out.skn")
    assert_nowhere(tmp_path / "out.skn", value)
    text = b"".join(event.raw for event in opened.events())
    assert told.encode() in text and b"log in" in text and marker(rule).encode() in text
    kept = [Cassette(opened).body(exchange) for exchange in Cassette(opened).exchanges][1]
    read = read_response(api, 200, "text/event-stream", kept)
    assert read is not None and read.complete and read.text == "I log in."
    if rule == "field:password":
        assert json.loads(read.tool_uses[0].arguments) == {"password": marker(rule), "user": "bob"}


def test_a_member_goes_however_deep_it_is(source: Recording, tmp_path: Path) -> None:
    derived(source, tmp_path / "out.skn", "field:password")
    opened = good(tmp_path / "out.skn")
    [deep] = [exchange for exchange in Cassette(opened).exchanges if exchange.name == "deep"]
    value, depth = opened.value(deep.data["result"]), 0
    while isinstance(value, dict):
        assert value["password"] == marker("field:password")
        value, depth = value["in"], depth + 1
    assert (value, depth) == (SECRET, 150)


def test_a_value_across_two_messages_goes_with_what_holds_it(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path / "s")
    held = 'first-half"},{"b":"second-half'
    for last in ("", ',{"c":1}'):
        body = '{"model":"m","messages":[{"a":"' + held + '"}' + last + "]}"
        answer(boundary, decision(body.encode(), "openai.chat"), [b"{}"])
    derived(sealed(recorder), tmp_path / "out.skn", HELD, value=held)
    bodies = [body for _, body, _ in rebuild(good(tmp_path / "out.skn"))]
    assert bodies == [json.dumps({"model": "m", "messages": MARK}, separators=(",", ":")).encode()] * 2
