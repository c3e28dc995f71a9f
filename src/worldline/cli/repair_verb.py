"""`worldline repair RUN --at step:9 --verifier WHO -- CMD`: the smallest change that would have saved the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from worldline.analysis.attribution.repair import RepairOptions
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
from worldline.study.opening import prepare
from worldline.study.repairing import Fix, proposer, repaired, steps_at

QUOTED = 100


@click.command(
    cls=WithCommand,
    epilog="""\b
Examples:
  worldline repair latest --at step:9 --verifier exit-code -- python agent.py
  worldline repair 7f3a --at step:9 --candidates propose.py --verifier grade.py:score -- python agent.py
  worldline repair 7f3a --at step:9 --verifier exit-code --pair pair.jsonl -- python agent.py""",
)
@click.argument("run")
@click.option("--at", "steps", multiple=True, required=True, metavar="STEP", help="A step that may be changed.")
@click.option("--candidates", metavar="FILE.py", help="Actions to try: its function propose(run, step) gives them.")
@click.option("--target", type=float, default=0.5, show_default=True, help="The failure rate that a fix stays under.")
@click.option("--delta", type=float, default=0.05, show_default=True, help="The chance of a false fix to accept.")
@click.option("--pair", type=click.Path(path_type=Path), metavar="FILE", help="Write the pair as a line of JSON.")
@study_options
@json_option
@store_option
def command(
    run: str,
    steps: tuple[str, ...],
    candidates: str | None,
    target: float,
    delta: float,
    pair: Path | None,
    as_json: bool,
    store: Path | None,
    verifier: str,
    caps: tuple[str, ...],
    **said: Any,
) -> int:
    """Find the smallest change that would have saved a run, by trying it many times.

    Tried are the answers of rollouts that went well at that step (of `worldline attribute`), then your own. Where one
    step is not enough, several are changed together. A fix counts where an interval shows that it fails less often than
    the target. Exits with 1 where none was found, 2 where the budget or you ended it.
    """
    agent, options, budget = agent_of_line(said), options_of(said), budget_of(caps)
    opened = Run(refuse_doubt(recording_of(run, store)))
    places = steps_at(opened, list(steps))  # type: ignore[arg-type]
    propose = proposer(candidates)
    opening = prepare(opened, agent, verifier, options, budget)
    say_before(opening, as_json)
    with shown("try", budget.rollouts) as tell:
        fix = repaired(opening, places, propose, RepairOptions(target=target, delta=delta), tell)
    if pair is not None and fix.pair is not None:
        with new_file(pair) as write:
            write(msgspec.json.encode(fix.pair) + b"\n")
    if as_json:
        render.emit_json(fix.to_json())
    else:
        _say(fix)
    return 0 if fix.verdict == "validated" else 2 if fix.answer["stopped"] else 1


def _say(fix: Fix) -> None:
    answer = fix.answer
    render.verdict("ok" if fix.pair is not None else "failed", str(answer["sentence"]))
    if fix.pair is not None:
        for step, wrong, chosen in zip(fix.pair["steps"], fix.pair["rejected"], fix.pair["chosen"], strict=True):
            render.line(f"  step {step}")
            render.changed("-", _action(wrong), indent="    ")
            render.changed("+", _action(chosen), indent="    ")
        render.line(f"  {fix.pair['minimality']:.0%} of it is as it was")
    tried = render.counted(len(answer["tested"]), "candidate")
    render.line(f"  {tried}   {render.counted(answer['rollouts'], 'rollout')}   {render.number(answer['tokens'])} tok")
    for warning in answer["warnings"]:
        render.verdict("warn", warning)
    if answer["stopped"]:
        render.line(f"  {ended_by(answer['stopped'])}; the same command goes on from here, with a larger budget too")
    render.line(f"  worldline report {short(fix.id)} -o report.html")


def _action(action: dict[str, Any]) -> str:
    calls = ", ".join(
        f"{call['name']}({', '.join(f'{k}={msgspec.json.encode(v).decode()}' for k, v in call['arguments'].items())})"
        for call in action["calls"]
    )
    return render.shorten("   ".join(part for part in (action["text"], calls) if part) or "(nothing)", QUOTED)
