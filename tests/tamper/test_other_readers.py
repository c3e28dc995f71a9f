"""Readers that share no line with ours over the same bytes: unzip, Python's zipfile, Node's zlib, and `verify.mjs`.

What we accept they all accept, and read the same; of what was changed the second verifier says what ours says, question
by question, and the ZIP tools let through what they do not look at: nobody but a verifier vouches for a bundle.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, require
from tests.engine.recorded import action, recorder_in
from tests.soak import Soak
from tests.tamper import sampling, subjects
from tests.tamper import test_bundle_bytes as bundles
from tests.tamper import test_directory_bytes as directories
from worldline.engine.boundary import call
from worldline.errors import WorldlineError
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording, open_recording
from worldline.store.recording import Recording
from worldline.store.verify import verify

QUESTIONS = ("structure", "evidence", "publication", "availability")
REFUSED = {**dict.fromkeys(QUESTIONS, "refused"), "ok": False}
VERIFIER = ROOT / "docs" / "format" / "verify.mjs"
# Inflates every entry, and every block of the log alone, of each bundle that is named: sizes and CRCs, as JSON.
INFLATE = """
const { readFileSync } = require("node:fs"), zlib = require("node:zlib");
for (const path of process.argv.slice(1)) {
  const file = readFileSync(path), said = {}, starts = {}, u = (at) => Number(file.readBigUInt64LE(at));
  let at = u(file.length - 50);
  while (file.readUInt32LE(at) === 0x02014b50) {
    const length = file.readUInt16LE(at + 28), name = file.toString("latin1", at + 46, at + 46 + length);
    const [stored, begins] = [u(at + 46 + length + 12), u(at + 46 + length + 20)], from = begins + 50 + length;
    const raw = file.subarray(from, from + stored);
    const data = file.readUInt16LE(at + 10) ? zlib.inflateRawSync(raw) : raw;
    said[name] = [data.length, zlib.crc32(data)], starts[name] = [raw, data], at += 46 + length + 28;
  }
  const { blocks } = JSON.parse(starts["index.json"][1]), [raw, log] = starts["events.jsonl"];
  const alone = blocks.stored.map((from, n) => {
    const end = blocks.stored[n + 1] ?? raw.length, flush = { finishFlush: zlib.constants.Z_SYNC_FLUSH };
    return zlib.inflateRawSync(raw.subarray(from, end), flush);
  });
  console.log(JSON.stringify({ said, blocks: alone.length, same: Buffer.concat(alone).equals(log) }));
}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the three kinds of sealed directories, and the bundles of each."""
    with subjects.folder(tmp_path_factory) as folder:
        for name, make in subjects.DIRECTORIES.items():
            attempt = make(folder / name)
            subjects.bundle_of(attempt, folder / f"{name}.skn")
            subjects.bundle_of(attempt, folder / f"{name}-shared.skn", share=True)
        yield folder


def generated(folder: Path, number: int) -> Path:
    """The bundle of a recording that follows from a number: few rows or thousands, contents of any bytes."""
    chance = random.Random(number)
    recorder, boundary = recorder_in(folder / f"generated-{number}")
    for _ in range(chance.choice((0, 1, 3, 40))):
        text = chance.choice(("ünï\u2028code ", "\0\x1f", "word ", chance.randbytes(9).hex())) * chance.randrange(900)
        given = action(chance.choice(("look", "see")), {"it": text[:20]})
        call(boundary, given, lambda text=text: text)  # type: ignore[misc]
    for count in range(chance.choice((0, 5, 1500))):
        recorder.append("observation", "note", {}, {"name": "n", "value": chance.randbytes(150).hex(), "count": count})
    recorder.seal()
    return pack(Recording(recorder.attempt), folder / f"generated-{number}.skn").path


def node(*words: object) -> list[Any]:
    """What Node says, a JSON value a line."""
    program = shutil.which("node")
    require("node", program, "not installed")
    ran = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, check=False)
    assert ran.stderr == "", ran.stderr[-2000:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def ours(path: Path) -> dict[str, Any]:
    try:
        found = verify(open_recording(path))
    except WorldlineError:
        return REFUSED
    return {**{question: found.verdicts[question] for question in QUESTIONS}, "ok": found.ok}


def by_zipfile(data: bytes) -> dict[str, bytes] | None:
    """The entries as zipfile reads them, or None where it complains."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            return {info.filename: opened.read(info) for info in opened.infolist()}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, OverflowError, RuntimeError):
        return None


