"""Everything the command line prints. Facts one a line, the verdict first; colour only with a shape beside it.

Results go to stdout, everything about the way there to stderr. Plain when piped; `--json` says the same.
"""

from __future__ import annotations

import datetime
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

import click
import msgspec

from worldline.model.values import scalar

if TYPE_CHECKING:  # at run time they would make every short verb slow
    from worldline.analysis.difference import FirstDivergence
    from worldline.engine.masks import MaskUse
    from worldline.engine.steps import Step, ToolCall

LONG_WORK_BYTES = 16 << 20
STEPS_ALIGNED = 500
MARKS = {
    "ok": ("✓", "green"),
    "failed": ("✕", "red"),
    "none": ("–", "bright_black"),
    "live": ("●", "cyan"),
    "warn": ("!", "yellow"),
}


@contextmanager
def overheard(last: bool = False) -> Iterator[None]:
    """For what is said beside a command: that nobody reads it any more, or that its file is full, ends nothing.

    With `last`, when the command has ended, such an output goes nowhere from then on: its rest must not fail at exit.
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None:  # of a file of ours, not of an output
            raise
        silent = [stream for stream in (sys.stdout, sys.stderr) if stream is not None and not _takes_more(stream)]
        for stream in silent if last else ():
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _takes_more(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return False
    return True


def line(text: str = "", *, err: bool = False, cut: bool = False) -> None:
    """Print one line; with `cut` a terminal ends it at its own width."""
    text = _printable(text)
    room = _terminal_width(sys.stderr if err else sys.stdout) if cut else None
    click.echo(text if room is None else shorten(text, room, keep_spaces=True), err=err)


def verdict(state: str, text: str, *, err: bool = False) -> None:
    """A line that begins with a mark: `ok`, `failed`, `none`, `live` or `warn`."""
    mark, colour = MARKS[state]
    click.echo(f"{click.style(mark, fg=colour)} {_printable(text)}", err=err)


def changed(sign: str, text: str, *, indent: str = "  ") -> None:
    """A line of a comparison: `-` what one run has, `+` what the other has; a terminal ends it at its own width."""
    text = _printable(f"{indent}{sign} {text}")
    room = _terminal_width(sys.stdout)
    text = text if room is None else shorten(text, room, keep_spaces=True)
    click.echo(click.style(text, fg="red" if sign == "-" else "green"))


def emit_json(value: Any) -> None:
    """Print a result as JSON, for programs: the only thing that a verb with --json writes to stdout."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:  # lone surrogates: as the record escapes them, since no strict reader takes them
        encoded = msgspec.json.encode(_encodable(msgspec.to_builtins(value, enc_hook=str)))
    click.echo(msgspec.json.format(encoded, indent=2).decode("utf-8"))


def _encodable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {key.encode("utf-8", "backslashreplace").decode(): _encodable(item) for key, item in value.items()}
    return scalar(value) if isinstance(value, str) else value


def failure(
    message: str, as_json: bool, kind: str, facts: Mapping[str, Any] | None = None, hint: str | None = None
) -> None:
    """An error: one line on stderr, and with --json an object on stdout."""
    if as_json:
        with overheard(last=True):
            emit_json({"error": {"kind": kind, "message": message, **{k: str(v) for k, v in (facts or {}).items()}}})
    first = message.strip().splitlines()[0] if message.strip() else kind
    click.echo(f"worldline: {_printable(first)}" + (f" ({hint})" if hint else ""), err=True)


def step_lines(found: Iterable[Step], *, err: bool = False) -> int:
    """Print each step as one line: number, model, tokens, time, what it did. A terminal cuts it at its own width.

    Columns are as wide as some hundred steps need: a long run is printed while it is read. Returns how many there are.
    """
    steps, widths, count = iter(found), [3, 0, 0, 0], 0
    while rows := [_step_cells(step) for step in islice(steps, STEPS_ALIGNED)]:
        widths = [max(width, *(len(row[i]) for row in rows)) for i, width in enumerate(widths)]
        for index, name, tokens, time, what in rows:
            cells = [index.rjust(widths[0]), name.ljust(widths[1]), tokens.rjust(widths[2]), time.rjust(widths[3])]
            line("  ".join(cell for cell in cells if cell) + "   " + what, err=err, cut=True)
        count += len(rows)
    return count


