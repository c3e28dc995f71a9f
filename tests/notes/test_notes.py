"""Notes beside a recording: added, listed and taken back wherever it lies; the record stays what it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.engine.recorded import action, recorder_in, written
from tests.golden import schemas
from tests.store.ranges import served
from tests.store.rich import recorded
from worldline.cli.main import cli
from worldline.engine.account import account
from worldline.engine.boundary import call
from worldline.engine.redact.derive import derive
from worldline.engine.redact.rules import Rules
from worldline.errors import AnnotationRefused, UsageError
from worldline.store import layout, notes
from worldline.store.bundle.container import ANNOTATIONS, AUDIT
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.store.verify import verify

NOW = 1_796_100_000_000_000_000
TEXTS = ("it stops asking here", "ünï\u2028code,\nover two lines", '"quoted" \\ </script>')


@pytest.fixture
def run(quick: Path) -> Recording:
    return recorded(quick / "runs")


@pytest.fixture
def bundle(run: Recording, quick: Path) -> Path:
    return pack(run, quick / "run.skn").path


def noted(recording: Recording, text: str = "look", seq: int = 3, **more: Any) -> dict[str, Any]:
    return notes.annotate(recording, now_ns=NOW, seq=seq, at="step:1", text=text, **more)


def entries(path: Path) -> dict[str, tuple[bytes, bytes]]:
    """Of each entry its local header and its stored bytes."""
    packed, found = PackedRecording(str(path)), {}
    for name, begins in packed.container.offsets().items():
        entry = packed.entries[name]
        header = packed.source.read(begins - entry.header_size, entry.header_size)
        found[name] = header, packed.source.read(begins, entry.stored)
    return found


@pytest.mark.parametrize("place", ["directory", "bundle"])
def test_notes_are_added_listed_and_taken_back_and_the_record_verifies(
    place: str, run: Recording, bundle: Path
) -> None:
    recording = run if place == "directory" else open_recording(bundle)
    ids = [noted(recording, text, tag="bug", who="me")["id"] for text in TEXTS]
    notes.audit(recording, "reveal", "step:1", 3, "a customer asked", now_ns=NOW)
    notes.remove(recording, ids[1], now_ns=NOW + 1)
    assert [note["text"] for note in notes.annotations(recording)] == [TEXTS[0], TEXTS[2]]
    assert [(line["what"], line["reason"]) for line in notes.audits(recording)] == [("reveal", "a customer asked")]
    found = verify(open_recording(run.run_directory if place == "directory" else bundle))
    assert found.ok and set(found.facts["unsealed"]) == {ANNOTATIONS, AUDIT}
    with pytest.raises(UsageError, match="a1"):  # it is gone already
        notes.remove(recording, ids[1], now_ns=NOW)


def test_a_note_to_a_bundle_leaves_every_stored_byte_as_it_is(bundle: Path) -> None:
    before, sealed = entries(bundle), bundle.read_bytes()
    bundle.chmod(0o640)
    for count in (1, 2, 3):
        noted(open_recording(bundle))
        notes.audit(open_recording(bundle), "reveal", "session", None, None, now_ns=NOW)
        after = entries(bundle)
        assert {name: after[name] for name in before} == before
        assert list(after) == [*before, ANNOTATIONS, AUDIT]
        assert len(notes.annotations(open_recording(bundle))) == count
    kept = sum(len(header) + len(stored) for header, stored in before.values())
    assert bundle.read_bytes()[:kept] == sealed[:kept]  # nothing of it even moved
    assert bundle.stat().st_mode & 0o777 == 0o640 and not list(bundle.parent.glob(".*"))


def test_a_directory_keeps_every_other_file(run: Recording) -> None:
    before = written(run.run_directory)
    noted(run)
    after = written(run.run_directory)
    assert set(after) - set(before) == {run.attempt / layout.ANNOTATIONS}
    assert {path: after[path] for path in before} == before
    assert (run.attempt / layout.ANNOTATIONS).stat().st_mode & 0o777 == 0o600


def test_a_live_run_takes_notes_and_sealing_keeps_them(quick: Path) -> None:
    recorder, boundary = recorder_in(quick / "runs")
    call(boundary, action("look", {"n": 1}), lambda: "seen")
    live = Recording(recorder.attempt)
    assert live.live
    noted(live, "while it runs", seq=2)
    with pytest.raises(UsageError, match="no row 900"):
        noted(live, seq=900)
    recorder.seal()
    sealed = Recording(recorder.attempt)
    noted(sealed, "afterwards", seq=1)
    assert [note["text"] for note in notes.annotations(sealed)] == ["while it runs", "afterwards"]
    assert verify(Recording(recorder.attempt)).ok


def test_reconcile_keeps_the_notes_of_a_dead_writer(quick: Path) -> None:
    recorder, boundary = recorder_in(quick / "runs")
    call(boundary, action("look", {"n": 1}), lambda: "seen")
    noted(Recording(recorder.attempt), "while it runs", seq=2)
    recorder.close()
    (state,) = reconcile(recorder.run_directory, account)
    sealed = Recording(recorder.attempt)
    assert state.state == "sealed:partial" and verify(sealed).ok
    assert [note["text"] for note in notes.annotations(sealed)] == ["while it runs"]


def test_notes_travel_with_pack_and_the_audit_stays_at_home_when_it_is_shared(run: Recording, quick: Path) -> None:
    noted(run)
    notes.audit(run, "reveal", "step:1", 3, "because", now_ns=NOW)
    for share, kept in ((False, {ANNOTATIONS, AUDIT}), (True, {ANNOTATIONS})):
        for source in (run, open_recording(pack(run, quick / f"first-{share}.skn").path)):
            target = quick / f"{share}-{source.path.suffix}.skn"
            packed = open_recording(pack(source, target, share=share).path)
            assert isinstance(packed, PackedRecording)
            assert {ANNOTATIONS, AUDIT} & set(packed.entries) == kept
            assert notes.annotations(packed) == notes.annotations(run) and verify(packed).ok


def test_a_derived_bundle_has_none(run: Recording, quick: Path) -> None:
    """A note may say again what was taken out."""
    noted(run, "the whereabouts")
    derive(run, quick / "derived.skn", Rules(("pictures",), {}))
    assert notes.annotations(open_recording(quick / "derived.skn")) == []


def test_many_writers_at_once_lose_nothing(run: Recording, bundle: Path) -> None:
    for recording in (run, open_recording(bundle)):
        with ThreadPoolExecutor(6) as pool:
            written = list(pool.map(lambda number: noted(recording, f"note {number}")["id"], range(18)))  # noqa: B023
        assert sorted(written, key=lambda name: int(name[1:])) == [f"a{number}" for number in range(18)]
        assert {note["text"] for note in notes.annotations(recording)} == {f"note {number}" for number in range(18)}
    assert verify(open_recording(bundle)).ok and verify(Recording(run.attempt)).ok


def read_only(bundle: Path) -> None:
    bundle.chmod(0o444)


def gone(bundle: Path) -> None:
    bundle.unlink()


def another(bundle: Path) -> None:
    other = recorded(bundle.parent / "other")
    bundle.unlink()
    pack(other, bundle)


@pytest.mark.parametrize(("change", "why"), [(read_only, "read-only"), (gone, "gone"), (another, "replaced")])
def test_a_bundle_that_cannot_take_a_note_is_refused(change: Callable[[Path], None], why: str, bundle: Path) -> None:
    recording = open_recording(bundle)
    change(bundle)
    before = bundle.read_bytes() if bundle.exists() else None
    with pytest.raises(AnnotationRefused) as refused:
        noted(recording)
    assert refused.value.facts["why"] == why and refused.value.exit_code == 3
    assert (bundle.read_bytes() if bundle.exists() else None) == before


def test_a_bundle_behind_a_url_is_refused(bundle: Path) -> None:
    with served(bundle) as (url, _):
        recording = open_recording(f"{url}/run.skn")
        with pytest.raises(AnnotationRefused, match="download it first"):
            noted(recording)
        assert notes.annotations(recording) == []


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"text": "  "}, "text is empty"),
        ({"text": "x" * 20_000}, "20,000 characters"),
        ({"text": "\ud800"}, "UTF-8"),
        ({"seq": -1}, "no row -1"),
        ({"seq": 12}, "no row 12"),
        ({"tag": "a\nb"}, "control character"),
        ({"who": ""}, "who is empty"),
    ],
)
def test_what_no_note_can_say_is_refused(bad: dict[str, Any], says: str, run: Recording) -> None:
    with pytest.raises(UsageError, match=says):
        noted(run, **bad)
    assert not (run.attempt / layout.ANNOTATIONS).exists()


def test_a_key_of_a_known_shape_is_not_written(run: Recording) -> None:
    key = "sk-ant-api03-" + "Fake0" * 10
    written = noted(run, f"it used {key}, ünï", tag="keys")
    assert key not in written["text"] and written["text"].endswith("ünï") and "[secret:" in written["text"]
    assert key.encode() not in (run.attempt / layout.ANNOTATIONS).read_bytes() and verify(Recording(run.attempt)).ok


def test_nothing_is_added_to_lines_that_somebody_changed(run: Recording, bundle: Path) -> None:
    noted(run, "good")
    path = run.attempt / layout.ANNOTATIONS
    path.write_bytes(path.read_bytes().replace(b"good", b"evil"))
    with pytest.raises(AnnotationRefused, match=r"annotations\.jsonl, byte 0"):
        noted(run, "more")
    assert b"evil" in path.read_bytes() and notes.annotations(run) == []
    path.unlink()
    path.symlink_to(bundle)
    assert not verify(Recording(run.attempt)).ok
    assert CliRunner().invoke(cli, ["annotate", str(run.run_directory), "more"]).exit_code != 0


def test_what_a_crash_cut_off_is_reported_and_gives_way_to_the_next_line(run: Recording) -> None:
    noted(run, "whole")
    notes.audit(run, "reveal", "session", None, None, now_ns=NOW)
    for name in layout.BESIDE:
        path = run.attempt / name
        path.write_bytes(path.read_bytes() + b'{"n":1,"when":17')
    assert {problem.kind for problem in verify(Recording(run.attempt)).problems} == {"torn"}
    noted(run, "next")
    assert [note["text"] for note in notes.annotations(run)] == ["whole", "next"]
    assert verify(Recording(run.attempt)).ok and len(notes.audits(run)) == 1


def test_lines_are_what_their_schemas_say(run: Recording) -> None:
    for text in TEXTS:
        noted(run, text, who="me", tag="bug")
    notes.remove(run, "a0", now_ns=NOW)
    notes.audit(run, "reveal", "field:body", 4, "why", now_ns=NOW, who="me")
    notes.audit(run, "reveal", "session", None, None, now_ns=NOW)
    for name in ("annotations", "audit"):
        for line in (run.attempt / f"{name}.jsonl").read_bytes().splitlines():
            assert list(schemas.problems(json.loads(line), schemas.load(name))) == []


def test_the_verb_adds_lists_and_takes_back(run: Recording, bundle: Path) -> None:
    for place in (str(run.run_directory), str(bundle)):

        def said(*words: str, place: str = place) -> Any:
            ran = CliRunner().invoke(cli, ["annotate", place, *words, "--json"], standalone_mode=False)
            assert ran.exception is None, ran.exception
            return json.loads(ran.stdout)

        assert said("it stops here", "--at", "step:1", "--tag", "bug")["at"] == "step:1"
        assert said("a row", "--at", "seq:4")["seq"] == 4 and said("the whole")["seq"] == 0
        first = Recording(run.attempt).event(said("--list")[0]["seq"])
        assert first is not None and first.name == "decision/request"
        said("--remove", "a1")
        assert [note["id"] for note in said("--list")] == ["a0", "a2"] and said("--audit") == []
        for words in (["x", "--at", "step:77"], ["x", "--at", "9"], ["--remove", "a9"], []):
            ran = CliRunner().invoke(cli, ["annotate", place, *words], standalone_mode=False)
            assert ran.exception is not None, words
