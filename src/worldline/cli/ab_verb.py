"""`worldline ab RUN --at step:9 --arm model=a --arm model=b -n 40 -- CMD`: which of two ways on is better?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from worldline.analysis.attribution.ab import ABOptions
from worldline.cli import render
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
from worldline.store.newfile import new_file
from worldline.store.reconcile import refuse_doubt
from worldline.study.comparing import ABStudy, arm_of, made
from worldline.study.opening import prepare
from worldline.study.repairing import steps_at


@click.command(
    cls=WithCommand,
    epilog="""\b
Examples:
  worldline ab latest --at step:9 --arm as-is --arm model=other -n 40 --verifier exit-code -- python agent.py
  worldline ab 7f3a --at step:9 --arm model=a --arm model=b --verifier grade.py:score -- python agent.py""",
)
@click.argument("run")
@click.option("--at", "step", required=True, metavar="STEP", help="The step before which all arms are the same.")
@click.option(
    "--arm", "arms", multiple=True, required=True, metavar="ARM", help="NAME=VALUE of requests, as-is, or action=JSON."
)
@click.option("-n", "count", type=click.IntRange(1), default=40, show_default=True, help="Forks of each arm.")
@click.option("--delta", type=float, default=0.05, show_default=True, help="The chance of a false claim to accept.")
@click.option("--peek", is_flag=True, help="Stop as soon as every difference is clear; its intervals allow for that.")
@click.option(
    "--triples", type=click.Path(path_type=Path), metavar="FILE", help="Write the counterfactual triples as JSON lines."
)
@study_options
@json_option
@store_option
def command(
    run: str,
    step: str,
    arms: tuple[str, ...],
    count: int,
    delta: float,
    peek: bool,
    triples: Path | None,
    as_json: bool,
    store: Path | None,
    verifier: str,
    caps: tuple[str, ...],
    **said: Any,
) -> int:
    """Compare two ways to go on from one checkpoint: n forks of each, and the difference with its interval.

    All arms leave the same run at the same step, so what differs is what the arms change and chance. Exits with 2 where
    the budget or you ended it.
    """
    agent, options = agent_of_line(said), options_of(said)
    budget = budget_of(caps or (f"rollouts={count * len(arms)}",))
    opened = Run(refuse_doubt(recording_of(run, store)))
    (place,) = steps_at(opened, step)
    chosen = [arm_of(arm, place) for arm in arms]
    opening = prepare(opened, agent, verifier, options, budget, must_have_failed=False)
    say_before(opening, as_json)
    with shown("compare", count * len(arms)) as tell:
        study = made(opening, place, chosen, ABOptions(n=count, delta=delta, peek=peek), tell)
    if triples is not None:
        with new_file(triples) as write:
            for triple in study.answer["triples"]:
                write(msgspec.json.encode(triple) + b"\n")
    if as_json:
        render.emit_json(study.to_json())
    else:
        _say(study)
    return 2 if study.answer["stopped"] else 0


def _say(study: ABStudy) -> None:
    answer = study.answer
    render.verdict("ok" if answer["verdict"] == "clear" else "none", str(answer["sentence"]))
    width = max(len(arm["name"]) for arm in answer["arms"])
    for arm in answer["arms"]:
        seen = arm["count"]
        low, high = arm["interval"]
        defined = seen["n"] - seen["undefined"]
        render.line(
            f"  {arm['name']:<{width}}  {render.bar(arm['rate'])}  {seen['successes']} of {defined}"
            f"   [{low:.2f}, {high:.2f}]"
        )
    for difference in answer["differences"] if len(answer["differences"]) > 1 else ():
        low, high = difference["ci"]
        render.line(
            f"  {difference['first']} − {difference['second']}  {difference['difference']:+.2f} [{low:.2f}, {high:.2f}]"
        )
    render.line(f"  {render.counted(answer['rollouts'], 'rollout')}   {render.number(answer['tokens'])} tok")
    for warning in answer["warnings"]:
        render.verdict("warn", warning)
    if answer["stopped"]:
        render.line(f"  {ended_by(answer['stopped'])}; the same command goes on from here, with a larger budget too")
    render.line(f"  worldline report {short(study.id)} -o report.html")
