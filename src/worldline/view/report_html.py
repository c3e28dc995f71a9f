"""The report of a study as one page that needs nothing: no network, no script, light and dark. For people who were not
there, and who need no statistics to read it.

It is made of the study's answer alone, and of two texts that are quoted beside each other. What it quotes of a run is
what the study lets be quoted: contents of the restricted tier are not among it.
"""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from worldline.view.report_chart import chart

SIGNS = {"decisive": "✓", "validated": "✓", "partial": "!", "budget": "…", "diffuse": "–", "none": "–"}
LONGEST = 4000  # characters of a text that is quoted


def report_page(
    answer: Mapping[str, Any],
    *,
    explained: str,
    beside: tuple[str, str] | None = None,
    took: float | None = None,
    panel: str | None = None,
) -> str:
    """The page. `explained` says what its verdict means; `beside` is what was done and what went well, as text.

    `took` is in seconds; `panel` is the address of a panel that links lead into, else commands are shown.
    """
    title = f"{answer['sentence']}"
    body = "\n".join(
        part
        for part in (
            _head(answer, explained),
            _curve(answer),
            _drops(answer),
            _beside(answer, beside, panel),
            _sure(answer),
            _cost(answer, took),
            _open(answer),
            _further(answer, panel),
        )
        if part
    )
    return _page(title, body)


