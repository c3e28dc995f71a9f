"""An agent or a verifier that hangs, in any way and on any executor, makes its rollout undefined and stops no study."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.attribution.agents import hanging
from tests.attribution.conftest import Stores
from tests.attribution.line import AGENT
from worldline.analysis.attribution.asking import LocateOptions
from worldline.engine.executors.executor import settle
from worldline.engine.executors.processes import Processes
from worldline.store.studies.folder import rollouts
from worldline.store.studies.journal import DRAWN, read_journal
from worldline.study import opening
from worldline.study.limits import TimeOver, bounded
from worldline.testing import executors as suite

SHORT = 0.3  # seconds
HANGING = "tests.attribution.agents.hanging:"


@pytest.fixture
def silent(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A provider that takes calls and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        yield


def _whys(run: wl.Run, agent: Any, number: int, **more: Any) -> list[str]:
    """Why the rollouts of a small study have no verdict; it has ended and left nothing behind."""
    few: dict[str, Any] = {
        "budget": wl.Budget(rollouts=number),
        "options": LocateOptions(checks=0, batch=number),
        "limit": SHORT,
    }
    study = wl.attribute(run, agent, "outcome", **few, **more)
    assert (study.verdict, study.answer["undefined"]) == ("budget", number)
    assert rollouts(study.folder) == [] and not (study.folder / ".scratch").exists()
    return [e.data["outcome"]["why"] for e in read_journal(study.folder).entries if e.what == DRAWN]


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("agent", "executor"),
    [
        (AGENT, "inline"),
        (f"{HANGING}computes", "inline"),
        (AGENT, "tasks"),
        (f"{HANGING}awaits", "tasks"),
        ((sys.executable, str(Path(hanging.__file__))), "inline"),
    ],
    ids=["waits for a model", "computes", "waits among others", "awaits among others", "a command"],
)
def test_an_agent_that_hangs_makes_its_rollouts_undefined(stores: Stores, agent: Any, executor: str) -> None:
    assert _whys(stores.run(), agent, 1, executor=executor) == ["it did not end within 0.3 s"]


def test_one_that_nothing_ends_is_killed_with_its_process(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "SLACK_SECONDS", 0.5)
    (why,) = _whys(stores.run(), f"{HANGING}swallows", 1, executor="processes", verifier_timeout=0.2, flight=1)
    assert why == "it did not end within 1 s, and its process was killed"


def test_an_agent_that_hangs_over_its_own_record_is_not_reproducible(stores: Stores) -> None:
    study = wl.attribute(stores.run(), f"{HANGING}computes", "outcome", executor="inline", limit=SHORT)
    assert (study.verdict, study.answer["rollouts"]) == ("not-reproducible", 0)
    assert study.answer["why"] == "with everything held it did not end within 0.3 s"


def test_a_pool_goes_on_when_a_job_is_killed_and_does_not_ask_it_again() -> None:
    pool = Processes(_hangs_at_nothing, 1, limit=2.0)
    try:
        hung, fine = settle(pool, suite.jobs(0, 4))
    finally:
        pool.close()
    assert (hung.value, hung.tries, hung.over) == (None, 1, True)
    assert fine.value == b"8"


def _hangs_at_nothing(spec: bytes) -> bytes:
    if spec == b"0":
        hanging.swallows()
    return suite.doubled(spec)


# --------------------------------------------------------------------------------------------------------- one function


def _swallows_it_once() -> None:
    with suppress(BaseException):
        threading.Event().wait()


def _catches_exceptions() -> None:
    while True:
        with suppress(Exception):
            threading.Event().wait()


async def _blocks_its_loop() -> None:
    threading.Event().wait()


@pytest.mark.parametrize(
    "agent", [hanging.computes, hanging.awaits, _swallows_it_once, _catches_exceptions, _blocks_its_loop]
)
def test_in_the_main_thread_its_time_ends_it_in_the_middle_of_anything(agent: Callable[[], Any]) -> None:
    with pytest.raises(TimeOver):
        bounded(agent, 0.1)()


def test_beside_a_running_loop_it_is_left_behind_and_ended_where_it_computes() -> None:
    async def here() -> None:
        bounded(hanging.computes, 0.1)()

    before = set(threading.enumerate())
    with pytest.raises(TimeOver):
        asyncio.run(here())
    for thread in set(threading.enumerate()) - before:
        thread.join()


def test_what_it_does_in_time_is_its_own() -> None:
    with pytest.raises(SystemExit, match="3"):
        bounded(lambda: sys.exit(3), 60)()
    done: list[int] = []
    bounded(lambda: done.append(1), 60)()

    async def here() -> None:
        with contextlib.suppress(KeyError):
            bounded(lambda: os.environ["NO_SUCH_VARIABLE"], 60)()
        bounded(lambda: done.append(2), 60)()

    asyncio.run(here())
    assert done == [1, 2]
