"""A bundle whose end is missing, as a broken download leaves it: it is said, and the rows that came are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import worldline as wl
from worldline.cli.main import cli
from worldline.errors import CutShort, NotARecording
from worldline.store.bundle.container import LOG_HEADER
from worldline.store.bundle.cut import CutRecording
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.recording import Recording
from worldline.view.answers import Bytes
from worldline.view.opened import Bundle


@wl.tool(effect="pure")
def echo(text: str) -> str:
    return text


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> PackedRecording:
    place = tmp_path_factory.mktemp("cut")
    with wl.record(place / "runs", task="cut it") as run:
        echo("a long answer, " * 4000)
        for number in range(30):
            with run.step():
                echo(f"question {number} " + "".join(f"{number * each:x}" for each in range(2000)))
    assert run.path is not None
    pack(Recording(run.path), place / "run.skn")
    return PackedRecording(str(place / "run.skn"))


def places(packed: PackedRecording) -> dict[str, int]:
    """Where a download may break off."""
    offsets, log = packed.container.offsets(), packed.entries["events.jsonl"]
    behind = LOG_HEADER + log.stored
    return {
        "behind the first date": 14,
        "in the first header": 17,
        "in its name": 34,
        "behind the first header": LOG_HEADER,
        "in the first row": LOG_HEADER + 20,
        "in the log": LOG_HEADER + log.stored * 6 // 10,
        "at the end of the log": behind - 1,
        "behind the log": behind,
        "in a content": behind + 200,
        "in the manifest": offsets["manifest.json"] + 40,
        "in the tables": packed.source.size - 98 - 300,
        "before the end records": packed.source.size - 98,
        "in the end records": packed.source.size - 40,
        "at the last byte": packed.source.size - 1,
    }


HEADER = ("behind the first date", "in the first header", "in its name", "behind the first header", "in the first row")
PLACES = (
    *HEADER,
    *("in the log", "at the end of the log", "behind the log", "in a content", "in the manifest", "in the tables"),
    *("before the end records", "in the end records", "at the last byte"),
)


def say(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), standalone_mode=False)


@pytest.mark.parametrize("where", PLACES)
def test_wherever_it_is_cut_that_is_said_and_what_is_left_is_read(
    where: str, packed: PackedRecording, quick: Path
) -> None:
    whole = Path(packed.source.name).read_bytes()
    size, path = places(packed)[where], quick / "run.skn"
    path.write_bytes(whole[:size])
    with pytest.raises(CutShort) as said:
        open_recording(path)
    assert f"{path} is cut at byte {size:,} of a bundle: download it again" in str(said.value)
    assert f"`worldline view {path}`" in str(said.value) and said.value.exit_code == 1
    for verb in ("verify", "replay"):
        words = [verb, str(path), *(["--", "true"] if verb == "replay" else [])]
        assert isinstance(say(*words).exception, CutShort), verb
    rows = [event.raw for event in packed.events()]
    if where in HEADER:
        assert isinstance(say("show", str(path)).exception, CutShort), "not one row of it is there"
        return
    left = CutRecording(str(path), said.value)
    found = [event.raw for event in left.events()]
    assert found == rows[: len(found)] and found
    assert (len(found) == len(rows)) == (where != "in the log")
    assert left.damages[-1].kind == "cut" and left.damages[-1].offset == size and left.damages[-1].seq == len(found)
    assert (left.manifest, left.disposition, left.summary) == (None, "damaged", {})
    shown: Any = json.loads(say("show", str(path), "--json").stdout)
    assert shown["disposition"] == "damaged" and shown["problems"][-1]["kind"] == "cut" and shown["steps"]
    assert "cut at byte" in say("show", str(path)).stdout
    panel = Bundle(left)
    about = panel.about()
    assert about["disposition"] == "damaged" and about["task"] == "cut it"
    answer = panel.get(["bundle.skn"], {}, {})
    assert isinstance(answer, Bytes) and b"".join(answer.parts(range(size))) == whole[:size], (
        "the page is given what there is"
    )
    with pytest.raises(CutShort):
        panel.get(["verify"], {}, {})
    path.write_bytes(whole)  # it was downloaded again meanwhile
    assert panel.about()["disposition"] == "complete"


@pytest.mark.parametrize(
    "other",
    [
        b"PK\x03\x04" + b"\x14\x00" * 200,
        b"PK\x05\x06" + bytes(18),
        b"",
        b"PK",
        b"\x50\x4b\x03\x04-\0\0\0\x08\0\0\0!\0" + b"x" * 90,
    ],
    ids=["another zip", "an empty zip", "empty", "two bytes", "another first entry"],
)
def test_what_does_not_begin_as_a_bundle_is_no_cut_one(other: bytes, quick: Path) -> None:
    path = quick / "other.skn"
    path.write_bytes(other)
    with pytest.raises(NotARecording):
        PackedRecording(str(path))
