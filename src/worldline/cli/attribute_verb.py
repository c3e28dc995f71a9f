"""`worldline attribute RUN --verifier WHO -- CMD`: which step caused the failure, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from worldline.analysis.attribution.aggregate import Weakness, refuse_twice
from worldline.analysis.attribution.asking import Budget, LocateOptions
from worldline.analysis.attribution.price import price
from worldline.analysis.attribution.shapley import ShapleyOptions
from worldline.cli import render
from worldline.cli.hints import name_of
from worldline.cli.options import json_option, recording_of, store_option
from worldline.cli.study_options import (
    WithCommand,
    agent_of_line,
    budget_of,
    ended_by,
    options_of,
    say_before,
    shown,
    study_options,
)
from worldline.model.ids import short
from worldline.run import Run
from worldline.store.reconcile import refuse_doubt
from worldline.study.attributing import Study, attributed, together
from worldline.study.methods import METHODS, SHAPLEY
from worldline.study.opening import prepare

QUOTED = 60
MARK = {"decisive": "ok", "partial": "warn", "not-reproducible": "failed"}


@click.command(
    cls=WithCommand,
    epilog="""\b
Examples:
  worldline attribute latest --verifier exit-code -- python agent.py
  worldline attribute 7f3a --verifier grade.py:score --budget rollouts=200 -- python agent.py
  worldline attribute 7f3a --verifier outcome --agent shop.agent:main --executor inline""",
)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="locate", show_default=True, help="How to look for it."
)
@click.option("--prior", type=click.Choice(["errors"]), help="Look first where a tool or a model failed.")
@click.option("--delta", type=float, default=0.05, show_default=True, help="The chance of a false claim to accept.")
@click.option(
    "--shapley",
    "kind",
    type=click.Choice(["asymmetric", "permutation", "kernel", "pivot"]),
    help="Which Shapley values.  [default: asymmetric]",
)
@click.option("--anyway", is_flag=True, help="Symmetric Shapley values although requests carry the history.")
@click.option("--paired", is_flag=True, help="Certify with the same chance on both sides.")
@study_options
@json_option
@store_option
def command(
    runs: tuple[str, ...],
    method: str,
    prior: str | None,
    delta: float,
    kind: Any,
    anyway: bool,
    paired: bool,
    as_json: bool,
    store: Path | None,
    verifier: str,
    caps: tuple[str, ...],
    **said: Any,
) -> int:
    """Which step caused a run to fail? Forks it many times, holds more or less of it, and compares the outcomes.

    Rollouts are forks: what stands before a step is served from the record, the rest is drawn anew and judged by the
    verifier. The same command again goes on where a study was broken off. Ctrl-C ends it with what is known by then.
    Exits with 1 where the agent does not do again what it did, 2 where the budget or you ended it, 3 where the run
    cannot be attributed.
    """
    agent, options, budget = agent_of_line(said), options_of(said), budget_of(caps)
    looking = LocateOptions(delta=delta, paired=paired)
    values = ShapleyOptions(kind=kind or "asymmetric", anyway=anyway) if kind is not None or anyway else None
    opened = [Run(refuse_doubt(recording_of(name, store))) for name in runs]
    refuse_twice([run.id for run in opened])
    studies = []
    for run in opened:
        opening = prepare(run, agent, verifier, options, budget, prior=prior)
        say_before(opening, as_json, price(opening.steps, method, _priced(looking, values, budget, method)).rollouts)
        with shown("search", budget.rollouts) as tell:
            study = attributed(opening, method, looking, values, tell)
        studies.append(study)
        if not as_json:
            say(study, run)
    weakness = together([study.found for study in studies], opened, delta) if len(studies) > 1 else None
    if as_json and weakness is None:
        render.emit_json(studies[0].to_json())
    elif as_json:
        render.emit_json({"together": weakness, "studies": [study.to_json() for study in studies]})
    elif weakness is not None:
        _together(weakness, studies)
    return max(exit_code(study) for study in studies)


def _priced(
    looking: LocateOptions, values: ShapleyOptions | None, budget: Budget, method: str
) -> LocateOptions | ShapleyOptions:
    if method != SHAPLEY:
        return msgspec.structs.replace(looking, budget=budget)
    return msgspec.structs.replace(values or ShapleyOptions(), budget=budget)


def _together(found: Weakness, studies: list[Study]) -> None:
    """Where several runs of one task lose it."""
    ended = ", ".join(f"{count} {verdict}" for verdict, count in found.verdicts.items())
    render.line(f"{render.counted(found.runs, 'run')} together   {ended}")
    for step in found.steps:
        low, high = step.share_ci
        share = f"{step.culprit_in} of {found.runs} runs   [{low:.2f}, {high:.2f}]"
        render.line(f"  {render.bar(step.share)}  {share}   {step.name}   costs {step.mean_drop:.2f} on average")
    for warning in found.warnings:
        render.verdict("warn", warning)
    render.line(f"  worldline report {' '.join(short(study.id) for study in studies)} -o report.html")


def exit_code(study: Study) -> int:
    """2 where a cap or somebody ended it, 1 where the agent does not do again what it did."""
    if study.verdict == "not-reproducible":
        return 1
    return 2 if study.answer["stopped"] else 0


def say(study: Study, run: Run) -> None:
    """The answer on a terminal: the verdict first, then the curve, what would have gone well, and what it took."""
    answer = study.answer
    low_high = f"   [{study.ci[0]:.2f}, {study.ci[1]:.2f}]" if study.ci is not None else ""
    first, last = study.interval
    if study.step is not None:
        head = f"Step {study.step} cost {study.drop:.2f} of the chance to succeed{low_high}   {study.verdict}"
    else:
        head = f"{study.verdict}   between steps {first} and {last} of {answer['steps']}"
    render.verdict(MARK.get(study.verdict, "none"), head)
    if study.step is None:
        render.line(f"  {answer['sentence']}")
    _curve(answer)
    _rescue(answer)
    for warning in answer["warnings"]:
        render.verdict("warn", warning)
    undefined = "nothing undefined" if not answer["undefined"] else f"{answer['undefined']} undefined"
    diverged = f"   {answer['diverged']} diverged" if answer["diverged"] else ""
    steps, tokens = render.counted(answer["live_steps"], "live step"), render.number(answer["tokens"])
    render.line(f"  {render.counted(answer['rollouts'], 'rollout')}   {steps}   {tokens} tok   {undefined}{diverged}")
    if answer["stopped"]:
        render.line(f"  {ended_by(answer['stopped'])}; the same command goes on from here, with a larger budget too")
    name = name_of(run.recording)
    report = f"worldline report {short(study.id)} -o report.html"
    if study.step is not None:
        render.line(f"  worldline repair {name} --at step:{study.step}    {report}")
    else:
        render.line(f"  {report}")


def _curve(answer: dict[str, Any]) -> None:
    """V along the run, as bars; the culprit is pointed at."""
    if not answer["curve"]:
        return
    actions = {step["step"]: step["action"] for step in answer["recorded"]}
    culprit = answer["step"]
    render.line("  success when everything before the step is kept")
    width = max(len(str(point["at"])) for point in answer["curve"])
    for point in answer["curve"]:
        at = point["at"]
        what = ""
        if culprit is not None and at == culprit + 1 and actions.get(culprit):
            what = f"   <- step {culprit}: {render.shorten(actions[culprit], QUOTED)}"
        number = f"{point['v']:.2f}".removeprefix("0") if point["v"] < 1 else "1.0"
        render.line(f"  {at:>{width}}  {render.bar(point['v'])}  {number:>3}{what}", cut=True)


def _rescue(answer: dict[str, Any]) -> None:
    """A draw of the culprit that went well, beside which the recorded one can be seen."""
    rescued = [rescue for rescue in answer["rescued"] if rescue["run"]] or answer["rescued"]
    if not rescued:
        return
    best = rescued[0]
    action = f": {render.shorten(best['action'], QUOTED)}" if best["action"] else ""
    kept = f"   (run {short(best['run'])})" if best["run"] else ""
    render.line(f"  drawn anew there it went well{action}{kept}", cut=True)
