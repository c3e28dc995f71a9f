"""`@tool`: whatever function it stands above, its calls cross the door whole, and a replay never runs its body."""

from __future__ import annotations

import functools
import socket
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.seams.agents.crossings import crossings
from worldline.errors import UsageError, ValueRefused
from worldline.model.effects import Effect

ran: list[str] = []


@wl.tool
def bare(order: int, urgent: bool = False) -> dict[str, Any]:
    ran.append("bare")
    return {"order": order, "urgent": urgent, "tags": ("a", "b"), "raw": b"\x00\xff", "huge": 2**70}


@wl.tool()
async def called(text: str) -> str:
    ran.append("called")
    return text.upper()


@wl.tool(name="sum", effect="pure")
def total(*parts: int, **options: str) -> int:
    ran.append("sum")
    return sum(parts)


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    @wl.tool(effect="side_effecting", idempotency_key=lambda order, **_: f"refund:{order}")
    def refund(self, order: int, cents: int) -> str:
        ran.append("refund")
        return f"{self.name} paid {cents} for {order}"

    @classmethod
    @wl.tool(effect="idempotent")
    def named(cls, name: str) -> str:
        ran.append("named")
        return cls.__name__ + name

    @wl.tool
    @staticmethod
    def reversed_order(x: int) -> int:
        ran.append("reversed_order")
        return x

    @staticmethod
    @wl.tool
    async def usual_order(x: int) -> int:
        ran.append("usual_order")
        return x


class Callable:
    async def __call__(self, x: int) -> int:
        ran.append("object")
        return x + 1


an_object = wl.tool(name="object")(Callable())
a_partial = wl.tool(name="partial")(functools.partial(lambda a, b: ran.append("partial") or a - b, 10))

ALL = ["bare", "called", "sum", "refund", "named", "reversed_order", "usual_order", "object", "partial"]


async def everything() -> list[Any]:
    shop = Shop("lamps")
    return [
        bare(812),
        await called("hallo"),
        total(1, 2, unit="cents"),
        shop.refund(812, cents=4900),
        Shop.named("!"),
        shop.reversed_order(3),
        await shop.usual_order(4),
        await an_object(5),
        a_partial(3),
    ]


async def test_every_form_of_function_is_recorded_whole_and_served_without_running(tmp_path: Path) -> None:
    plain = await everything()
    assert ran == ALL
    with wl.record(tmp_path) as run:
        assert await everything() == plain

    seen: list[Any] = []

    async def agent() -> None:
        seen.append(await everything())

    ran.clear()
    report = wl.open(run.path).replay(agent)
    assert report.equivalent, (report.first_divergence, report.notes)
    assert (report.served, report.live) == (len(ALL), 0)
    assert seen == [plain]
    assert [type(value) for value in seen[0][0].values()] == [int, bool, tuple, bytes, int]
    assert ran == [], "a served tool's body ran"

    held = crossings(run.path)
    assert [(c.name, c.ends) for c in held] == [(name, 1) for name in ALL]
    assert [c.arguments for c in held[:5]] == [
        {"order": 812, "urgent": False},
        {"text": "hallo"},
        {"parts": (1, 2), "options": {"unit": "cents"}},
        {"order": 812, "cents": 4900},
        {"name": "!"},
    ]


def test_effect_and_idempotency_key_stand_in_the_row(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        bare(1)
        total(1)
        Shop.named("x")
        Shop("s").refund(812, 1)
    rows = {e.data["name"]: e.keys for e in wl.open(run.path).events() if e.name == "action/tool_call"}
    assert {name: keys["effect"] for name, keys in rows.items()} == {
        "bare": "side_effecting",  # what is not known to be harmless is not
        "sum": "pure",
        "named": "idempotent",
        "refund": "side_effecting",
    }
    assert {name: keys.get("idempotency_key") for name, keys in rows.items()} == {
        "bare": None,
        "sum": None,
        "named": None,
        "refund": "refund:812",
    }


def test_what_cannot_be_a_tool_is_refused_where_it_is_written() -> None:
    def numbers() -> Any:
        yield 1

    with pytest.raises(UsageError, match="numbers is a generator"):
        wl.tool(numbers)
    with pytest.raises(UsageError, match="no name"):
        wl.tool(functools.partial(print))
    with pytest.raises(UsageError) as refused:
        wl.tool(effect="readonly")(len)
    assert all(effect in str(refused.value) for effect in Effect)


def test_an_unrecordable_argument_is_refused_before_the_tool_runs(tmp_path: Path) -> None:
    ran.clear()
    with socket.socket() as held, wl.record(tmp_path) as run, pytest.raises(ValueRefused) as refused:
        bare({"deep": [{"of": held}]})  # type: ignore[arg-type]
    assert ran == []
    assert refused.value.facts["path"] == "$.order.deep[0].of"
    assert str(refused.value).startswith("bare was not run") and "socket" in str(refused.value)
    assert crossings(run.path) == []


@wl.tool(effect="pure")
def opens(port: int) -> dict[str, Any]:
    return {"a": [{"b": {"c": {"seen", "as", "a", "set"}}}], "port": port}


@wl.tool(effect="pure")
def outer() -> int:
    return int(opens(1)["port"])


def test_an_unrecordable_result_is_declared_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with wl.record(tmp_path) as run:
        given = opens(80)
        bare(1)
    assert given["port"] == 80 and "seen" in given["a"][0]["b"]["c"], "the agent goes on with the real value"
    [warning] = caplog.records
    assert "$.a[0].b.c" in warning.getMessage() and "set" in warning.getMessage()
    recorded = wl.open(run.path)
    assert recorded.disposition == "complete" and recorded.verify().problems == []
    assert recorded.recording.manifest is not None
    assert recorded.recording.manifest.coverage["tools"]["unrecordable"] == {"opens": 1}

    report = recorded.replay(lambda: opens(80))
    assert report.verdict == "ineligible"
    [reason] = report.reasons
    assert "opens" in reason and "$.a[0].b.c" in reason


def test_an_unrecordable_result_inside_a_served_tool_is_no_obstacle(tmp_path: Path) -> None:
    with wl.record(tmp_path) as run:
        assert outer() == 1
    report = wl.open(run.path).replay(outer)
    assert report.equivalent and report.served == 1
