"""The same job done by other recorders: one tool call, one model call in process. What each does not do is said."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

import worldline as wl
from benchmarks.events import events, place
from benchmarks.measure import CPU, WALL, Clock, Contest, Row, Work, installed, timed
from benchmarks.proxied import HEADERS, NUMBERS, provider, question

VALUES = itertools.cycle(events())


@wl.tool(effect="pure")
def look_up(order: int) -> dict[str, Any]:
    """A tool whose result has about 1 KB and costs nothing."""
    return next(VALUES)


Calls = Callable[[Clock, int], float]
"""Record that many tool calls; the seconds of the clock that one takes."""


@contextmanager
def _tools(quick: bool) -> Iterator[dict[str, Work]]:
    count = 3 if quick else 25
    with ExitStack() as stack:
        calls: dict[str, Calls] = {"worldline": stack.enter_context(_worldline())}
        if installed("langgraph.checkpoint.sqlite"):
            calls["langgraph"] = stack.enter_context(_langgraph())
        if installed("agentrr_sdk"):
            calls["agentrr"] = stack.enter_context(_agentrr())
        if installed("agent_replay"):
            calls["trajectory-causal-attribution"] = stack.enter_context(_attribution())
        if installed("opentelemetry.exporter.otlp.json.file"):
            calls["OpenTelemetry"] = stack.enter_context(_spans())
        works: dict[str, Work] = {}
        for name, record in calls.items():
            works[name] = lambda record=record: record(WALL, count)
            works[f"{name}-cpu"] = lambda record=record: record(CPU, count)
        yield works


@contextmanager
def _worldline() -> Iterator[Calls]:
    with place() as folder, wl.record(folder):
        yield lambda clock, count: timed(clock, count, lambda: [look_up(number) for number in range(count)])


@contextmanager
def _langgraph() -> Iterator[Calls]:
    """A checkpoint after each call, as a graph of one node would put it: the state is the last result alone."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver

    with place() as folder, SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        saver.setup()
        config: Any = {"configurable": {"thread_id": "benchmark", "checkpoint_ns": ""}}
        steps = itertools.count()

        def put() -> None:
            nonlocal config
            checkpoint = {**empty_checkpoint(), "channel_values": {"result": next(VALUES)}}
            config = saver.put(config, checkpoint, {"source": "loop", "step": next(steps), "parents": {}}, {})

        yield lambda clock, count: timed(clock, count, lambda: [put() for _ in range(count)])


@contextmanager
def _agentrr() -> Iterator[Calls]:
    from agentrr_sdk.record import record
    from agentrr_sdk.tools.wrapper import wrap_tool

    tool = wrap_tool(lambda order: next(VALUES))
    with place() as folder:

        def run(clock: Clock, count: int) -> float:
            spent = []

            def agent() -> None:
                spent.append(timed(clock, count, lambda: [tool(number) for number in range(count)]))

            record("benchmark", agent, log_path=folder / f"{uuid.uuid4()}.jsonl")
            return spent[0]

        yield run


@contextmanager
def _attribution() -> Iterator[Calls]:
    from agent_replay import Session

    with place() as folder, Session(str(folder / "runs.sqlite")) as session:

        def run(clock: Clock, count: int) -> float:
            def agent(ctx: Any) -> None:
                for number in range(count):
                    ctx.tool("look_up", produce=lambda: next(VALUES), order=number)

            return timed(clock, count, lambda: session.record(agent))

        yield run


@contextmanager
def _spans() -> Iterator[Calls]:
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    with place() as folder:
        traces = TracerProvider()
        traces.add_span_processor(SimpleSpanProcessor(FileSpanExporter(folder / "spans.jsonl")))
        tracer = traces.get_tracer("benchmark")

        def call(order: int) -> None:
            with tracer.start_as_current_span("execute_tool look_up") as span:
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", "look_up")
                span.set_attribute("gen_ai.tool.call.arguments", msgspec.json.encode({"order": order}).decode())
                span.set_attribute("gen_ai.tool.call.result", msgspec.json.encode(next(VALUES)).decode())

        yield lambda clock, count: timed(clock, count, lambda: [call(number) for number in range(count)])
        traces.shutdown()


@contextmanager
def _models(quick: bool) -> Iterator[dict[str, Work]]:
    count = 3 if quick else 50
    works: dict[str, Work] = {}
    if not installed("httpx"):
        yield works
        return
    import httpx

    def ask(client: httpx.Client, base: str) -> None:
        for _ in range(count):
            with client.stream(
                "POST", f"{base}/chat/completions", json=question(next(NUMBERS)), headers=HEADERS
            ) as response:
                text = b"".join(response.iter_bytes())
            if text.count(b"data: ") < 21:
                raise RuntimeError(f"the provider answered {response.status_code}")

    with ExitStack() as stack:
        _, said = stack.enter_context(provider())
        folder = stack.enter_context(place())
        base = said["openai"]
        with pytest_free(), wl.record(folder / "runs") as run:
            plain = stack.enter_context(httpx.Client())
            ours = stack.enter_context(httpx.Client(transport=run.transport(httpx.HTTPTransport())))
            works["bare"] = lambda: timed(CPU, count, lambda: ask(plain, base))
            works["worldline"] = lambda: timed(CPU, count, lambda: ask(ours, base))
            if installed("vcr"):
                works["vcrpy"] = lambda: timed(CPU, count, lambda: _taped(folder, lambda client: ask(client, base)))
            yield works


@contextmanager
def pytest_free() -> Iterator[None]:
    """Nothing of the environment names a run already."""
    url = os.environ.pop("WORLDLINE_URL", None)
    yield
    if url is not None:
        os.environ["WORLDLINE_URL"] = url


def _taped(folder: Path, ask: Callable[[Any], None]) -> None:
    """The calls of one cassette, which is written when it is closed."""
    import httpx
    import vcr

    with vcr.use_cassette(str(folder / f"{uuid.uuid4()}.yaml"), record_mode="all"), httpx.Client() as client:
        ask(client)


KEEPS_NOT = {
    "langgraph": "langgraph SqliteSaver.put: durable behind the call, as sqlite commits; no start, no hashes",
    "agentrr": "agentrr: one fsync, after the call; a digest a row, no chain",
    "trajectory-causal-attribution": "trajectory-causal-attribution: in memory until the run ends, then sqlite NORMAL",
    "OpenTelemetry": "OpenTelemetry SDK, OTLP JSON file, a span exported at its end: not synced, no hashes",
}
CONTESTS = (
    Contest(
        _tools,
        tuple(
            Row(
                f"tool-{name}{suffix}",
                f"record a tool call, result of 1 KB{said}",
                f"worldline{suffix}",
                (f"{name}{suffix}",),
                why,
            )
            for suffix, said in (("", ""), ("-cpu", ", CPU"))
            for name, why in KEEPS_NOT.items()
        ),
        rounds=15,
    ),
    Contest(
        _models,
        (
            Row(
                "model-vcrpy",
                "a model call recorded in process (httpx), CPU",
                "worldline",
                ("vcrpy",),
                "vcrpy: the cassette is written at its end, bodies whole; not durable, no hashes, borders lost",
            ),
            Row("model-bare", "the same", "worldline", ("bare",), "the same call, not recorded"),
        ),
    ),
)
