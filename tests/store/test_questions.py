"""The five questions of a verification, asked alone: of a directory, of a bundle, and of a manifest's line."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import require
from tests.store.forgery import replace, reseal
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.proof import check_proof, prove_prefix, prove_row
from worldline.store.recording import Recording
from worldline.store.signature import sign
from worldline.store.verify import (
    authenticity,
    availability,
    check_manifest,
    evidence,
    publication,
    structure,
    verify,
)

QUESTIONS = {
    "structure": structure,
    "evidence": evidence,
    "publication": publication,
    "availability": availability,
    "authenticity": authenticity,
}


def blob(attempt: Path) -> Path:
    return next((attempt / layout.BLOBS).rglob("?" * 64))


def edited(path: Path) -> None:
    replace(path, path.read_bytes().replace(b'"lane":"main"', b'"lane":"mine"', 1))


CASES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "untouched": (lambda a: None, "", ""),
    "a row": (lambda a: edited(next((a / layout.CHUNKS).iterdir())), "structure", "failed"),
    "a content": (lambda a: replace(blob(a), b"x" * 40_000), "evidence", "failed"),
    "a content gone": (lambda a: blob(a).unlink(), "availability", "missing"),
    "the result": (lambda a: replace(next(a.parents[2].glob("*.json")), b"{}\n"), "publication", "failed"),
    "a signature": (lambda a: (a.parents[2] / "kill-me.json.sig").write_text("x"), "authenticity", "failed"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_question_finds_its_own_problems_and_no_others(name: str, sealed: Path) -> None:
    change, failing, state = CASES[name]
    if failing == "authenticity":
        require("ssh-keygen", shutil.which("ssh-keygen"), "not installed")
    change(sealed)
    answers = {question: ask(Recording(sealed)) for question, ask in QUESTIONS.items()}
    assert {question for question, answer in answers.items() if answer.problems} == ({failing} if failing else set())
    assert not failing or answers[failing].state == state
    whole = verify(Recording(sealed))
    assert whole.verdicts == {question: answer.state for question, answer in answers.items()}
    assert whole.problems == [problem for answer in answers.values() for problem in answer.problems]


def test_a_bundle_is_asked_the_same(sealed: Path, tmp_path: Path) -> None:
    pack(Recording(sealed), tmp_path / "run.skn")
    answers = {question: ask(PackedRecording("run.skn")) for question, ask in QUESTIONS.items()}
    assert {question: answer.state for question, answer in answers.items()} == {
        "structure": "ok",
        "evidence": "ok",
        "publication": "packed",
        "availability": "ok",
        "authenticity": "unsigned",
    }
    whole = verify(PackedRecording("run.skn"))
    assert whole.ok and whole.verdicts == {question: answer.state for question, answer in answers.items()}


def test_a_bundle_proves_and_is_signed_as_its_run_is(sealed: Path, tmp_path: Path) -> None:
    require("ssh-keygen", shutil.which("ssh-keygen"), "not installed")
    pack(Recording(sealed), tmp_path / "run.skn")
    bundle = PackedRecording("run.skn")
    assert prove_row(bundle, 3) == prove_row(Recording(sealed), 3)
    assert prove_prefix(bundle, 3) == prove_prefix(Recording(sealed), 3)
    assert check_proof(prove_row(bundle, 3), Recording(sealed).fingerprint).trusted
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "release"], check=True)
    allowed = tmp_path / "allowed_signers"
    allowed.write_text("me " + Path("release.pub").read_text())
    path, _ = sign(bundle, Path("release"))
    assert path == Path("run.skn.sig")
    assert verify(PackedRecording("run.skn"), signers=allowed).verdicts["authenticity"] == "signed"
    (sealed.parents[2] / "kill-me.json.sig").write_bytes(path.read_bytes())  # the manifest is one and the same
    assert verify(Recording(sealed), signers=allowed).verdicts["authenticity"] == "signed"


def test_a_manifest_is_judged_alone(sealed: Path) -> None:
    line = (sealed / layout.MANIFEST).read_bytes()
    assert check_manifest(line).state == "ok"
    for wrong in (b"", line[:-1], line.replace(b'"rows":', b'"rows":1'), line + line, b"{}\n"):
        verdict = check_manifest(wrong)
        assert verdict.state == "failed" and [problem.kind for problem in verdict.problems] == ["manifest"]


def test_a_manifest_sealed_anew_leads_nobody_astray(sealed: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("{}\n")
    result = json.loads((sealed / layout.MANIFEST).read_bytes())["result"]
    reseal(sealed, {"result": {**result, "name": f"../../../..{outside}"}})
    recording = Recording(sealed)
    assert recording.manifest is None and "no plain file name" in (recording.seal_problem or "")
    assert [problem.kind for problem in verify(recording).problems] == ["manifest"]
    assert sum(1 for _ in recording.events()) > 10  # what is good can still be read
