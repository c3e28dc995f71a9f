"""A paused agent asks, somebody answers, and the record says who: in time or not, and on a replay nobody is asked."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

import worldline as wl
from worldline.errors import UsageError, ValueRefused
from worldline.seams.answering import answer
from worldline.store.recording import Recording
from worldline.store.rendezvous import announced, rendezvous_of


def requested(path: Path, count: int = 1) -> list[Any]:
    """The requests of a run that is being recorded, once there are so many."""
    waiting = threading.Event()
    for _ in range(3000):
        found = [event for event in Recording(path).events() if event.name == "permission/requested"]
        if len(found) >= count:
            return found
        waiting.wait(0.01)
    raise AssertionError("nobody asked")


def permissions(path: Path) -> list[tuple[str, dict[str, Any]]]:
    return [(e.src, e.data["facts"]) for e in Recording(path).events() if e.kind == "permission"]


def test_an_answer_from_the_panel_reaches_the_agent_and_stands_in_the_record(panel: Any, writer: Any) -> None:
    """Three processes: the agent's, the panel's, and whoever posts."""
    serve = panel(writer.path)
    writer.tell(ask={"capability": "http.post", "reason": "refund #812", "amount": 64, "url": "https://shop.example"})
    (asked,) = requested(writer.path)
    assert asked.data["capability"] == "http.post" and asked.data["facts"]["amount"] == 64
    assert asked.data["facts"]["reason"] == "refund #812"
    got = serve.post(f"r/{serve.ids[0]}/permission", {"seq": asked.seq, "decision": "granted", "reason": "it is right"})
    assert got.status == 200 and got.json["decision"] == "granted"
    told = writer.heard("answer")
    assert told["true"] and told["answer"]["by"] == got.json["by"] and told["answer"]["reason"] == "it is right"
    writer.do("sealed", seal=True)
    (_, first), (word, facts) = permissions(writer.path)
    assert word == "granted" and facts["asked"] == asked.seq and facts["id"] == first["id"]
    assert (facts["by"], facts["via"], facts["reason"]) == (got.json["by"], "view", "it is right")
    assert facts["waited_ns"] > 0
    assert wl.open(writer.path).verify().ok


def test_a_denial_is_false_and_a_request_passed_on_stays_open(panel: Any, writer: Any) -> None:
    serve = panel(writer.path)
    target = f"r/{serve.ids[0]}/permission"
    writer.tell(ask={"capability": "pay"})
    (asked,) = requested(writer.path)
    assert serve.post(target, {"seq": asked.seq, "decision": "escalated", "reason": "above me"}).status == 200
    assert serve.post(target, {"seq": asked.seq, "decision": "denied"}).status == 200
    told = writer.heard("answer")
    assert not told["true"] and told["answer"]["decision"] == "denied"
    assert [word for word, _ in permissions(writer.path)] == ["requested", "escalated", "denied"]


def test_of_many_who_answer_at_once_one_wins_and_the_others_are_told(panel: Any, writer: Any) -> None:
    serve, other = panel(writer.path), panel(writer.path)
    writer.tell(ask={"capability": "pay"})
    (asked,) = requested(writer.path)
    start = threading.Barrier(8)

    def post(number: int) -> Any:
        start.wait()
        one = (serve, other)[number % 2]
        decision = ("granted", "denied")[number // 4]
        return one.post(f"r/{one.ids[0]}/permission", {"seq": asked.seq, "decision": decision})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(8)))
    won = [got for got in answers if got.status == 200]
    lost = [got for got in answers if got.status == 409]
    assert len(won) == 1 and len(lost) == 7
    assert all(got.json["error"] == "already-answered" and got.json["todo"] for got in lost)
    assert writer.heard("answer")["answer"]["decision"] == won[0].json["decision"]
    assert [word for word, _ in permissions(writer.path)] == ["requested", won[0].json["decision"]]


def test_the_panel_may_be_started_anew_while_somebody_waits(panel: Any, writer: Any) -> None:
    writer.tell(ask={"capability": "pay"})
    (asked,) = requested(writer.path)
    first = panel(writer.path)
    first.server.close()
    second = panel(writer.path)
    assert second.post(f"r/{second.ids[0]}/permission", {"seq": asked.seq, "decision": "granted"}).status == 200
    assert writer.heard("answer")["true"]


def test_a_recorder_that_is_gone_is_said_to_be(panel: Any, writer: Any, sealed: Path) -> None:
    serve = panel(writer.path)
    writer.tell(ask={"capability": "pay"})
    (asked,) = requested(writer.path)
    writer.kill()
    assert announced(writer.store), "a crash leaves the rendezvous"
    got = serve.post(f"r/{serve.ids[0]}/permission", {"seq": asked.seq, "decision": "granted"})
    assert got.status == 410 and got.json["error"] == "join-error" and "reconcile" in got.json["todo"]
    done = panel(sealed)
    assert done.post(f"r/{done.ids[0]}/permission", {"seq": 3, "decision": "granted"}).status == 410
    with wl.record(writer.store):  # what a crash left goes when the next recording begins
        assert [each.attempt for each in announced(writer.store)] != [writer.attempt]
    assert announced(writer.store) == []


@pytest.mark.parametrize(
    "body",
    [
        {"decision": "granted"},
        {"seq": "1", "decision": "granted"},
        {"seq": True, "decision": "granted"},
        {"seq": -1, "decision": "granted"},
        {"seq": 0, "decision": "granted"},
        {"seq": 1, "decision": "maybe"},
        {"seq": 1},
        {"seq": 1, "decision": "granted", "reason": 7},
        {"seq": 1, "decision": "granted", "reason": "x" * 3000},
    ],
)
def test_what_is_no_answer_is_refused_and_the_agent_waits_on(panel: Any, tmp_path: Path, body: dict[str, Any]) -> None:
    answers: list[wl.Answer] = []
    with wl.record(tmp_path) as run:
        agent = threading.Thread(target=lambda: answers.append(run.ask("pay")))
        agent.start()
        path = tmp_path / run.run
        requested(path)
        serve = panel(path)
        target = f"r/{serve.ids[0]}/permission"
        assert serve.post(target, body).status == 400
        assert not answers
        assert serve.post(target, {"seq": 1, "decision": "granted"}).status == 200
        agent.join()
    assert [bool(one) for one in answers] == [True]


def test_the_default_counts_where_nobody_answers_in_time(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        denied = wl.ask("pay", timeout=0.01)
        granted = run.ask("look", timeout=0.01, default="granted")
    assert (denied.decision, denied.by, bool(denied)) == ("denied", "nobody", False)
    assert (granted.decision, granted.by, bool(granted)) == ("granted", "nobody", True)
    assert "0.01 s" in str(denied.reason) and denied.waited >= 0.01
    assert run.path is not None
    words = [word for word, _ in permissions(run.path)]
    assert words == ["requested", "denied", "requested", "granted"]


def test_a_replay_serves_the_answer_and_asks_nobody(tmp_path: Path) -> None:
    answers: list[list[wl.Answer]] = []

    def agent() -> None:
        with wl.record(tmp_path / "runs") as run:
            answers.append([wl.ask("pay", timeout=0.01, amount=3), run.ask("pay", timeout=0.01, default="granted")])

    agent()
    (recorded,) = (tmp_path / "runs").glob("run_*/*.json")
    report = wl.open(recorded).replay(agent)
    assert report.equivalent and report.served == 2, report.first_divergence
    assert answers[0] == answers[1]

    def other() -> None:
        with wl.record(tmp_path / "runs"):
            wl.ask("pay", timeout=0.01, amount=4)

    changed = wl.open(recorded).replay(other)
    assert changed.verdict == "diverged", "another question is not answered by the record"


def test_a_child_process_asks_through_the_door(panel: Any, writer: Any) -> None:
    serve = panel(writer.path)
    code = "import worldline as wl; a = wl.ask('deploy', reason='a child', box=(1, 2)); print(a.decision, a.by)"
    writer.tell(child=code)
    (asked,) = requested(writer.path)
    assert asked.data["facts"]["reason"] == "a child"
    got = serve.post(f"r/{serve.ids[0]}/permission", {"seq": asked.seq, "decision": "granted"})
    told = writer.heard("child")
    assert told["child"].split() == ["granted", got.json["by"]], told["wrong"]


async def test_an_async_agent_goes_on_with_its_other_tasks(tmp_path: Path) -> None:
    went_on = []
    async with wl.record(tmp_path) as run:
        asking = asyncio.create_task(run.ask_async("pay"))
        while not (found := [e for e in Recording(tmp_path / run.run).events() if e.name == "permission/requested"]):
            await asyncio.sleep(0)
            went_on.append(1)
        reached = rendezvous_of(Recording(tmp_path / run.run))
        assert reached is not None and went_on
        await asyncio.to_thread(answer, reached, found[0].seq, "granted", by="me")
        assert await asking
        with pytest.raises(asyncio.CancelledError):
            cancelled = asyncio.create_task(run.ask_async("pay"))
            while len([e for e in Recording(tmp_path / run.run).events() if e.name == "permission/requested"]) < 2:
                await asyncio.sleep(0)
            cancelled.cancel()
            await cancelled
    assert run.path is not None and [word for word, _ in permissions(run.path)] == ["requested", "granted", "requested"]


def test_a_run_that_ends_answers_for_those_who_still_wait(tmp_path: Path) -> None:
    answers: list[wl.Answer] = []
    with wl.record(tmp_path) as run:
        agent = threading.Thread(target=lambda: answers.append(run.ask("pay", default="denied")))
        agent.start()
        requested(tmp_path / run.run)
    agent.join()
    assert run.path is not None
    assert not answers[0] and "ended" in str(answers[0].reason)
    assert [word for word, _ in permissions(run.path)] == ["requested", "denied"]


def test_without_a_run_the_default_is_the_answer_at_once() -> None:
    assert not wl.ask("pay") and wl.ask("pay", default="granted")
    assert "nothing records" in str(wl.ask("pay").reason)


@pytest.mark.parametrize(
    "words",
    [
        {"capability": ""},
        {"capability": 7},
        {"capability": "x" * 201},
        {"capability": "pay", "default": "maybe"},
        {"capability": "pay", "timeout": 0},
        {"capability": "pay", "timeout": float("nan")},
        {"capability": "pay", "timeout": "soon"},
        {"capability": "pay", "reason": 7},
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_recorded(tmp_path: Path, words: dict[str, Any]) -> None:
    with wl.record(tmp_path) as run, pytest.raises(UsageError):
        wl.ask(**words)
    with wl.record(tmp_path) as run, pytest.raises(ValueRefused):
        wl.ask("pay", what=object())
    assert run.path is not None and permissions(run.path) == []


def test_the_words_of_the_door_stand_in_no_log_and_are_for_the_owner_alone(
    panel: Any, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve = panel(writer.path)
    writer.tell(ask={"capability": "pay", "timeout": 0.05})
    writer.heard("answer")
    (reached,) = announced(writer.store)
    place = writer.store / ".live" / f"{writer.attempt}.json"
    assert place.stat().st_mode & 0o777 == 0o600 and place.parent.stat().st_mode & 0o777 == 0o700
    assert writer.token in reached.url and reached.answer not in reached.url
    with pytest.raises(UsageError, match="must know"):  # the agent and its children have the URL, and cannot answer
        answer(msgspec.structs.replace(reached, answer="a guess"), 1, "granted", by="me")
    writer.do("sealed", seal=True)
    assert not place.exists()
    for path in writer.store.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert reached.answer.encode() not in data and writer.token.encode() not in data
    got = serve.run("about")
    assert reached.answer.encode() not in got.body and writer.token.encode() not in got.body


def test_a_rendezvous_that_others_could_write_or_that_is_forged_is_not_believed(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        recording = Recording(tmp_path / run.run)
        assert rendezvous_of(recording) is not None
        place = tmp_path / ".live" / f"{recording.attempt_id}.json"
        said = json.loads(place.read_bytes())
        place.chmod(0o644)
        assert rendezvous_of(recording) is None
        place.chmod(0o600)
        for wrong in ({**said, "format": "worldline-live/2"}, {**said, "attempt": "ainst_" + "0" * 26}, [1], "x"):
            place.write_text(json.dumps(wrong))
            assert rendezvous_of(recording) is None, wrong
        place.unlink()
        os.symlink("/dev/zero", place)
        assert rendezvous_of(recording) is None
        place.unlink()
