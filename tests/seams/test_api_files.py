"""Files that an agent saw: kept as they are from every process, never with a secret, and small in a bundle."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from PIL import Image

import worldline as wl
from worldline.engine.pictures import thumbnail
from worldline.errors import UsageError
from worldline.store.bundle.pack import pack
from worldline.store.recording import Recording

SECRET = "sesame-" + "open-" * 4


def screen(colour: str) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (640, 400), colour).save(written, "PNG")
    return written.getvalue()


def seen(recording: Recording) -> list[tuple[str, bytes, str]]:
    """The observations of a run: src, bytes, media type."""
    values = [(e.src, e.data["value"]) for e in recording.events() if e.kind == "observation"]
    return [(src, *recording.encoded(value)) for src, value in values]


def test_pictures_and_other_files_are_kept_byte_for_byte(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        wl.observe(screen("red"), src="screenshot", media_type="image/png")
        run.observe(bytearray(b"\xff\x00raw"), src="file", name="a", media_type="application/octet-stream")
        wl.observe(b"as plain data", src="terminal")
    assert run.path is not None
    recording = Recording(run.path)
    assert seen(recording)[:2] == [
        ("screenshot", screen("red"), "image/png"),
        ("file", b"\xff\x00raw", "application/octet-stream"),
    ]
    assert wl.open(run.path).verify().ok
    assert recording.manifest is not None
    kinds = {blob[2]: blob[4] for blob in recording.manifest.blobs}
    assert kinds == {"image/png": "captured", "application/octet-stream": "captured"}
    packed = pack(recording, tmp_path / "run.skn", thumbnail=thumbnail)
    names = zipfile.ZipFile(packed.path).namelist()
    assert [Path(name).suffix for name in names if name.startswith("thumbs/")] == [".webp"]
    assert any(name.endswith(".png") for name in names) and any(name.endswith(".bin") for name in names)


def test_a_child_process_hands_its_pictures_over_whole(tmp_path: Path) -> None:
    (tmp_path / "red.png").write_bytes(screen("red"))
    code = (
        "import worldline as wl, pathlib\n"
        "wl.observe(pathlib.Path('red.png').read_bytes(), src='screenshot', media_type='image/png')"
    )
    with wl.record(tmp_path / "runs") as run:
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | run.environment(), check=True)
    assert run.path is not None
    assert seen(Recording(run.path)) == [("screenshot", screen("red"), "image/png")]


def test_a_secret_inside_a_file_is_never_written(tmp_path: Path) -> None:
    with wl.record(tmp_path, secrets={"S": SECRET}) as run:
        wl.observe(screen("red") + SECRET.encode(), src="screenshot", media_type="image/png")
    assert run.path is not None
    ((_, kept, media_type),) = seen(Recording(run.path))
    assert b"S" in kept and b"PNG" not in kept and media_type == "text/plain"
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("value", "media_type"),
    [("text", "image/png"), (b"{}", "application/json"), (b"x", "png"), (b"x", "image/png; q=1")],
)
def test_what_is_no_file_is_refused(value: object, media_type: str, tmp_path: Path) -> None:
    with wl.record(tmp_path), pytest.raises(UsageError):
        wl.observe(value, src="screenshot", media_type=media_type)
