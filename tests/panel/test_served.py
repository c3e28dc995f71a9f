"""`worldline view`: a bundle with ranges, a directory, the runs of a store, and a run that goes on while one looks."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect

import worldline as wl
from tests.conftest import ROOT
from tests.panel.conftest import Bundles, Opener, origin_of, viewing
from tests.panel.runs import api
from tests.panel.runs.talk import record
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording

GOING = """
import sys
import worldline as wl

@wl.tool(name="desk.look", effect="pure")
def look(at):
    return f"seen {at}"

with wl.record(sys.argv[1], task="goes on"):
    for number in range(3):
        with wl.step(f"look {number}"):
            look(number)
    print("three", flush=True)
    sys.stdin.readline()
    with wl.step("may I"):
        answer = wl.ask("refund.pay", reason="a broken lamp", timeout=60, cents=6400)
    print("granted" if answer else "denied", answer.by, answer.reason, flush=True)
    sys.stdin.readline()
    with wl.step("last"):
        look("the end")
"""


@contextmanager
def going_on(store: Path) -> Iterator[subprocess.Popen[str]]:
    """A recording in a process of its own that waits for a line before it goes on."""
    command = [sys.executable, "-c", GOING, str(store)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "three\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_bundle_is_read_in_ranges_and_nobody_else_is_asked(panels: Opener, bundle: Bundles) -> None:
    with viewing(bundle("gui")) as url:
        panel = panels(origin_of(url)).goto(url)
        panel.at(20)
        expect(panel.verdict).to_contain_text("Failed at step 21")
        assert any(address.endswith("bundle.skn") for address in panel.asked)


def test_a_directory_is_read_as_a_bundle_is(panels: Opener, tmp_path: Path) -> None:
    cost = lambda: wl.outcome("succeeded", cost=0.4231)  # noqa: E731 - one word said at the end
    run = record(tmp_path / "runs", "Refund a bulb of order 10-4472.", api.TURNS, then=cost)
    with viewing(run) as url:
        panel = panels(origin_of(url)).goto(url)
        expect(panel.verdict).to_contain_text("Succeeded")
        expect(panel.page.get_by_role("group", name="Figures")).to_contain_text("$0.42")
        panel.press("Home").at(0)
        expect(panel.tab("Decision")).to_contain_text("I look the order up.")


def test_a_directory_whose_contents_are_expired_says_so(panels: Opener, tmp_path: Path) -> None:
    spec = wl.RecordingSpec(restrict=("tool:orders.read",), retention={"ordinary": 3600, "restricted": 60})
    recording = Recording(record(tmp_path / "runs", "Refund a bulb of order 10-4472.", api.TURNS, spec=spec))
    assert recording.manifest is not None
    expire(recording, recording.manifest.sealed_at + 61 * 10**9, act=True)
    with viewing(recording.path) as url:
        panel = panels(origin_of(url)).goto(url)
        expect(panel.page.get_by_test_id("banner-expired")).to_contain_text(
            re.compile(r"\d+ contents? ha(s|ve) expired")
        )
        panel.reveal()
        panel.press("Home").at(0)
        panel.allowed.append("410")  # the browser says on its console what the server answers of them
        expect(panel.tab("Decision")).to_contain_text("expired")


def test_the_runs_of_a_store_are_listed_found_and_opened(panels: Opener, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    record(store, "Refund a bulb of order 10-4472.", api.TURNS)
    with wl.record(store, task="another task"):
        wl.observe("something", src="file")
    with viewing(store) as url:
        panel = panels(origin_of(url)).goto(url, ready=False)
        table = panel.page.get_by_role("main")
        expect(table).to_contain_text("Refund a bulb of order 10-4472.")
        expect(table).to_contain_text("another task")
        panel.page.get_by_text("Refund a bulb of order 10-4472.").first.click()
        if panel.page.get_by_test_id("verdict").count() == 0:
            panel.press("Enter")
        panel.ready()
        expect(panel.verdict).to_contain_text("Succeeded")


def test_a_live_run_is_followed_its_question_answered_and_its_end_seen(panels: Opener, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    with going_on(store) as process:
        [run] = store.glob("run_*")
        with viewing(run, "--live") as url:
            panel = panels(origin_of(url)).goto(url, ready=False)
            expect(panel.steps.get_by_role("option")).to_have_count(3)
            expect(panel.page.get_by_text("LIVE", exact=True)).to_be_visible()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            asked = panel.page.get_by_role("button", name=re.compile("^(grant|allow)", re.IGNORECASE)).first
            expect(panel.page.get_by_text("refund.pay").first).to_be_visible()
            reason = panel.page.get_by_label(re.compile("[Rr]eason|[Ww]hy"))
            if reason.count():
                reason.first.fill("it is broken")
            asked.click()
            assert process.stdout.readline().startswith("granted")
            process.stdin.write("\n")
            process.stdin.flush()
            process.wait(timeout=120)
            expect(panel.page.get_by_text("ended", exact=True)).to_be_visible()
            expect(panel.steps.get_by_role("option")).to_have_count(5)
            # Sealed by now, it is judged as any other: of what grew nothing could be said.
            expect(panel.page.get_by_role("group", name="Figures")).to_contain_text("sealed, unsigned")
            expect(panel.tab("Integrity")).to_contain_text("up to the seal")


def test_who_scrolls_away_from_a_live_run_is_left_alone_and_told_what_is_new(panels: Opener, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    with going_on(store) as process:
        [run] = store.glob("run_*")
        with viewing(run, "--live") as url:
            panel = panels(origin_of(url)).goto(url, ready=False)
            expect(panel.steps.get_by_role("option")).to_have_count(3)
            panel.press("Home")
            panel.at(0)
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            pill = panel.page.get_by_role("button", name=re.compile(r"\d+ new"))
            expect(pill).to_be_visible()
            assert panel.step == 0
            panel.press("l")
            expect(panel.page.get_by_text("LIVE", exact=True)).to_be_visible()
            assert panel.step == 3
