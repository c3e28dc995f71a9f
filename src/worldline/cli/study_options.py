"""What `attribute`, `repair` and `ab` have in common: how their rollouts are carried out, and the line that shows them.

Behind `--` stands the agent's command; `--agent module:function` runs one in the process that draws.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from worldline.analysis.attribution.asking import Budget
from worldline.cli import render
from worldline.cli.options import mask_option
from worldline.engine.plan import plan_of
from worldline.errors import UsageError
from worldline.seams.environment import check_command
from worldline.store.layout import homes
from worldline.study.conduct import INTERRUPTED, Progress
from worldline.study.opening import EXECUTORS, Estimate, Opening, Options, estimate, flight

F = TypeVar("F", bound=Callable[..., Any])
CAPS = ("rollouts", "tokens", "money", "seconds")
DEFAULT_ROLLOUTS = 400
_CAP = re.compile(r"(rollouts|tokens|money|seconds)=([0-9][0-9_,]*(?:\.[0-9]+)?)([kMsmh]?)")
_TIMES = {"": 1.0, "k": 1e3, "M": 1e6, "s": 1.0, "m": 60.0, "h": 3600.0}
_OPTIONS = (
    click.option("--verifier", metavar="WHO", required=True, help="exit-code, outcome, or FILE.py:FUNCTION."),
    click.option("--threshold", type=float, default=1.0, show_default=True, help="The score from which it succeeded."),
    click.option(
        "--verifier-timeout", type=float, default=60.0, show_default=True, help="Seconds in which it has to judge."
    ),
    click.option(
        "--budget",
        "caps",
        multiple=True,
        metavar="CAP=N",
        help="Caps: rollouts=400, tokens=2M, seconds=10m, money=5.  [default: rollouts=400]",
    ),
    click.option("--price", type=float, metavar="N", help="What a million tokens cost, for estimates and money."),
    click.option(
        "--executor",
        type=click.Choice(EXECUTORS),
        default="processes",
        show_default=True,
        help="Where rollouts run: processes, here one by one, or tasks for agents that wait.",
    ),
    click.option("--flight", type=click.IntRange(1), metavar="N", help="How many run at once.  [default: processors]"),
    click.option(
        "--limit",
        type=float,
        default=600.0,
        show_default=True,
        help="Seconds that one rollout may take; then it is undefined.",
    ),
    click.option(
        "--policy",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Rules about tools with effects.  [default: worldline.toml, where it has some]",
    ),
    click.option("--allow-repeat", is_flag=True, help="Let effects happen again whose declared key happened before."),
    click.option("--tools", type=click.Choice(["refuse", "run"]), default="refuse", show_default=True, help="As fork."),
    click.option(
        "--match",
        type=click.Choice(["key", "position"]),
        default="key",
        show_default=True,
        help="How held steps are found again; position is for debugging.",
    ),
    mask_option,
    click.option(
        "--workspace",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Each rollout runs in a copy of this folder.  [default: all in this one, as it stands]",
    ),
    click.option(
        "--copy", "copies", multiple=True, metavar="VARIABLE", help="Each rollout gets a copy of the folder it names."
    ),
    click.option("--seed", "root", type=int, default=0, show_default=True, help="Where all chance is derived from."),
    click.option("--keep", is_flag=True, help="Keep every rollout, not only some that went well."),
    click.option("--agent", metavar="MODULE:FUNCTION", help="An agent in process, in place of a command."),
)


class WithCommand(click.Command):
    """A verb with several arguments and, behind `--`, a command: what stands there is nobody's option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set the command aside, and read the rest."""
        words: tuple[str, ...] = ()
        if "--" in args:
            place = args.index("--")
            args, words = args[:place], tuple(args[place + 1 :])
        rest = super().parse_args(ctx, args)
        ctx.params["command"] = words
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line, with the command's place."""
        return [*super().collect_usage_pieces(ctx), "-- CMD..."]


