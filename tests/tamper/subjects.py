"""The recordings that are tampered with: small, and with one of everything that a directory or a bundle may hold.

whole       several chunks, contents of both tiers, a picture, a checkpoint, a signature
expired     its ordinary contents went behind their retention; their records stand there
reconciled  its writer died: a torn tail is kept, nothing was published
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import require
from tests.engine.recorded import action, answer, decision, recorder_in
from tests.store.rich import CHECKPOINT, picture
from worldline.engine.account import account
from worldline.engine.boundary import RecordBoundary, call
from worldline.engine.content import Content
from worldline.engine.export import EXPORTS
from worldline.engine.pictures import thumbnail
from worldline.engine.recorder import Recorder
from worldline.engine.spec import RecordingSpec
from worldline.store import layout, signature
from worldline.store.bundle.pack import pack
from worldline.store.forget.retention import expire
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.store.signature import sign

CHUNK_BYTES = 1500  # so that the log has several chunks
LONG = 10**6  # seconds: nothing is due while a test runs
SECRET = "kept in the restricted tier alone"
ASKED = b'{"model":"m-1","messages":[{"role":"user","content":"where is it?"}]}'
SAID = b'{"id":"r1","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"here"}}]}'
STREAM = b'data: {"id":"1","model":"m-1","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
PICTURE = picture(24, 16)  # under the limit, so it is a content since the recording declares retention
JSON = [["Content-Type", "application/json"]]


def recorded(store: Path, retention: dict[str, int]) -> tuple[Recorder, RecordBoundary]:
    """A recorder that has seen model calls, tools of both tiers, a picture and a checkpoint; it is not sealed yet."""
    spec = RecordingSpec(restrict=("tool:vault",), retention=retention)
    recorder, boundary = recorder_in(store, task="tamper", recording=spec)
    recorder.log._chunk_bytes = CHUNK_BYTES
    answer(boundary, decision(ASKED, name="openai.chat"), [SAID], headers=JSON)
    answer(boundary, decision(ASKED, name="openai.chat"), [STREAM[:20], STREAM[20:]])
    call(boundary, action("vault", {"key": "front door"}), lambda: SECRET)
    call(boundary, action("read", {"page": 1}), lambda: "in the ordinary tier")
    boundary.note("observation", "screenshot", "main", {}, {"name": "desk", "value": Content(PICTURE, "image/png")})
    checkpoint = {
        "checkpoint_id": CHECKPOINT,
        "parent_checkpoint_ids": [],
        "branch_id": "main",
        "snapshot_id": "snap_01m8n2b6nq1p4dyst3n7svde6k",
        "created_from_step": 0,
        "meta": {"env_state": {"type": "none"}, "agent_state": {"messages": []}, "side_effect_cursor": 1},
    }
    boundary.note("snapshot_ref", "checkpoint", "main", {}, checkpoint)
    return recorder, boundary


def whole(store: Path) -> Path:
    """Sealed, published and, where ssh-keygen is here, signed."""
    recorder, _ = recorded(store, {"ordinary": LONG})
    recorder.seal()
    sign(Recording(recorder.attempt), key_in(store.parent))
    return recorder.attempt


def expired(store: Path) -> Path:
    """The ordinary contents are gone, each with a record that authorises it."""
    recorder, _ = recorded(store, {"ordinary": 0})
    recorder.seal()
    recording = Recording(recorder.attempt)
    assert recording.manifest is not None
    expire(recording, recording.manifest.sealed_at + 10**9, act=True)
    return recorder.attempt


def reconciled(store: Path) -> Path:
    """Half a row was left of a dead writer."""
    recorder, _ = recorded(store, {"ordinary": LONG})
    recorder.log._chunk_bytes = 1 << 20
    recorder.append("observation", "note", {}, {"name": "last", "value": 1})
    recorder.close()
    with (recorder.attempt / layout.TAIL).open("ab") as tail:
        tail.write(b'{"seq":77,"t":12')
    (state,) = reconcile(recorder.run_directory, account)
    assert state.state == "sealed:partial" and (recorder.attempt / layout.TORN).is_file()
    return recorder.attempt


DIRECTORIES: dict[str, Callable[[Path], Path]] = {"whole": whole, "expired": expired, "reconciled": reconciled}


def bundle_of(attempt: Path, target: Path, share: bool = False) -> Path:
    """The bundle of an attempt, with everything that can be derived of it."""
    return pack(Recording(attempt), target, share=share, exports=EXPORTS, thumbnail=thumbnail).path


def key_in(folder: Path) -> Path:
    """A key to sign with, made at run time; beside it `allowed` names whose it is."""
    require("ssh-keygen", shutil.which("ssh-keygen"), "not installed")
    key = folder / "key"
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "signer", "-f", key], check=True)
        (folder / "allowed").write_text(f"signer@example.org {key.with_suffix('.pub').read_text()}")
    return key


@contextmanager
def folder(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder, in memory where there is such a place: what is tried here is many and small."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory, prefix="worldline-")) if memory.is_dir() else factory.mktemp("tamper")
    try:
        yield made
    finally:
        shutil.rmtree(made)


def remember_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask ssh-keygen once about the same manifest, signature and signers."""
    ask, asked = signature.check, {}

    def check(line: bytes, path: Path, signers: Path | None) -> signature.Signature:
        said = path.read_bytes() if path.is_file() else None
        if (line, said, signers) not in asked:
            asked[line, said, signers] = ask(line, path, signers)
        return asked[line, said, signers]

    monkeypatch.setattr(signature, "check", check)
