"""Who follows a running recording gets the bytes of its log, through rotation and sealing, and hears how it goes."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.view.conftest import Events, log_of
from worldline.engine.account import account
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.view import follow as following


def test_what_comes_live_is_byte_for_byte_the_sealed_log(panel: Any, writer: Any) -> None:
    """Promise 6. The log rotates every 1,500 bytes while it is followed, and is sealed under the follower."""
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        events.until(lambda e: len(e.rows) >= 1 and "live" in e.states)
        for count in (1, 40, 3, 160):
            total = writer.do("rows", rows=count)["rows"]
            events.until(lambda e, total=total: len(e.rows) >= total)
        writer.do("sealed", seal=True)
        events.to_the_end()
    attempt = Recording(writer.path).attempt
    assert len(list((attempt / "chunks").iterdir())) > 10, "the log did not rotate"
    assert b"".join(events.rows) == log_of(attempt)
    assert events.states == ["live", "ended"]


def test_a_follower_begins_at_the_row_it_asks_for(panel: Any, writer: Any) -> None:
    writer.do("rows", rows=60)
    serve = panel(writer.path)
    begins = (0, 1, 17, 60, 61, 62, 10**9)
    streams = [serve.live(f"r/{serve.ids[0]}/live?from={begin}") for begin in begins]
    for events in streams:
        events.until(lambda e: bool(e.states) or bool(e.rows))
    writer.do("sealed", seal=True)
    rows = log_of(Recording(writer.path).attempt).splitlines(True)
    for begin, stream in zip(begins, streams, strict=True):
        with stream as events:
            assert events.to_the_end().rows == rows[begin:], begin


def test_a_connection_that_broke_goes_on_behind_the_last_row_it_had(panel: Any, writer: Any) -> None:
    writer.do("rows", rows=30)
    serve = panel(writer.path)
    target = f"r/{serve.ids[0]}/live?from=0"
    with serve.live(target) as first:
        first.until(lambda e: len(e.rows) >= 31)
    writer.do("rows", rows=30)
    with serve.live(target, Last_Event_ID=first.last_id) as second:
        writer.do("sealed", seal=True)
        second.to_the_end()
    assert b"".join(first.rows + second.rows) == log_of(Recording(writer.path).attempt)


def test_many_follow_one_run_and_each_gets_all_of_it(panel: Any, writer: Any) -> None:
    serve = panel(writer.path)
    streams = [serve.live(f"r/{serve.ids[0]}/live?from={n}") for n in range(12)]
    writer.do("rows", rows=100)
    writer.do("sealed", seal=True)
    rows = log_of(Recording(writer.path).attempt).splitlines(True)
    for number, events in enumerate(streams):
        with events:
            assert events.to_the_end().rows == rows[number:]


def test_a_writer_that_is_killed_stalls_and_what_reconciles_it_ends_it(panel: Any, writer: Any) -> None:
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        writer.do("rows", rows=25)
        events.until(lambda e: len(e.rows) >= 26)
        writer.kill()
        events.until(lambda e: "stalled" in e.states)
        before = list(events.rows)
        assert serve.run("about").json["disposition"] == "interrupted"
        for _ in reconcile(writer.path, account):
            pass
        events.to_the_end()
    assert events.states[:2] == ["live", "stalled"] and events.states[-1] == "ended"
    assert events.rows[: len(before)] == before and b'"src":"end"' in events.rows[-1]
    assert b"".join(events.rows) == log_of(Recording(writer.path).attempt)


def test_a_run_that_is_sealed_between_two_looks_ends_and_does_not_stall(
    panel: Any, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, sealed = following.Writer.look, threading.Event()

    def late(self: following.Writer) -> str:
        """It is sealed behind the look for a manifest, and before that for the lock."""
        if not sealed.is_set():
            look(self)
            return following.LIVE
        if not (Recording(writer.path).attempt / "manifest.json").exists():
            writer.do("sealed", seal=True)
        return following.STALLED

    monkeypatch.setattr(following.Writer, "look", late)
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        events.until(lambda e: "live" in e.states)
        sealed.set()
        events.to_the_end()
    assert events.states == ["live", "ended"]


def test_a_recorder_that_stopped_answering_stalls_and_comes_back(
    panel: Any, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds its lock all the while: only that it does not answer tells."""
    monkeypatch.setattr(following, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(following, "PATIENCE_SECONDS", 0.3)
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        events.until(lambda e: "live" in e.states)
        os.kill(writer.pid, signal.SIGSTOP)
        try:
            events.until(lambda e: e.states[-1] == "stalled")
        finally:
            os.kill(writer.pid, signal.SIGCONT)
        events.until(lambda e: e.states[-1] == "live")


def test_a_follower_that_hangs_up_is_let_go_while_nothing_comes(panel: Any, writer: Any) -> None:
    serve = panel(writer.path)
    before = set(threading.enumerate())
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        events.until(lambda e: "live" in e.states)
        assert set(threading.enumerate()) - before
    ended = threading.Event()
    for _ in range(1000):
        if not set(threading.enumerate()) - before:
            break
        ended.wait(0.03)
    assert not set(threading.enumerate()) - before


def test_closing_the_panel_ends_every_stream(panel: Any, writer: Any) -> None:
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        events.until(lambda e: "live" in e.states)
        serve.server.close()
        events.to_the_end()


def test_a_run_that_is_moved_away_ends_its_stream(panel: Any, writer: Any, tmp_path: Path) -> None:
    writer.do("rows", rows=3)
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        events.until(lambda e: len(e.rows) >= 4)
        writer.path.rename(tmp_path / "elsewhere")
        events.to_the_end()
    assert serve.run("about").status == 404


def test_damaged_lines_are_left_out_and_none_can_speak_for_the_server(panel: Any, writer: Any) -> None:
    """A line that is no row could hold the words of an event."""
    writer.do("rows", rows=5)
    attempt = Recording(writer.path).attempt
    writer.kill()
    forged = b'{"seq":9}\r\revent: state\rdata: ended\r\r'
    with (attempt / "tail.jsonl").open("ab") as tail:
        tail.write(forged + b"\n")
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        events.until(lambda e: "stalled" in e.states)
    assert len(events.rows) == 6 and events.states == ["stalled"]
    assert not any(b"\r" in row for row in events.rows)


def test_a_row_that_is_no_number_is_refused(panel: Any, sealed: Path) -> None:
    serve = panel(sealed)
    for begin in ("-1", "x", "1.5", "%F0%9D%9F%8E", "9" * 30):
        assert serve.run(f"live?from={begin}").status == 400, begin


def test_the_index_of_a_run_under_way_and_what_follows_it_make_the_whole_log(panel: Any, writer: Any) -> None:
    """The page reads what the index speaks of by ranges, and follows from `rows` on: nothing twice, nothing missed."""
    writer.do("rows", rows=33)
    serve = panel(writer.path)
    assert serve.run("about").json["kind"] == "live"
    index = serve.run("index.json").json
    writer.do("rows", rows=33)
    begin = serve.run("events.jsonl", Range=f"bytes=0-{index['raw'] - 1}").body
    with serve.live(f"r/{serve.ids[0]}/live?from={index['rows']}") as events:
        writer.do("sealed", seal=True)
        events.to_the_end()
    assert begin + b"".join(events.rows) == log_of(Recording(writer.path).attempt)
    assert json.loads(events.rows[0])["seq"] == index["rows"] == 34


def test_events_is_what_a_browser_makes_of_them(panel: Any, writer: Any) -> None:
    serve = panel(writer.path)
    with serve.live(f"r/{serve.ids[0]}/live?from=0") as events:
        assert isinstance(events, Events)
        events.until(lambda e: len(e.rows) >= 1)
    assert json.loads(events.rows[0])["data"]["run"] == writer.run and events.last_id == "0"
