"""A bundle: one file that any ZIP tool opens, in which no byte changes unnoticed, and which ranges can be read of."""

from __future__ import annotations

import io
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worldline as wl
from tests.conftest import require
from tests.store import ranges
from worldline.errors import Ineligible, NotARecording, ReadError, UsageError, WorldlineError
from worldline.store.bundle import container
from worldline.store.bundle.container_writer import ContainerWriter
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.recording import Recording
from worldline.store.source import FileSource
from worldline.store.verify import verify


@wl.tool(effect="pure")
def echo(text: str, times: int = 1) -> str:
    """Give back what came, so that rows and contents have a size."""
    return text * times


def record(store: Path, calls: int = 30) -> Recording:
    """A sealed run with inline rows, one content of its own, and rows enough for several blocks."""
    with wl.record(store, task="pack it") as run:
        echo("a long answer, ", 4000)
        for number in range(calls):
            echo(f"question {number} " + "and more words of it " * 900)
        run.outcome(done=True)
    assert run.path is not None
    return Recording(run.path)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("sealed"))


@pytest.fixture(scope="module")
def bundle(sealed: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("bundle") / "run.skn"
    pack(sealed, target)
    return target


def log_of(recording: Recording) -> bytes:
    return b"".join(event.raw for event in recording.events())


def test_any_zip_tool_opens_it_and_finds_the_same(sealed: Recording, bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as opened:
        assert opened.testzip() is None
        assert opened.read("events.jsonl") == log_of(sealed)
        assert opened.read("manifest.json") == (sealed.attempt / "manifest.json").read_bytes()
        contents = [name for name in opened.namelist() if name.startswith("resources/")]
        assert contents and all(opened.read(name) == sealed.blob(reference(name)) for name in contents)
    require("unzip", Path("/usr/bin/unzip").exists(), "not installed")
    done = subprocess.run(["unzip", "-tqq", bundle], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def reference(entry: str) -> dict[str, str]:
    return {"name": Path(entry).stem, "tier": "ordinary"}


def test_it_reads_verifies_and_replays_as_its_directory_does(sealed: Recording, bundle: Path) -> None:
    packed = open_recording(bundle)
    assert isinstance(packed, PackedRecording)
    assert log_of(packed) == log_of(sealed)
    assert (packed.fingerprint, packed.summary) == (sealed.fingerprint, sealed.summary)
    found = verify(packed)
    assert found.ok and found.verdicts["publication"] == "packed"
    ran: list[str] = []

    def agent() -> None:
        ran.append(echo("a long answer, ", 4000))
        for number in range(30):
            echo(f"question {number} " + "and more words of it " * 900)

    report = wl.open(bundle).replay(agent)
    assert report.verdict == "equivalent" and ran == ["a long answer, " * 4000]


def test_one_block_is_read_alone(sealed: Recording, bundle: Path) -> None:
    packed = PackedRecording(str(bundle))
    blocks = packed.index.blocks
    assert len(blocks.seq) > 2
    assert b"".join(packed.block(number) for number in range(len(blocks.seq))) == log_of(sealed)
    assert packed.index.rows == sum(packed.index.kinds.rows) == len(list(sealed.events()))


def judged(data: bytes, place: Path) -> str | None:
    """What is wrong with these bytes as a bundle, by our own word; None where nothing is."""
    place.write_bytes(data)
    try:
        found = verify(open_recording(place))
    except WorldlineError as error:
        return error.kind
    return None if found.ok else found.problems[0].kind


@settings(max_examples=60)
@given(cut=st.integers(0, 1 << 20), junk=st.binary(min_size=1, max_size=40))
def test_a_cut_a_prefix_or_a_suffix_is_noticed(
    cut: int, junk: bytes, bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole, place = bundle.read_bytes(), tmp_path_factory.getbasetemp() / "cut.skn"
    at = cut % len(whole)
    for data in (whole[:at], junk + whole, whole + junk, whole[:at] + junk + whole[at:]):
        assert judged(data, place) is not None


def remade(bundle: Path, change: str) -> bytes:
    """The same entries, packed again by another tool, with one change."""
    out = io.BytesIO()
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        entries = old.infolist()
        if change == "reordered":
            entries = entries[1:2] + entries[:1] + entries[2:]
        for info in entries:
            if change == "removed" and info.filename.startswith("resources/"):
                continue
            name = (
                f"resources/{'0' * 64}.txt" if change == "renamed" and info.filename == "index.json" else info.filename
            )
            new.writestr(name, old.read(info))
        if change == "added":
            new.writestr("resources/extra.txt", b"more")
        if change == "slip":
            new.writestr("../../etc/outside", b"out")
        if change == "comment":
            new.comment = b"hello"
    return out.getvalue()


@pytest.mark.parametrize("change", ["again", "reordered", "removed", "renamed", "added", "slip", "comment"])
def test_what_another_tool_made_of_it_is_refused(change: str, bundle: Path, tmp_path: Path) -> None:
    assert judged(remade(bundle, change), tmp_path / "x.skn") in ("not-a-recording", "damaged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.skn"]


def tampered(bundle: Path, **changes: object) -> bytes:
    """A bundle whose container was rewritten and made to fit again, as somebody who knows the format would."""
    source = FileSource(bundle)
    opened = container.open_container(source)
    fields = {"format": opened.format, "entries": opened.entries, "seal": opened.seal, "withheld": opened.withheld}
    body = source.read(0, sum(entry.header_size + entry.stored for entry in opened.entries))
    data = container.encode(container.Container(**(fields | changes)))  # type: ignore[arg-type]
    own = container.own_entry(data)
    return body + container.local_header(own) + data + container.central_directory((*opened.entries, own))


def test_a_container_that_was_made_to_fit_shows_in_what_was_sealed(bundle: Path, tmp_path: Path) -> None:
    assert judged(tampered(bundle), tmp_path / "x.skn") is None
    assert judged(tampered(bundle, seal="0" * 64), tmp_path / "x.skn") == "changed"


HOSTILE = {
    "nothing": b"",
    "no ZIP": b"PK\x03\x04" + bytes(200),
    "an end record alone": b"PK\x05\x06" + bytes(18),
    "a million entries": container.central_directory(())[:24] + (10**12).to_bytes(8, "little") * 4 + bytes(42),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_bundle_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.skn").write_bytes(HOSTILE[name])
    with pytest.raises(WorldlineError):
        PackedRecording(str(tmp_path / "x.skn"))


def test_a_bomb_gives_no_more_than_it_says(tmp_path: Path) -> None:
    with ContainerWriter(tmp_path / "bomb.skn") as writer:
        for name in ("events.jsonl", "index.json", "manifest.json"):
            writer.deflate(name, [bytes(1 << 20)] * 20)
        writer.entries = [container.Entry(e.name, e.method, 1000, e.stored, e.crc32, e.sha256) for e in writer.entries]
        writer.finish("0" * 64, ())
    data = bytearray((tmp_path / "bomb.skn").read_bytes())
    at = 0
    opened = container.open_container(FileSource(tmp_path / "bomb.skn"))
    for entry in opened.entries:  # the headers say what the container says
        data[at : at + entry.header_size] = container.local_header(entry)
        at += entry.header_size + entry.stored
    (tmp_path / "bomb.skn").write_bytes(data)
    packed = PackedRecording(str(tmp_path / "bomb.skn"))
    with pytest.raises(WorldlineError, match="larger than it says"):
        for part in packed.content_of(packed.entries["index.json"]):
            assert len(part) <= 1 << 20
    assert not verify(packed).ok


@pytest.fixture
def served(bundle: Path) -> Iterator[tuple[str, list[int]]]:
    """A URL of the bundle on a server that answers ranges, and how many bytes each answer had."""
    with ranges.served(bundle) as found:
        yield found


def test_over_http_only_what_is_asked_for_is_read(
    served: tuple[str, list[int]], bundle: Path, sealed: Recording
) -> None:
    url, sent = served
    packed = PackedRecording(f"{url}/run.skn")
    assert packed.manifest is not None and packed.summary["task"] == "pack it"
    first_screen = sum(sent)
    assert len(sent) == 2 and first_screen <= 64 * 1024 + 1, "the size, and the tail"
    assert packed.block(0).startswith(b'{"seq":0,')
    assert verify(packed).ok and log_of(packed) == log_of(sealed)
    with pytest.raises(WorldlineError, match="no recording at"):
        PackedRecording(f"{url}/missing.skn")
    with pytest.raises(ReadError, match="without the range"):
        PackedRecording(f"{url}/whole.skn")


def test_what_is_not_sealed_whole_is_not_packed(sealed: Recording, bundle: Path, tmp_path: Path) -> None:
    from worldline.engine.recorder import Recorder
    from worldline.engine.spec import Spec

    with pytest.raises(UsageError, match="never overwritten"):
        pack(sealed, bundle)
    recorder = Recorder(Spec(store=tmp_path / "runs"))
    with pytest.raises(Ineligible, match="still at work"):
        pack(Recording(recorder.attempt), tmp_path / "x.skn")
    recorder.close()
    with pytest.raises(NotARecording):
        open_recording(tmp_path)
    assert not list(tmp_path.glob("*.skn")) and not list(tmp_path.glob(".*"))
