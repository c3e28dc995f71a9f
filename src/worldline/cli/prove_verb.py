"""`worldline prove RUN --seq N|--prefix N -o PROOF` writes a proof; `worldline prove --check PROOF` checks one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from worldline.cli import render
from worldline.cli.options import json_option, recording_of, store_option
from worldline.errors import UsageError
from worldline.model import events
from worldline.store import layout
from worldline.store.proof import LARGEST, Proven, check_proof, prove_prefix, prove_row

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    epilog="""\b
Examples:
  worldline prove 7f3a --seq 17 -o row-17.json
  worldline prove 7f3a --prefix 18 -o first-18.json
  worldline prove --check row-17.json --fingerprint 5d9c...
  worldline prove --check row-17.json --signature refund.json.sig --signers allowed_signers"""
)
@click.argument("run", required=False)
@click.option("--seq", type=click.IntRange(0), help="Prove the row with this number.")
@click.option("--prefix", type=click.IntRange(1), help="Prove the first so many rows.")
@click.option("-o", "--output", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="PROOF")
@click.option("--check", "proof", type=_FILE, metavar="PROOF", help="Check this proof instead. The run is not needed.")
@click.option("--fingerprint", metavar="HEX", help="With --check: the seal of the run, as you know it from elsewhere.")
@click.option(
    "--signers", type=_FILE, metavar="FILE", help="With --check: who may have signed the run (ssh-keygen's file)."
)
@click.option("--signature", type=_FILE, metavar="SIG", help="With --signers: the run's signature.")
@click.option(
    "--rows", type=_FILE, metavar="FILE", help="With --check of a prefix: the rows themselves, to be checked too."
)
@json_option
@store_option
def command(
    run: str | None,
    seq: int | None,
    prefix: int | None,
    target: Path | None,
    proof: Path | None,
    fingerprint: str | None,
    signers: Path | None,
    signature: Path | None,
    rows: Path | None,
    as_json: bool,
    store: Path | None,
) -> int:
    """Prove one row or one prefix of a sealed run, or check such a proof.

    A proof is a file with the row's bytes (or the prefix's Merkle root), the run's manifest, and at most log2(rows) + 1
    hashes that lead from the one to the other. It holds nothing else of the run. Exits with 1 where a proof proves
    nothing.
    """
    if proof is not None:
        if run is not None or seq is not None or prefix is not None or target is not None:
            raise click.UsageError("--check takes a proof, and no run")
        if (signers is None) != (signature is None):
            raise click.UsageError("--signers and --signature go together")
        proven = _check(proof, fingerprint, rows, (signature, signers) if signature and signers else None)
        if as_json:
            render.emit_json({"proven": True, **msgspec.structs.asdict(proven)})
        else:
            _say(proven)
        return 0
    if run is None or target is None or (seq is None) == (prefix is None) or fingerprint is not None or rows or signers:
        raise click.UsageError("give RUN, --seq or --prefix, and -o PROOF; or --check PROOF")
    _prove(run, store, seq, prefix, target, as_json)
    return 0


def _prove(run: str, store: Path | None, seq: int | None, prefix: int | None, target: Path, as_json: bool) -> None:
    recording = recording_of(run, store)
    with render.progress("proving", recording.log_bytes) as bar:
        if seq is not None:
            made = prove_row(recording, seq, bar.update)
        else:
            made = prove_prefix(recording, prefix or 0, bar.update)
    try:
        layout.write_durable(target, made)
    except FileExistsError:
        raise UsageError(f"{target} exists; a proof is never overwritten", path=str(target)) from None
    if as_json:
        render.emit_json({"proof": target, "bytes": len(made), "fingerprint": recording.fingerprint})
        return
    what = f"row {seq}" if seq is not None else f"the first {render.counted(prefix or 0, 'row')}"
    render.verdict("ok", f"{what} of {recording.run_id}   {len(made):,} bytes   {target}")
    render.line(f"  worldline prove --check {target} --fingerprint {recording.fingerprint}")


def _check(proof: Path, fingerprint: str | None, rows: Path | None, signed: tuple[Path, Path] | None) -> Proven:
    with proof.open("rb") as file:
        data = file.read(LARGEST + 1)
    return check_proof(data, fingerprint, None if rows is None else _lines(rows), signed)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, none longer than a row may be and one byte."""
    with path.open("rb") as file:
        while line := file.readline(events.MAX_ROW + 1):
            yield line


def _say(proven: Proven) -> None:
    rows = render.counted(proven.rows, "row")
    if proven.seq is not None:
        row = proven.row or {}
        what = f"row {proven.seq} of {rows}: {row.get('kind')}/{row.get('src')}"
    else:
        what = f"the first {proven.prefix} of {rows}"
        what += f", which were given, chained to {proven.head}" if proven.head else ""
    render.verdict("ok", f"proven   {what}   ({render.counted(proven.hashes, 'hash').replace('hashs', 'hashes')})")
    render.line(f"  {proven.run}, {proven.attempt}")
    render.line(f"  fingerprint {proven.fingerprint}")
    if proven.signer:
        render.line(f"  signed by {proven.signer}")
    if not proven.trusted:
        render.verdict("warn", "of this manifest only: compare the fingerprint with the one you know, or --signers")
