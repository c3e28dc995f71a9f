"""A video of what the screens showed: one track a lane, made of its screenshots by ffmpeg, where that is installed.

Every screenshot is a key frame at its own time, so that a seek shows exactly that one; between two a picture stands
still. Waiting is cut to `LONGEST_GAP`, so the video's time is its own: the list of key frames says which row stands
where. Only ordinary pictures are shown, none of the restricted tier, so that a video may go where thumbnails may.

    screenshots -> JPEG on a canvas of the largest (Pillow) -> Matroska in a pipe -> ffmpeg -> H.264 in MP4

H.264 is what browsers play everywhere; an ffmpeg without it makes VP9 in WebM.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, NamedTuple

from worldline.engine import matroska, pictures
from worldline.errors import CommandNotFound, Damaged, RecordError, UsageError
from worldline.model.events import Event
from worldline.model.fields import is_reference
from worldline.model.ids import slug
from worldline.store import layout
from worldline.store.bundle.media import KEY_FRAMES, SCREENSHOT, KeyFrame, encode
from worldline.store.newfile import new_file
from worldline.store.recording import Recording

LONGEST_GAP, SHORTEST_GAP = 5000, 40  # ms that a picture is seen at most, and at least
LARGEST = 3840, 2160  # pixels of a canvas
MOST_BYTES = 64 << 20  # of one screenshot
_CODECS = {
    ".mp4": ("libx264", ["-preset", "veryfast", "-crf", "20", "-bf", "0", "-movflags", "+faststart"]),
    ".webm": ("libvpx-vp9", ["-crf", "30", "-b:v", "0", "-deadline", "realtime", "-cpu-used", "6", "-row-mt", "1"]),
}
_PLAIN = ["-map_metadata", "-1", "-fflags", "+bitexact", "-flags:v", "+bitexact"]  # no times and no names in the file


class Made(NamedTuple):
    """One track: its name, the two files, how many pictures it has, its length in ms, and its size in pixels."""

    track: str
    video: Path
    frames: Path
    pictures: int
    ms: int
    width: int
    height: int


class Media(NamedTuple):
    """What was made, and how many screenshots are not in it, by why: `restricted`, `absent`, `unreadable`."""

    tracks: list[Made]
    skipped: dict[str, int]


class _Shot(NamedTuple):
    seq: int
    t: int
    value: Any


def make(recording: Recording, folder: Path, watch: Callable[[int], None] = lambda count: None) -> Media:
    """Write `<track>.mp4` (or `.webm`) and `<track>.kf.json` of each lane that has screenshots into `folder`.

    `watch` is told the bytes of each picture that is done (twice: looked at, and drawn). Raises `CommandNotFound`
    without ffmpeg, `UsageError` without Pillow, where there is nothing to show, or where a file is there already, and
    `RecordError` where ffmpeg fails.
    """
    program, suffix = _encoder()
    if not pictures.available():
        raise UsageError("a video is drawn with Pillow: pip install 'worldline[images]'", needs="pillow")
    lanes, skipped = _shots(recording)
    tracks: list[Made] = []
    for lane, shots in lanes.items():
        good, canvas = _measured(recording, shots, skipped, watch)
        if good:
            name = _name(lane, {made.track for made in tracks})
            tracks.append(_track(recording, folder, name, suffix, program, good, canvas, watch))
    if not tracks:
        why = ", ".join(f"{count} {word}" for word, count in skipped.items()) or "it has none"
        raise UsageError(f"{recording.path} has no screenshots to make a video of: {why}", path=str(recording.path))
    return Media(tracks, skipped)


def _encoder() -> tuple[str, str]:
    """ffmpeg, and the ending of what it can make. Raises `CommandNotFound`."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise CommandNotFound("ffmpeg makes the video, and is not installed", command="ffmpeg")
    asked = subprocess.run([program, "-hide_banner", "-encoders"], capture_output=True, text=True, check=False)
    known = next((suffix for suffix, (codec, _) in _CODECS.items() if f" {codec} " in asked.stdout), None)
    if known is None:
        wanted = " or ".join(codec for codec, _ in _CODECS.values())
        raise CommandNotFound(f"{program} has neither {wanted}; install one that does", command="ffmpeg")
    return program, known


def _shots(recording: Recording) -> tuple[dict[str, list[_Shot]], dict[str, int]]:
    """The screenshots by lane, in order; those of the restricted tier are only counted."""
    lanes: dict[str, list[_Shot]] = {}
    skipped: dict[str, int] = {}
    for event in recording.events():
        if event.name != SCREENSHOT:
            continue
        if _is_restricted(event):
            skipped["restricted"] = skipped.get("restricted", 0) + 1
        else:
            lanes.setdefault(event.lane, []).append(_Shot(event.seq, event.t, event.data.get("value")))
    return lanes, skipped


