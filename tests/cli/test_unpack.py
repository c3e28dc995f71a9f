"""`worldline unpack`: what came as a file can be replayed and forked in a store that never saw its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Ended, agent, environment, worldline
from worldline.testing.provider import Provider

BUNDLE = Path("asked.skn")
COMMAND = ("one", "two")


@pytest.fixture
def received(provider: Provider) -> str:
    """The id of a run of two steps; the bundle of it stands here, and its store stands elsewhere."""
    recorded = worldline("record", "--", *agent("questions"), *COMMAND, env=environment(provider))
    assert recorded.code == 0, recorded
    run = str(worldline("show", "latest", "--json").json["run"])
    assert worldline("pack", "latest", "-o", BUNDLE).code == 0
    Path(".worldline").rename("sender")
    provider.requests.clear()
    return run


def test_a_run_that_came_as_a_file_is_replayed_and_forked_and_so_is_its_branch(
    received: str, provider: Provider
) -> None:
    env, command = environment(provider), ["--json", "--", *agent("questions"), *COMMAND]
    unpacked = worldline("unpack", BUNDLE)
    assert unpacked.code == 0 and unpacked.out.startswith(f"✓ unpacked {received[-4:]}   "), unpacked
    assert f"worldline fork {received[-4:]} --at step:0 -- CMD" in unpacked.out
    assert worldline("verify", "latest", "--json").json["ok"]
    assert worldline("replay", "latest", *command, env=env).json["verdict"] == "equivalent" and not provider.requests
    (branch,) = worldline("fork", received, "--at", "step:1", *command, env=env).json["branches"]
    assert (branch["prefix"], branch["live"], len(provider.requests)) == (1, 1, 1)
    assert worldline("pack", branch["run"], "-o", "branch.skn").code == 0
    alone = worldline("unpack", "branch.skn", "--store", "third", "--json").json
    assert alone["fresh"] and alone["parent_missing"] == received
    again = worldline("unpack", "branch.skn", "--store", "third")
    assert "is here already" in again.out and f"it is a branch of {received[-4:]}, which is not here" in again.out
    missing = worldline("replay", branch["run"], "--store", "third", *command, env=env)
    assert missing.code == 3 and "bring that run back" in missing.out + missing.err
    assert worldline("unpack", BUNDLE, "--store", "third", "--json").json["parent_missing"] is None
    whole = worldline("replay", branch["run"], "--store", "third", *command, env=env)
    assert whole.json["verdict"] == "equivalent" and len(provider.requests) == 1


@pytest.mark.parametrize(
    "asked",
    [
        ("fork", BUNDLE, "--at", "step:1", "--", "true"),
        ("resume", BUNDLE, "--", "true"),
        ("attribute", BUNDLE, "--verifier", "exit-code", "--", "true"),
        ("tree", BUNDLE),
    ],
    ids=lambda asked: str(asked[0]),
)
def test_what_needs_a_store_says_how_the_bundle_comes_into_one(received: str, asked: tuple[str | Path, ...]) -> None:
    refused = worldline(*asked)
    assert refused.code in (3, 64) and "`worldline unpack asked.skn`" in refused.complaint, refused


def test_bad_input_is_one_line(received: str) -> None:
    def complaint(ended: Ended) -> tuple[int, str]:
        return ended.code, ended.complaint

    assert complaint(worldline("unpack", "nothing.skn")) == (64, "no bundle at nothing.skn")
    Path("text.skn").write_text("not a zip")
    code, said = complaint(worldline("unpack", "text.skn"))
    assert code == 64 and "is no bundle" in said
    cut = Path("cut.skn")
    cut.write_bytes(BUNDLE.read_bytes()[:-100])
    assert complaint(worldline("unpack", cut))[0] in (1, 64)
    flipped = bytearray(BUNDLE.read_bytes())
    flipped[len(flipped) // 3] ^= 1
    Path("flipped.skn").write_bytes(flipped)
    code, said = complaint(worldline("unpack", "flipped.skn"))
    assert code == 3 and "cannot unpack flipped.skn: it does not verify" in said
    assert not Path(".worldline").exists() or not list(Path(".worldline").rglob("run_*"))
