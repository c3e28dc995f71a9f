"""Detached signatures over a sealed manifest, by OpenSSH: who vouches for a recording.

What is signed is the manifest's line as it stands on disk, in the namespace `worldline`: so anybody can check it with

    ssh-keygen -Y verify -f SIGNERS -I WHO -n worldline -s refund.json.sig < manifest.json

The signature lies beside what people see, `<result>.sig` or `<bundle>.skn.sig`, since a sealed attempt takes no other
names; an attempt that published nothing has `<attempt>.sig` in the run's directory. Keys stay with ssh-keygen.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import msgspec

from worldline.errors import SignatureFailed, Unsealed, UsageError
from worldline.store import layout
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording

NAMESPACE = "worldline"
PROGRAM = "ssh-keygen"
LARGEST = 64 << 10  # bytes of a signature
_KEY = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a signature is worth. `state` is `good`, `bad`, `stranger` (it fits; nobody said whose key it is), `none`,
    or `unchecked` (no ssh-keygen here). `by` is the name that the signers' file gives to `key`, its fingerprint.
    """

    state: str
    detail: str = ""
    by: str | None = None
    key: str | None = None


def signature_path(recording: Recording) -> Path | None:
    """Where the signature of a recording belongs; None for a bundle at a URL. Raises `Unsealed`."""
    if isinstance(recording, PackedRecording):
        return None if "://" in recording.source.name else Path(recording.source.name + ".sig")
    manifest = recording.manifest
    if manifest is None:
        raise Unsealed(f"{recording.path} is not sealed; only what is sealed can be signed")
    published = manifest.result["publish"] != "none"
    return recording.run_directory / ((manifest.result["name"] if published else recording.attempt.name) + ".sig")


def sign(recording: Recording, key: Path) -> tuple[Path, str]:
    """Sign a sealed recording with the private key in the file `key` (or the public one of a key that an agent holds).

    Returns the signature's path and the key's fingerprint. Whether the recording is what was sealed is for the caller
    to ask before. Raises `Unsealed`, `UsageError` where it is signed already, `SignatureFailed`.
    """
    path, line = signature_path(recording), recording.manifest_line
    if path is None or line is None or recording.manifest is None:
        raise Unsealed(f"{recording.path} cannot be signed here; sign the file itself")
    if path.exists():
        raise UsageError(f"{path} exists; it is signed already", path=str(path))
    if not key.is_file():
        raise UsageError(f"no key at {key}", path=str(key))
    signed = _run(["-Y", "sign", "-q", "-f", str(key.absolute()), "-n", NAMESPACE], line)
    if signed.returncode != 0:
        raise SignatureFailed(f"{PROGRAM} could not sign with {key}: {_said(signed)}", key=str(key))
    layout.write_durable(path, signed.stdout)
    made = check(line, path, None)
    if made.state != "stranger":
        path.unlink()
        raise SignatureFailed(f"{PROGRAM} made a signature that does not fit: {made.detail}", key=str(key))
    return path, str(made.key)


def check(line: bytes, path: Path, signers: Path | None) -> Signature:
    """What the signature at `path` over a manifest's line is worth, by the allowed signers of the file `signers`.

    Raises `UsageError` where there is no such file, `SignatureFailed` where there is one and no ssh-keygen is here.
    """
    if signers is not None and not signers.is_file():
        raise UsageError(f"no file of allowed signers at {signers}", path=str(signers))
    if not os.path.lexists(path):
        return Signature(state="none")
    if not path.is_file() or path.stat().st_size > LARGEST:
        return Signature(state="bad", detail="not a signature's file")
    signature = str(path.absolute())
    try:
        fits = _run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", signature], line)
    except SignatureFailed:
        if signers is not None:
            raise
        return Signature(state="unchecked", detail=f"there is a signature, and no {PROGRAM} here to check it")
    if fits.returncode != 0:
        return Signature(state="bad", detail=f"it does not fit the manifest: {_said(fits)}")
    found = _KEY.search(fits.stdout.decode("utf-8", "replace"))
    key = found.group() if found else None
    if signers is None:
        return Signature(state="stranger", detail=f"signed by {key}", key=key)
    return _known(line, signature, signers.absolute(), key)


def _known(line: bytes, signature: str, signers: Path, key: str | None) -> Signature:
    listed = _run(["-Y", "find-principals", "-s", signature, "-f", str(signers)], b"")
    names = listed.stdout.decode("utf-8", "replace").replace("\n", ",").split(",") if listed.returncode == 0 else []
    why = f"signed by {key}, a key that {signers.name} does not name"
    for name in (name.strip() for name in names):
        if not name or name.startswith(("!", "-")):
            continue
        said = _run(["-Y", "verify", "-f", str(signers), "-I", name, "-n", NAMESPACE, "-s", signature], line)
        if said.returncode == 0:
            return Signature(state="good", by=name, key=key)
        why = f"signed by {key}, which {signers.name} does not allow {name}: {_said(said)}"
    return Signature(state="bad", detail=why, key=key)


def _run(arguments: list[str], message: bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run([PROGRAM, *arguments], input=message, capture_output=True, env=environment, check=False)
    except OSError as error:
        raise SignatureFailed(f"{PROGRAM} of OpenSSH cannot be run: {error.strerror}; install it") from None


def _said(ran: subprocess.CompletedProcess[bytes]) -> str:
    lines = (ran.stderr or ran.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else f"it ended with {ran.returncode}"