def study_options(function: F) -> F:
    """The options of all studies."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def options_of(said: dict[str, Any]) -> Options:
    """How rollouts are carried out, as the command line says it. Raises `UsageError`."""
    plan = {name: said[name] for name in ("tools", "allow_repeat", "match")} | {"mask": list(said["mask"])}
    standard = {"tools": "refuse", "allow_repeat": False, "match": "key", "mask": []}
    plan = {name: value for name, value in plan.items() if value != standard[name]}
    plan_of(plan)
    return Options(
        executor=said["executor"],
        flight=said["flight"],
        threshold=said["threshold"],
        verifier_timeout=said["verifier_timeout"],
        plan=plan,
        policy=said["policy"],
        workspace=said["workspace"],
        copies=said["copies"],
        limit=said["limit"],
        price=said["price"],
        keep=said["keep"],
        root=said["root"],
    )


def agent_of_line(said: dict[str, Any]) -> Any:
    """The agent: a command, or a function by its name. Raises `UsageError`, `CommandNotFound`."""
    command = said["command"]
    if bool(command) == bool(said["agent"]):
        raise UsageError("say the agent's command behind --, or --agent module:function")
    if not command:
        return said["agent"]
    check_command(command)
    return command


def budget_of(caps: tuple[str, ...]) -> Budget:
    """A budget as people write it: `rollouts=400`, `tokens=2M`, `seconds=10m`, `money=5`. Raises `UsageError`."""
    found: dict[str, Any] = {}
    for cap in (part for each in caps for part in each.split(" ") if part):
        match = _CAP.fullmatch(cap)
        if match is None:
            raise UsageError(f"a budget is {', '.join(f'{name}=N' for name in CAPS)}, not {cap!r}", budget=cap)
        name, number = match[1], float(match[2].replace(",", "").replace("_", "")) * _TIMES[match[3]]
        if match[3] in ("s", "m", "h") and name != "seconds":
            raise UsageError(f"{name} are no time: {cap!r}", budget=cap)
        found[name] = int(number) if name in ("rollouts", "tokens") else number
    return Budget(**(found or {"rollouts": DEFAULT_ROLLOUTS}))


def ended_by(stopped: str) -> str:
    """What ended a study before it was through."""
    return "interrupted" if stopped == INTERRUPTED else f"the cap on {stopped} ended it"


def price_line(found: Estimate, opening: Opening) -> str:
    """What a study may take, before it starts."""
    parts = [f"about {render.counted(found.rollouts, 'rollout')}, {flight(opening.options)} at once"]
    parts += [f"at most {render.number(cap)}"] if (cap := opening.budget.rollouts) is not None else []
    parts += [f"about {render.duration(found.seconds)}"] if found.seconds else []
    parts += [f"{render.number(found.tokens)} tok"] if found.tokens else []
    parts += [f"money {found.money:.2f}"] if found.money is not None else []
    return "   ".join(parts)


def say_before(opening: Opening, as_json: bool, rollouts: int = DEFAULT_ROLLOUTS) -> None:
    """Notes, and the price, on stderr."""
    for note in opening.notes:
        render.verdict("warn", note, err=True)
    if not as_json:
        render.line(f"  {price_line(estimate(opening, rollouts), opening)}", err=True)


@contextmanager
def shown(label: str, rollouts: int | None) -> Iterator[Callable[[Progress], None]]:
    """A live line with rate and time left; Ctrl-C and SIGTERM end the study, which then says what it knows."""
    previous = signal.getsignal(signal.SIGTERM)

    def ended(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, ended)
    with render.live_line() as show:

        def tell(progress: Progress) -> None:
            show(f"  {label}  {progress_text(progress, rollouts)}")

        try:
            yield tell
        finally:
            signal.signal(signal.SIGTERM, previous)


def progress_text(progress: Progress, rollouts: int | None) -> str:
    """How far a study is, in a line."""
    parts = [render.counted(progress.drawn, "rollout")]
    if progress.at is not None:
        first, last = progress.at
        parts.append(f"at step {first}" if first == last else f"between steps {first} and {last}")
    parts.append(render.clock_time(progress.seconds))
    fresh = progress.drawn - progress.known
    if rollouts and fresh >= 5 and progress.drawn < rollouts:
        left = (rollouts - progress.drawn) * progress.seconds / max(1, progress.drawn)
        parts.append(f"at most {render.clock_time(left)} left")
    bar = render.bar(progress.drawn / rollouts) + " " if rollouts else ""
    return bar + ", ".join(parts)


def store_of_study(opening: Opening) -> Path:
    """The store in which a study stands."""
    return homes(opening.run.recording.run_directory)[-1]
