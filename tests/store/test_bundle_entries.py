"""What stands beside the log in a bundle: contents of both tiers, what is derived, what was left out and says so."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from tests.engine.recorded import recorder_in
from tests.store import rich
from tests.store.rich import remade
from worldline.engine.export import EXPORTS
from worldline.engine.pictures import thumbnail
from worldline.errors import Damaged
from worldline.store.bundle.container import DECISIONS, NETWORK, TIER_KEY
from worldline.store.bundle.pack import Packed, pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget import availability
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.verify import verify


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return rich.recorded(tmp_path_factory.mktemp("rich"))


def packed(recording: Recording, target: Path, share: bool = False) -> Packed:
    return pack(recording, target, share=share, exports=EXPORTS, thumbnail=thumbnail)


@pytest.fixture(scope="module")
def whole(sealed: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(sealed, tmp_path_factory.mktemp("whole") / "run.skn").path


@pytest.fixture(scope="module")
def shared(sealed: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(sealed, tmp_path_factory.mktemp("shared") / "run.skn", share=True).path


def contents_of(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def restricted(recording: Recording) -> list[dict[str, object]]:
    assert recording.manifest is not None
    names = ("name", "size", "type", "tier")
    return [dict(zip(names, blob, strict=False)) for blob in recording.manifest.blobs if blob[3] == "restricted"]


def test_a_bundle_holds_both_tiers_and_names_the_restricted_one_by_its_key(sealed: Recording, whole: Path) -> None:
    bundle = PackedRecording(str(whole))
    assert bundle.tier_key == sealed.tier_key is not None
    assert len(restricted(sealed)) >= 2
    for reference in restricted(sealed):
        assert bundle.blob(reference) == sealed.blob(reference)
    found = verify(bundle, exports=EXPORTS)
    assert found.ok and found.facts["availability"]["available"] == len(sealed.manifest.blobs)  # type: ignore[union-attr]


def test_what_is_shared_holds_nothing_restricted_anywhere_and_lists_it(sealed: Recording, shared: Path) -> None:
    inside = contents_of(shared)
    assert TIER_KEY not in inside
    assert all(rich.WORDS.encode() not in content for content in inside.values())
    assert sealed.tier_key is not None and all(sealed.tier_key not in content for content in inside.values())
    listed = {name for name, _, _ in json.loads(inside["container.json"])["withheld"]}
    assert listed == {reference["name"] for reference in restricted(sealed)}
    bundle = PackedRecording(str(shared))
    found = verify(bundle, exports=EXPORTS)
    assert found.ok and found.verdicts["availability"] == "withheld" and found.facts["unsealed"] == thumbs(inside)
    for reference in restricted(sealed):
        with pytest.raises(Damaged) as refused:
            bundle.blob(reference)
        assert refused.value.facts["state"] == "withheld"


def thumbs(inside: dict[str, bytes]) -> list[str]:
    return [name for name in inside if name.startswith("thumbs/")]


def test_a_bundle_is_packed_again_for_sharing_as_its_directory_would_be(
    whole: Path, shared: Path, tmp_path: Path
) -> None:
    again = packed(PackedRecording(str(whole)), tmp_path / "again.skn", share=True)
    assert again.path.read_bytes() == shared.read_bytes()
    same = packed(PackedRecording(str(whole)), tmp_path / "same.skn")
    assert same.path.read_bytes() == whole.read_bytes()
    once_more = packed(PackedRecording(str(shared)), tmp_path / "more.skn")
    assert once_more.withheld == again.withheld and verify(PackedRecording(str(once_more.path))).ok


def test_what_may_not_be_left_out_is_missed_whatever_the_container_says(
    sealed: Recording, whole: Path, tmp_path: Path
) -> None:
    assert sealed.manifest is not None
    name, size, kind, *_ = next(b for b in sealed.manifest.blobs if b[3] == "ordinary" and b[2] == "application/json")
    without = {f"resources/{name}.json"}
    found = verify(remade(whole, tmp_path / "x.skn", without=without, withheld=((name, size, kind),)))
    assert {problem.kind for problem in found.problems} == {"changed", "missing"}


@pytest.mark.parametrize("name", [DECISIONS, NETWORK, f"snapshots/{rich.CHECKPOINT}/meta.json"])
def test_what_is_derived_is_derived_again_and_a_change_is_seen(name: str, whole: Path, tmp_path: Path) -> None:
    content = contents_of(whole)[name]
    for other in (content.replace(b"1", b"2", 1), content + b"{}\n", b""):
        changed = remade(whole, tmp_path / "x.skn", {name: other})
        found = verify(changed, exports=EXPORTS)
        assert [(problem.kind, problem.where) for problem in found.problems] == [("changed", name)]
    if name in EXPORTS:  # whoever cannot derive it says so
        told = verify(changed)
        assert told.ok and name in told.facts["unsealed"]


def test_a_snapshot_that_is_gone_or_was_never_taken_is_seen(whole: Path, tmp_path: Path) -> None:
    own, other = f"snapshots/{rich.CHECKPOINT}/meta.json", "snapshots/ckpt_other/meta.json"
    said = json.loads(contents_of(whole)[own])
    assert (said["step"], said["snapshot_id"][:5], said["agent_state"]["messages"]) == (0, "snap_", ["m" * 40_000])
    assert [p.where for p in verify(remade(whole, tmp_path / "less.skn", without={own})).problems] == [own]
    assert [p.where for p in verify(remade(whole, tmp_path / "more.skn", {other: b"{}"})).problems] == [other]


def test_thumbnails_are_small_and_tell_nothing_but_pixels(whole: Path) -> None:
    inside = contents_of(whole)
    (name,) = thumbs(inside)
    original = inside[f"resources/{Path(name).stem}.png"]
    assert rich.HIDDEN.encode() in original and original == rich.picture()
    assert rich.HIDDEN.encode() not in inside[name]
    with Image.open(io.BytesIO(inside[name])) as small:
        assert small.format == "WEBP" and small.width == 320
        assert not small.getexif() and not {"icc_profile", "exif", "xmp"} & small.info.keys()


def test_a_thumbnail_with_more_than_pixels_or_of_nothing_is_seen(whole: Path, tmp_path: Path) -> None:
    inside = contents_of(whole)
    (name,) = thumbs(inside)
    talkative = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = rich.HIDDEN
    Image.new("RGB", (8, 8)).save(talkative, "WEBP", exif=exif)
    stranger = f"thumbs/{'0' * 64}.webp"
    for entry, content in ((name, talkative.getvalue()), (name, b"RIFF"), (stranger, inside[name])):
        found = verify(remade(whole, tmp_path / "x.skn", {entry: content}), exports=EXPORTS)
        assert [(problem.kind, problem.where) for problem in found.problems] == [("added", entry)]


def test_a_key_that_is_another_or_gone_makes_the_restricted_tier_unreadable(
    sealed: Recording, whole: Path, tmp_path: Path
) -> None:
    for other, without in (({TIER_KEY: bytes(32)}, ()), ({TIER_KEY: b"short"}, ()), ({}, (TIER_KEY,))):
        found = verify(remade(whole, tmp_path / "x.skn", other, without))
        assert found.verdicts["evidence"] == "failed"
        assert len([p for p in found.problems if p.kind == "corrupt"]) == len(restricted(sealed))
        assert not found.ok


def test_what_stands_where_a_key_belongs_is_one_or_is_seen(tmp_path: Path) -> None:
    recorder, _ = recorder_in(tmp_path / "store")
    recorder.seal()
    bundle = pack(Recording(recorder.attempt), tmp_path / "run.skn").path
    found = verify(remade(bundle, tmp_path / "x.skn", {TIER_KEY: bytes(32)}))
    assert found.ok and found.facts["unsealed"] == [TIER_KEY]
    found = verify(remade(bundle, tmp_path / "x.skn", {TIER_KEY: b"smuggled " * 1000}))
    assert [(problem.kind, problem.where) for problem in found.problems] == [("changed", TIER_KEY)]


def test_what_expired_is_left_out_and_its_record_goes_along(tmp_path: Path) -> None:
    recording = rich.recorded(tmp_path / "store", retention={"ordinary": 0})
    assert recording.manifest is not None
    before = len(recording.manifest.blobs)
    expire(recording, recording.manifest.sealed_at + 10**9, act=True)
    recording = Recording(recording.attempt)
    done = pack(recording, tmp_path / "run.skn")
    assert len(done.expired) == before - len(restricted(recording)) > 0
    bundle = PackedRecording(str(done.path))
    found = verify(bundle)
    assert found.ok and found.verdicts["availability"] == "expired"
    states = {content["name"]: content["availability"] for content in availability.availabilities(bundle)}
    assert {name for name, state in states.items() if state == "expired"} == set(done.expired)
    inside = contents_of(done.path)
    assert inside["expiry.jsonl"] == (recording.attempt / "expiry.jsonl").read_bytes()
    for forged in (b"", inside["expiry.jsonl"].replace(b'"size":', b'"size":1', 1)):
        told = verify(remade(done.path, tmp_path / "x.skn", {"expiry.jsonl": forged}))
        assert not told.ok and told.verdicts["availability"] in ("missing", "failed")
