"""A proof holds for what was sealed, for nothing else, and without the recording; two checkers say the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.conftest import ROOT
from tests.store.forgery import forge
from worldline.cli.main import cli
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import Damaged, ProofFailed, Unsealed, UsageError
from worldline.model import events
from worldline.model.merkle import RangeRoots, inclusion
from worldline.store import layout
from worldline.store.proof import LARGEST, check_proof, prove_prefix, prove_row
from worldline.store.recording import Recording

CHECKER = ROOT / "docs" / "format" / "check_proof.py"


def lines_of(attempt: Path) -> list[bytes]:
    return b"".join(path.read_bytes() for path in sorted((attempt / layout.CHUNKS).iterdir())).splitlines(True)


def alone(data: bytes, fingerprint: str | None = None) -> tuple[bool, str]:
    """What the stand-alone checker says, in a Python that has nothing but its standard library."""
    Path("proof.json").write_bytes(data)
    arguments = ["proof.json", *([fingerprint] if fingerprint else [])]
    ran = subprocess.run([sys.executable, "-I", "-S", CHECKER, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1) and "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode == 0, ran.stdout + ran.stderr


def rewritten(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The proof with something changed, written as proofs are."""
    proof = json.loads(data)
    change(proof)
    return (json.dumps(proof, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "surrogatepass")


def test_every_row_and_every_prefix_of_a_run_is_proven(sealed: Path) -> None:
    recording, lines = Recording(sealed), lines_of(sealed)
    size, seal = len(lines), recording.fingerprint
    most = (size - 1).bit_length()
    for seq, line in enumerate(lines):
        proof = prove_row(recording, seq)
        proven = check_proof(proof, seal)
        assert (proven.seq, proven.rows, proven.trusted, proven.prefix) == (seq, size, True, None)
        assert proven.row == {key: value for key, value in json.loads(line).items() if key != "h"}
        assert json.loads(proof)["row"]["body"].encode() == line[:-73] and proven.hashes <= most
    for count in range(1, size + 1):
        proof = prove_prefix(recording, count)
        proven = check_proof(proof, seal, lines)
        assert (proven.prefix, proven.seq, proven.row) == (count, None, None) and proven.hashes <= most + 1
        assert proven.head == json.loads(lines[count - 1])["h"]
        assert check_proof(proof, seal).head is None
    for proof in (prove_row(recording, 0), prove_row(recording, size - 1), prove_prefix(recording, 1)):
        assert alone(proof, seal)[0]
    for count in (2, size - 1, size):
        assert alone(prove_prefix(recording, count), seal)[0], count


def test_every_changed_byte_of_a_proof_is_refused(sealed: Path) -> None:
    recording = Recording(sealed)
    for proof in (prove_row(recording, 5), prove_prefix(recording, 5)):
        for at in range(len(proof)):
            for bit in (1, 32):  # another digit or letter; another case, or a space for the line's end
                with pytest.raises(ProofFailed):
                    check_proof(proof[:at] + bytes([proof[at] ^ bit]) + proof[at + 1 :])
        for cut in range(0, len(proof), 7):
            with pytest.raises(ProofFailed):
                check_proof(proof[:cut])
        for added in (proof + b" ", b" " + proof, proof + proof):
            with pytest.raises(ProofFailed):
                check_proof(added)


OTHER = "a" * 64
ROW_DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "format": lambda p: p.update(format="worldline-proof/2"),
    "run": lambda p: p.update(run="run_" + "0" * 26),
    "attempt": lambda p: p.update(attempt="ainst_" + "0" * 26),
    "manifest": lambda p: p.update(manifest=p["manifest"].replace('"rows":', '"rows":1')),
    "manifest's root": lambda p: p.update(manifest=p["manifest"].replace('"root":"', '"root":"0')),
    "seal": lambda p: p.update(manifest=p["manifest"][:-67] + OTHER + '"}\n'),
    "manifest without its end": lambda p: p.update(manifest=p["manifest"][:-1]),
    "no manifest": lambda p: p.update(manifest="{}\n"),
    "seq": lambda p: p["row"].update(seq=6),
    "seq before the first": lambda p: p["row"].update(seq=-1),
    "seq that is no number": lambda p: p["row"].update(seq="5"),
    "seq that is true": lambda p: p["row"].update(seq=True),
    "a huge seq": lambda p: p["row"].update(seq=10**400),
    "body": lambda p: p["row"].update(body=p["row"]["body"].replace('"pay"', '"pau"')),
    "body and its seq": lambda p: p["row"].update(body=p["row"]["body"].replace('"seq":5', '"seq":6'), seq=6),
    "a body with more behind it": lambda p: p["row"].update(body=p["row"]["body"] + ',"h":"' + OTHER + '"'),
    "a body that is no text": lambda p: p["row"].update(body="\ud800"),
    "a hash": lambda p: p["path"].__setitem__(0, OTHER),
    "a hash in capitals": lambda p: p["path"].__setitem__(0, p["path"][0].upper()),
    "a hash too many": lambda p: p["path"].append(OTHER),
    "a hash too few": lambda p: p["path"].pop(),
    "hashes swapped": lambda p: p["path"].reverse(),
    "no hashes": lambda p: p.update(path=[]),
    "hashes that are none": lambda p: p.update(path=[None]),
    "a field more": lambda p: p.update(note="by the way"),
    "a field in the row more": lambda p: p["row"].update(h=OTHER),
    "row and prefix": lambda p: p.update(prefix={"rows": 1, "root": OTHER}),
    "neither": lambda p: p.pop("row"),
    "another order": lambda p: p.update(run=p.pop("run")),
    "a deep one": lambda p: p.update(row=json.loads("[" * 900 + "]" * 900)),
}
PREFIX_DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "count": lambda p: p["prefix"].update(rows=6),
    "count of nothing": lambda p: p["prefix"].update(rows=0),
    "a count beyond": lambda p: p["prefix"].update(rows=1000),
    "root": lambda p: p["prefix"].update(root=OTHER),
    "the whole, without a path": lambda p: (p["prefix"].update(rows=13), p.update(path=[])),
    "a hash": lambda p: p["path"].__setitem__(0, OTHER),
    "the last hash": lambda p: p["path"].__setitem__(-1, OTHER),
    "a hash too many": lambda p: p["path"].append(OTHER),
    "a hash too few": lambda p: p["path"].pop(),
    "no hashes": lambda p: p.update(path=[]),
    "a field more": lambda p: p["prefix"].update(head=OTHER),
}


