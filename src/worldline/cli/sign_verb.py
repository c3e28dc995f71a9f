"""`worldline sign RUN --key FILE`: a detached signature by `ssh-keygen` beside what the run published."""

from __future__ import annotations

from pathlib import Path

import click

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, run_argument, store_option
from worldline.errors import Damaged, Unsealed
from worldline.model.ids import short
from worldline.store.signature import sign
from worldline.store.verify import verify


@click.command(
    epilog="""\b
Examples:
  worldline sign latest --key ~/.ssh/id_ed25519
  worldline sign refund.skn --key ~/.ssh/id_ed25519"""
)
@run_argument
@click.option(
    "--key",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A private SSH key, or the public half of one that an agent holds.",
)
@json_option
@store_option
def command(run: str, key: Path, as_json: bool, store: Path | None) -> int:
    """Sign a sealed run: its manifest, and by that its fingerprint and all that hangs on it.

    The run is verified first; what does not verify is not signed. The signature lies beside the published result, as
    `<result>.sig`, or beside the bundle.
    """
    recording = recording_of(run, store)
    with render.progress("verifying", recording.log_bytes) as bar:
        verification = verify(recording, bar.update)
    if recording.manifest is None and recording.seal_problem is None:
        raise Unsealed(f"{recording.path} is not sealed; only what is sealed can be signed")
    if not verification.ok:
        first = verification.problems[0]
        raise Damaged(f"{recording.path} does not verify, so it is not signed: {first.kind} at {first.where}")
    path, fingerprint = sign(recording, key)
    if as_json:
        render.emit_json({"signature": path, "key": fingerprint, "fingerprint": recording.fingerprint})
    else:
        render.verdict("ok", f"signed {recording.run_id}   key {fingerprint}")
        render.line(f"  fingerprint {recording.fingerprint}")
        render.line(f"  worldline verify {short(recording.run_id)} --signers allowed_signers")
        render.line(str(path))
    return 0
