"""`worldline media BUNDLE`: a video of what the screens showed, put into the bundle, or beside it as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.engine.media import Made, Media, make
from worldline.errors import UsageError
from worldline.store.bundle.container import MEDIA
from worldline.store.bundle.packed import PackedRecording
from worldline.store.bundle.pictures import PICTURES
from worldline.store.bundle.rewrite import changing, rewrite
from worldline.store.recording import Recording


@click.command(
    epilog="""\b
Examples:
  worldline media refund.skn
  worldline media latest -o videos"""
)
@run_argument
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write the files there instead. A run in a directory needs it.",
)
@json_option
@store_option
def command(run: str, folder: Path | None, as_json: bool, store: Path | None) -> int:
    """Make a video of a run's screenshots: one track a lane, each screenshot a key frame at its own time.

    Waiting is cut to 5 seconds. Beside the video stands a list of its key frames, by row. Into a bundle both are added
    beside what was sealed; all else in it stays as it is, byte for byte. What is restricted is not shown. Needs ffmpeg
    and Pillow (`pip install 'worldline[images]'`).
    """
    recording = recording_of(run, store)
    if folder is None and not isinstance(recording, PackedRecording):
        raise UsageError(f"{recording.path} is no bundle; give -o FOLDER, or pack it first", path=str(recording.path))
    with render.progress("drawing", 2 * _pictures(recording)) as bar:
        if folder is not None:
            folder.mkdir(exist_ok=True)
            media = make(recording, folder, bar.update)
        else:
            assert isinstance(recording, PackedRecording)
            with TemporaryDirectory(prefix="worldline-") as place:
                media = make(recording, Path(place), bar.update)
                _put(recording, media)
    if as_json:
        tracks = [_told(track, folder) for track in media.tracks]
        render.emit_json({"path": folder or recording.path, "tracks": tracks, "skipped": media.skipped})
    else:
        _say(media, recording, folder)
    return 0


def _pictures(recording: Recording) -> int:
    """The bytes of all pictures of a run."""
    manifest = recording.manifest
    return sum(size for _, size, kind, _, _ in manifest.blobs if kind in PICTURES) if manifest is not None else 0


def _put(recording: PackedRecording, media: Media) -> None:
    """Put the media into the bundle in the place of those that it had."""
    with changing(recording) as held:
        entries: dict[str, Iterator[bytes] | None] = {name: None for name in held.entries if name.startswith(MEDIA)}
        for track in media.tracks:
            entries |= {MEDIA + path.name: _parts(path) for path in (track.video, track.frames)}
        rewrite(held, entries)


def _parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            yield part


def _told(track: Made, folder: Path | None) -> dict[str, object]:
    """One track for programs; where it is in a bundle, by the names of its entries."""
    told = track._asdict()
    return told if folder is not None else told | {name: MEDIA + told[name].name for name in ("video", "frames")}


def _say(media: Media, recording: Recording, folder: Path | None) -> None:
    for track in media.tracks:
        where = track.video if folder is not None else MEDIA + track.video.name
        facts = f"{render.counted(track.pictures, 'picture')}   {track.width} x {track.height}"
        render.verdict("ok", f"{where}   {facts}   {render.duration(track.ms / 1000)}")
    for why, count in media.skipped.items():
        render.verdict("warn", f"not in it: {render.counted(count, 'screenshot')}, {why}")
    if folder is None:
        render.line(f"  worldline verify {recording.path}    it says so: {MEDIA} stands beside what was sealed")