def _is_restricted(event: Event) -> bool:
    value: Any = event.data.get("value")
    return is_reference(value) and value["$blob"].get("tier") != layout.ORDINARY


def _measured(
    recording: Recording, shots: list[_Shot], skipped: dict[str, int], watch: Callable[[int], None]
) -> tuple[list[_Shot], tuple[int, int]]:
    """The screenshots that are pictures, and a canvas for all of them, even in both ways as video codecs need it."""
    good, width, height = [], 0, 0
    for shot in shots:
        data = _picture(recording, shot)
        size = pictures.size(data) if data is not None else None
        if size is None:
            why = "absent" if data is None else "unreadable"
            skipped[why] = skipped.get(why, 0) + 1
        else:
            good.append(shot)
            width, height = max(width, size[0]), max(height, size[1])
        watch(len(data or b""))
    width, height = min(width, LARGEST[0]), min(height, LARGEST[1])
    return good, (width + width % 2, height + height % 2)


def _picture(recording: Recording, shot: _Shot) -> bytes | None:
    """The bytes of a screenshot; None where they are not here."""
    try:
        data = recording.content(shot.value)
    except Damaged:
        return None
    return data if 0 < len(data) <= MOST_BYTES else None


def _timed(shots: list[_Shot]) -> list[KeyFrame]:
    """Where each stands in the video: as far apart as they were, within bounds."""
    frames: list[KeyFrame] = []
    for shot in shots:
        ms = 0
        if frames:
            ms = frames[-1].ms + min(max((shot.t - frames[-1].t) // 1_000_000, SHORTEST_GAP), LONGEST_GAP)
        frames.append(KeyFrame(shot.t, shot.seq, ms))
    return frames


def _track(
    recording: Recording,
    folder: Path,
    name: str,
    suffix: str,
    program: str,
    shots: list[_Shot],
    canvas: tuple[int, int],
    watch: Callable[[int], None],
) -> Made:
    frames, video, listed = _timed(shots), folder / f"{name}{suffix}", folder / f"{name}{KEY_FRAMES}"
    ends = [*(frame.ms for frame in frames[1:]), frames[-1].ms + SHORTEST_GAP]

    def stream() -> Iterator[bytes]:
        yield matroska.header(*canvas)
        for shot, frame, end in zip(shots, frames, ends, strict=True):
            data = _picture(recording, shot)
            drawn = pictures.on_canvas(data, canvas) if data is not None else None
            if drawn is None:
                raise Damaged(f"the screenshot of row {shot.seq:,} is not what it was a moment ago", seq=shot.seq)
            yield matroska.picture(frame.ms, drawn, end - frame.ms)
            watch(len(data or b""))

    with new_file(video) as write, TemporaryDirectory(prefix=".worldline-", suffix=".tmp", dir=folder) as place:
        made = Path(place) / f"video{suffix}"
        _encode(program, suffix, stream(), made)
        with made.open("rb") as file:
            while part := file.read(1 << 20):
                write(part)
    with new_file(listed) as write:
        write(encode(frames))
    return Made(name, video, listed, len(frames), ends[-1], *canvas)


def _encode(program: str, suffix: str, stream: Iterator[bytes], made: Path) -> None:
    """Let ffmpeg read the stream and write the video. Raises `RecordError` with what it says."""
    codec, options = _CODECS[suffix]
    reading = [program, "-hide_banner", "-loglevel", "error", "-f", "matroska", "-i", "pipe:0", "-map", "0:v:0"]
    exact = ["-fps_mode", "passthrough", "-enc_time_base", "1:1000", "-g", "1", "-pix_fmt", "yuv420p"]
    scale = ["-video_track_timescale", "1000"] if suffix == ".mp4" else []
    command = [*reading, *exact, "-c:v", codec, *options, *scale, *_PLAIN, str(made)]
    with (
        TemporaryFile() as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said, bufsize=0) as process,
    ):
        assert process.stdin is not None
        try:
            for part in stream:
                layout.write_all(process.stdin.fileno(), part)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it ended early, and says why
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            said.seek(0)
            words = said.read(4096).decode("utf-8", "replace").strip().splitlines() or ["it says nothing"]
            raise RecordError(f"ffmpeg made no video: {words[-1]}", code=process.returncode)


def _name(lane: str, taken: set[str]) -> str:
    """A track's name: the lane's in letters and digits, with a number where two would be the same."""
    name, number = slug(lane, "track"), 2
    while name in taken:
        name, number = f"{slug(lane, 'track')}-{number}", number + 1
    return name
