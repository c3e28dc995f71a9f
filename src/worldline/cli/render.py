"""Everything the command line prints. Facts one a line, the verdict first; colour only with a shape beside it.

Results go to stdout, everything about the way there to stderr. Plain when piped; `--json` says the same.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from worldline.engine.steps import Step, ToolCall

MARKS = {
    "ok": ("✓", "green"),
    "failed": ("✕", "red"),
    "none": ("–", "bright_black"),
    "live": ("●", "cyan"),
    "warn": ("!", "yellow"),
}
WIDTH = 100


def line(text: str = "", *, err: bool = False) -> None:
    """Print one line."""
    click.echo(_printable(text), err=err)


def verdict(state: str, text: str, *, err: bool = False) -> None:
    """A line that begins with a mark: `ok`, `failed`, `none`, `live` or `warn`."""
    mark, colour = MARKS[state]
    click.echo(f"{click.style(mark, fg=colour)} {_printable(text)}", err=err)


def emit_json(value: Any) -> None:
    """Print a result as JSON, for programs: the only thing that a verb with --json writes to stdout."""
    encoded = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2)
    click.echo(encoded.decode("utf-8", "replace"))


def failure(
    message: str, as_json: bool, kind: str, facts: Mapping[str, Any] | None = None, hint: str | None = None
) -> None:
    """An error: one line on stderr, and with --json an object on stdout."""
    if as_json:
        emit_json({"error": {"kind": kind, "message": message, **{k: str(v) for k, v in (facts or {}).items()}}})
    first = message.strip().splitlines()[0] if message.strip() else kind
    click.echo(f"worldline: {_printable(first)}" + (f" ({hint})" if hint else ""), err=True)


def step_line(step: Step) -> str:
    """One step as one line: number, model, tokens, time, what it did."""
    tokens = f"{number(step.input_tokens)} > {number(step.output_tokens)} tok" if step.output_tokens is not None else ""
    what = "  ".join(call_text(call) for call in step.calls) or (f"✕ {step.error}" if step.error else "(answer)")
    name = step.name or step.model or ""
    retries = f"  {step.attempts - 1} retried" if step.attempts > 1 and not step.name else ""
    lane = "" if step.lane == "main" else f"[{step.lane}] "
    return f"{step.index:>3}  {shorten(name, 24):<24} {tokens:>20}  {duration(step.seconds):>7}   {lane}{what}{retries}"


def call_text(call: ToolCall) -> str:
    """A tool call as people write one, with a mark where it did not end well."""
    try:
        arguments = msgspec.json.decode(call.arguments.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        arguments = call.arguments
    inside = arguments if isinstance(arguments, str) else ""
    if isinstance(arguments, dict):
        inside = ", ".join(f"{key}={_short_value(value)}" for key, value in arguments.items())
    end = {"outside": "  (ran outside)", "unknown": "  ? unknown"}.get(call.ran, "")
    return f"{call.name}({shorten(inside, 60)})" + (f"  ✕ {call.error}" if call.error else end)


def _short_value(value: Any) -> str:
    return shorten(value if isinstance(value, str) else msgspec.json.encode(value).decode(), 32)


def shorten(text: str, limit: int) -> str:
    """Text in at most `limit` characters on one line; what was cut shows as an ellipsis."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def number(value: int | None) -> str:
    """A number with thin separators; a dash for none."""
    return "–" if value is None else f"{value:,}"


def duration(seconds: float | None) -> str:
    """A length of time with its unit."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def when(unix: float | None) -> str:
    """A moment in local time, to the minute."""
    return "–" if unix is None else datetime.datetime.fromtimestamp(unix).astimezone().strftime("%Y-%m-%d %H:%M")


def table(rows: Sequence[Sequence[str]], heads: Sequence[str]) -> None:
    """Columns as wide as their widest cell; the last one may run on."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for index, row in enumerate([heads, *rows]):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        click.echo(click.style(_printable(text), fg="bright_black") if index == 0 else _printable(text))


def _printable(text: str) -> str:
    """Text that cannot steer a terminal: control characters as escapes, lone surrogates replaced."""
    safe = "".join(c if c >= " " or c in "\t\n" else f"\\x{ord(c):02x}" for c in text)
    safe = "".join(f"\\x{ord(c):02x}" if "\x7f" <= c <= "\x9f" else c for c in safe)
    return safe.encode("utf-8", "replace").decode("utf-8")


def progress(label: str, *, total: int | None = None) -> Any:
    """A live line with rate and ETA on stderr for long work; silent when it is not a terminal."""
    return click.progressbar(
        length=total or 0, label=label, file=sys.stderr, show_pos=True, hidden=not sys.stderr.isatty()
    )
