"""`worldline.wrap`: a client that is made before any run is recorded in each, in none it is not, and never twice."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from worldline.errors import UsageError
from worldline.testing.provider import Provider


@pytest.fixture(autouse=True)
def provider(quick: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.chdir(quick)
    with Provider() as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
        yield provider


def ask_openai(client: Any) -> str:
    said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    return str(said.choices[0].message.content)


def of_openai(**options: Any) -> tuple[Any, Callable[[Any], Any]]:
    from openai import OpenAI

    return OpenAI(api_key="none", max_retries=0, **options), ask_openai


def decisions(run: wl.Run) -> list[str]:
    return [str(event.data["name"]) for event in run.events() if event.name == "decision/request"]


def test_a_wrapped_client_belongs_to_the_run_that_is_open(provider: Provider) -> None:
    plain, ask = of_openai()
    client = wl.wrap(plain)

    def agent() -> None:
        with wl.record("runs"):
            assert ask(client) == "hi"

    agent()
    agent()
    assert sorted(path.name[:4] for path in Path("runs").iterdir() if path.name.startswith("run_")) == ["run_"] * 2
    run = wl.open("latest", "runs")
    assert len(decisions(run)) == 1
    assert run.replay(agent).equivalent and len(provider.requests) == 2, "the replay asks nobody"
    assert ask(client) == "hi" and len(provider.requests) == 3, "without a run it just asks"
    plain.close()


async def test_an_async_client_too(provider: Provider) -> None:
    from openai import AsyncOpenAI

    plain = AsyncOpenAI(api_key="none", max_retries=0)
    client = wl.wrap(plain)

    async def agent() -> None:
        async with wl.record("runs"):
            asked = [{"role": "user", "content": "hi"}]
            said = await asyncio.gather(*(client.chat.completions.create(model="m", messages=asked) for _ in range(3)))
            assert [each.choices[0].message.content for each in said] == ["hi"] * 3

    await agent()
    run = wl.open("latest", "runs")
    assert decisions(run) == ["openai.chat"] * 3
    assert run.replay(agent).equivalent and len(provider.requests) == 3
    await plain.close()


def test_nothing_is_recorded_twice_however_often_a_client_is_wrapped(provider: Provider) -> None:
    plain, ask = of_openai()
    with wl.record("runs") as run:
        for client in (wl.wrap(wl.wrap(plain)), run.wrap(wl.wrap(plain)), wl.wrap(run.wrap(plain))):
            ask(client)
        proxied = plain.with_options(base_url=run.proxy.openai)
        for client in (wl.wrap(proxied), wl.wrap(plain).with_options(base_url=run.proxy.openai)):
            ask(client)
    assert decisions(wl.open("latest", "runs")) == ["openai.chat"] * 5 and len(provider.requests) == 5
    plain.close()


async def test_a_wrapped_copy_that_is_forgotten_closes_nothing_of_the_client(provider: Provider) -> None:
    from openai import AsyncOpenAI, OpenAI

    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "one two three four"}], "stream": True}
    with OpenAI(api_key="none", max_retries=0) as plain:
        stream = plain.chat.completions.create(**asked)
        wl.wrap(wl.wrap(plain))
        gc.collect()
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "one two three four"
    async with AsyncOpenAI(api_key="none", max_retries=0) as awaited:
        stream = await awaited.chat.completions.create(**asked)
        wl.wrap(wl.wrap(awaited))
        gc.collect()
        await asyncio.sleep(0)  # an SDK's client closes itself in a task
        said = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(said) == "one two three four"


def test_what_cannot_be_wrapped_is_refused_with_a_way_on() -> None:
    for thing in (None, object(), "client"):
        with pytest.raises(UsageError, match=r"run\.transport"):
            wl.wrap(thing)