def _page(title: str, body: str) -> str:
    style = resources.files("worldline.view").joinpath("report.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f'<meta name="referrer" content="no-referrer">\n<title>{_text(title)}</title>\n<style>\n{style}</style>\n'
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _text(value: Any) -> str:
    return html.escape("" if value is None else str(value)).encode("utf-8", "replace").decode()


def _head(answer: Mapping[str, Any], explained: str) -> str:
    verdict = str(answer["verdict"])
    task = f" · {_text(answer['task'])}" if answer.get("task") else ""
    notes = "".join(f"<p>! {_text(note)}</p>" for note in (*answer.get("notes", ()), *answer.get("warnings", ())))
    return (
        f'<p class="over">Why did it fail?{task} · run {_text(answer["run"])}</p>\n'
        f"<h1>{_text(answer['sentence'])}</h1>\n"
        f'<p><span class="badge {_text(verdict)}">{SIGNS.get(verdict, "✕")} {_text(verdict)}</span></p>\n'
        f"<p>{_text(explained)}</p>{notes}"
    )


def _curve(answer: Mapping[str, Any]) -> str:
    curve = answer.get("curve") or []
    if not curve:
        return ""
    rows = "".join(
        f'<tr><td class="n">{point["at"]}</td><td class="n">{point["successes"]} of {point["n"]}</td>'
        f'<td class="n">{point["v"]:.2f}</td><td class="n">{point["low"]:.2f} to {point["high"]:.2f}</td></tr>'
        for point in curve
    )
    return (
        "<h2>How likely success still was</h2>\n"
        "<p>The run was taken up again many times. Each time everything before some step was kept exactly as it was, "
        "and from there on the agent was let go again. Where the curve falls, something was lost that the agent could "
        "not make good.</p>\n"
        f"<figure>{chart(curve, answer['steps'], answer.get('certified') or [])}\n"
        "<figcaption>Each point: the share that went well when the steps before it are kept. The band shows how far "
        "the true share may be from it; it holds however often one has looked.</figcaption></figure>\n"
        '<details><summary>The same as numbers</summary><div class="wide"><table><tr><th class="n">kept up to step</th>'
        '<th class="n">went well</th><th class="n">share</th><th class="n">true share between</th></tr>'
        f"{rows}</table></div></details>"
    )


def _drops(answer: Mapping[str, Any]) -> str:
    certified = answer.get("certified") or []
    if not certified:
        return ""
    actions = {step["step"]: step["action"] for step in answer.get("recorded") or ()}
    rows = "".join(
        f'<tr><td class="n">{drop["step"]}</td><td class="n">{drop["drop"]:.2f}</td>'
        f'<td class="n">{drop["ci"][0]:.2f} to {drop["ci"][1]:.2f}</td>'
        f'<td class="n">{_count(drop["before"])}</td><td class="n">{_count(drop["after"])}</td>'
        f'<td class="action">{_text(actions.get(drop["step"]))}</td></tr>'
        for drop in certified
    )
    return (
        "<h2>What held in a test of its own</h2>\n<p>These steps were tested on fresh tries, drawn only for that: so "
        "many went well with the step drawn anew, so many with the step as it was.</p>\n"
        '<div class="wide"><table><tr><th class="n">step</th><th class="n">cost</th><th class="n">between</th>'
        '<th class="n">drawn anew</th><th class="n">as it was</th><th>what it did</th></tr>'
        f"{rows}</table></div>"
    )


def _count(seen: Mapping[str, Any]) -> str:
    undefined = seen.get("undefined", 0)
    return f"{seen['successes']} of {seen['n'] - undefined}" + (f" (+{undefined} open)" if undefined else "")


def _beside(answer: Mapping[str, Any], beside: tuple[str, str] | None, panel: str | None) -> str:
    rescued = next((rescue for rescue in answer.get("rescued") or () if rescue.get("run")), None)
    if beside is None:
        return ""
    before, after = _compared(*beside)
    step = answer["step"]
    link = ""
    if rescued is not None:
        link = f"<p>{_see(answer['run'], rescued['run'], step, panel)}</p>"
    return (
        f"<h2>What it did, and what would have gone well</h2>\n"
        f"<p>At step {step} the agent was asked again, with everything before as it was. This is one of the answers "
        "after which it succeeded.</p>\n"
        f'<div class="beside"><div class="card"><h3>as it was</h3><pre>{before}</pre></div>'
        f'<div class="card"><h3>drawn anew, and it went well</h3><pre>{after}</pre></div></div>{link}'
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
    return f'<span class="{mark or "same"}">{_text(sign + line)}</span>'


def _see(run: str, other: str | None, step: int | None, panel: str | None) -> str:
    """A link into the panel, or the command that opens it there."""
    place = f"run={run}" + (f"&with={other}" if other else "") + (f"&step={step}" if step is not None else "")
    if panel is not None:
        what = "See both, step by step" if other else "See the run"
        return f'<a href="{_text(panel.rstrip("/") + "/#" + place)}">{what}</a>'
    command = f"worldline view {run[-4:]}" + (f" {other[-4:]}" if other else "")
    return f'See it: <code class="type">{_text(command)}</code>'


def _sure(answer: Mapping[str, Any]) -> str:
    delta = float(answer.get("delta") or 0.05)
    said = [
        f"If no step mattered more than the others, a step would be named in at most {delta:.0%} of such studies.",
    ]
    if answer.get("share") is not None:
        said.append(f"The step explains {min(1.0, answer['share']):.0%} of all that was lost between start and end.")
    if answer.get("unexplained"):
        said.append(
            f"{answer['unexplained']:.2f} of the chance to succeed was lost elsewhere, in no place that could be named."
        )
    if answer.get("undefined"):
        said.append(
            f"{answer['undefined']} tries came to no verdict. Counted as failures or as successes, whichever is worse, "
            "they do not change what is named."
        )
    said.append("A step is only named after a test on tries of its own, never on those that led to it.")
    return "<h2>How sure is that?</h2>\n<ul>" + "".join(f"<li>{_text(line)}</li>" for line in said) + "</ul>"


def _cost(answer: Mapping[str, Any], took: float | None) -> str:
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
    rows += [("verifier", _text(answer.get("verifier"))), ("method", _text(answer.get("method") or answer.get("kind")))]
    return "<h2>What it took</h2>\n<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows) + "</dl>"


def _open(answer: Mapping[str, Any]) -> str:
    lines = list(_left_open(answer))
    if not lines:
        return ""
    return "<h2>What was not tested</h2>\n<ul>" + "".join(f"<li>{_text(line)}</li>" for line in lines) + "</ul>"


def _left_open(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("stopped"):
        why = "an interruption" if answer["stopped"] == "interrupted" else f"the cap on {answer['stopped']}"
        yield f"The search was ended by {why}, before it was through. It can go on from here."
    for part in answer.get("untested") or ():
        first, last = part["interval"]
        where = f"Step {first}" if last == first + 1 else f"Steps {first} to {last - 1}"
        yield f"{where}: not taken apart; together they cost about {max(0.0, part['drop']):.2f}."
    for drop in answer.get("tested") or ():
        yield f"Step {drop['step']}: tested, and no loss could be shown (about {drop['drop']:.2f})."
    if served := answer.get("not_attributable"):
        yield f"{_listed(served)}: always comes as it came, since no model is asked there; nothing is said of it."


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:12])) + (" and others" if len(numbers) > 12 else "")
    return f"Step {shown}" if len(numbers) == 1 else f"Steps {shown}"


def _further(answer: Mapping[str, Any], panel: str | None) -> str:
    step = answer.get("step")
    repair = f"worldline repair {answer['run'][-4:]} --at step:{step}" if step is not None else ""
    more = f'<p>Find a change that saves it: <code class="type">{_text(repair)}</code></p>' if repair else ""
    return (
        f"<h2>Go on</h2>\n<p>{_see(answer['run'], None, step, panel)}</p>{more}"
        f'<p class="over">study {_text(answer["study"])}</p>'
    )
