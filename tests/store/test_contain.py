"""A secret that is found late: the attempt leaves the store whole, nothing opens it, and nothing repeats the secret."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

from tests.engine.recorded import answer, decision
from tests.store.forgetting import contents
from worldline.cli.main import cli
from worldline.engine.account import account
from worldline.engine.boundary import Call, RecordBoundary
from worldline.engine.content import Content
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import Contained, Damaged, ExpiryRefused, RecordError, SecretRefused, UsageError, WriterConflict
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.catalog import entries, find
from worldline.store.forget import quarantine, trash
from worldline.store.forget.contain import contain
from worldline.store.forget.quarantine import Place
from worldline.store.forget.retention import expire
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.store.secrets.forms import forms
from worldline.store.verify import verify

SECRET = "hush-" + "7f3a9c/e+9" + "-not-a-real-one"
LABEL, NOW = "SHOP_TOKEN", 1_900_000_000_000_000_000
LARGE = "x" * 40_000  # over the inline limit: a content of its own
ROW = 16 * 1024  # bytes of a body that one row takes


def record(store: Path, *results: str, run: Path | None = None, ends: bool = True) -> Path:
    """A recording of one tool call for each result. Returns the attempt."""
    recorder = Recorder(Spec(store=store, task="forget me", run=run, shapes=False))
    boundary = RecordBoundary(recorder)
    for number, result in enumerate(results):
        call = Call(kind="action", name="look", inputs=Content.of({"n": number}), effect="idempotent")
        boundary.begin(call).finish({}, Content.of(result))
    if ends:
        recorder.seal()
    else:
        recorder.close()
    return recorder.attempt


def run_of(attempt: Path) -> Path:
    return attempt.parents[2]


def say(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), standalone_mode=False, env={LABEL: SECRET})


def everything_said(folder: Path, apart: Path) -> bytes:
    """All names and all bytes below a folder but for those in quarantine."""
    paths = [path for path in folder.rglob("*") if not path.is_relative_to(apart)]
    return b"\n".join([os.fsencode(path) + b"\n" + (path.read_bytes() if path.is_file() else b"") for path in paths])


def test_the_attempt_leaves_whole_and_no_trace_of_the_secret_stays(quick: Path) -> None:
    store = quick / "runs"
    attempt, other = record(store, LARGE + SECRET, SECRET), record(store, "nothing", LARGE)
    run, before, beside = run_of(attempt), contents(attempt), contents(other)
    result = next(run.glob("*.json"))
    result.with_name(result.name + ".sig").write_text("over it")
    alone = hashlib.sha256(json.dumps(SECRET).encode()).hexdigest()
    found = contain(run, LABEL, SECRET, NOW)
    assert (found.attempts, found.found, found.shared) == ([attempt.name], 2, [])
    place = quick / "quarantine" / run.name
    assert found.quarantine == place and contents(place / attempt.name) == before
    assert {path.name for path in place.iterdir()} == {
        attempt.name,
        f"{attempt.name}.{result.name}",
        f"{attempt.name}.{result.name}.sig",
    }
    for folder in (place, place.parent, place / attempt.name):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in run.iterdir()} == {"trajectory", quarantine.CONTAINED}
    assert (run / quarantine.CONTAINED).stat().st_mode & 0o777 == 0o600
    said = everything_said(quick, place)
    names = {path.name for path in (place / attempt.name / layout.BLOBS).glob("*/??/*")}
    digests = {alone, hashlib.sha256(SECRET.encode()).hexdigest(), *names}
    assert names and not [one for one in (*forms(SECRET), *(d.encode() for d in digests)) if one in said]
    assert contents(other) == beside and verify(Recording(other)).ok
    (row,) = map(json.loads, (run / quarantine.CONTAINED).read_text().splitlines())
    assert row["seal"] == json.loads(before[layout.MANIFEST])["seal"]
    assert (row["seq"], row["at"], row["run"], row["attempt"], row["label"]) == (0, NOW, run.name, attempt.name, LABEL)
    kinds = {(each["kind"], each["file"], each["seq"]) for each in row["where"]}
    assert kinds == {("content", "blobs/ordinary", 2), ("row", "chunks/000000.jsonl", 4)}
    line = next(each for each in row["where"] if each["kind"] == "row")["offset"]
    assert before["chunks/000000.jsonl"][line:].startswith(SECRET.encode())


SPELLINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda value: value,
    "json": lambda value: json.dumps(json.dumps({"token": value + '"'})),
    "base64": lambda value: base64.b64encode(f"x{value}y".encode()).decode(),
    "base64 of json": lambda value: base64.urlsafe_b64encode(json.dumps({"a": value}).encode()).decode(),
    "hex": lambda value: value.encode().hex().upper(),
    "percent": lambda value: quote(value, safe=""),
    "escaped": lambda value: "".join(f"\\u{ord(c):04x}" for c in value),
    "utf-16 in base64": lambda value: base64.b64encode(value.encode("utf-16-le")).decode(),
    "wrapped": lambda value: base64.encodebytes(f"{value} and more text that is wrapped".encode()).decode(),
}


@pytest.mark.parametrize("large", [False, True], ids=["in a row", "in a content"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_found(spelling: str, large: bool, quick: Path) -> None:
    text = "before " + SPELLINGS[spelling](SECRET) + " after"
    attempt = record(quick / "runs", "harmless", LARGE + text if large else text)
    found = contain(run_of(attempt), LABEL, SECRET, NOW)
    assert found.attempts == [attempt.name]
    assert {(place.kind, place.seq) for place in found.places} == {("content" if large else "row", 4)}


def test_a_secret_in_a_name_and_across_the_parts_of_a_large_content_is_found(quick: Path) -> None:
    attempt = record(quick / "runs", "y" * ((1 << 20) - 10) + SECRET)
    (attempt / layout.BLOBS / f"of {quote(SECRET, safe='')}.txt").write_text("odd")
    found = contain(run_of(attempt), LABEL, SECRET, NOW)
    assert {place.kind for place in found.places} == {"content", "name"}
    assert Place("name", f"blobs/of [secret:{LABEL}].txt") in found.places
    assert SECRET not in (run_of(attempt) / quarantine.CONTAINED).read_text()


def test_a_secret_that_a_model_streamed_in_parts_is_found(quick: Path) -> None:
    for number, shape in enumerate(("cut anywhere", "token by token")):
        recorder = Recorder(Spec(store=quick / f"{number}", shapes=False))
        if shape == "cut anywhere":
            pieces = [b"z" * (ROW - 9) + SECRET.encode()[:9], SECRET.encode()[9:], b"z" * ROW]
        else:
            told = [
                {"choices": [{"index": 0, "delta": {"content": SECRET[at : at + 3]}}]}
                for at in range(0, len(SECRET), 3)
            ]
            pieces = [f"data: {json.dumps(each)}\n\n".encode() for each in told]
        answer(RecordBoundary(recorder), decision(), pieces)
        recorder.seal()
        said = say("contain", str(recorder.run_directory), "--secret-env", LABEL, "--json")
        report = json.loads(said.output)
        assert report["contained"] and SECRET not in said.output, shape
        assert {place["kind"] for place in report["result"]["places"]} == {"answer"}, shape


def test_what_is_not_found_changes_nothing_and_says_what_cannot_be_seen(quick: Path) -> None:
    attempt = record(quick / "runs", "harmless", LARGE)
    before = contents(quick)
    said = say("contain", str(run_of(attempt)), "--secret-env", LABEL)
    assert said.return_value == 1 and contents(quick) == before
    assert "was not found" in said.output and "compressed, encrypted" in said.output and "--anyway" in said.output
    anyway = say("contain", str(run_of(attempt)), "--secret-env", LABEL, "--anyway")
    assert anyway.return_value == 0 and "bundles, backups" in anyway.output and "Replace SHOP_TOKEN" in anyway.output
    with pytest.raises(Contained):
        Recording(run_of(attempt))
    assert say("contain", str(run_of(attempt)), "--secret-env", LABEL).return_value == 0


def test_what_cannot_be_asked(quick: Path) -> None:
    attempt = record(quick / "runs", SECRET)
    pack(Recording(attempt), quick / "run.skn")
    before = contents(quick)
    for words in (
        ["contain", str(attempt), "--secret-env", "NOT_SET_HERE"],
        ["contain", str(quick / "run.skn"), "--secret-env", LABEL],
    ):
        assert isinstance(say(*words).exception, UsageError)
    with pytest.raises(SecretRefused):
        contain(run_of(attempt), LABEL, "short", NOW)
    live = Recorder(Spec(store=quick / "runs", run=run_of(attempt)))
    with pytest.raises(WriterConflict, match="has a live writer"):
        contain(run_of(attempt), LABEL, SECRET, NOW, anyway=True)
    live.close()
    assert {path: data for path, data in contents(quick).items() if live.attempt.name not in path} == before


# -------------------------------------------------------------------------------------------------------------- refused


def test_nothing_opens_what_was_contained(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = quick / "runs"
    attempt, other = record(store, SECRET), record(store, "harmless")
    run = run_of(attempt)
    result = next(run.glob("*.json"))
    contain(run, LABEL, SECRET, NOW)
    place = quick / "quarantine" / run.name
    for path in (run, attempt, result, place / attempt.name, run / layout.ATTEMPTS / attempt.name):
        with pytest.raises(Contained) as caught:
            Recording(path)
        assert caught.value.exit_code == 3 and str(place) in caught.value.facts["place"]
    monkeypatch.setenv("WORLDLINE_STORE", str(store))
    for words in (
        ["show"],
        ["verify"],
        ["replay"],
        ["expire"],
        ["pack", "-o", "out.skn"],
        ["prove", "--seq", "0", "-o", "p"],
    ):
        refused = say(*words[:1], run.name, *words[1:])
        assert isinstance(refused.exception, Contained), words
        assert LABEL in str(refused.exception) and place.name in str(refused.exception)
    listed = {entry.run: entry.disposition for entry in entries(store)}
    assert listed == {run.name: "contained", run_of(other).name: "complete"}
    assert "contained" in say("list").output
    assert find(run_of(other).name, store).disposition == "complete"
    before = contents(quick)
    (state,) = reconcile(run, account)
    assert (state.attempt, state.state) == (attempt.name, "contained")
    assert {c.run: c.kept for c in trash.move(store, trash.select(store, 2e9, 0))}[run.name] == "contained"
    assert contents(run) == {quarantine.CONTAINED: before[f"runs/{run.name}/{quarantine.CONTAINED}"]}
    assert contents(quick / "quarantine") == {
        path.removeprefix("quarantine/"): data for path, data in before.items() if path.startswith("quarantine/")
    }


def test_other_attempts_stay_readable_and_a_new_one_takes_its_place(quick: Path) -> None:
    store = quick / "runs"
    crashed = record(store, "harmless", ends=False)
    run = run_of(crashed)
    attempt = record(store, SECRET, run=run)
    assert Recording(run).attempt == attempt
    contain(run, LABEL, SECRET, NOW)
    with pytest.raises(Contained, match=crashed.name):  # never another attempt in place of what was published
        Recording(run)
    assert Recording(crashed).disposition == "interrupted"
    states = {state.attempt: state.state for state in reconcile(run, account)}
    assert states == {crashed.name: "sealed:partial", attempt.name: "contained"}
    third = record(store, "again", run=run)
    assert Recording(run).attempt == third and verify(Recording(run)).ok
    contain(run, LABEL, "no such secret", NOW + 1, attempt=third.name, anyway=True)
    rows = [json.loads(line) for line in (run / quarantine.CONTAINED).read_text().splitlines()]
    assert [(row["seq"], row["attempt"]) for row in rows] == [(0, attempt.name), (1, third.name)]
    assert len(list((quick / "quarantine" / run.name).glob("*.json"))) == 2
    assert verify(Recording(crashed)).ok


def test_runs_that_share_contents_with_the_secret_are_named(quick: Path) -> None:
    store = quick / "runs"
    first, second, third = (record(store, LARGE + text) for text in (SECRET, SECRET, "harmless"))
    found = contain(run_of(first), LABEL, SECRET, NOW)
    assert found.shared == [run_of(second).name]
    assert not list((store / layout.POOL).glob(f"??/{next((second / layout.BLOBS).glob('*/??/*')).name}"))
    assert verify(Recording(second)).ok and verify(Recording(third)).ok
    again = contain(run_of(second), LABEL, SECRET, NOW)
    assert (again.attempts, again.shared) == ([second.name], [])


def test_a_record_that_was_changed_opens_nothing(quick: Path) -> None:
    store = quick / "runs"
    crashed = record(store, "harmless", ends=False)
    run = run_of(crashed)
    attempt = record(store, SECRET, run=run)
    contain(run, LABEL, SECRET, NOW)
    path = run / quarantine.CONTAINED
    written = path.read_bytes()
    for offset in range(0, len(written) - 1, 7):
        path.write_bytes(written[:offset] + bytes([written[offset] ^ 1]) + written[offset + 1 :])
        for target in (run, crashed):
            with pytest.raises(Contained):
                Recording(target)
        with pytest.raises(Damaged, match="is not what was written"):
            contain(run, LABEL, SECRET, NOW, anyway=True)
    path.write_bytes(written + b'{"seq":1')  # torn: the record of a containment that did not begin
    assert Recording(crashed).attempt == crashed
    contain(run, LABEL, SECRET, NOW, anyway=True)
    assert path.read_bytes().startswith(written) and path.read_text().count("\n") == 2
    with pytest.raises(Contained):
        Recording(crashed)
    assert {each.name for each in (quick / "quarantine" / run.name).iterdir()} >= {attempt.name, crashed.name}


def test_a_store_that_is_named_like_a_quarantine_is_none(quick: Path) -> None:
    attempt = record(quick / "quarantine", SECRET)
    assert verify(Recording(run_of(attempt))).ok
    with pytest.raises(RecordError, match="move the store first"):
        contain(run_of(attempt), LABEL, SECRET, NOW)
    assert verify(Recording(run_of(attempt))).ok


def test_what_was_contained_does_not_expire(quick: Path) -> None:
    attempt = record(quick / "runs", SECRET)
    recording = Recording(attempt)
    contain(run_of(attempt), LABEL, SECRET, NOW)
    with pytest.raises(ExpiryRefused, match="moved away"):
        expire(recording, NOW, act=True)
