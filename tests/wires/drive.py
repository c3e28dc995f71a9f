"""Record what an agent does against a provider, replay it with the provider gone, and keep what both ends saw.

`record` and `replay` hold one run each; `twice` does both for an agent that is a function of the run's base URLs.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import anthropic
import openai

from tests.cli import terminal
from tests.wires.tap import Seen, Tap
from worldline.engine.cassette import Cassette
from worldline.engine.exchanges import Exchange
from worldline.engine.replay import ReplayReport
from worldline.engine.spec import Spec
from worldline.seams.environment import PROVIDERS
from worldline.seams.session import RecordingSession, ReplaySession
from worldline.store.recording import Recording
from worldline.testing.provider import Provider
from worldline.testing.provider.script import Script

KEY = "test-" + "key"


class Wire:
    """A run as its clients see it: base URLs that lead through a tap to the proxy, and SDK clients that use them."""

    def __init__(self, session: RecordingSession | ReplaySession, tap: Tap) -> None:
        self.session = session
        self.tap = tap
        self.report: ReplayReport | None = None
        self.path: Path | None = None

    def base(self, provider: str) -> str:
        return self.session.proxy.base_url(provider).replace(f":{self.session.proxy.port}/", f":{self.tap.port}/")

    def openai(self, **options: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.base("openai"), api_key=KEY, **{"max_retries": 0, **options})

    def async_openai(self, **options: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.base("openai"), api_key=KEY, **{"max_retries": 0, **options})

    def anthropic(self, **options: Any) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=self.base("anthropic"), api_key=KEY, **{"max_retries": 0, **options})

    def async_anthropic(self, **options: Any) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=self.base("anthropic"), api_key=KEY, **{"max_retries": 0, **options})


class Unreachable:
    """A listening socket that nobody may connect to; nothing accepts, the system counts."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def connects(self) -> int:
        count = 0
        while True:
            try:
                self._listener.accept()[0].close()
            except BlockingIOError:
                return count
            count += 1

    def close(self) -> None:
        self._listener.close()


@contextmanager
def recording(openai_url: str, anthropic_url: str = "http://127.0.0.1:9", **spec: Any) -> Iterator[Wire]:
    """A run that is recorded; sealed on leaving, `path` names it then."""
    environment = {"OPENAI_BASE_URL": openai_url, "ANTHROPIC_BASE_URL": anthropic_url}
    session = RecordingSession(Spec(store=Path("runs"), **spec), environment)
    with Tap(session.proxy.port) as tap:
        wire = Wire(session, tap)
        try:
            yield wire
        except BaseException:
            session.leave()
            raise
        wire.path = session.close().absolute()


@contextmanager
def replaying(path: Path) -> Iterator[Wire]:
    """The run served again. Every provider's own base leads to a socket that no connection may ever reach."""
    nobody = Unreachable()
    bases = {name: provider._replace(base=f"{nobody.url}/v1") for name, provider in PROVIDERS.items()}
    try:
        with mock.patch.dict(PROVIDERS, bases):
            session = ReplaySession(Recording(path), {"OPENAI_BASE_URL": nobody.url, "ANTHROPIC_BASE_URL": nobody.url})
            with Tap(session.proxy.port) as tap:
                wire = Wire(session, tap)
                try:
                    yield wire
                finally:
                    wire.report = session.close()
            assert session.proxy.connects == 0, "the proxy went to a provider"
            assert nobody.connects() == 0, "a provider was contacted"
    finally:
        nobody.close()


class Twice:
    """What came of `twice`: the agent's two returns, the answers on the three wires, and the record."""

    def __init__(self, told: list[Any], wires: list[list[Seen]], path: Path, report: ReplayReport) -> None:
        self.recorded, self.replayed = told
        self.upstream, self.at_record, self.at_replay = wires
        self.path = path
        self.report = report
        self.cassette = Cassette(Recording(path))

    @property
    def exchanges(self) -> list[Exchange]:
        return self.cassette.exchanges

    def assert_same(self) -> None:
        """The agent was told the same, the replay is equivalent, and all three wires carried the same chunks."""
        assert self.replayed == self.recorded
        assert self.report.verdict == "equivalent", self.report.first_divergence
        upstream, recorded, replayed = (
            [(seen.status, seen.headers.get("content-type"), seen.chunks) for seen in wire]
            for wire in (self.upstream, self.at_record, self.at_replay)
        )
        assert recorded == upstream
        assert replayed == upstream


def run_agent(agent: Callable[[Wire], Any], wire: Wire) -> Any:
    told = agent(wire)
    return asyncio.run(told) if inspect.iscoroutine(told) else told


def twice(agent: Callable[[Wire], Any], script: Script) -> Twice:
    """Record `agent` against a provider that plays `script`, stop the provider, replay."""
    with Provider(script) as provider, Tap(provider.port) as upstream:
        base = f"http://127.0.0.1:{upstream.port}"
        with recording(f"{base}/v1", base) as record:
            recorded = run_agent(agent, record)
    assert record.path is not None
    with replaying(record.path) as replay:
        replayed = run_agent(agent, replay)
    assert replay.report is not None
    wires = [upstream.answers(), record.tap.answers(), replay.tap.answers()]
    return Twice([recorded, replayed], wires, record.path, replay.report)


def worldline(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, as a process of its own."""
    env = {**os.environ, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, **environment}
    ended = terminal.worldline(*arguments, env=env)
    return subprocess.CompletedProcess(arguments, ended.code, ended.out, ended.err)
