"""The proxy's toll on a streamed model call of 21 events. Provider, proxy and client are a process each."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import pstats
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from benchmarks.events import place
from benchmarks.measure import WALL, Contest, Row, Work, installed, timed
from worldline.testing.provider import Ask, Say

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = itertools.count()
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer benchmark"}


def answer(ask: Ask) -> Say:
    """What the provider says: 19 pieces of text, with begin and end 21 events."""
    return Say(text=f"{ask.n % 10_000:04d} " + "word " * 18, chunk=5)


def question(number: int) -> dict[str, Any]:
    """What is asked: each time something else."""
    messages = [{"role": "user", "content": f"say it in pieces, for the time number {number}"}]
    return {"model": "gpt-5", "stream": True, "messages": messages}


@contextmanager
def process(
    *arguments: str, environment: Mapping[str, str], folder: Path | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """A Python program that says where it listens in a line of JSON, and ends with its stdin: its pid and the line."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=folder,
    )
    assert child.stdin and child.stdout
    try:
        line = child.stdout.readline()
        if not line:
            raise RuntimeError(f"{arguments[1]} did not start")
        yield child.pid, json.loads(line)
    finally:
        child.stdin.close()
        child.wait(30)
        child.stdout.close()


def provider() -> Any:
    """The provider as a process."""
    return process("-m", "worldline.testing.provider", "--script", "benchmarks.proxied:answer", environment={})


def cpu_of(pid: int) -> float:
    """The CPU seconds of another process and its threads so far (Linux)."""
    return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid(3) makes it


def calls(base: str, count: int) -> None:
    """Make that many calls over one connection. Raises `RuntimeError` for an answer that is none."""
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    for _ in range(count):
        connection.request(
            "POST", f"{parts.path}/chat/completions", msgspec.json.encode(question(next(NUMBERS))), HEADERS
        )
        response = connection.getresponse()
        text = response.read()
        if response.status != 200 or text.count(b"data: ") < 21:
            raise RuntimeError(f"the provider answered {response.status}")
    connection.close()


@contextmanager
def recording(upstream: str, *more: str) -> Iterator[tuple[int, str]]:
    """Our proxy as a process, in front of `upstream`: its pid and its base URL."""
    with (
        place() as folder,
        process(*("-m", "benchmarks.proxy_process", str(folder), *more), environment={"OPENAI_BASE_URL": upstream}) as (
            pid,
            said,
        ),
    ):
        yield pid, said["openai"]


@contextmanager
def recording_peer(upstream: str) -> Iterator[tuple[int, str]]:
    """timefork's proxy in the same place."""
    base = upstream.removesuffix("/v1")  # it adds the path of what it is asked
    with (
        place() as folder,
        process("-m", "benchmarks.peer_proxy", environment={"TIMEFORK_UPSTREAM_OPENAI": base}, folder=folder) as (
            pid,
            said,
        ),
    ):
        yield pid, said["openai"]


@contextmanager
def _works(quick: bool) -> Iterator[dict[str, Work]]:
    count = 5 if quick else 100
    with ExitStack() as stack:
        _, said = stack.enter_context(provider())
        upstream = said["openai"]
        proxies = {"proxied": stack.enter_context(recording(upstream))}
        if installed("timefork"):
            proxies["timefork"] = stack.enter_context(recording_peer(upstream))

        def cpu(pid: int, base: str) -> float:
            began = cpu_of(pid)
            calls(base, count)
            return (cpu_of(pid) - began) / count

        works: dict[str, Work] = {"direct": lambda: timed(WALL, count, lambda: calls(upstream, count))}
        for name, (pid, base) in proxies.items():
            works[name] = lambda base=base: timed(WALL, count, lambda: calls(base, count))
            works[f"{name}-cpu"] = lambda pid=pid, base=base: cpu(pid, base)
        yield works


def _profile() -> pstats.Stats:
    with place() as folder:
        with provider() as (_, said), recording(said["openai"], "--profile", str(folder / "profile")) as (_, base):
            calls(base, 200)
        return pstats.Stats(str(folder / "profile"))


NOT_RECORDED, TIMEFORK = (
    "the same call, not recorded",
    "through timefork's proxy: on record behind the answer, not synced",
)
CONTESTS = (
    Contest(
        _works,
        (
            Row(
                "proxy",
                "proxied streamed call of 21 events",
                "proxied",
                ("direct",),
                NOT_RECORDED,
                "more",
                "ms",
                limit=1.5,
            ),
            Row("proxy-cpu", "the same, CPU of the proxy", "proxied-cpu", figure="own", unit="ms", limit=2.5),
            Row("proxy-peer", "the same, wall", "proxied", ("timefork",), TIMEFORK, unit="ms"),
            Row(
                "proxy-peer-cpu", "the same, CPU of the proxies", "proxied-cpu", ("timefork-cpu",), TIMEFORK, unit="ms"
            ),
        ),
        profile=_profile,
    ),
)
