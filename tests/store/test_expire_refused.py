"""What an expiry does not believe it refuses, and nothing has changed: forged manifests, early clocks, what is live."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.forgery import reseal
from tests.store.forgetting import after, contents, recorded
from worldline.engine.recorder import Recorder
from worldline.engine.spec import RecordingSpec, Spec
from worldline.errors import ExpiryRefused
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import open_recording
from worldline.store.forget.availability import SECOND
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.verify import verify


def opened(recording: Recording) -> Recording:
    """The same recording, read anew."""
    return Recording(recording.attempt)


def no_retention(recording: Recording) -> None:
    reseal(recording.attempt, {"retention": None})


def broken_seal(recording: Recording) -> None:
    path = recording.attempt / layout.MANIFEST
    data = path.read_bytes().replace(b'"restricted":50', b'"restricted":10')
    path.unlink()
    path.write_bytes(data)


def unsealed(recording: Recording) -> None:
    (recording.attempt / layout.MANIFEST).unlink()


def replaced_manifest(recording: Recording) -> None:
    """A manifest sealed anew with an earlier seal time, where the staged one still says otherwise."""
    staged = (recording.attempt / layout.STAGED).read_bytes()
    assert recording.manifest is not None
    reseal(recording.attempt, {"sealed_at": recording.manifest.sealed_at - 1000 * SECOND})
    (recording.attempt / layout.STAGED).write_bytes(staged)


def another_manifest(recording: Recording) -> None:
    other = recorded(recording.run_directory.parent, {"ordinary": 0, "restricted": 0})
    for name in (layout.MANIFEST, layout.STAGED):
        (recording.attempt / name).unlink()
        shutil.copy(other.attempt / name, recording.attempt / name)


def unfit_signature(recording: Recording) -> None:
    recording.path.with_name(recording.path.name + ".sig").write_text("not one\n")


@pytest.mark.parametrize(
    ("change", "why", "said"),
    [
        (no_retention, "retention", "declares no retention"),
        (broken_seal, "unsealed", "the seal does not fit"),
        (unsealed, "unsealed", "it is not sealed"),
        (replaced_manifest, "manifest", "not the one that was staged"),
        (another_manifest, "manifest", "another recording's"),
        (unfit_signature, "manifest", "its signature"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_a_manifest_that_cannot_be_believed_is_refused(
    change: Callable[[Recording], None], why: str, said: str, quick: Path
) -> None:
    recording = recorded(quick / "runs")
    change(recording)
    before = contents(quick)
    for act in (False, True):
        with pytest.raises(ExpiryRefused, match=said) as caught:
            expire(opened(recording), after(recording, 10**6), act=act)
        assert (caught.value.facts["why"], caught.value.exit_code) == (why, 3)
    assert contents(quick) == before


def test_a_manifest_of_the_callers_must_be_the_stored_one_to_the_byte(quick: Path) -> None:
    recording, copy = recorded(quick / "runs"), recorded(quick / "copy")
    line = recording.manifest_line
    assert line is not None and recording.manifest is not None
    shutil.copytree(recording.run_directory, quick / "elsewhere" / recording.run_id)
    forged = Recording(quick / "elsewhere" / recording.run_id)
    reseal(forged.attempt, {"sealed_at": recording.manifest.sealed_at - 100 * SECOND})
    early = (forged.attempt / layout.MANIFEST).read_bytes()
    spelled = json.dumps(json.loads(line)).encode() + b"\n"
    before = contents(quick)
    for given in (early, spelled, line + b"\n", line[:-1], b"", copy.manifest_line):
        with pytest.raises(ExpiryRefused, match="byte for byte"):
            expire(recording, after(recording, 10**6), manifest=given, act=True)
    assert contents(quick) == before
    assert len(expire(recording, after(recording, 50), manifest=line, act=True).due) == 4


def test_an_early_clock_is_refused(quick: Path) -> None:
    recording = recorded(quick / "runs", {"ordinary": 0, "restricted": 100})
    before = contents(quick)
    with pytest.raises(ExpiryRefused, match="it was sealed") as caught:
        expire(recording, after(recording, 0) - 1, act=True)
    assert caught.value.facts["why"] == "clock" and contents(quick) == before
    expire(recording, after(recording, 60), act=True)
    before = contents(quick)
    with pytest.raises(ExpiryRefused, match=r"contents expired .* already"):
        expire(opened(recording), after(recording, 59), act=True)
    assert contents(quick) == before and verify(opened(recording)).ok


def test_a_live_run_and_a_bundle_are_refused(quick: Path) -> None:
    live = Recorder(Spec(store=quick / "runs", recording=RecordingSpec(retention={"ordinary": 0})))
    with pytest.raises(ExpiryRefused, match="its writer is at work"):
        expire(Recording(live.attempt), 2**62, act=True)
    live.close()
    recording = recorded(quick / "runs")
    pack(recording, quick / "run.skn")
    with pytest.raises(ExpiryRefused, match="a bundle is never changed") as caught:
        expire(open_recording(quick / "run.skn"), after(recording, 10**6), act=True)
    assert caught.value.facts["why"] == "bundle"
