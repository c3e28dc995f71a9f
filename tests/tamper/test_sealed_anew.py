"""A forgery whose chain, root, seal and container all fit: a signature tells it, and without one nobody can exclude it.

And that is what is said: no verdict claims more than the bytes can carry.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import require
from tests.store import hostile
from worldline.cli.main import cli
from worldline.errors import ProofFailed
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.proof import check_proof, prove_row
from worldline.store.recording import Recording
from worldline.store.signature import sign, signature_path
from worldline.store.verify import verify

SAID = "a forgery that was sealed anew cannot be excluded"


@pytest.fixture
def attempt(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(quick)
    return hostile.recorded(quick / "runs").attempt


@pytest.fixture
def key(quick: Path) -> Path:
    require("ssh-keygen", shutil.which("ssh-keygen"), "not installed")
    for name in ("release", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name], check=True)
    (quick / "allowed").write_text(f"release@example.org {(quick / 'release.pub').read_text()}")
    return quick / "release"


def rows_of(attempt: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    hostile.rechained(attempt, change(hostile.bodies(attempt)))


def dropped(rows: list[bytes]) -> list[bytes]:
    """The log without its permission, every row behind it renumbered: nothing is missing any more."""
    at = next(number for number, row in enumerate(rows) if b'"src":"granted"' in row)
    number = re.compile(rb'^\{"seq":\d+|"sync":\[\d+')

    def lower(found: re.Match[bytes]) -> bytes:
        name, _, value = found[0].rpartition(b"[" if b"[" in found[0] else b":")
        return name + found[0][len(name) : len(name) + 1] + b"%d" % (int(value) - 1)

    return [*rows[:at], *(number.sub(lower, row) for row in rows[at + 1 :])]


FORGERIES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a result was another": lambda rows: [row.replace(b'"found":true', b'"found":false') for row in rows],
    "a permission was refused": lambda rows: [row.replace(b'"src":"granted"', b'"src":"denied"') for row in rows],
    "nobody was ever asked": dropped,
    "it was another day": lambda rows: [row.replace(b'"t0_wall":"1', b'"t0_wall":"2') for row in rows],
}


def forged(attempt: Path, name: str) -> None:
    """Everything that follows is made to follow."""
    before = hostile.bodies(attempt)
    rows_of(attempt, FORGERIES[name])
    assert hostile.bodies(attempt) != before


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_of_a_signed_run_fails_and_of_an_unsigned_one_cannot_be_excluded(
    name: str, attempt: Path, key: Path, quick: Path
) -> None:
    signature, _ = sign(Recording(attempt), key)
    fingerprint, proof = Recording(attempt).fingerprint, prove_row(Recording(attempt), 10)
    forged(attempt, name)
    pack_without_signature(attempt, signature, quick / "forged.skn")
    shutil.copy(signature, "forged.skn.sig")
    for recording in (Recording(attempt), PackedRecording("forged.skn")):
        for signers in (None, quick / "allowed"):
            found = verify(recording, signers=signers)
            assert found.verdicts["authenticity"] == "failed" and [p.kind for p in found.problems] == ["signature"]
        assert recording.fingerprint != fingerprint
    for path in (signature, quick / "forged.skn.sig"):
        path.unlink()
    for words in (str(attempt), "forged.skn"):
        said = CliRunner().invoke(cli, ["verify", words], standalone_mode=False)
        assert said.return_value == 0 and SAID in said.output
        asked = CliRunner().invoke(cli, ["verify", words, "--signers", "allowed"], standalone_mode=False)
        assert asked.return_value == 1 and SAID in asked.output
        told = json.loads(CliRunner().invoke(cli, ["verify", words, "--json"], standalone_mode=False).output)
        assert told["verdicts"]["authenticity"] == "unsigned" and SAID in told["facts"]["authenticity"]
    assert check_proof(proof, fingerprint).trusted  # what was proven before stays proven, of the run that was
    again = prove_row(Recording(attempt), 10)
    with pytest.raises(ProofFailed, match="another run"):
        check_proof(again, fingerprint)
    assert not check_proof(again).trusted


def pack_without_signature(attempt: Path, signature: Path, target: Path) -> None:
    """Pack a run whose signature does not fit: as its forger does, without it."""
    kept = signature.rename(signature.with_suffix(".kept"))
    pack(Recording(attempt), target)
    kept.rename(signature)


def test_a_forger_s_own_signature_and_one_of_another_run(attempt: Path, key: Path, quick: Path) -> None:
    good, _ = sign(Recording(attempt), key)
    theirs = hostile.recorded(quick / "others").attempt
    forged(theirs, "a result was another")
    path = signature_path(Recording(theirs))
    assert path is not None
    shutil.copy(good, path)
    assert verify(Recording(theirs)).verdicts["authenticity"] == "failed"
    path.unlink()
    sign(Recording(theirs), quick / "stranger")
    unasked = verify(Recording(theirs))
    assert unasked.ok and unasked.verdicts["authenticity"] == "unsigned" and SAID in unasked.facts["authenticity"]
    asked = verify(Recording(theirs), signers=quick / "allowed")
    assert not asked.ok and asked.verdicts["authenticity"] == "failed"


def test_a_forgery_that_forgets_one_step_is_told_by_the_next(attempt: Path, quick: Path) -> None:
    """Chain, root, seal, staged manifest, container: each alone gives it away."""
    row = next(row for row in hostile.bodies(attempt) if b'"found":true' in row)
    good = quick / "good"
    shutil.copytree(attempt.parents[3], good)
    pack(Recording(attempt), quick / "good.skn")
    forged(attempt, "a result was another")
    other = row.replace(b'"found":true', b'"found":false')
    assert other in hostile.bodies(attempt) and verify(Recording(attempt)).ok
    for keep in (layout.MANIFEST, layout.STAGED, "chunks/000000.jsonl"):
        shutil.rmtree(quick / "one", ignore_errors=True)
        shutil.copytree(attempt.parents[3], quick / "one")
        (copied,) = (quick / "one").glob("run_*/trajectory/attempts/*")
        (original,) = good.glob("run_*/trajectory/attempts/*")
        hostile.replace(copied / keep, (original / keep).read_bytes())
        assert not verify(Recording(copied)).ok, keep
    chunk = (attempt / "chunks" / "000000.jsonl").read_bytes()
    line = (attempt / layout.MANIFEST).read_bytes()
    seal = json.loads(line)["seal"]
    for contents, change in (
        ({"events.jsonl": chunk}, {}),
        ({"manifest.json": line}, {}),
        ({"events.jsonl": chunk, "manifest.json": line}, {}),
        ({"events.jsonl": chunk}, {"seal": seal}),
    ):
        data = hostile.remade(quick / "good.skn", contents, lambda said, change=change: {**said, **change})
        (quick / "x.skn").write_bytes(data)
        assert not verify(PackedRecording("x.skn")).ok
    pack(Recording(attempt), quick / "forged.skn")
    found = verify(PackedRecording("forged.skn"))
    assert found.ok and SAID in found.facts["authenticity"]
