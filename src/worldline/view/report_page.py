"""What the pages of all studies have in common: the frame, what is quoted, links into the runs, and what it took.

A page asks for nothing: no network, no script. What it quotes is text, never markup.
"""

from __future__ import annotations

import difflib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

SIGNS = {"decisive": "✓", "validated": "✓", "clear": "✓", "partial": "!", "budget": "…", "diffuse": "–", "none": "–"}
SIGNS |= {"open": "–", "together": "Σ"}
LONGEST = 4000  # characters of a text that is quoted


class Around(NamedTuple):
    """What a page is given beside the answer.

    `explained` says what the verdict means; `beside` are two texts, `other` is a run that went well, to be seen beside
    the recorded one; `took` is in seconds; `panel` is the address of a panel that links lead into, else commands are
    shown.
    """

    explained: str
    beside: tuple[str, str] | None = None
    other: str | None = None
    took: float | None = None
    panel: str | None = None


def framed(title: str, parts: Iterable[str]) -> str:
    """The whole page; empty parts are left out."""
    style = resources.files("worldline.view").joinpath("report.css").read_text("utf-8")
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f'<meta name="referrer" content="no-referrer">\n<title>{text(title)}</title>\n<style>\n{style}</style>\n'
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def text(value: Any) -> str:
    """Anything as text of a page."""
    return html.escape("" if value is None else str(value)).encode("utf-8", "replace").decode()


def head(answer: Mapping[str, Any], question: str, explained: str, verdict: str | None = None) -> str:
    """What was asked, the verdict in a sentence, and what it means."""
    word = str(verdict or answer["verdict"])
    task = f" · {text(answer['task'])}" if answer.get("task") else ""
    run = f" · run {text(answer['run'])}" if answer.get("run") else ""
    notes = "".join(f"<p>! {text(note)}</p>" for note in (*answer.get("notes", ()), *answer.get("warnings", ())))
    return (
        f'<p class="over">{text(question)}{task}{run}</p>\n'
        f"<h1>{text(answer['sentence'])}</h1>\n"
        f'<p><span class="badge {text(word)}">{SIGNS.get(word, "✕")} {text(word)}</span></p>\n'
        f"<p>{text(explained)}</p>{notes}"
    )


def count(seen: Mapping[str, Any]) -> str:
    """How many tries went well."""
    undefined = seen.get("undefined", 0)
    return f"{seen['successes']} of {seen['n'] - undefined}" + (f" (+{undefined} open)" if undefined else "")


def beside(before: tuple[str, str], after: tuple[str, str]) -> str:
    """Two texts side by side, each with its title, and the lines marked in which they differ."""
    left, right = _compared(before[1], after[1])
    return (
        f'<div class="beside"><div class="card"><h3>{text(before[0])}</h3><pre>{left}</pre></div>'
        f'<div class="card"><h3>{text(after[0])}</h3><pre>{right}</pre></div></div>'
    )


def _compared(before: str, after: str) -> tuple[str, str]:
    """Two texts with the lines marked in which they differ, by colour and by a sign."""
    left, right = before[:LONGEST].splitlines() or [""], after[:LONGEST].splitlines() or [""]
    marks: tuple[list[str], list[str]] = ([], [])
    for kind, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        same = kind == "equal"
        marks[0].extend(_line(line, None if same else "less") for line in left[a:b])
        marks[1].extend(_line(line, None if same else "more") for line in right[c:d])
    return "".join(marks[0]), "".join(marks[1])


def _line(line: str, mark: str | None) -> str:
    sign = {"less": "− ", "more": "+ "}.get(mark or "", "  ")
    return f'<span class="{mark or "same"}">{text(sign + line)}</span>'


def see(run: str, other: str | None, step: int | None, panel: str | None) -> str:
    """A link into the panel, or the command that opens it there."""
    place = f"run={run}" + (f"&with={other}" if other else "") + (f"&step={step}" if step is not None else "")
    if panel is not None:
        what = "See both, step by step" if other else "See the run"
        return f'<a href="{text(panel.rstrip("/") + "/#" + place)}">{what}</a>'
    command = f"worldline view {run[-4:]}" + (f" {other[-4:]}" if other else "")
    return f"See it: {typed(command)}"


def typed(command: str) -> str:
    """A command to type."""
    return f'<code class="type">{text(command)}</code>'


def said(action: Mapping[str, Any]) -> str:
    """An action as text, one thing a line."""
    lines = [action["text"]] if action.get("text") else []
    lines += [
        f"{call['name']} {json.dumps(call.get('arguments') or {}, indent=2, ensure_ascii=False)}"
        for call in action.get("calls") or ()
    ]
    return "\n".join(lines) or "(nothing)"


def listing(title: str, lines: Iterable[str]) -> str:
    """A section that is a list; nothing where there are no lines."""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<h2>{text(title)}</h2>\n<ul>{items}</ul>" if items else ""


def cost(answer: Mapping[str, Any], took: float | None) -> str:
    """What the study took; `took` in seconds."""
    rows = [
        ("tries", f"{answer['rollouts']:,}"),
        ("steps made anew", f"{answer['live_steps']:,}"),
        ("tokens", f"{answer['tokens']:,}"),
    ]
    if took is not None:
        rows.append(("time", f"{took / 60:.0f} min" if took >= 120 else f"{took:.0f} s"))
    if answer.get("money"):
        rows.append(("money", f"{answer['money']:.2f}"))
    rows += [("no verdict", f"{answer['undefined']:,}"), ("asked for something else", f"{answer['diverged']:,}")]
    rows += [("verifier", text(answer.get("verifier"))), ("method", text(answer.get("method") or answer.get("kind")))]
    return "<h2>What it took</h2>\n<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows) + "</dl>"


def ended_early(answer: Mapping[str, Any]) -> list[str]:
    """What ended a study before it was through, as a line."""
    if not answer.get("stopped"):
        return []
    why = "an interruption" if answer["stopped"] == "interrupted" else f"the cap on {answer['stopped']}"
    return [f"The search was ended by {why}, before it was through. It can go on from here."]


def steps_named(numbers: Sequence[int]) -> str:
    """Some steps by their numbers."""
    shown = ", ".join(map(str, numbers[:12])) + (" and others" if len(numbers) > 12 else "")
    return f"Step {shown}" if len(numbers) == 1 else f"Steps {shown}"