def test_every_reader_reads_the_same_of_what_we_pack(place: Path, soak: Soak) -> None:
    unzip = shutil.which("unzip")
    require("unzip", unzip, "not installed")
    for number in soak.rounds():
        made = [generated(place, 6 * number + one) for one in range(6)]
        paths = made if number else [*sorted(place.glob("[!g]*.skn")), *made]
        for path, said, theirs in zip(paths, node("-e", INFLATE, *paths), node(VERIFIER, *paths), strict=True):
            packed = PackedRecording(str(path))
            entries = {e.name: b"".join(packed.content_of(e)) for e in packed.container.entries}
            read = by_zipfile(path.read_bytes())
            assert read is not None and {name: read[name] for name in entries} == entries
            assert [*entries, "container.json"] == list(read)
            assert said["said"] == {name: [len(data), zlib.crc32(data)] for name, data in read.items()}
            assert said["same"] and said["blocks"] == len(packed.index.blocks.seq)
            assert subprocess.run([str(unzip), "-tqq", path], capture_output=True, check=False).returncode == 0
            whole = subprocess.run([str(unzip), "-p", path], capture_output=True, check=True).stdout
            assert whole == b"".join(read.values())
            assert {key: theirs[key] for key in REFUSED} == ours(path) and theirs["ok"]
        for path in made:
            path.unlink()
            shutil.rmtree(path.with_suffix(""))


def test_a_second_verifier_says_the_same_of_what_was_changed_in_bundles(place: Path, soak: Soak) -> None:
    for number in soak.rounds():
        chance, changed = random.Random(number), []
        for path in sorted(place.glob("[!g]*.skn")):
            parts = bundles.regions(path)
            tried = [flip(chance, parts) for _ in range(20)] + list(sampling.shifts(parts, 12, number))
            tried += [sampling.cut(chance.choice(parts), path.read_bytes(), chance.randrange(path.stat().st_size))]
            for one, change in enumerate(tried):
                other = place / f"{path.stem}-changed-{one}"
                other.write_bytes(change.data)
                changed.append((other, change))
        compared([other for other, _ in changed], [f"{c.region.name} {c.how} {c.offset}" for _, c in changed])
        let_through(changed)
        for other, _ in changed:
            other.unlink()


def flip(chance: random.Random, parts: list[sampling.Region]) -> sampling.Change:
    region = chance.choice(parts)
    offset = chance.randrange(region.start, region.end)
    return sampling.flip(region, region.path.read_bytes(), offset, chance.randrange(1, 256))


def compared(paths: list[Path], what: list[str]) -> None:
    """Both verifiers over the same: no change passes either, and they agree on every question."""
    for path, words, theirs in zip(paths, what, node(VERIFIER, *paths), strict=True):
        said = ours(path)
        assert not said["ok"], words
        assert {key: theirs[key] for key in said} == said, (words, said, theirs)


def let_through(changed: list[tuple[Path, sampling.Change]]) -> None:
    """The ZIP tools look at less. Where zipfile complains of nothing it reads contents that were packed."""
    passed = 0
    for path, change in changed:
        read = by_zipfile(path.read_bytes())
        if read is not None:
            passed += 1
            before = by_zipfile(change.region.path.read_bytes())
            assert before is not None and set(read.values()) <= {*before.values(), b""}, (
                change.region.name,
                change.how,
            )
    assert 0 < passed < len(changed)
    print(f"of {len(changed)} changed bundles zipfile reads {passed} without a word")


def test_a_second_verifier_says_the_same_of_what_was_changed_in_directories(place: Path, soak: Soak) -> None:
    for number in soak.rounds():
        chance, copies, what = random.Random(number), [], []
        for name in subjects.DIRECTORIES:
            (attempt,) = (place / name).glob("run_*/trajectory/attempts/*")
            parts = [part for part in directories.regions(attempt) if attempt in part.path.parents]
            tried = [flip(chance, parts) for _ in range(14)] + list(sampling.shifts(parts, 8, number))
            tried += [sampling.cut(part, part.path.read_bytes(), part.start) for part in chance.sample(parts, 4)]
            for one, change in enumerate(tried):
                run = shutil.copytree(attempt.parents[2], place / f"copied-{name}-{one}" / attempt.parents[2].name)
                copy = run / attempt.relative_to(attempt.parents[2])
                (copy / change.region.path.relative_to(attempt)).write_bytes(change.data)
                copies.append(copy)
                what.append(f"{change.region.path.name} {change.how} {change.offset}")
        compared(copies, what)
        for copy in copies:
            shutil.rmtree(copy.parents[3])
