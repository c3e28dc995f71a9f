"""What a page gets of a run in whatever state: the same index as in a bundle, and in words what is not there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import worldline as wl
from tests.store.forgetting import after, names, recorded
from tests.store.ranges import served
from tests.view.conftest import log_of
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import NotARecording
from worldline.model import events
from worldline.model.events import encode_json
from worldline.store.bundle.index import Index, is_trouble
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.forget.contain import contain
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording
from worldline.store.seek import JoinedLog
from worldline.view.indexed import index_of


def copied(run: Path, tmp_path: Path) -> Path:
    """The run as one that may be changed."""
    return Path(shutil.copytree(run.parent, tmp_path / "copy" / run.parent.name))


def packed(recording: Recording, folder: Path, **options: Any) -> PackedRecording:
    target = folder / "run.skn"
    pack(recording, target, **options)
    return PackedRecording(str(target))


def test_the_index_of_a_directory_is_that_of_its_bundle(panel: Any, tmp_path: Path) -> None:
    """Blocks begin at the same rows; only where they are stored is another place: their own bytes in the log."""
    recorder = Recorder(Spec(store=tmp_path / "runs", task="long"))
    recorder.log._chunk_bytes = 100_000
    for number in range(300):
        recorder.append("observation", "note", {}, {"value": "x" * 3_000}, lane=f"lane {number % 3}")
        recorder.append("permission", "denied" if number == 200 else "granted", {}, {"capability": "net"})
    run = recorder.seal()
    given = panel(run).run("index.json")
    own = msgspec.json.decode(given.body, type=Index)
    in_bundle = packed(Recording(run), tmp_path).index
    assert len(own.blocks.seq) > 3 and own.blocks.stored == own.blocks.raw
    own.blocks.stored = in_bundle.blocks.stored
    assert encode_json(own) == encode_json(in_bundle)
    log = log_of(Recording(run).attempt)
    for seq, raw in zip(own.blocks.seq, own.blocks.raw, strict=True):
        assert log[raw:].startswith(b'{"seq":%d,' % seq)


@pytest.mark.parametrize("damage", ["cut", "zeros", "removed"])
def test_the_index_of_a_damaged_log_leads_to_the_rows_behind_the_damage(tmp_path: Path, damage: str) -> None:
    recorder = Recorder(Spec(store=tmp_path))
    for number in range(400):
        recorder.append("observation", "note", {}, {"name": "n", "value": f"{number:04}" + "x" * 2_000})
    recorder.close()
    tail = recorder.attempt / "tail.jsonl"
    lines = tail.read_bytes().splitlines(True)
    lines[101] = {"cut": lines[101][:900] + b"\n", "zeros": bytes(len(lines[101])), "removed": b""}[damage]
    data = b"".join(lines)
    tail.write_bytes(data)
    index = index_of(JoinedLog(recorder.attempt))
    assert (index.raw, index.rows) == (len(data), 400)  # of 401 one is gone
    assert len(index.blocks.seq) > 3
    for seq, raw in zip(index.blocks.seq, index.blocks.raw, strict=True):
        assert data[raw:].startswith(b'{"seq":%d,' % seq)


def test_trouble_in_an_index_is_what_a_reader_of_whole_rows_finds(tmp_path: Path) -> None:
    """Few rows are read whole; whatever tells of trouble is among them."""
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("observation", "note", {"value": {"error": "of the world, not of the run"}}),
        ("observation", "note", {"value": 'it says "status": 500'}),
        ("decision", "response", {"status": 200}),
        ("decision", "response", {"status": 503}),
        ("decision", "response", {"status": 200, "closed_by": "upstream"}),
        ("observation", "tool_result", {"name": "x", "error": {"type": "E", "message": "m"}}),
        ("permission", "denied", {"capability": "net", "facts": {}}),
        ("meta", "loss", {"what": "x"}),
    ]
    for begin in range(len(rows)):
        recorder = Recorder(Spec(store=tmp_path))
        for kind, src, data in rows[begin:]:
            recorder.append(kind, src, {}, data)
        recorder.close()
        first = next((e for e in Recording(recorder.attempt).events() if is_trouble(e)), None)
        found = index_of(JoinedLog(recorder.attempt)).trouble
        assert (found and found.seq) == (first and first.seq)


def test_an_index_is_made_once_and_anew_when_more_was_written(panel: Any, writer: Any) -> None:
    writer.do("rows", rows=10)
    serve = panel(writer.path)
    first = serve.run("index.json")
    assert serve.run("index.json").headers["etag"] == first.headers["etag"] and first.json["rows"] == 11
    writer.do("rows", rows=10)
    assert serve.run("index.json").json["rows"] == 21
    assert serve.run("manifest.json").status == 404
    writer.do("sealed", seal=True)
    assert serve.run("manifest.json").json["rows"] == 22
    assert json.loads(serve.run("index.json").json["result"])["outcome"] == "unknown"
    assert serve.run("about").json["kind"] == "directory"


def test_every_file_is_served_as_it_stands_there(panel: Any, sealed: Path) -> None:
    serve, attempt = panel(sealed), Recording(sealed).attempt
    assert serve.run("manifest.json").body == (attempt / "manifest.json").read_bytes()
    assert serve.run("result.json").body == (attempt / "result.json").read_bytes()
    about = serve.run("about").json
    assert about["kind"] == "directory" and about["task"] == "look around" and about["sealed"] is True
    assert serve.run("study").json is None
    assert serve.run("annotations.jsonl").body == b""
    verdicts = serve.run("verify").json
    assert verdicts["ok"] is True and verdicts["verdicts"]["structure"] == "ok"


def test_contents_that_went_say_why(panel: Any, tmp_path: Path) -> None:
    recording = recorded(tmp_path / "runs")
    serve = panel(recording)
    (name, *others) = sorted(names(recording, "ordinary"))
    assert serve.run(f"contents/{name}").status == 200
    (restricted, *_) = sorted(names(recording, "restricted"))
    assert serve.run(f"contents/{restricted}").status == 200
    expire(recording, after(recording, 1_000), act=True)
    for gone in (name, restricted):
        got = serve.run(f"contents/{gone}")
        assert (got.status, got.json["missing"]) == (410, "expired") and got.json["why"]
    assert serve.run("expiry.jsonl").body.count(b"\n") >= 2
    assert serve.run(f"contents/{'0' * 64}").status == 404 and others


def test_contents_that_are_lost_or_changed_say_so(panel: Any, sealed: Path, tmp_path: Path) -> None:
    run = copied(sealed, tmp_path)
    serve = panel(run)
    attempt = Recording(run).attempt
    first, second, third = sorted(attempt.glob("blobs/ordinary/??/*"))[:3]
    assert serve.run(f"contents/{first.name}").status == 200
    first.unlink()
    data = bytearray(second.read_bytes())
    data[-1] ^= 1
    second.chmod(0o600)
    second.write_bytes(data)
    third.unlink()
    os.symlink("/etc/passwd", third)
    for path, word in ((first, "lost"), (second, "corrupt"), (third, "corrupt")):
        got = serve.run(f"contents/{path.name}")
        assert (got.status, got.json["missing"]) == (410, word), path
    assert not serve.run("verify").json["ok"]


def test_a_file_that_is_a_link_is_not_followed(panel: Any, sealed: Path, tmp_path: Path) -> None:
    run = copied(sealed, tmp_path)
    attempt = Recording(run).attempt
    (tmp_path / "secret").write_text("not for the page")
    for name in ("expiry.jsonl", "annotations.jsonl", "result.json"):
        (attempt / name).unlink(missing_ok=True)
        os.symlink(tmp_path / "secret", attempt / name)
    serve = panel(Recording(attempt))
    for name in ("expiry.jsonl", "annotations.jsonl", "result.json"):
        got = serve.run(name)
        assert got.status >= 400 and b"not for the page" not in got.body, name


def test_a_run_that_is_contained_meanwhile_is_gone_from_the_page(panel: Any, tmp_path: Path) -> None:
    with wl.record(tmp_path / "runs", task="leak") as run:
        wl.observe("the token is hunter2-hunter2", src="note")
    assert run.path is not None
    serve = panel(run.path)
    assert b"hunter2" in serve.run("events.jsonl").body
    contain(run.path.parent, "TOKEN", "hunter2-hunter2", 1)
    for path in ("about", "events.jsonl", "index.json", "verify", "live?from=0"):
        got = serve.run(path)
        assert got.status == 410 and got.json["error"] == "contained" and got.json["todo"], path
        assert b"hunter2" not in got.body
    listed = panel(store=tmp_path / "runs")
    assert [row["disposition"] for row in listed.get("api/runs").json["runs"]] == ["contained"]
    assert listed.get(f"r/{run.path.parent.name}/about").status == 410


def test_a_newer_format_opens_as_far_as_it_is_understood(panel: Any, tmp_path: Path) -> None:
    recorder = Recorder(Spec(store=tmp_path))
    recorder.append("observation", "note", {}, {"value": 1})
    recorder.close()
    tail = recorder.attempt / "tail.jsonl"
    row = tail.read_bytes().splitlines(True)[0].replace(b'"format":"worldline/1"', b'"format":"worldline/9"')
    body = row[: -events.SUFFIX]
    tail.write_bytes(events.line(body, events.link(events.GENESIS, events.leaf(body))))
    serve = panel(Recording(recorder.attempt))
    about = serve.run("about")
    assert about.status == 200 and about.json["trouble"]["error"] == "newer-format"
    assert serve.run("index.json").status == 200 and b"worldline/9" in serve.run("events.jsonl").body


def test_a_crashed_run_is_a_directory_whose_writer_died(panel: Any, writer: Any) -> None:
    writer.do("rows", rows=10)
    writer.kill()
    tail = Recording(writer.path).attempt / "tail.jsonl"
    if tail.exists():
        with tail.open("ab") as file:
            file.write(b'{"seq":11,"t":1')
    serve = panel(writer.path)
    about = serve.run("about").json
    assert (about["kind"], about["disposition"], about["sealed"]) == ("directory", "interrupted", False)
    index = serve.run("index.json").json
    assert index["rows"] == 11 and index["raw"] == len(serve.run("events.jsonl").body)
    assert serve.run("events.jsonl").body.endswith(b"\n"), "half a line is no row"


def test_a_bundle_is_served_whole_and_nothing_else_of_it(panel: Any, sealed: Path, tmp_path: Path) -> None:
    bundle = packed(Recording(sealed), tmp_path)
    serve = panel(bundle)
    assert serve.run("about").json["kind"] == "bundle" and serve.run("about").json["label"] == "run.skn"
    got = serve.run("bundle.skn")
    assert got.headers["content-type"] == "application/zip" and got.headers["content-disposition"] == "attachment"
    for path in ("events.jsonl", "manifest.json", "index.json", f"contents/{'a' * 64}"):
        assert serve.run(path).status == 404
    assert serve.run("live?from=0").status == 400
    assert serve.run("verify").json["ok"] is True


def test_a_bundle_behind_a_url_is_read_through_the_server(panel: Any, sealed: Path, tmp_path: Path) -> None:
    packed(Recording(sealed), tmp_path)
    data = (tmp_path / "run.skn").read_bytes()
    with served(tmp_path / "run.skn") as (url, sent):
        recording = open_recording(f"{url}/run.skn")
        serve = panel(recording)
        before = sum(sent)
        assert serve.run("bundle.skn", Range="bytes=100-199").body == data[100:200]
        assert sum(sent) - before <= 100
        assert serve.run("bundle.skn").body == data
        assert serve.run("verify").json["verdicts"]["structure"] == "ok"
        noted = serve.post(f"r/{serve.ids[0]}/annotations", {"seq": 1, "at": "step:0", "text": "hm"})
        assert noted.status == 409 and noted.json["error"] == "annotation-refused"
    recording.source._inner._connection.close()


def test_two_runs_are_compared_each_under_its_own_id(panel: Any, sealed: Path, tmp_path: Path) -> None:
    bundle = packed(Recording(sealed), tmp_path)
    serve = panel(Recording(sealed), bundle)
    session = serve.get("api/session").json
    first, second = session["runs"]
    assert session["mode"] == "compare" and first != second
    assert serve.get(f"r/{first}/about").json["kind"] == "directory"
    assert serve.get(f"r/{second}/about").json["kind"] == "bundle"


def test_notes_and_the_audit_are_written_beside_the_seal(panel: Any, sealed: Path, tmp_path: Path) -> None:
    run = copied(sealed, tmp_path)
    bundle = packed(Recording(run), tmp_path)
    for serve in (panel(run), panel(bundle)):
        target = f"r/{serve.ids[0]}/"
        line = serve.post(target + "annotations", {"seq": 4, "at": "step:1", "text": "look here", "tag": "cause"}).json
        assert line["text"] == "look here" and line["seq"] == 4 and line["who"]
        assert [note["id"] for note in serve.run("annotations").json] == [line["id"]]
        assert json.loads(serve.run("annotations.jsonl").body)["id"] == line["id"]
        seen = serve.post(target + "audit", {"what": "reveal", "scope": "step", "seq": 4, "reason": "I must know"})
        assert seen.status == 200 and serve.run("audit").json[0]["reason"] == "I must know"
        assert serve.post(target + "annotations", {"id": line["id"], "removed": True}).json["removed"] is True
        assert serve.run("annotations").json == []
        assert serve.run("verify").json["ok"] is True
        for wrong in ({"seq": 10**6, "at": "x", "text": "y"}, {"seq": 1, "at": "x"}, {"id": "a9", "removed": True}):
            assert serve.post(target + "annotations", wrong).status == 400


def test_a_folder_of_bundles_lists_and_opens_each_by_its_file(panel: Any, sealed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    packed(Recording(sealed), folder)
    (folder / "hostile ../%2e.skn").parent.mkdir(exist_ok=True)
    shutil.copy(folder / "run.skn", folder / "a b%2f..'\"<x>.skn")
    (folder / "no.skn").write_bytes(b"PK\x03\x04 no bundle")
    serve = panel(store=folder)
    rows = {row["run"]: row for row in serve.get("api/runs").json["runs"]}
    assert set(rows) == {"run.skn", "a b%2f..'\"<x>.skn", "no.skn"}
    from urllib.parse import quote

    for name in ("run.skn", "a b%2f..'\"<x>.skn"):
        assert serve.get(f"r/{quote(name, safe='')}/about").json["kind"] == "bundle"
        assert rows[name]["tools"] == ["look"] and rows[name]["permissions"] == {"denied": 1, "granted": 5}
    assert rows["no.skn"]["disposition"] == "damaged" and serve.get("r/no.skn/about").status == 400
    with pytest.raises(NotARecording):
        open_recording(folder / "no.skn")
