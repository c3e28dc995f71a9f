"""Media of a bundle: a video of each track, and the list that says which row each of its key frames shows.

    media/<track>.mp4 (or .webm)       made by who knows how (`engine.media`); here only its outer form is looked at
    media/<track>.kf.json              [{"t":5120000000,"seq":97,"ms":0},...]: the row, its time, and where in the video

They are derived and cannot be made again byte for byte, so nothing but their own digests speaks for them, like for
thumbnails. What can be checked is: the form of both, that each track has both, and that every key frame names a
screenshot's row with its time, in order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec

from worldline.model.events import Event, encode_json
from worldline.store.bundle.container import MEDIA

SCREENSHOT = "observation/screenshot"
KEY_FRAMES = ".kf.json"
VIDEOS = {".mp4": "video/mp4", ".webm": "video/webm"}
MOST_KEY_FRAME_BYTES = 32 << 20
_BOXES = frozenset({b"ftyp", b"free", b"mdat", b"moov"})  # of an MP4 that is one movie and carries nothing else
_EBML = b"\x1aE\xdf\xa3"


class KeyFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key frame: it shows the screenshot of row `seq` at `t` (ns since the run began), `ms` into the video."""

    t: int
    seq: int
    ms: int


class Track(NamedTuple):
    """The entries of a track: its video's name, and its list's."""

    video: str
    frames: str


def tracks(names: Iterable[str]) -> dict[str, Track]:
    """The tracks among the names of entries that have both parts, by their names."""
    there = [name for name in names if name.startswith(MEDIA)]
    videos = {name[len(MEDIA) :].rpartition(".")[0]: name for name in there if name.endswith(tuple(VIDEOS))}
    lists = {name[len(MEDIA) : -len(KEY_FRAMES)]: name for name in there if name.endswith(KEY_FRAMES)}
    return {track: Track(videos[track], lists[track]) for track in videos if track in lists}


def alone(names: Iterable[str]) -> list[str]:
    """The entries of media that are no part of a whole track: a list without its video, a video twice."""
    there = [name for name in names if name.startswith(MEDIA)]
    paired = {name for track in tracks(there).values() for name in track}
    return [name for name in there if name not in paired]


def encode(frames: list[KeyFrame]) -> bytes:
    """The bytes of a list of key frames."""
    return encode_json(frames)


def key_frames(data: bytes) -> list[KeyFrame] | None:
    """The list as it was written; None for anything else: another spelling, no order, nothing in it."""
    try:
        frames = msgspec.json.decode(data, type=list[KeyFrame])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    ordered = all(a.seq < b.seq and a.t <= b.t and a.ms < b.ms for a, b in pairwise(frames))
    return frames if frames and ordered and frames[0].ms >= 0 and encode(frames) == data else None


class Screens:
    """The rows of screenshots, while the log is read: what key frames may name."""

    def __init__(self, names: Iterable[str]) -> None:
        self._asked = any(name.startswith(MEDIA) for name in names)  # else nothing is kept of them
        self._times: dict[int, int] = {}

    def row(self, event: Event) -> None:
        """The next row."""
        if self._asked and event.name == SCREENSHOT:
            self._times[event.seq] = event.t

    def named(self, frames: list[KeyFrame]) -> bool:
        """Whether every key frame is a screenshot's row, at its time."""
        times: Mapping[int, int] = self._times
        return all(times.get(frame.seq) == frame.t for frame in frames)


class VideoForm:
    """Whether bytes, given in parts, are one MP4 movie or one WebM file by their outermost form. Nothing is decoded."""

    def __init__(self, name: str) -> None:
        self._is_mp4 = name.endswith(".mp4")
        self._head = b""  # of the box under way
        self._skip = 0  # bytes of its body that are still to come
        self._kinds: list[bytes] = []
        self._wrong = False

    def part(self, data: bytes) -> None:
        """The next bytes."""
        if not self._is_mp4:
            self._head = (self._head + data)[:64] if len(self._head) < 64 else self._head
            return
        at = 0
        while at < len(data) and not self._wrong:
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip, at = self._skip - step, at + step
                continue
            needed = 16 if self._head[:4] == b"\0\0\0\1" else 8
            step = min(needed - len(self._head), len(data) - at)
            self._head, at = self._head + data[at : at + step], at + step
            if len(self._head) == 8 and self._head[:4] != b"\0\0\0\1":
                self._box(struct.unpack(">I", self._head[:4])[0] - 8)
            elif len(self._head) == 16:
                self._box(struct.unpack(">Q", self._head[8:])[0] - 16)

    def _box(self, left: int) -> None:
        self._kinds.append(self._head[4:8])
        self._wrong = left < 0 or self._kinds[-1] not in _BOXES
        self._head, self._skip = b"", left

    @property
    def fits(self) -> bool:
        """Whether it was, once all has come."""
        if not self._is_mp4:
            return self._head[:4] == _EBML and b"webm" in self._head
        whole = not (self._wrong or self._head or self._skip)
        return whole and self._kinds[:1] == [b"ftyp"] and self._kinds.count(b"moov") == 1 and b"mdat" in self._kinds
