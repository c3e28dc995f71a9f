"""A video shows each screenshot as a key frame at its own time, its list says which row that is; all else stays."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from PIL import Image

from tests.conftest import require
from tests.engine.recorded import recorder_in
from tests.notes.test_notes import entries
from tests.store.rich import remade
from tests.tamper.test_other_readers import VERIFIER, node
from worldline.cli.main import cli
from worldline.engine import media
from worldline.engine.content import Content
from worldline.errors import AnnotationRefused, CommandNotFound, RecordError, UsageError
from worldline.store.bundle.media import KeyFrame, encode, key_frames
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.bundle.rewrite import changing, rewrite
from worldline.store.recording import Recording
from worldline.store.verify import verify

COLOURS = [(30 * n, 250 - 25 * n, 90 + 15 * n) for n in range(9)]
FORMS = ("PNG", "JPEG", "WEBP")


@pytest.fixture(autouse=True)
def programs() -> None:
    require("ffmpeg", shutil.which("ffmpeg") and shutil.which("ffprobe"), "not installed")


def screen(colour: tuple[int, int, int], form: str = "PNG", size: tuple[int, int] = (161, 101)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, colour).save(written, form)
    return written.getvalue()


@pytest.fixture
def run(quick: Path) -> Recording:
    """Nine screens in three formats and two sizes, one of a lane of its own, and one that is none."""
    recorder, boundary = recorder_in(quick / "runs")

    def seen(data: bytes, form: str = "PNG", lane: str = "main", name: str = "desk") -> None:
        content = Content(data, f"image/{form.lower()}")
        boundary.note("observation", "screenshot", lane, {}, {"name": name, "value": content})

    for number, colour in enumerate(COLOURS):
        seen(screen(colour, FORMS[number % 3], (161, 101) if number % 2 else (120, 140)), FORMS[number % 3])
        recorder.append("observation", "console", {}, {"name": "log", "value": "x"})
    seen(screen((9, 9, 9)), lane="A second agent")
    seen(b"\x89PNG\r\n\x1a\n and then nothing of one" * 900)
    recorder.seal()
    return Recording(recorder.attempt)


@pytest.fixture
def bundle(run: Recording, quick: Path) -> Path:
    return pack(run, quick / "run.skn").path


def probed(video: Path) -> list[tuple[int, str]]:
    """The ms and kind of each frame, as ffprobe sees them."""
    asked = ["-v", "error", "-select_streams", "v:0", "-show_entries", "frame=pts_time,pict_type", "-of", "json"]
    ran = subprocess.run(["ffprobe", *asked, video], capture_output=True, check=True)
    return [(round(float(f["pts_time"]) * 1000), f["pict_type"]) for f in json.loads(ran.stdout)["frames"]]


def colour_at(video: Path, ms: int) -> tuple[int, ...]:
    """The colour of a pixel of the frame that a seek to `ms` shows."""
    seek = ["-ss", f"{ms / 1000:.3f}", "-i", video, "-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "pipe:1"]
    ran = subprocess.run(["ffmpeg", "-v", "error", *map(str, seek)], capture_output=True, check=True)
    pixel = Image.open(io.BytesIO(ran.stdout)).convert("RGB").getpixel((40, 40))
    assert isinstance(pixel, tuple)
    return pixel


def test_the_frames_are_the_screenshots_at_their_own_times(run: Recording, quick: Path) -> None:
    (quick / "out").mkdir()
    made = media.make(run, quick / "out")
    first, second = made.tracks
    assert (first.track, second.track, first.pictures, second.pictures) == ("main", "a-second-agent", 9, 1)
    assert made.skipped == {"unreadable": 1} and (first.width, first.height) == (162, 140)
    frames = key_frames(first.frames.read_bytes())
    assert frames is not None and probed(first.video) == [(frame.ms, "I") for frame in frames]
    rows = [event for event in run.events() if event.name == "observation/screenshot" and event.lane == "main"]
    assert [(frame.seq, frame.t) for frame in frames] == [(row.seq, row.t) for row in rows[:9]]
    for frame, colour in zip(frames, COLOURS, strict=True):
        assert all(abs(a - b) < 12 for a, b in zip(colour_at(first.video, frame.ms), colour, strict=True)), frame


def test_waiting_is_cut_and_what_came_at_once_is_apart() -> None:
    second = 1_000_000_000
    shots = [media._Shot(seq, t, None) for seq, t in ((3, 5), (4, 6), (9, 2 * second), (12, 900 * second))]
    assert [frame.ms for frame in media._timed(shots)] == [0, 40, 2039, 7039]


def test_media_in_a_bundle_leave_every_stored_byte_as_it_is(bundle: Path) -> None:
    before = entries(bundle)
    for _ in range(2):  # again: in the place of those before
        ran = CliRunner().invoke(cli, ["media", str(bundle), "--json"], standalone_mode=False)
        assert ran.exception is None, ran.exception
        assert [track["pictures"] for track in json.loads(ran.stdout)["tracks"]] == [9, 1]
    after = entries(bundle)
    names = [f"media/{track}{end}" for track in ("a-second-agent", "main") for end in (".kf.json", ".mp4")]
    assert {name: after[name] for name in before} == before and sorted(set(after) - set(before)) == names
    found = verify(open_recording(bundle))
    assert found.ok and set(names) <= set(found.facts["unsealed"])
    assert node(VERIFIER, bundle)[0]["ok"]
    again = pack(open_recording(bundle), bundle.with_name("again.skn"), share=True)
    assert set(names) <= set(PackedRecording(str(again.path)).entries) and verify(open_recording(again.path)).ok


def test_nothing_of_the_restricted_tier_is_shown(quick: Path) -> None:
    recorder, boundary = recorder_in(quick / "runs")
    for tier in ("ordinary", "restricted"):
        content = Content(screen(COLOURS[1]), "image/png", tier=tier)
        boundary.note("observation", "screenshot", "main", {}, {"name": tier, "value": content})
    recorder.seal()
    made = media.make(Recording(recorder.attempt), quick)
    assert made.tracks[0].pictures == 1 and made.skipped == {"restricted": 1}


def frames_of(bundle: Path) -> list[KeyFrame]:
    packed = PackedRecording(str(bundle))
    found = key_frames(b"".join(packed.content_of(packed.entries["media/main.kf.json"])))
    assert found is not None
    return found


def moved(frames: list[KeyFrame], **to: int) -> bytes:
    return encode([KeyFrame(**{"t": frames[0].t, "seq": frames[0].seq, "ms": 0} | to), *frames[1:]])


WRONG: dict[str, Callable[[list[KeyFrame], bytes], dict[str, bytes]]] = {
    "a row that is no screenshot": lambda frames, video: {"media/main.kf.json": moved(frames, seq=0)},
    "a time of its own": lambda frames, video: {"media/main.kf.json": moved(frames, t=frames[0].t - 1)},
    "out of order": lambda frames, video: {"media/main.kf.json": encode(frames[::-1])},
    "another spelling": lambda frames, video: {"media/main.kf.json": encode(frames).replace(b",", b", ", 1)},
    "empty": lambda frames, video: {"media/main.kf.json": b"[]"},
    "no video": lambda frames, video: {"media/main.mp4": b"GIF89a" + bytes(50)},
    "junk behind it": lambda frames, video: {"media/main.mp4": video + b"more"},
    "a box that no movie needs": lambda frames, video: {"media/main.mp4": video + b"\0\0\0\x10uuid12345678"},
    "cut": lambda frames, video: {"media/main.mp4": video[:-1]},
    "a list alone": lambda frames, video: {"media/other.kf.json": encode(frames)},
    "a video alone": lambda frames, video: {"media/other.mp4": video},
    "two videos": lambda frames, video: {"media/main.webm": b"\x1aE\xdf\xa3 webm"},
}


def test_media_that_are_not_of_this_run_are_reported(bundle: Path) -> None:
    CliRunner().invoke(cli, ["media", str(bundle)])
    packed, frames = PackedRecording(str(bundle)), frames_of(bundle)
    video = b"".join(packed.content_of(packed.entries["media/main.mp4"]))
    for name, change in WRONG.items():
        spoilt = remade(bundle, bundle.with_name("spoilt.skn"), change(frames, video))
        assert not verify(spoilt).ok, name
    assert verify(remade(bundle, bundle.with_name("good.skn"))).ok


def test_a_bundle_of_the_first_format_has_no_place_for_media() -> None:
    old = next((Path(__file__).parents[1] / "golden" / "v0").glob("*.skn"))
    copy = Path(shutil.copy(old, Path.cwd() / "old.skn"))
    packed = PackedRecording(str(copy))
    with pytest.raises(AnnotationRefused, match="worldline-container/0"), changing(packed) as held:
        rewrite(held, {"media/main.mp4": [b"x"]})
    assert copy.read_bytes() == old.read_bytes()


def with_path(*programs: tuple[str, str]) -> dict[str, str]:
    """A PATH with these scripts and nothing else but sh."""
    folder = Path.cwd() / "bin"
    folder.mkdir()
    for name, text in programs:
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": str(folder)}


@pytest.mark.parametrize(
    ("scripts", "kind", "says"),
    [
        ((), CommandNotFound, "not installed"),
        ((("ffmpeg", "echo ' V gif '"),), CommandNotFound, "neither libx264 or libvpx-vp9"),
        (
            (("ffmpeg", '[ "$2" = -encoders ] && echo " V libx264 " && exit; echo "no room" >&2; exit 3'),),
            RecordError,
            "ffmpeg made no video: no room",
        ),
    ],
)
def test_without_an_ffmpeg_that_works_it_says_so_and_leaves_nothing(
    scripts: Any, kind: type[Exception], says: str, run: Recording, quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", with_path(*scripts)["PATH"])
    (quick / "out").mkdir()
    with pytest.raises(kind, match=says):
        media.make(run, quick / "out")
    assert list((quick / "out").iterdir()) == []


def test_what_has_no_screens_or_is_no_bundle_is_refused(quick: Path) -> None:
    recorder, _ = recorder_in(quick / "runs")
    recorder.seal()
    with pytest.raises(UsageError, match="no screenshots"):
        media.make(Recording(recorder.attempt), quick)
    with pytest.raises(UsageError, match="give -o FOLDER"):
        CliRunner().invoke(cli, ["media", str(recorder.attempt)], standalone_mode=False, catch_exceptions=False)
