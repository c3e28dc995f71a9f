"""The facets of a run, from one pass over its log: which model, which tools, which permissions, where trouble began.

A row is not read whole: of most of them only the kind is looked at. Of a very long log the beginning is read, and that
is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from worldline.engine.tally import StepCounter, failed_response
from worldline.store.facets import Facets
from worldline.store.recording import Recording

MOST_BYTES = 64 << 20  # of a log that are looked at
MOST_TOOLS = 100
_LONGEST = 128 * 1024
_ERROR = re.compile(r"([A-Za-z_][\w.]{0,79})(?::|$)")
_DENIED = ("denied", "revoked")


class _Row(msgspec.Struct):
    """What is looked at of every row."""

    seq: int
    kind: str
    src: str
    data: msgspec.Raw
    lane: str = "main"
    call: str | None = None
    key: str | None = None
    parent_id: str | None = None


_read = msgspec.json.Decoder(_Row).decode
_data = msgspec.json.Decoder(dict[str, Any]).decode


def facets_of(recording: Recording) -> Facets:
    """Look through a recording. Raises what reading one raises."""
    scan = _Scan()
    size = 0
    for line in _lines(recording):
        size += len(line)
        if size > MOST_BYTES:
            break
        try:
            scan.row(_read(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue  # damaged: the page says so when it is opened
    return scan.facets(recording.summary, size > MOST_BYTES)


def _lines(recording: Recording) -> Iterator[bytes]:
    for path in recording.files():
        try:
            with path.open("rb", 256 * 1024) as file:
                yield from iter(lambda file=file: file.readline(_LONGEST), b"")  # type: ignore[misc]
        except FileNotFoundError:  # the tail became a chunk meanwhile
            continue


class _Scan:
    """What was seen so far. Of steps and lanes as the panel counts them."""

    def __init__(self) -> None:
        self._counter = StepCounter()
        self._step: dict[str, int] = {}
        self._models: Counter[str] = Counter()
        self._tools: dict[str, None] = {}
        self._permissions: Counter[str] = Counter()
        self._trouble: tuple[int, int | None] | None = None
        self._parent: dict[str, Any] | None = None

    def row(self, row: _Row) -> None:
        match row.kind, row.src:
            case "decision", "request":
                self._request(row, _data(row.data))
            case "decision", "response":
                self._response(row, _data(row.data))
            case "action", "tool_call":
                if not self._step:
                    self._opened(row.lane, self._counter.action)
                self._tool(_data(row.data).get("name"))
            case "observation", "tool_result":
                if "error" in _data(row.data):
                    self._went_wrong(row)
            case "permission", _:
                self._permissions[row.src] += 1
                if row.src in _DENIED:
                    self._went_wrong(row)
            case "marker", "step":
                begins = _data(row.data).get("phase") == "begin"
                self._opened(row.lane, lambda: self._counter.marker(row.lane, begins))
            case "meta", "loss" | "unknown":
                self._went_wrong(row)
            case "meta", "header":
                parent = _data(row.data).get("parent")
                self._parent = parent if isinstance(parent, dict) else None

    def _opened(self, lane: str, count: Any) -> None:
        """Where counting a row makes a new step, that is the lane's from here on."""
        before = self._counter.steps
        count()
        if self._counter.steps > before:
            self._step[lane] = self._counter.steps - 1

    def _request(self, row: _Row, data: Mapping[str, Any]) -> None:
        if row.parent_id is None:
            self._opened(row.lane, lambda: self._counter.request(row.lane, str(row.call), str(row.key)))
        if isinstance(model := data.get("gen_ai.request.model"), str):
            self._models[model[:200]] += 1

    def _response(self, row: _Row, data: Mapping[str, Any]) -> None:
        failed = failed_response(data)
        self._counter.response(str(row.call), failed)
        if failed:
            self._went_wrong(row)
        for use in data.get("tool_uses") or ():
            if isinstance(use, dict):
                self._tool(use.get("name"))

    def _tool(self, name: Any) -> None:
        if isinstance(name, str) and len(self._tools) < MOST_TOOLS:
            self._tools[name[:200]] = None

    def _went_wrong(self, row: _Row) -> None:
        if self._trouble is None:
            self._trouble = row.seq, self._step.get(row.lane)

    def facets(self, summary: Mapping[str, Any], cut: bool) -> Facets:
        most = self._models.most_common(1)
        seq, step = self._trouble or (None, None)
        return Facets(
            model=most[0][0] if most else None,
            tools=sorted(self._tools),
            permissions=dict(sorted(self._permissions.items())),
            tokens=_tokens(summary.get("tokens")),
            cost=_cost(summary),
            error=error_class(summary),
            trouble=seq,
            trouble_step=step,
            parent=self._parent,
            cut=cut,
        )


def error_class(summary: Mapping[str, Any]) -> str | None:
    """How a run failed, in one word: the exception's class, the signal, the exit code; None where it did not."""
    if isinstance(error := summary.get("error"), str):
        return match[1] if (match := _ERROR.match(error)) else "error"
    if isinstance(signal := summary.get("signal"), str):
        return signal[:40]
    code = summary.get("exit")
    return f"exit {code}" if isinstance(code, int) and code else None


def _tokens(counts: Any) -> tuple[int, int] | None:
    if not isinstance(counts, dict):
        return None
    given, made = counts.get("input"), counts.get("output")
    return (given, made) if type(given) is type(made) is int and (given or made) else None


def _cost(summary: Mapping[str, Any]) -> float | None:
    """What the agent said that the run cost; nothing here knows prices."""
    facts = summary.get("facts")
    cost = facts.get("cost") if isinstance(facts, dict) else None
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None
