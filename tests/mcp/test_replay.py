"""A replay gives what was said in the order in which it was, and names the first place where a client differs."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.mcp.pipe import INITIALIZE, Pipe, pipe
from worldline.engine.replay import ReplayReport
from worldline.engine.spec import RecordingSpec, Spec
from worldline.seams.session import RecordingSession, ReplaySession
from worldline.store.catalog import find

STORE = Path(".worldline/runs")
ABSENT = ("no-such-program",)


@asynccontextmanager
async def replaying(*options: str) -> Any:
    """A client of the newest run's replay, and what came of it, once it has left."""
    session = ReplaySession(find("latest", STORE), os.environ)
    reports: list[ReplayReport] = []
    async with pipe(*options, server=ABSENT, WORLDLINE_URL=session.proxy.url) as client:
        yield client, reports
    reports.append(session.close(0))


async def consult(client: Pipe, says: str) -> list[Any]:
    """A call in which the server asks the client's model; the question, and the call's answer."""
    asked = await client.begin("tools/call", name="question", arguments={})
    question = await client.line()
    text = {"role": "assistant", "content": {"type": "text", "text": says}, "model": "m"}
    await client.raw(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": text}).encode() + b"\n")
    return [question, await client.answer(asked)]


async def talk(client: Pipe) -> list[Any]:
    """Two calls at once of which the second ends first, a question, messages between calls; all that came."""
    await client.hello()
    got: list[Any] = [await client.begin("tools/call", name="hold", arguments={})]
    got.append(await client.begin("tools/call", name="release", arguments={}))
    got += [await client.line(), await client.line(), *await consult(client, "two")]
    return [*got, await client.call("tell"), await client.call("later"), await client.line()]


async def test_answers_come_in_the_order_in_which_they_ended_and_messages_where_they_came() -> None:
    async with pipe() as client:
        before = await talk(client)
        told = client.others
    assert [line["id"] for line in before[2:4]] == [before[1], before[0]], "the second one ends first"
    async with replaying() as (client, reports):
        assert await talk(client) == before
        assert client.others == told
    assert reports[0].equivalent, reports[0].first_divergence
    assert reports[0].relaxed == 0


async def test_a_call_that_the_record_does_not_have_is_an_error_that_names_the_difference() -> None:
    async with pipe() as client:
        await client.hello()
        await client.call("echo", order=812, pieces=2)
    async with replaying() as (client, reports):
        await client.hello()
        told = await client.call("echo", pieces=3, order=812)
        data = told["data"]
        assert (told["code"], data["worldline"], data["kind"], data["path"]) == (
            -32050,
            "diverged",
            "changed",
            "$.pieces",
        )
        assert (data["recorded"], data["actual"]) == (2, 3)
    assert reports[0].verdict == "diverged"


async def test_a_client_that_answers_a_question_otherwise_diverges_and_its_call_says_so() -> None:
    async with pipe() as client:
        await client.hello()
        await consult(client, "two")
    async with replaying() as (client, reports):
        await client.hello()
        _, answer = await consult(client, "three")
        assert answer["error"]["data"]["path"] == "$.answer.result.content.text"
    assert reports[0].verdict == "diverged"
    assert reports[0].divergence is not None
    assert reports[0].divergence.name == "mcp.sampling/createMessage"


async def test_traces_tokens_ids_and_the_client_s_own_name_are_no_part_of_what_is_asked() -> None:
    async with pipe() as client:
        await client.ask("initialize", **INITIALIZE)
        await client.ask(
            "tools/call", name="echo", arguments={"a": 1, "b": 2}, _meta={"trace": "x", "progressToken": 4}
        )
    async with replaying() as (client, reports):
        client._id = 40
        await client.ask("initialize", **{**INITIALIZE, "clientInfo": {"name": "pipe", "version": "2"}})
        assert "content" in await client.ask("tools/call", name="echo", arguments={"b": 2, "a": 1})
    assert reports[0].equivalent, reports[0].first_divergence


async def test_what_a_rule_restricts_stands_in_no_row_and_is_served_all_the_same(tmp_path: Path) -> None:
    spec = Spec(store=tmp_path / "runs", recording=RecordingSpec(restrict=("tool:question",)))
    session = RecordingSession(spec, os.environ)
    async with pipe(WORLDLINE_URL=session.proxy.url) as client:
        await client.hello()
        before = await consult(client, "confidential")
    session.close()
    rows = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*.jsonl"))
    assert b"how many" not in rows
    assert b"confidential" not in rows
    session = ReplaySession(find("latest", tmp_path / "runs"), os.environ)
    async with pipe(server=ABSENT, WORLDLINE_URL=session.proxy.url) as client:
        await client.hello()
        assert await consult(client, "confidential") == before
    assert session.close(0).equivalent


async def test_a_server_knows_nothing_of_the_run_it_is_in(tmp_path: Path) -> None:
    session = RecordingSession(Spec(store=tmp_path / "runs"), os.environ)
    async with pipe(**session.environment()) as client:
        told = await client.ask("environment")
    session.discard()
    assert not [name for name, value in told.items() if value.startswith(session.proxy.url)]
