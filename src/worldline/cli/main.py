"""The `worldline` command: finds a verb's file, runs it, and turns errors into one line and an exit code.

Exit codes: 0 ok, 1 diverged or not verified, 2 budget or turn cap, 3 ineligible or refused, 4 harness error, 64 usage.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from worldline import __version__
from worldline.cli import render
from worldline.errors import WorldlineError

USAGE = 64
VERBS = {
    "record": "Record a command: every model call and wrapped tool, sealed at its end.",
    "mcp": "Proxy an MCP server: its calls are recorded, served, and gated on a branch.",
    "list": "List the runs of a store.",
    "show": "Show a run step by step.",
    "view": "Look at a run in the browser: finished or live, one, two, or all of a store.",
    "pack": "Pack a sealed run into one file that any ZIP tool opens.",
    "unpack": "Make a bundle a run of the store again, to fork, resume and study it.",
    "export": "Write a run as a page that shows it, or as what other tools read.",
    "annotate": "Add a note beside a run; list them, or take one back.",
    "media": "Make a video of a run's screenshots, in its bundle or beside it.",
    "redact": "Derive a bundle from a sealed run, without what your rules take out.",
    "verify": "Is the record what was written? Five verdicts.",
    "sign": "Vouch for a sealed run with an SSH key.",
    "prove": "Prove one row, or one prefix, of a sealed run to those who do not have it.",
    "replay": "Replay a run from its record; nothing goes out.",
    "fork": "Fork a run at a step: serve what came before, change one thing, go on live.",
    "resume": "Go on where a run broke off: serve what it has done, then go on live.",
    "rewind": "Take back what the agent did in its workspace, and nothing else.",
    "undo": "Take the last rewind back.",
    "attribute": "Which step caused the failure? Forks the run many times and compares.",
    "repair": "The smallest change that would have saved a run, tested.",
    "ab": "Which of two is better, from one checkpoint of one run?",
    "report": "Write what a study found as one page.",
    "diff": "Compare two runs: where they part first, and what differs in each step.",
    "tree": "Show where a run comes from, and what left it.",
    "reconcile": "Seal what dead writers left; name what is damaged or in doubt.",
    "expire": "Remove contents whose declared retention is over; shows them first.",
    "contain": "Put a run in which a secret was found later into quarantine.",
    "gc": "Move old runs to the trash; shows what it would do first.",
}


class Verbs(click.Group):
    """Loads a verb's file when it is asked for, so that `--help` and short verbs stay fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which people meet them."""
        return list(VERBS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs with their one line each; none is loaded for it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The verb's command."""
        if name not in VERBS:
            return None
        module = importlib.import_module(f"worldline.cli.{name}_verb")
        command: click.Command = module.command
        command.name, command.short_help = name, VERBS[name]
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the first word names. Raises `UsageError` with the verbs there are."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            import difflib  # no command that is one needs it

            near = difflib.get_close_matches(args[0], VERBS, 1)
            meant = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(VERBS)}"
            raise click.UsageError(f"no verb '{args[0]}'; {meant}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="worldline %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> int | None:
    """The flight recorder and time machine for AI agents.

    \b
    worldline record --task "refund #812" -- python agent.py
    worldline show latest
    worldline verify latest
    worldline replay latest -- python agent.py
    """
    if ctx.invoked_subcommand is not None:
        return None
    click.echo(ctx.get_help(), err=True)
    return USAGE


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit. What is raised becomes one line on stderr and its exit code."""
    wants_json = "--json" in _before_command(sys.argv[1:] if args is None else args)
    try:
        code = cli.main(args=args, prog_name="worldline", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        render.failure(_plain(error.format_message()), wants_json, "usage", hint=_help_of(error))
        sys.exit(USAGE)
    except WorldlineError as error:
        render.failure(str(error), wants_json, error.kind, error.facts)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has left; nothing more can be said
        sys.exit(0)
    except PermissionError as error:
        message = f"no permission for {error.filename}; a recording is open to its owner only"
        render.failure(message, wants_json, "permission", {"path": str(error.filename)})
        sys.exit(4)
    except OSError as error:
        message = f"{error.strerror}: {error.filename or ''}".rstrip(": ")
        with render.overheard(last=True):  # the full disk may be the one behind our own output
            render.failure(message, wants_json, "os", {"errno": error.errno})
        sys.exit(4)
    except Exception as error:  # a defect of ours: never the exit code of a verdict
        if os.environ.get("WORLDLINE_TRACEBACK"):
            raise
        message = f"a defect of worldline: {type(error).__name__}: {error}"
        render.failure(message, wants_json, "defect", hint="WORLDLINE_TRACEBACK=1 shows where")
        sys.exit(4)
    sys.exit(code if isinstance(code, int) else 0)


def _before_command(args: list[str]) -> list[str]:
    """The words that are ours, not the recorded command's."""
    return args[: args.index("--")] if "--" in args else args


def _plain(message: str) -> str:
    """A message of the option parser in the form of our own: no capital, no full stop."""
    return (message[:1].lower() + message[1:]).replace(". Did you mean", "; did you mean").removesuffix(".")


def _help_of(error: click.ClickException) -> str | None:
    context: Any = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context is not None else None