def _step_cells(step: Step) -> tuple[str, str, str, str, str]:
    tokens = f"{number(step.input_tokens)} > {number(step.output_tokens)} tok" if step.output_tokens is not None else ""
    what = "  ".join(call_text(call) for call in step.calls) or _answered(step)
    retries = f"  {step.attempts - 1} retried" if step.attempts > 1 and not step.name else ""
    lane = "" if step.lane == "main" else f"[{step.lane}] "
    marks = "".join(f"   {text}" for p in step.permissions if (text := permission_text(p)))
    name = shorten(step.name or step.model or "–", 24)
    return str(step.index), name, tokens, duration(step.seconds), f"{lane}{what}{retries}{marks}"


def _answered(step: Step) -> str:
    """What stands for the answer of a step without tool calls."""
    return f"✕ {shorten(step.error, 160)}" if step.error else f"– {step.lost}" if step.lost else "(answer)"


def gaps(coverage: Mapping[str, Any], *, err: bool = False) -> None:
    """Say what crossed outside the recording, where anything did: a replay cannot serve it."""
    outside = coverage.get("tools", {}).get("outside", {})
    if outside:
        ran = ", ".join(f"{name} x{count}" for name, count in outside.items())
        verdict("warn", f"ran outside the recording: {ran}; a replay would run them again", err=err)
    if unread := coverage.get("decision", {}).get("unread", {}):
        asked = ", ".join(f"{name} x{count}" for name, count in unread.items())
        verdict(
            "warn", f"answers that cannot be read here: {asked}; the tools that they called cannot be seen", err=err
        )
    if heard := coverage.get("decision", {}).get("outside", {}):
        asked = ", ".join(f"{name} x{count}" for name, count in heard.items())
        verdict("warn", f"models that were only heard of, and cannot be served: {asked}", err=err)
    for name, count in coverage.get("tools", {}).get("unrecordable", {}).items():
        verdict(
            "warn", f"results of {name} x{count} could not be recorded; a replay ends there: return plain data", err=err
        )
    for loss in coverage.get("losses", ()):
        verdict("warn", f"not recorded: {loss}; it cannot be replayed", err=err)


def permission_text(permission: Mapping[str, Any]) -> str:
    """What stands beside a step for a permission: nothing where it was let through without anybody being asked."""
    mark = {"denied": "⛔", "revoked": "⛔", "escalated": "⚠", "granted": "✓"}.get(permission["src"])
    if mark is None:
        return ""
    facts = permission.get("facts")
    by = next((str(facts[k]) for k in ("policy", "by", "who") if k in facts), "") if isinstance(facts, dict) else ""
    return f"{mark} {permission['src']} " + (f"by {by}" if by else str(permission.get("capability", "")))


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
    return f"{call.name}({shorten(inside, 60)})" + (f"  ✕ {shorten(call.error, 160)}" if call.error else end)


def _short_value(value: Any) -> str:
    return shorten(value if isinstance(value, str) else msgspec.json.encode(value).decode(), 32)


def shorten(text: str, limit: int, *, keep_spaces: bool = False) -> str:
    """Text in at most `limit` characters on one line; what was cut shows as an ellipsis."""
    text = text if keep_spaces else " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def number(value: int | None) -> str:
    """A number with thin separators; a dash for none."""
    return "–" if value is None else f"{value:,}"


