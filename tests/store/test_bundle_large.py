"""A large bundle opens as fast as a small one: its first step costs a few hundred kilobytes, read and held.

The default size shows that nothing grows with the file. In `make soak` it is a real gigabyte.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require
from tests.soak import Soak
from tests.store import large, ranges
from worldline.engine.steps import each_step
from worldline.store.bundle.packed import PackedRecording
from worldline.store.source import FileSource

MOST_READ = 3_000_000
MOST_HELD_KB = 100_000
MEASURED = """
import sys
from worldline.cli.main import cli
try:
    cli(sys.argv[1:], standalone_mode=False)
finally:
    held = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(held.split()[1], file=sys.stderr)
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, soak: Soak) -> Path:
    megabytes = 1024 if soak.long else 32
    found = large.bundle(tmp_path_factory.mktemp("large"), megabytes)
    assert found.stat().st_size > megabytes * 900_000
    return found


@pytest.fixture
def url(bundle: Path) -> Iterator[tuple[str, list[int]]]:
    with ranges.served(bundle) as found:
        yield found


def show(*words: str) -> tuple[str, int]:
    """What a verb says, and the most memory that it held, in KB."""
    require("linux", Path("/proc/self/status").exists(), "the peak of a process is read from /proc")
    done = subprocess.run([sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, int(done.stderr.split()[-1])


def test_the_first_step_is_there_before_the_log_is_read(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    read = FileSource.read
    monkeypatch.setattr(FileSource, "read", lambda self, at, size: sizes.append(size) or read(self, at, size))
    recording = PackedRecording(str(bundle))
    step = next(each_step(recording, 64 << 10))
    assert (step.index, step.text, step.calls[0].name) == (0, "step 0", "fetch")
    assert step.calls[0].size is not None and step.calls[0].size > 1 << 20 > len(step.calls[0].result or "") > 0
    assert recording.index.rows > 1000 and recording.summary["task"] == "a large one"
    assert sum(sizes) < MOST_READ


def test_showing_it_from_disk_holds_little(bundle: Path) -> None:
    said, held = show("show", str(bundle), "--step", "0")
    assert "step 0" in said and "--json has all" in said and held < MOST_HELD_KB
    _, held = show("show", str(bundle))
    assert held < MOST_HELD_KB


def test_showing_it_over_http_reads_and_holds_little(url: tuple[str, list[int]]) -> None:
    place, sent = url
    said, held = show("show", f"{place}/large.skn", "--step", "0")
    assert "step 0" in said and held < MOST_HELD_KB
    assert sum(sent) < MOST_READ and len(sent) < 20


def test_verifying_it_reads_every_byte_once_and_holds_little(bundle: Path, url: tuple[str, list[int]]) -> None:
    place, sent = url
    said, held = show("verify", f"{place}/large.skn", "--json")
    assert '"ok": true' in said and held < MOST_HELD_KB
    assert bundle.stat().st_size <= sum(sent) < bundle.stat().st_size * 1.01 + 500_000
