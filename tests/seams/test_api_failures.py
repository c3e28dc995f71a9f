"""A tool that failed when it was recorded fails alike on the replay: same class, text and facts, its body not run."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from worldline.model import values

runs: list[str] = []


class Refused(Exception):
    """One with an `__init__` that takes other arguments than it keeps."""

    def __init__(self, code: int, *, detail: str) -> None:
        runs.append("Refused.__init__")
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = {"text": detail}


class Shouting(Exception):
    def __str__(self) -> str:
        return "SHOUTING " + super().__str__()


class Sealed(Exception):
    """One that nobody makes without its own arguments."""

    def __new__(cls, code: int, *, why: object) -> Sealed:
        return super().__new__(cls, code)

    def __init__(self, code: int, *, why: object) -> None:
        super().__init__(code, why)


def chained() -> None:
    try:
        {}["order"]
    except KeyError as error:
        raise ValueError("no such order") from error


def noted() -> None:
    error = RuntimeError("with a note")
    error.add_note("seen at step 3")
    raise error


def raises(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def of_a_class_nobody_can_name() -> None:
    raise type("Vanished", (Exception,), {})("gone")


FAILURES: dict[str, Callable[[], Any]] = {
    "value": raises(ValueError("bad order")),
    "key": lambda: {}["order"],
    "missing file": lambda: Path("/nonexistent/orders.json").read_text(),
    "timeout": raises(TimeoutError()),
    "unicode": lambda: b"\xff".decode("utf-8"),
    "json": lambda: json.loads("{"),
    "subprocess": lambda: subprocess.run(["false"], check=True),
    "custom": lambda: raises(Refused(7, detail="not paid"))(),
    "own text": raises(Shouting("no")),
    "not plain": raises(RuntimeError("an object", object)),
    "long": raises(RuntimeError("x" * 100_000)),
    "chained": chained,
    "noted": noted,
    "a key that is no plain data": lambda: {}[datetime.date(2024, 1, 1)],
    "bytes that are no text": raises(ValueError("caf\udce9")),
    "no file of such bytes": lambda: Path("/nonexistent/caf\udce9").read_text(),
    "group": raises(ExceptionGroup("two", [ValueError("one"), Refused(7, detail="not paid")])),
    "made in its own way": lambda: raises(Sealed(3, why=object()))(),
}


@wl.tool(effect="pure")
def work(how: str) -> None:
    runs.append(how)
    FAILURES[how]()


@wl.tool(effect="pure")
async def work_async(how: str) -> None:
    runs.append(how)
    FAILURES[how]()


@wl.tool
def vanish() -> None:
    of_a_class_nobody_can_name()


def told(error: Exception) -> tuple[Any, ...]:
    facts = {
        name: getattr(error, name, None) for name in ("errno", "filename", "code", "detail", "returncode", "start")
    }
    inner = [told(one) for one in error.exceptions] if isinstance(error, ExceptionGroup) else None
    return type(error).__name__, values.readable(str(error)), facts, getattr(error, "__notes__", None), inner


@pytest.mark.parametrize("how", FAILURES)
def test_a_failure_comes_back_as_it_was(how: str, tmp_path: Path) -> None:
    caught: list[Exception] = []

    async def agent() -> None:
        for step in (lambda: work(how), lambda: work_async(how)):
            try:
                made = step()
                if made is not None:
                    await made
            except Exception as error:  # noqa: BLE001 - whatever it is: it is looked at
                caught.append(error)

    async def recorded() -> None:
        async with wl.record(tmp_path) as run:
            await agent()
        paths.append(run.path)

    paths: list[Path] = []
    import asyncio

    asyncio.run(recorded())
    before, after = caught[:2], []
    caught, runs[:] = [], []
    report = wl.open(paths[0]).replay(agent)
    after = caught
    assert report.equivalent, report.first_divergence
    assert report.served == 2
    assert [told(error) for error in after] == [told(error) for error in before]
    for old, new in zip(before, after, strict=True):
        assert isinstance(new, type(old)), "an `except` that caught it when it was recorded catches it again"
    assert runs == [], "neither the tool nor a class of the agent's ran"


def test_a_failure_of_a_class_that_is_not_at_hand_keeps_its_name_and_text(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run, pytest.raises(Exception, match="gone"):
        vanish()
    caught: list[BaseException] = []

    def agent() -> None:
        try:
            vanish()
        except wl.WorldlineError as error:
            caught.append(error)

    assert wl.open(run.path).replay(agent).equivalent
    assert (type(caught[0]).__name__, str(caught[0])) == ("Vanished", "gone")


def test_under_refs_not_even_the_text_of_a_failure_is_kept(tmp_path: Path) -> None:
    with wl.record(tmp_path, capture="refs") as run, pytest.raises(ValueError, match="no such"):
        work("chained")
    rows = b"".join(event.raw for event in wl.open(run.path).events())
    assert b"no such order" not in rows and b"ValueError" in rows


def test_a_secret_in_a_failure_never_reaches_the_disk(tmp_path: Path) -> None:
    secret = "".join(["hold", "-", "this-", "back"])
    import base64

    class Leaky(Exception):
        pass

    @wl.tool
    def leak() -> None:
        error = Leaky(f"denied for {secret}", secret.encode())
        error.header = {"authorization": secret, "raw": secret.encode()}  # type: ignore[attr-defined]
        raise error

    with wl.record(tmp_path, secrets={"SHOP": secret}) as run, pytest.raises(Leaky):
        leak()
    written = b"".join(path.read_bytes() for path in run.path.parent.rglob("*") if path.is_file())
    assert secret.encode() not in written
    assert base64.b64encode(secret.encode()) not in written
    assert b"[secret:SHOP]" in written


def test_a_failure_that_nobody_can_make_again_is_caught_as_its_builtin_class_is() -> None:
    from worldline.engine.failure import describe, revive

    given = describe(ValueError("fixed"))
    stand_in = revive({**given, "type": "ValidationError"}, {"ValidationError": _unmakeable()})
    assert isinstance(stand_in, ValueError)
    assert (type(stand_in).__name__, str(stand_in)) == ("ValidationError", "fixed")


def _unmakeable() -> type[ValueError]:
    """A class of an extension module that has no constructor, as pydantic's `ValidationError` has none."""
    import pydantic_core

    return pydantic_core.ValidationError
