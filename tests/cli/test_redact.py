"""`worldline redact`: what it says, what it leaves, and how it ends."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Recorded
from tests.cli.terminal import agent, environment, worldline
from tests.conftest import require

LAMP = "lamp, 2 pieces"


def test_a_derived_bundle_says_what_it_is(clerk: Recorded) -> None:
    env = environment(ORDER=LAMP, UNUSED="not-in-it-at-all")
    rules = ["--rule", "secret-env:ORDER", "--rule", "field:order", "--rule", "secret-env:UNUSED"]
    tried = worldline("redact", "latest", *rules, "--dry-run", "--json", env=env).json
    assert (tried["dry_run"], tried["path"], tried["idle"]) == (True, None, ["secret-env:UNUSED"])
    assert not list(Path().glob("*.skn"))
    done = worldline("redact", "latest", "-o", "out.skn", *rules, "--why", f"no {LAMP}", env=env)
    assert done.code == 0 and not done.err
    removed = tried["removed"]
    assert set(removed) == {"secret-env:ORDER", "field:order"}
    first, *lines = done.out.splitlines()
    assert first.startswith(f"✓ derived out.skn   {sum(removed.values())} removed   ")
    assert [line.split() for line in lines[:2]] == [[f"{removed[rule]}", rule] for rule in sorted(removed)]
    assert lines[2] == "! secret-env:UNUSED finds nothing"
    assert LAMP.encode() not in Path("out.skn").read_bytes()
    verified = worldline("verify", "out.skn")
    seal = worldline("show", "latest", "--json").json["fingerprint"]
    count = sum(removed.values())
    assert f"– publication    derived from {seal[:12]}, {count} removed by 3 rules" in verified.out
    assert worldline("verify", "out.skn", "--json").json["verdicts"]["publication"] == "derived"
    shown = worldline("show", "out.skn")
    assert shown.code == 0 and LAMP not in shown.out and "[redacted:field.order]" in shown.out
    assert f"! derived from {seal[:12]}" in shown.out and "worldline replay" not in shown.out
    assert worldline("show", "out.skn", "--json").json["derived_from"]["why"] == "no [redacted:secret-env.ORDER]"
    assert "3 contexts rebuilt, all hashes met" in worldline("replay", "out.skn").out
    again = worldline("replay", "out.skn", "--tools", "run", "--json", "--", *agent("clerk"))
    assert (again.code, again.json["verdict"]) == (3, "ineligible")
    assert "the record of nothing that ran" in again.json["reasons"][0]
    twice = worldline("redact", "out.skn", "-o", "two.skn", "--rule", "tool:*", "--json").json
    assert twice["source"] == worldline("verify", "out.skn", "--json").json["facts"]["fingerprint"]
    assert worldline("verify", "two.skn").code == 0


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["-o", "x.skn", "--rule", "field:nothing"], 1, "no rule finds anything in"),
        (["-o", "x.skn", "--rule", "secret-env:NOT_SET"], 64, "secret-env:NOT_SET: the variable is not set"),
        (["-o", "x.skn", "--rule", "text:(a+)+"], 64, "text: this pattern is refused: it repeats what repeats"),
        (["-o", "x.skn", "--rule", "sheep"], 64, "no rule 'sheep'; there are secret-env:NAME, shapes,"),
        (["--rule", "shapes"], 64, "give -o FILE, or --dry-run"),
        (["-o", "x.skn"], 64, "missing option '--rule'"),
    ],
)
def test_how_it_is_refused(clerk: Recorded, words: list[str], code: int, complaint: str) -> None:
    ended = worldline("redact", "latest", *words)
    assert (ended.code, ended.out) == (code, "") and ended.complaint.startswith(complaint)
    assert not Path("x.skn").exists()


def test_a_signature_does_not_carry_over(clerk: Recorded) -> None:
    require("ssh-keygen", shutil.which("ssh-keygen"), "not installed")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"], check=True)
    worldline("pack", "latest", "-o", "run.skn")
    assert worldline("sign", "run.skn", "--key", "key").code == 0
    done = worldline("redact", "run.skn", "-o", "out.skn", "--rule", "field:order")
    assert "! the source is signed; a signature vouches for those bytes and does not carry over" in done.out
    assert worldline("verify", "out.skn", "--json").json["verdicts"]["authenticity"] == "unsigned"