def first_difference(divergence: FirstDivergence, labels: tuple[str, str]) -> str:
    """Where two runs part, in words; `labels` is what they are called."""
    left, right = divergence.left, divergence.right
    if left is None and right is None:
        files = divergence.what == "files"
        return f"the steps are the same, {'the files that they left are' if files else 'the outcome is'} not"
    if left is None or right is None:
        return f"first difference at step {right if left is None else left}, only in {labels[left is None]}"
    here = f"step {left}" if left == right else f"step {left} ({right} in {labels[1]})"
    return f"first difference at {here}, {divergence.what}"


def masks(uses: Iterable[MaskUse], masked: int) -> None:
    """What masks left out of a comparison, each with where it was declared; and whether anything hung on that."""
    uses = list(uses)
    if not uses:
        return
    hung = f"{counted(masked, 'answer')} given to a call that differs only there" if masked else "nothing hung on it"
    line(f"  {counted(len(uses), 'mask')} in force, {hung}")
    for use in uses:
        met = f"{counted(use.values, 'value')} in {counted(use.exchanges, 'exchange')}"
        line(f"    {use.mask}   {met if use.values else 'met nothing in what was served'}   ({use.origin})")


def volatile(proposals: Iterable[str]) -> None:
    """The masks that would leave out what differs and looks volatile, ready to be used."""
    from worldline.engine.proposing import options

    if said := options(proposals):
        line(f"  it looks volatile; to leave it out of the comparison: {said}")


def exit_text(summary: Mapping[str, Any]) -> str:
    """How a command ended, behind its outcome: the signal or the exit code, where it is not 0."""
    code = summary.get("exit")
    return f" ({summary['signal']})" if summary.get("signal") else f" (exit {code})" if code else ""


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


def counted(count: int, word: str) -> str:
    """A number and its noun: `1 step`, `1,204 steps`."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def table(rows: Sequence[Sequence[str]], heads: Sequence[str], right: Sequence[str] = ()) -> None:
    """Columns as wide as their widest cell, those of `right` aligned there; a terminal cuts a row at its own width."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    room = _terminal_width(sys.stdout)
    for index, row in enumerate([heads, *rows]):
        cells = [
            cell.rjust(width) if head in right else cell.ljust(width)
            for cell, width, head in zip(row, widths, heads, strict=True)
        ]
        text = "  ".join(cells).rstrip()
        text = text if room is None else shorten(text, room, keep_spaces=True)
        click.echo(click.style(_printable(text), fg="bright_black") if index == 0 else _printable(text))


def _printable(text: str) -> str:
    """Text that cannot steer a terminal: control characters as escapes, lone surrogates replaced."""
    safe = "".join(c if c >= " " or c in "\t\n" else f"\\x{ord(c):02x}" for c in text)
    safe = "".join(f"\\x{ord(c):02x}" if "\x7f" <= c <= "\x9f" else c for c in safe)
    return safe.encode("utf-8", "replace").decode("utf-8")


def _terminal_width(stream: TextIO) -> int | None:
    """The columns of the terminal behind `stream`, or None where it is none: what is piped stays whole."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def bar(share: float, width: int = 16) -> str:
    """A share of 1 as a bar, in eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    filled: str = "█" * full + ("", *"▏▎▍▌▋▊▉")[rest]
    return f"▕{filled:<{width}}▏"


def clock_time(seconds: float) -> str:
    """A length of time as a clock counts it: 0:41, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


@contextmanager
def live_line() -> Iterator[Callable[[str], None]]:
    """A line on stderr that is written over, gone at the end; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return

    def show(text: str) -> None:
        room = _terminal_width(sys.stderr) or 80
        click.echo(f"\r{shorten(_printable(text), room - 1, keep_spaces=True)}\x1b[K", nl=False, err=True)

    try:
        yield show
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def progress(label: str, total: int) -> Any:
    """A live line with ETA on stderr while `total` bytes are read; none for short work, or where nobody looks."""
    short = total < LONG_WORK_BYTES or not sys.stderr.isatty()
    return click.progressbar(length=total, label=f"  {label}", file=sys.stderr, width=24, hidden=short)
