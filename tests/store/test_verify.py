"""The verdicts of a verification, state by state: what is wrong, under which question, in one word each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.faults.recorder_process import agent
from worldline.cli.main import cli
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import RecordError
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.verify import verify

GOOD = {
    "structure": "ok",
    "evidence": "ok",
    "publication": "ok",
    "availability": "ok",
    "authenticity": "unsigned",
}


def blob(attempt: Path) -> Path:
    return next((attempt / layout.BLOBS).rglob("?" * 64))


def result(attempt: Path) -> Path:
    return next(attempt.parents[2].glob("*.json"))


def replace(path: Path, data: bytes) -> None:
    """Another file under the same name, as editors save: the old one stays what it was."""
    other = path.with_name("other")
    other.write_bytes(data)
    os.replace(other, path)


def without_hard_link(attempt: Path) -> None:
    replace(result(attempt), result(attempt).read_bytes())


CASES: dict[str, tuple[Callable[[Path], object], dict[str, str], set[str]]] = {
    "untouched": (lambda a: None, {}, set()),
    "published by copy": (without_hard_link, {}, set()),
    "published result gone": (lambda a: result(a).unlink(), {"publication": "failed"}, {"unpublished"}),
    "published result replaced": (lambda a: replace(result(a), b"{}\n"), {"publication": "failed"}, {"changed"}),
    "own result gone": (lambda a: (a / layout.RESULT).unlink(), {"publication": "failed"}, {"missing"}),
    "own result replaced": (lambda a: replace(a / layout.RESULT, b"{}\n"), {"publication": "failed"}, {"changed"}),
    "staged manifest gone": (lambda a: (a / layout.STAGED).unlink(), {"publication": "failed"}, {"missing"}),
    "manifest gone": (lambda a: (a / layout.MANIFEST).unlink(), {"publication": "unsealed"}, {"unsealed"}),
    "manifest edited": (
        lambda a: replace(a / layout.MANIFEST, (a / layout.MANIFEST).read_bytes().replace(b'"rows":', b'"rows": ')),
        {"structure": "failed", "publication": "unsealed"},
        {"manifest"},
    ),
    "blob gone": (lambda a: blob(a).unlink(), {"availability": "missing"}, {"missing"}),
    "blob changed": (lambda a: replace(blob(a), b"x" * 40_000), {"evidence": "failed"}, {"corrupt"}),
    "chunk gone": (
        lambda a: (a / layout.CHUNKS / "000001.jsonl").unlink(),
        {"structure": "failed"},
        {"gap", "missing", "changed"},
    ),
    "last row gone": (
        lambda a: (lambda p: os.truncate(p, p.read_bytes()[:-1].rfind(b"\n") + 1))(
            sorted((a / layout.CHUNKS).iterdir())[-1]
        ),
        {"structure": "failed"},
        {"gap", "changed"},
    ),
    "open.json edited": (lambda a: replace(a / layout.OPEN, b"{}\n"), {"structure": "failed"}, {"changed"}),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str, sealed: Path) -> None:
    change, differing, kinds = CASES[name]
    change(sealed)
    verification = verify(Recording(sealed))
    assert verification.verdicts == {**GOOD, **differing}
    assert {problem.kind for problem in verification.problems} == kinds
    assert verification.ok == (not kinds)
    ran = CliRunner().invoke(cli, ["verify", str(sealed)], standalone_mode=False)
    assert ran.exception is None and ran.return_value == (1 if kinds else 0)
    for problem in verification.problems:
        assert f"{problem.kind} " in ran.output and problem.detail in ran.output
    shown = CliRunner().invoke(cli, ["show", str(sealed)], standalone_mode=False)
    assert shown.exception is None and "pay(n=4)" in shown.output


def test_unsealed_and_partial(tmp_path: Path) -> None:
    recorder = Recorder(Spec(store=tmp_path / "runs", task="left"))
    live = verify(Recording(recorder.attempt))
    assert [(problem.kind, problem.detail) for problem in live.problems] == [
        ("unsealed", "its writer is still at work")
    ]
    recorder.seal("partial", "interrupted by SIGTERM")
    partial = verify(Recording(recorder.attempt))
    assert partial.ok and partial.verdicts == {**GOOD, "publication": "withheld"}
    assert partial.facts["disposition"] == "partial" and not list(recorder.run_directory.glob("*.json"))
    dead = Recorder(Spec(store=tmp_path / "runs", task="dead"))
    dead.close()
    left = verify(Recording(dead.attempt))
    assert left.verdicts == {**GOOD, "publication": "unsealed"} and not left.ok
    assert "died before sealing" in left.problems[0].detail


def test_a_second_attempt_cannot_publish_over_the_first(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    first = Recorder(Spec(store=store, task="pay"))
    second = Recorder(Spec(store=store, task="pay", run=first.run_directory))
    published = first.seal()
    before = published.read_bytes()
    with pytest.raises(RecordError, match="already published by another attempt") as refused:
        second.seal()
    assert "\n" not in str(refused.value)
    assert published.read_bytes() == before
    assert verify(Recording(published)).ok and Recording(published).attempt == first.attempt
    assert Recording(first.run_directory).attempt == first.attempt
    other = Recording(second.attempt)
    assert other.published is None and not other.live
    assert {problem.kind for problem in verify(other).problems} == {"unsealed"}


def test_an_attempt_of_another_run_does_not_pass_for_this_one(sealed: Path, quick: Path) -> None:
    agent(quick / "others", lambda **fact: None)
    (other,) = (quick / "others").glob("run_*/trajectory/attempts/*")
    shutil.rmtree(sealed)
    shutil.copytree(other, sealed)
    assert "changed" in {problem.kind for problem in verify(Recording(sealed)).problems}
