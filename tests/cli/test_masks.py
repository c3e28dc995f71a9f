"""Declared masks, from the command line to the report: what they leave out is not compared, everything else is.

The agent's prompts hold the day and ids of their own, so no second run of it asks for the same.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.cli.terminal import Ended, agent, environment, worldline
from worldline.testing.provider import Provider

BEFORE, TODAY = "2026-11-29", "2026-11-30"
DATE, UUID = r"\d{4}-\d\d-\d\d", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
MASKS = (
    rf"$.messages[*].content=~{DATE}",
    rf"$.messages[0].content=~{UUID}",
    "$.metadata.trace_id",
    rf"tool:search $.now=~{DATE}",
)
TOML = "[matching]\nmask = [\n" + "".join(f"  '{mask}',\n" for mask in MASKS) + "]\n"


def given(*masks: str) -> list[str]:
    return [word for mask in masks for word in ("--mask", mask)]


def run(verb: str, *words: str, day: str = TODAY, provider: Provider | None = None, **more: str) -> Ended:
    env = environment(provider, DAY=day, **more)
    return worldline(verb, *words, "--", *agent("dated"), env=env)


@pytest.fixture
def recorded(provider: Provider) -> Provider:
    """A run of the day before."""
    assert run("record", day=BEFORE, provider=provider).code == 0
    return provider


def test_what_differs_in_a_date_diverges_until_the_masks_that_its_message_proposes_are_given(
    recorded: Provider,
) -> None:
    masks: list[str] = []
    for _ in range(6):
        ended = run("replay", "latest", "--json", *given(*masks))
        if ended.code == 0:
            break
        found = ended.json["divergence"]
        assert (ended.code, found["kind"]) == (1, "changed")
        assert found["masks"], found
        masks += found["masks"]
    report = ended.json
    assert (report["verdict"], report["served"], report["live"]) == ("equivalent", 4, 0)
    assert report["projection"] == f"worldline/1 + {len(masks)} masks"
    assert report["masked"] == 4
    assert [use["mask"] for use in report["masks"]] == masks
    assert all(use["origin"] == "given" and use["values"] >= use["exchanges"] > 0 for use in report["masks"])


def test_text_beside_what_is_left_out_still_diverges_and_no_mask_is_proposed_for_it(recorded: Provider) -> None:
    ended = run("replay", "latest", "--json", *given(*MASKS), TONE="careless")
    found = ended.json["divergence"]
    assert (ended.code, found["kind"], found["path"], found["masks"]) == (1, "changed", "$.messages[0].content", [])
    assert ("careful" in found["recorded"], "careless" in found["actual"]) == (True, True)
    assert (ended.json["served"], ended.json["masks"][3]["values"]) == (1, 1)


def test_what_differs_is_quoted_whole_also_where_something_in_it_was_left_out(recorded: Provider) -> None:
    found = run("replay", "latest", "--json", *given(*MASKS), EXTRA="1").json["divergence"]
    assert (found["path"], found["recorded"]) == ("$.messages[4]", None)
    assert found["actual"] == {"role": "user", "content": f"It is {TODAY}."}


def test_a_replay_says_which_masks_were_in_force_and_which_met_nothing(recorded: Provider) -> None:
    Path("worldline.toml").write_text(TOML)
    lines = run("replay", "latest", *given("$.never")).out.splitlines()
    assert lines[1].endswith("(projection worldline/1 + 5 masks)")
    assert lines[2] == "  5 masks in force, 4 answers given to a call that differs only there"
    assert [re.sub(r"^ +", "", line) for line in lines[3:]] == [
        f"{MASKS[0]}   6 values in 2 exchanges   (worldline.toml)",
        f"{MASKS[1]}   2 values in 2 exchanges   (worldline.toml)",
        f"{MASKS[2]}   2 values in 2 exchanges   (worldline.toml)",
        f"{MASKS[3]}   2 values in 2 exchanges   (worldline.toml)",
        "$.never   met nothing in what was served   (given)",
    ]


def test_masks_that_are_recorded_are_in_force_by_themselves_and_never_for_evidence(provider: Provider) -> None:
    assert run("record", *given(*MASKS), day=BEFORE, provider=provider).code == 0
    recording = wl.open("latest").recording
    assert recording.manifest is not None
    assert recording.manifest.masks == recording.header.data["masks"] == list(MASKS)
    assert b"2026-11-29" in b"".join(event.raw for event in recording.events())  # it is in the record all the same
    assert worldline("verify", "latest").code == 0
    report = run("replay", "latest", "--json").json
    assert (report["verdict"], {use["origin"] for use in report["masks"]}) == ("equivalent", {"record"})
    strict = run("replay", "latest", "--strict", "--json")
    assert (strict.code, strict.json["projection"], strict.json["masks"]) == (1, "worldline/1", [])
    assert "everything was compared: the record's 4 masks left nothing out" in strict.json["notes"]
    assert run("replay", "latest", "--strict", *given("$.x")).code == 64


def test_a_branch_is_served_under_masks_and_replays_by_itself(recorded: Provider) -> None:
    refused = run("fork", "latest", "--at", "step:2", "--json", provider=recorded)
    branch = refused.json["branches"][0]
    assert (refused.code, branch["outcome"], branch["live"]) == (1, "not_reproducible", 0)
    assert branch["divergence"]["masks"]
    asked = len(recorded.requests)
    forked = run("fork", "latest", "--at", "step:2", "--json", *given(*MASKS), provider=recorded)
    branch = forked.json["branches"][0]
    assert (forked.code, branch["outcome"], branch["prefix"], branch["live"]) == (0, "succeeded", 3, 1)
    assert (branch["masked"], [use["exchanges"] for use in branch["masks"]]) == (3, [1, 1, 1, 2])
    assert len(recorded.requests) == asked + 1
    again = run("replay", branch["run"], "--json", day="2026-12-01").json
    assert (again["verdict"], again["served"]) == ("equivalent", 4)
    assert {use["origin"] for use in again["masks"]} == {"record"}


def test_a_run_that_broke_off_is_resumed_under_masks(provider: Provider) -> None:
    assert run("record", day=BEFORE, provider=provider, FAIL="1").code == 3
    assert run("resume", "latest", "--json", provider=provider).json["outcome"] == "not_reproducible"
    resumed = run("resume", "latest", "--json", *given(*MASKS), provider=provider)
    assert (resumed.code, resumed.json["outcome"], resumed.json["prefix"]) == (0, "succeeded", 2)
    assert resumed.json["masked"] == 2


def test_a_calibration_judges_nothing_and_its_proposals_make_the_replay_equivalent(recorded: Provider) -> None:
    calibrated = run("replay", "latest", "--calibrate", "--json")
    found = calibrated.json
    assert (calibrated.code, "verdict" in found, found["served"], found["moved"]) == (0, False, 4, 4)
    assert (found["others"], found["ended"]) == ([], None)
    assert all(proposal["recorded"] != proposal["actual"] for proposal in found["proposals"])
    masks = [proposal["mask"] for proposal in found["proposals"]]
    assert any(mask.startswith("$.messages[*].content=~") for mask in masks)  # several messages differed so
    assert run("replay", "latest", "--json", *given(*masks)).json["verdict"] == "equivalent"
    nothing = run("replay", "latest", "--calibrate", "--json", *given(*masks)).json
    assert (nothing["proposals"], nothing["moved"], len(nothing["masks"])) == ([], 0, len(masks))
    # What is no noise is listed, and nothing is proposed for it.
    changed = run("replay", "latest", "--calibrate", *given(*masks), TONE="careless").out
    assert "no mask proposed" in changed
    assert "do not look volatile" in changed
    assert '+ "You are a careless clerk.' in changed
    assert "equivalent" not in changed + str(found)


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        ("messages", "at character 0: a place begins with $"),
        ("$", "it would leave out everything"),
        ("$.a b", "at character 3: no step of a path is ' b'"),
        ("$.a[", "at character 3"),
        ("$.a=~(", "is no regular expression"),
        ("$.a=~\\d*", "finds nothing everywhere"),
        ("tool:search", "at character 11: a place begins with $"),
        ("decision $.text", "which only a diff compares"),
        ("$.a" * 1000, "a mask has at most 2,000"),
    ],
)
def test_what_is_no_mask_is_refused_before_anything_runs(mask: str, said: str) -> None:
    for words in (["replay", "x"], ["fork", "x"], ["resume", "x"], ["record"]):
        ended = worldline(*words, "--mask", mask, "--", sys.executable, "-c", "open('ran', 'w')")
        assert ended.code == 64
        assert said in ended.complaint
    assert not Path("ran").exists()


def test_a_settings_file_without_masks_changes_nothing_and_one_that_is_wrong_is_named(recorded: Provider) -> None:
    settings = Path("worldline.toml")
    settings.write_text('[policy]\nid = "shop"\n')
    assert run("replay", "latest", "--json").json["masks"] == []
    for wrong in ("[matching]\nmask = 3\n", "[matching]\nmasks = []\n", "[matching]\nmask = ['$']\n", "[matching\n"):
        settings.write_text(wrong)
        for words in (["replay", "latest"], ["fork", "latest", "--at", "step:1"], ["resume", "latest"]):
            assert run(words[0], *words[1:]).code == 64


def test_in_process_masks_are_given_as_text(tmp_path: Path) -> None:
    days = iter(["2026-11-29", "2026-11-30", "2026-12-01"])

    @wl.tool(effect="pure")
    def search(order: int, now: str) -> str:
        return "a lamp"

    def main() -> None:
        search(812, next(days))

    with wl.record(tmp_path / "runs", mask="tool:other $.now") as recording:
        main()
    opened = wl.open(recording.path or "")
    diverged = opened.replay(main)
    assert (diverged.verdict, diverged.projection) == ("diverged", "worldline/1 + 1 mask")
    assert str(diverged.first_divergence).endswith(
        "mask=['tool:search $.now=~\\\\d{4}-\\\\d\\\\d-\\\\d\\\\d'] leaves it out"
    )
    report = opened.replay(main, mask=["tool:sea* $.now"])
    uses: list[Any] = [(use.mask, use.origin, use.values) for use in report.masks]
    assert report.verdict == "equivalent"
    assert uses == [("tool:other $.now", "record", 0), ("tool:sea* $.now", "given", 1)]
