"""Who vouches for a recording: a signature that fits is told from none, a stranger's, a stolen and a forged one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.conftest import require
from tests.store.forgery import forge
from worldline.cli.main import cli
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import Damaged, ProofFailed, SignatureFailed, Unsealed, UsageError
from worldline.store import layout
from worldline.store.proof import check_proof, prove_row
from worldline.store.recording import Recording
from worldline.store.signature import NAMESPACE, sign, signature_path
from worldline.store.verify import authenticity, verify

FORGERY = "a forgery that was sealed anew cannot be excluded"


@pytest.fixture(autouse=True)
def keygen() -> None:
    require("ssh-keygen", shutil.which("ssh-keygen"), "not installed")


def key(name: str) -> Path:
    """A fresh key without a passphrase, made for this test."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name], check=True)
    return Path(name)


def signers(*lines: str) -> Path:
    """A file of allowed signers; in each line a key's name stands for its public half."""
    path = Path("allowed_signers")
    path.write_text("".join(f"{who} {Path(f'{name}.pub').read_text()}" for who, name in map(str.split, lines)))
    return path


def run_of(attempt: Path) -> Path:
    return attempt.parents[2]


def signature_of(attempt: Path) -> Path:
    (path,) = run_of(attempt).glob("*.sig")
    return path


def worldline(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), standalone_mode=False)


def test_a_signed_run_says_by_whom(sealed: Path) -> None:
    path, fingerprint = sign(Recording(sealed), key("release"))
    (result,) = run_of(sealed).glob("*.json")
    assert path == result.with_name(result.name + ".sig") and path.stat().st_mode & 0o777 == 0o600
    allowed = signers("release@example.org release")
    verification = verify(Recording(sealed), signers=allowed)
    assert verification.ok and verification.verdicts["authenticity"] == "signed"
    assert (verification.facts["signer"], verification.facts["key"]) == ("release@example.org", fingerprint)
    said = worldline("verify", str(result), "--signers", str(allowed))
    assert said.return_value == 0 and "authenticity   signed by release@example.org" in said.output


def test_ssh_keygen_alone_checks_it(sealed: Path) -> None:
    path, _ = sign(Recording(sealed), key("release"))
    command = ["ssh-keygen", "-Y", "verify", "-f", signers("me release"), "-I", "me", "-n", NAMESPACE, "-s", path]
    with (sealed / layout.MANIFEST).open("rb") as manifest:
        assert subprocess.run(command, stdin=manifest, capture_output=True, check=False).returncode == 0
    with (sealed / layout.RESULT).open("rb") as other:
        assert subprocess.run(command, stdin=other, capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize("names", ["*@example.org", "other@example.org,release@example.org", "!no@x,*@example.org"])
def test_patterns_of_signers_count(names: str, sealed: Path) -> None:
    sign(Recording(sealed), key("release"))
    assert authenticity(Recording(sealed), signers(f"{names} release")).state == "signed"


def test_a_forgery_sealed_anew_fails_when_signed_and_cannot_be_excluded_when_not(sealed: Path) -> None:
    sign(Recording(sealed), key("release"))
    allowed = signers("me release")
    forge(sealed, lambda body: body.replace(b'"n":4', b'"n":9'))
    for known in (None, allowed):
        verification = verify(Recording(sealed), signers=known)
        assert verification.verdicts["authenticity"] == "failed" and not verification.ok
        assert {name for name, state in verification.verdicts.items() if state != "ok"} == {"authenticity"}
        assert [problem.kind for problem in verification.problems] == ["signature"]
    assert worldline("verify", str(sealed)).return_value == 1
    signature_of(sealed).unlink()
    unsigned = verify(Recording(sealed))
    assert unsigned.ok and unsigned.verdicts["authenticity"] == "unsigned"
    assert unsigned.facts["authenticity"] == f"unsigned: {FORGERY}"
    assert f"authenticity   unsigned: {FORGERY}" in worldline("verify", str(sealed)).output
    assert FORGERY in json.loads(worldline("verify", str(sealed), "--json").output)["facts"]["authenticity"]


def test_with_signers_asked_for_a_missing_signature_fails(sealed: Path) -> None:
    key("release")
    verdict = authenticity(Recording(sealed), signers("me release"))
    assert (
        verdict.state == "failed" and verdict.problems[0].kind == "unsigned" and FORGERY in verdict.problems[0].detail
    )
    assert worldline("verify", str(sealed), "--signers", "allowed_signers").return_value == 1


def test_a_stranger_s_signature_counts_for_nothing(sealed: Path) -> None:
    key("release")
    _, fingerprint = sign(Recording(sealed), key("stranger"))
    verdict = authenticity(Recording(sealed), signers("me release"))
    assert verdict.state == "failed" and fingerprint in verdict.problems[0].detail
    unasked = verify(Recording(sealed))
    assert unasked.ok and unasked.verdicts["authenticity"] == "unsigned"
    assert FORGERY in unasked.facts["authenticity"] and fingerprint in unasked.facts["authenticity"]


def test_a_signature_of_another_run_or_for_another_purpose_fails(sealed: Path, tmp_path: Path) -> None:
    release, manifest = key("release"), sealed / layout.MANIFEST
    path = signature_path(Recording(sealed))
    assert path is not None
    other = Recorder(Spec(store=tmp_path / "others", task="other"))
    stolen, _ = sign(Recording(other.seal()), release)
    sign_as = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(release), "-n", "file"]
    purpose = subprocess.run(sign_as, input=manifest.read_bytes(), capture_output=True, check=True).stdout
    good = b""
    for wrong in (stolen.read_bytes(), purpose, b"", b"no signature\n", b"x" * 100_000):
        path.write_bytes(wrong)
        for known in (None, signers("me release")):
            verdict = authenticity(Recording(sealed), known)
            assert verdict.state == "failed" and [p.kind for p in verdict.problems] == ["signature"], wrong[:40]
    path.unlink()
    sign(Recording(sealed), release)
    good = path.read_bytes()
    for at in range(60, len(good) - 40, 17):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert authenticity(Recording(sealed), signers("me release")).state == "failed", at
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    assert authenticity(Recording(sealed)).state == "failed"
    path.unlink()
    os.mkfifo(path)
    assert authenticity(Recording(sealed)).state == "failed"


