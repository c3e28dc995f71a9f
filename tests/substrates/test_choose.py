"""A substrate is taken because it can be had, and a lesser one never without a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import require
from worldline.engine.substrates.choose import BUILT_IN, open_workspace, probed, substrate_of
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.substrate import Caps, Policy
from worldline.engine.substrates.zygote import Zygote, on_disk
from worldline.errors import EnvironmentFailed, StaleBase, Unavailable, UsageError
from worldline.testing import subject


class Missing(Files):
    """A substrate that a machine lacks."""

    name = "btrfs"

    def probe(self) -> Caps:
        return Caps(name=self.name, tier="disk", why_not="the workspace is not on btrfs")


@pytest.fixture
def policy(quick: Path) -> Policy:
    return Policy(store=quick / "runs")


def test_the_best_that_can_be_had_is_taken_and_the_reason_told(quick: Path, policy: Policy) -> None:
    known = {**BUILT_IN, "btrfs": Missing}
    choice = open_workspace(quick, policy, known=known)
    assert choice.facts() == {
        "substrate": "files",
        "degraded": "files in place of btrfs: the workspace is not on btrfs",
    }
    assert open_workspace(quick, policy, known={"files": Files}).facts() == {"substrate": "files", "degraded": None}
    assert open_workspace(quick, policy, need="nothing").substrate.name == "none"


HELD = "tests.substrates.held:Held"


def test_an_environment_in_this_process_is_kept_by_zygote_and_its_files_beside_it(quick: Path, policy: Policy) -> None:
    (quick / "workspace").mkdir()
    require("zygote", Zygote(policy.store, HELD).probe().why_not is None, "this system has none")
    choice = open_workspace(quick / "workspace", policy, factory=HELD)
    assert choice.facts() == {"substrate": "zygote", "degraded": None}
    ref = choice.env.snapshot(1)
    assert choice.substrate.files.record(on_disk(ref)).snapshot.id == ref.id, "the files are kept at the same moment"
    choice.env.close()
    with pytest.raises(StaleBase, match="fork them"):  # in another process, or later: the durable half is named
        substrate_of(ref.substrate, policy.store).fork(ref, 1, branch_seed="", identity="later")
    with pytest.raises(EnvironmentFailed):  # its user's error is no reason to keep less
        open_workspace(quick / "workspace", policy, factory="tests.substrates.held:no_such_thing")


def test_where_there_is_no_zygote_the_files_are_kept_and_the_loss_is_said_and_logged(
    quick: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (quick / "workspace").mkdir()
    known = {**BUILT_IN, "btrfs": Missing}
    with monkeypatch.context() as patch, caplog.at_level("WARNING", "worldline"):
        patch.delattr(os, "pidfd_open")
        choice = open_workspace(quick / "workspace", policy, factory=HELD, known=known)
    assert choice.substrate.name == "files" and [each.wanted for each in choice.degraded] == ["zygote", "btrfs"]
    assert "files in place of zygote: this system has no pidfd_open" in caplog.text
    unnamed = open_workspace(quick / "workspace", policy, need="in-process", known=known)
    assert unnamed.substrate.name == "files" and "say which factory" in str(unnamed.degraded[0])
    with pytest.raises(Unavailable, match="pidfd_open"), monkeypatch.context() as patch:
        patch.delattr(os, "pidfd_open")
        open_workspace(quick / "workspace", policy, "zygote", factory=HELD, strict=True, known=known)


def test_one_that_is_named_degrades_or_is_refused(quick: Path, policy: Policy) -> None:
    choice = open_workspace(quick, policy, "git")
    assert choice.substrate.name == "files" and choice.degraded[0].wanted == "git"
    with pytest.raises(Unavailable) as refused:
        open_workspace(quick, policy, "git", strict=True)
    assert refused.value.facts["substrate"] == "git" and refused.value.exit_code == 3
    with pytest.raises(Unavailable, match="no substrate"):
        open_workspace(quick, policy, "btrfs", known={"btrfs": Missing})
    with pytest.raises(UsageError):
        open_workspace(quick, policy, "floppy")


def test_a_snapshot_of_a_substrate_that_is_not_here_is_refused(policy: Policy) -> None:
    assert substrate_of("files", policy.store).name == "files"
    with pytest.raises(Unavailable):
        substrate_of("vm", policy.store)
    assert {caps.name for caps in probed(policy.store)} == set(BUILT_IN)


def test_a_promised_substrate_that_is_missing_fails_and_an_unpromised_one_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caps = Caps(name="btrfs", tier="disk", why_not="no btrfs")
    monkeypatch.setenv("WORLDLINE_REQUIRE", "overlay")
    with pytest.raises(pytest.skip.Exception, match="no btrfs"):
        subject.require(caps)
    for promised in ("btrfs,overlay", "all"):
        monkeypatch.setenv("WORLDLINE_REQUIRE", promised)
        with pytest.raises(pytest.fail.Exception, match="required"):
            subject.require(caps)