@pytest.mark.parametrize("name", ROW_DAMAGES)
def test_a_row_s_proof_with_a_damage_is_refused_by_both_checkers(name: str, sealed: Path) -> None:
    refused_by_both(rewritten(prove_row(Recording(sealed), 5), ROW_DAMAGES[name]))


@pytest.mark.parametrize("name", PREFIX_DAMAGES)
def test_a_prefix_s_proof_with_a_damage_is_refused_by_both_checkers(name: str, sealed: Path) -> None:
    refused_by_both(rewritten(prove_prefix(Recording(sealed), 5), PREFIX_DAMAGES[name]))


@pytest.mark.parametrize("data", [b"", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe", b"[" * 100_000, b'{"format":1}\n'])
def test_what_is_no_proof_is_refused_by_both_checkers(data: bytes) -> None:
    refused_by_both(data)


def refused_by_both(data: bytes) -> None:
    with pytest.raises(ProofFailed) as refused:
        check_proof(data)
    assert "\n" not in str(refused.value)
    proven, said = alone(data)
    assert not proven and said.startswith("not proven: "), said


def test_a_proof_of_a_forged_run_is_told_by_its_fingerprint_alone(sealed: Path) -> None:
    seal = Recording(sealed).fingerprint
    assert seal is not None
    forge(sealed, lambda body: body.replace(b'"n":4', b'"n":9'))
    forged = prove_row(Recording(sealed), 5)
    assert not check_proof(forged).trusted and alone(forged)[0]
    with pytest.raises(ProofFailed, match="another run"):
        check_proof(forged, seal)
    assert not alone(forged, seal)[0]


def test_a_row_that_says_another_number_than_its_place_is_refused_by_both_checkers(sealed: Path) -> None:
    honest = prove_row(Recording(sealed), 5)
    forge(sealed, lambda body: body.replace(b'"seq":5,', b'"seq":6,'))
    lines = lines_of(sealed)
    roots = RangeRoots(inclusion(5, len(lines)))
    for line in lines:
        roots.add(events.leaf(line[: -events.SUFFIX]))
    manifest, row = (sealed / layout.MANIFEST).read_text(), {"seq": 5, "body": lines[5][: -events.SUFFIX].decode()}
    path = [root.hex() for root in roots.roots()]
    refused_by_both(rewritten(honest, lambda proof: proof.update(manifest=manifest, row=row, path=path)))


def test_the_rows_of_a_prefix_are_checked_where_they_are_given(sealed: Path) -> None:
    lines = lines_of(sealed)
    proof = prove_prefix(Recording(sealed), 5)
    changed = [line.replace(b'"pay"', b'"pau"') for line in lines]
    swapped = [lines[0], lines[2], lines[1], *lines[3:]]
    rechained = [*lines[:4], lines[4].replace(b'"lane"', b'"Lane"')]
    unchained = [*lines[:2], lines[2][:-67] + OTHER.encode() + b'"}\n', *lines[3:]]
    for wrong in (lines[:4], changed, swapped, rechained, unchained, lines[1:], [b"x" * 200]):
        with pytest.raises(ProofFailed):
            check_proof(proof, rows=wrong)
    assert check_proof(proof, rows=lines[:5]).head == json.loads(lines[4])["h"]


def test_only_what_is_sealed_and_whole_is_proven(sealed: Path, tmp_path: Path) -> None:
    recorder = Recorder(Spec(store=tmp_path / "runs", task="open"))
    with pytest.raises(Unsealed):
        prove_row(Recording(recorder.attempt), 0)
    recorder.seal("partial")
    assert check_proof(prove_row(Recording(recorder.attempt), 0)).seq == 0
    rows = len(lines_of(sealed))
    for seq in (-1, rows):
        with pytest.raises(UsageError, match=f"rows 0 to {rows - 1}"):
            prove_row(Recording(sealed), seq)
    for count in (0, rows + 1):
        with pytest.raises(UsageError, match="no prefix"):
            prove_prefix(Recording(sealed), count)
    chunk = sorted((sealed / layout.CHUNKS).iterdir())[1]
    good = chunk.read_bytes()
    chunk.write_bytes(good.replace(b'"lane":"main"', b'"lane":"mine"', 1))
    with pytest.raises(Damaged, match="not what was sealed"):
        prove_row(Recording(sealed), 0)
    chunk.write_bytes(good)
    manifest = sealed / layout.MANIFEST
    manifest.write_bytes(manifest.read_bytes().replace(b'"rows":', b'"rows":1'))
    with pytest.raises(Damaged, match="nothing can be proven"):
        prove_row(Recording(sealed), 0)


def test_a_file_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(ProofFailed, match="over the limit"):
        check_proof(b" " * (LARGEST + 1))


def worldline(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), standalone_mode=False)


def test_the_verb_writes_and_checks(sealed: Path) -> None:
    seal = Recording(sealed).fingerprint or ""
    made = worldline("prove", str(sealed), "--seq", "5", "-o", "row.json")
    assert made.exception is None and f"prove --check row.json --fingerprint {seal}" in made.output
    begun = worldline("prove", str(sealed), "--prefix", "5", "-o", "first.json", "--json")
    assert json.loads(begun.output) == {
        "proof": "first.json",
        "bytes": Path("first.json").stat().st_size,
        "fingerprint": seal,
    }
    Path("rows.jsonl").write_bytes(b"".join(lines_of(sealed)))
    for run in sealed.parents[2].iterdir():  # what is checked needs nothing of it
        run.rename(run.with_name("gone-" + run.name))
    checked = worldline("prove", "--check", "row.json", "--fingerprint", seal)
    assert checked.return_value == 0 and "proven   row 5 of" in checked.output and "compare" not in checked.output
    assert "compare the fingerprint" in worldline("prove", "--check", "row.json").output
    told = json.loads(worldline("prove", "--check", "first.json", "--rows", "rows.jsonl", "--json").output)
    assert (told["proven"], told["prefix"], told["trusted"]) == (True, 5, False) and len(told["head"]) == 64
    refused = worldline("prove", "--check", "row.json", "--fingerprint", OTHER)
    assert isinstance(refused.exception, ProofFailed) and refused.exception.exit_code == 1
    again = worldline("prove", "--check", "row.json", "--seq", "3")
    assert again.exception is not None


def test_the_stand_alone_checker_is_short() -> None:
    assert len(CHECKER.read_text().splitlines()) <= 80