def test_a_key_that_may_not_sign_recordings_fails(sealed: Path) -> None:
    sign(Recording(sealed), key("release"))
    allowed = signers("me release")
    allowed.write_text(allowed.read_text().replace("me ", 'me namespaces="git" ', 1))
    assert authenticity(Recording(sealed), allowed).state == "failed"


def test_what_is_not_sealed_or_not_whole_is_not_signed(sealed: Path, tmp_path: Path) -> None:
    release = key("release")
    recorder = Recorder(Spec(store=tmp_path / "runs", task="open"))
    with pytest.raises(Unsealed):
        sign(Recording(recorder.attempt), release)
    assert isinstance(worldline("sign", str(recorder.attempt), "--key", "release").exception, Unsealed)
    recorder.seal("partial", "stopped")
    path, _ = sign(Recording(recorder.attempt), release)
    assert path == recorder.run_directory / f"{recorder.attempt_id}.sig"
    partial = verify(Recording(recorder.attempt), signers=signers("me release"))
    assert partial.ok and partial.verdicts["authenticity"] == "signed"
    with pytest.raises(UsageError, match="signed already"):
        sign(Recording(recorder.attempt), release)
    chunk = next((sealed / layout.CHUNKS).iterdir())
    chunk.write_bytes(chunk.read_bytes().replace(b'"lane"', b'"lame"', 1))
    refused = worldline("sign", str(sealed), "--key", "release")
    assert isinstance(refused.exception, Damaged) and not list(run_of(sealed).glob("*.sig"))


def test_the_verb_signs(sealed: Path) -> None:
    key("release")
    made = worldline("sign", str(sealed), "--key", "release")
    assert made.exception is None and made.output.splitlines()[-1] == str(signature_of(sealed))
    signature_of(sealed).unlink()
    told = json.loads(worldline("sign", str(sealed), "--key", "release", "--json").output)
    assert told["fingerprint"] == Recording(sealed).fingerprint and told["signature"] == str(signature_of(sealed))


def test_no_key_a_broken_key_and_no_program(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no key at"):
        sign(Recording(sealed), Path("nokey"))
    Path("broken").write_text("no key\n")
    Path("broken").chmod(0o600)
    with pytest.raises(SignatureFailed, match="could not sign"):
        sign(Recording(sealed), Path("broken"))
    assert not list(run_of(sealed).glob("*.sig"))
    sign(Recording(sealed), key("release"))
    allowed = signers("me release")
    with pytest.raises(UsageError, match="no file of allowed signers"):
        verify(Recording(sealed), signers=Path("nobody"))
    monkeypatch.setenv("PATH", str(Path.cwd()))
    with pytest.raises(SignatureFailed, match="install it"):
        verify(Recording(sealed), signers=allowed)
    unchecked = verify(Recording(sealed))
    assert unchecked.ok and unchecked.verdicts["authenticity"] == "unsigned"
    assert "no ssh-keygen here" in unchecked.facts["authenticity"]


def test_a_proof_is_trusted_by_the_signature_of_its_run(sealed: Path) -> None:
    sign(Recording(sealed), key("release"))
    Path("row.json").write_bytes(prove_row(Recording(sealed), 1))
    trusted, others = signers("release@example.org release"), Path("others")
    key("other")
    others.write_text(f"other@example.org {Path('other.pub').read_text()}")
    check = ("prove", "--check", "row.json", "--signature", str(signature_of(sealed)), "--signers")
    said = worldline(*check, str(trusted), "--json")
    proven = json.loads(said.output)
    assert (proven["proven"], proven["trusted"], proven["signer"]) == (True, True, "release@example.org")
    with pytest.raises(ProofFailed, match="does not name"):
        check_proof(Path("row.json").read_bytes(), signed=(signature_of(sealed), others))
    forge(sealed, lambda body: body.replace(b'"n":4', b'"n":9'))
    forged = prove_row(Recording(sealed), 1)
    with pytest.raises(ProofFailed, match="does not fit"):
        check_proof(forged, signed=(signature_of(sealed), trusted))
    assert isinstance(worldline("prove", "--check", "row.json", "--signers", str(trusted)).exception, click.UsageError)
