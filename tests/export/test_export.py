"""What a run is given away as: a page holds exactly the bundle that `pack --share` makes, and nothing that it keeps."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import worldline as wl
from tests.engine.recorded import recorder_in
from tests.faults.recorder_process import meet
from tests.store.rich import WORDS, recorded
from worldline.cli.main import cli
from worldline.engine.export import EXPORTS
from worldline.engine.pictures import thumbnail
from worldline.errors import Ineligible, UsageError, WorldlineError
from worldline.store import notes
from worldline.store.bundle.container import AUDIT, TIER_KEY
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.recording import Recording
from worldline.store.verify import verify
from worldline.view import export_html
from worldline.view.export import FORMATS, export

META = re.compile(r'<meta name="worldline-(bundle|folder)" content="(\d+),([^"]*)">')
CHUNK = re.compile(r'<script type="text/plain" data-skn="(\d+),(\d+)">([A-Za-z0-9+/=]*)</script>')
SCRIPT = re.compile(r'__skn\((\d+),"([A-Za-z0-9+/=]*)"\)\n')


@pytest.fixture
def run(quick: Path) -> Recording:
    run = recorded(quick / "runs")
    notes.annotate(run, now_ns=1, seq=3, at="step:1", text="a note </script><script>alert(1)</script>")
    notes.audit(run, "reveal", "step:1", 3, "someone looked", now_ns=2)
    return run


def in_page(path: Path) -> tuple[bytes, list[tuple[int, int]]]:
    """The bytes that a page carries, and the ranges in the order in which they stand there."""
    text = path.read_text("utf-8")
    (said,) = META.findall(text)
    carried, ranges = bytearray(int(said[1])), []
    for offset, length, data in CHUNK.findall(text):
        part = base64.b64decode(data, validate=True)
        assert len(part) == int(length)
        carried[int(offset) : int(offset) + len(part)] = part
        ranges.append((int(offset), int(length)))
    return bytes(carried), ranges


def in_folder(path: Path) -> bytes:
    """The same of a folder."""
    ((kind, size, rest),) = META.findall((path / "index.html").read_text("utf-8"))
    step, parts = int(rest.rpartition(",")[2]), []
    for number, script in enumerate(sorted((path / "chunks").iterdir())):
        matched = SCRIPT.fullmatch(script.read_text("ascii"))
        assert matched is not None and script.name == f"{number:06d}.js" and int(matched[1]) == number * step
        parts.append(base64.b64decode(matched[2], validate=True))
    assert kind == "folder" and sum(map(len, parts)) == int(size)
    return b"".join(parts)


def shared(run: Recording, target: Path, share: bool = True) -> bytes:
    return pack(run, target, share=share, thumbnail=thumbnail).path.read_bytes()


def test_a_page_holds_exactly_the_shared_bundle_its_end_first(
    run: Recording, quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_html, "CHUNK", 3000)  # so that there are many
    done = export(run, quick / "run.html", "html")
    carried, ranges = in_page(quick / "run.html")
    assert carried == shared(run, quick / "run.skn")
    packed = PackedRecording(str(quick / "run.skn"))
    tail = packed.container.offsets()["index.json"] - packed.entries["index.json"].header_size
    assert ranges[0][0] == tail and ranges == sorted(ranges, key=lambda r: (r[0] < tail, r[0]))
    assert sum(length for _, length in ranges) == len(carried) == done.bundle and len(ranges) > 10
    assert done.size == (quick / "run.html").stat().st_size
    assert set(done.withheld) == packed.withheld and len(done.withheld) == 6


def test_nothing_restricted_and_no_secret_is_in_a_page(quick: Path) -> None:
    secret = "obviously-" + "fake-" * 3 + "value"
    with wl.record(quick / "store", task="hide", secrets={"FAKE": secret}) as live:
        live.observe({"seen": secret}, src="console")
    run = recorded(quick / "runs")
    notes.audit(run, "reveal", "step:1", 3, "someone looked", now_ns=2)
    assert live.path is not None
    for recording, words in ((Recording(live.path), secret), (run, WORDS)):
        for name, target in (("page", quick / f"{words[:5]}.html"), ("folder", quick / f"{words[:5]}f.html")):
            done = export(recording, target, "html", folder=name == "folder")
            carried = in_folder(done.path) if done.folder else in_page(done.path)[0]
            (quick / "carried.skn").write_bytes(carried)
            with zipfile.ZipFile(quick / "carried.skn") as opened:
                inside = b"".join(opened.read(entry) for entry in opened.namelist())
                assert TIER_KEY not in opened.namelist() and AUDIT not in opened.namelist()
            assert words.encode() not in inside and words.encode() not in carried
            assert verify(open_recording(quick / "carried.skn")).ok
    full = export(run, quick / "full.html", "html", full=True)
    (quick / "full.skn").write_bytes(in_page(full.path)[0])
    whole = PackedRecording(str(quick / "full.skn"))
    assert not full.withheld and {TIER_KEY, AUDIT} <= set(whole.entries) and verify(whole).ok


def test_what_it_says_of_itself_is_what_is_in_it(run: Recording, quick: Path) -> None:
    done = export(run, quick / "run.html", "html")
    assert done.holds == {"model requests": 0, "model answers": 0, "tool results": 1, "contents": 3}
    full = export(run, quick / "full.html", "html", full=True)
    assert full.holds == {"model requests": 2, "model answers": 2, "tool results": 2, "contents": 9}


def test_a_page_is_the_panel_and_only_the_bundle_is_added(run: Recording, quick: Path) -> None:
    panel = Path(export_html.__file__).with_name("viewer.html").read_text("utf-8")
    export(run, quick / "run.html", "html")
    page = (quick / "run.html").read_text("utf-8")
    assert CHUNK.sub("", META.sub("<!--worldline:head-->", page)).replace("\n\n", "\n").count("<script") == panel.count(
        "<script"
    )
    policy = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
    assert policy.findall(page) == policy.findall(panel)
    done = export(run, quick / "folder.html", "html", folder=True)
    (own,) = policy.findall((done.path / "index.html").read_text("utf-8"))
    assert own.replace("'self' file: ", "", 1) == policy.findall(panel)[0]
    assert in_folder(done.path) == in_page(quick / "run.html")[0]


def test_a_bundle_that_is_too_large_for_one_page_becomes_a_folder(
    run: Recording, quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_html, "LARGEST_PAGE", 1000)
    done = export(run, quick / "run.html", "html")
    assert done.folder and done.path == quick / "run" and not (quick / "run.html").exists()
    assert in_folder(quick / "run") == shared(run, quick / "run.skn")
    ran = CliRunner().invoke(cli, ["export", str(run.run_directory), "-o", str(quick / "again.html")])
    assert "a folder: " in ran.output and (quick / "again" / "index.html").is_file()


def test_exports_of_a_bundle_are_those_of_its_run(run: Recording, quick: Path) -> None:
    bundle = open_recording(pack(run, quick / "run.skn", thumbnail=thumbnail).path)
    for to, each in FORMATS.items():
        for name, source in (("run", run), ("bundle", bundle)):
            export(source, quick / f"{name}-{to}{each.ending}", to)
        assert (quick / f"run-{to}{each.ending}").read_bytes() == (quick / f"bundle-{to}{each.ending}").read_bytes()
    for to in ("decisions", "network"):
        assert (quick / f"run-{to}.jsonl").read_bytes() == b"".join(EXPORTS[f"{to}.jsonl"](run))


def test_what_cannot_be_exported_is_refused_and_nothing_is_left(run: Recording, quick: Path) -> None:
    (quick / "taken.html").write_bytes(b"mine")
    (quick / "folder").mkdir()
    recorder, _ = recorder_in(quick / "live")
    live = Recording(recorder.attempt)
    before = sorted(path.name for path in quick.iterdir())
    refused: list[tuple[type[Exception], Recording, str, str, dict[str, Any]]] = [
        (UsageError, run, "a.pdf", "pdf", {}),
        (UsageError, run, "taken.html", "html", {}),
        (UsageError, run, "folder.html", "html", {"folder": True}),
        (UsageError, run, "nowhere/a.html", "html", {}),
        (UsageError, run, "a.jsonl", "decisions", {"full": True}),
        (UsageError, run, "a.skn", "skn", {"folder": True}),
        *((Ineligible, live, f"a{each.ending}", to, {}) for to, each in FORMATS.items()),
    ]
    for kind, recording, name, to, options in refused:
        with pytest.raises(kind) as error:
            export(recording, quick / name, to, **options)
        assert "\n" not in str(error.value)
    assert sorted(path.name for path in quick.iterdir()) == before
    with pytest.raises(UsageError, match=", ".join(FORMATS)):
        export(run, quick / "a.pdf", "pdf")
    recorder.close()


@pytest.mark.parametrize("to", ["html", "decisions"])
def test_an_export_is_there_whole_or_not_at_all(to: str, run: Recording, quick: Path) -> None:
    target, met = quick / f"out{FORMATS[to].ending}", 0
    export(run, quick / f"whole{FORMATS[to].ending}", to)
    whole = (quick / f"whole{FORMATS[to].ending}").read_bytes()
    for number in range(1, 400, 5 if to == "html" else 1):
        child = os.fork()
        if child == 0:
            try:
                meet(number, errno.ENOSPC, ("write", "pwrite", "fsync", "link", "open"))
                export(run, target, to)
            except (OSError, WorldlineError):
                os._exit(17)
            finally:
                os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if target.exists():
            assert target.read_bytes() == whole
            target.unlink()
        if ended == 0:
            break
        met += 1
        assert not [path for path in quick.iterdir() if path.name.startswith(".")]
    assert met >= (2 if to == "html" else 1)


def test_memory_stays_small_however_large_the_run_is(quick: Path) -> None:
    with wl.record(quick / "store", task="large") as live:
        for _ in range(6):
            live.observe(os.urandom(4 << 20), src="file", media_type="application/octet-stream")
    recording = Recording(str(live.path))
    assert recording.manifest is not None  # room for the largest there may be is taken for a moment, and not used
    tracemalloc.start()
    done = export(recording, quick / "large.html", "html")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert done.size > 30 << 20 and peak < 16 << 20


def test_the_verb_says_what_is_in_it_and_what_is_not(run: Recording, quick: Path) -> None:
    words = ["export", str(run.run_directory), "--to", "html", "-o", str(quick / "run.html")]
    ran = CliRunner().invoke(cli, words)
    assert ran.exit_code == 0 and "left out: 6 restricted contents" in ran.output and "1 tool result" in ran.output
    ran = CliRunner().invoke(cli, [*words[:-1], str(quick / "other.html"), "--json"])
    said = json.loads(ran.stdout)
    assert (said["format"], said["full"], len(said["withheld"])) == ("html", False, 6)
