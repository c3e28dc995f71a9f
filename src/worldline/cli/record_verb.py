"""`worldline record -- CMD`: run a command with every model call and wrapped tool recorded, then seal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from worldline.cli import render
from worldline.cli.hints import from_here, next_commands, nothing_crossed
from worldline.cli.options import command_argument, json_option, store_option
from worldline.engine.spec import Spec, declarable, read_spec, workspace_spec
from worldline.engine.steps import steps
from worldline.errors import LogBroken, RecordError, SubstrateError, UsageError, WorldlineError
from worldline.model.ids import short
from worldline.model.values import readable
from worldline.seams import process
from worldline.seams.environment import check_command, described_agent, provider_keys
from worldline.seams.session import RecordingSession
from worldline.store.catalog import default_store, find
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording
from worldline.store.secrets.vault import MIN_LENGTH

HARNESS_ERROR = 4
MOST_NAMED = 5  # files with secrets that are named
ENDED_FIRST = "nothing was recorded: the command failed before a model was asked, or it was asked past the recording"
NOTHING_RECORDED = (
    "nothing was recorded: the command did not use the base URLs that were set for it "
    "(a base_url in its code, another variable, an account login)"
)


@click.command(
    epilog="""\b
Examples:
  worldline record -- python agent.py
  worldline record --task "refund #812" --secret-env SHOP_TOKEN -- python agent.py --order 812
  worldline record --workspace . --exclude node_modules -- python agent.py
  worldline record --continue latest -- python agent.py"""
)
@click.option("--out", "out", type=click.Path(file_okay=False, path_type=Path), help="The store to record into.")
@click.option("--task", help="What the run is about, in words.")
@click.option(
    "--capture",
    type=click.Choice(["full", "refs"]),
    default="full",
    show_default=True,
    help="full: contents are kept and the run can be replayed; refs: sizes and keyed commitments only.",
)
@click.option(
    "--secret-env",
    "secret_env",
    multiple=True,
    metavar="NAME",
    help="A variable whose value must never be written. Providers' keys are held back without being named.",
)
@click.option(
    "--secrets",
    "policy",
    type=click.Choice(["redact", "stop"]),
    default="redact",
    show_default=True,
    help="redact: a secret becomes a marker and the run goes on; stop: the run ends before it is written.",
)
@click.option(
    "--spec",
    "spec",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Declare bounds, restricted contents and retention in a TOML file.",
)
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder that the agent works on: it is kept at each step, and forks begin in it.",
)
@click.option(
    "--every",
    metavar="N",
    default="1",
    show_default=True,
    help="Keep the workspace every N steps; auto: as often as it pays.",
)
@click.option("--exclude", multiple=True, metavar="GLOB", help="What of the workspace is not kept: node_modules.")
@click.option(
    "--mask",
    "mask",
    multiple=True,
    metavar="MASK",
    help="What a replay or fork of the run leaves out of the comparison: '$.path', 'tool:NAME $.path', either with "
    "=~REGEX. It is recorded all the same. May be repeated.",
)
@click.option(
    "--fail-open",
    is_flag=True,
    help="The command goes on where nothing more can be recorded, as on a full disk. Else it is ended.",
)
@click.option("--continue", "continues", metavar="RUN", help="Record the next attempt of this run's session.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The proxy's port.  [default: a free one]")
@json_option
@store_option
@command_argument
def command(
    out: Path | None,
    task: str | None,
    capture: str,
    secret_env: tuple[str, ...],
    policy: str,
    spec: Path | None,
    workspace: Path | None,
    every: str,
    exclude: tuple[str, ...],
    mask: tuple[str, ...],
    fail_open: bool,
    continues: str | None,
    port: int,
    as_json: bool,
    store: Path | None,
    command: tuple[str, ...],
) -> int:
    """Record a command: every model call of any SDK and every wrapped tool, in any language.

    Base URLs of the providers are set for the command; an existing one becomes the upstream. The run is sealed at its
    end. Exits with the command's own code; the last line on stderr is the recording's path.
    """
    check_command(command)
    where = out or store or default_store()
    before = refuse_doubt(find(continues, where)) if continues else None
    wanted = Spec(
        store=where,
        task=_task(task, before),
        agent=described_agent(command),
        secrets=_secrets(secret_env),
        policy=policy,
        capture=capture,
        recording=read_spec(spec) if spec else None,
        workspace=workspace_spec(workspace, exclude, _every(every)),
        masks=declarable(mask),
        fail_open=fail_open,
        **(_continued(before) if before else {}),
    )
    try:
        session = RecordingSession(wanted, os.environ, port)
    except (RecordError, SubstrateError) as error:
        # A secret that is met, a bound or a port that is taken are no failure to write: they end what they should end.
        if not fail_open or (isinstance(error, RecordError) and type(error) not in (RecordError, LogBroken)):
            raise
        return _unrecorded(command, error, as_json)
    return _run(session, command, as_json)


def _unrecorded(command: tuple[str, ...], error: WorldlineError, as_json: bool) -> int:
    """Run a command of which nothing can be recorded."""
    render.verdict("warn", f"{error}; the command runs, and is on no record", err=True)
    ended = process.run(command, os.environ, process.stdout_beside(as_json))
    if as_json:
        render.emit_json({"path": None, **ended.outcome(), "lost": {"why": str(error), "calls": None}})
    return ended.code


def _task(task: str | None, before: Recording | None) -> str | None:
    if task is None:
        return before.header.data["task"]["text"] if before else None
    return readable(task)


def _every(said: str) -> int | None:
    if said == "auto":
        return None
    if not (said.isascii() and said.isdigit() and 0 < int(said) < 10**6):
        raise UsageError(f"--every takes a number of steps, or auto, not {said!r}")
    return int(said)


def _secrets(names: tuple[str, ...]) -> dict[str, str]:
    secrets = provider_keys(os.environ, MIN_LENGTH)
    for name in names:
        if not os.environ.get(name):
            raise UsageError(f"--secret-env {name}: the variable is not set", name=name)
        secrets[name] = os.environ[name]
    return secrets


def _continued(recording: Recording) -> dict[str, Any]:
    """The part of a spec that makes the next attempt: of the same run while nothing is published, else a new run."""
    header = recording.header
    link = {"run": header.data["run"], "attempt": header.data["attempt"], "h": header.h}
    same_run = recording.run_directory if recording.published is None else None
    return {"session": header.data["session"], "run": same_run, "continues": link}


def _run(session: RecordingSession, command: tuple[str, ...], as_json: bool) -> int:
    recorder = session.recorder
    held = len(recorder.vault.labels)
    secrets = f"   {render.counted(held, 'secret')} held back" if held else ""
    with render.overheard():
        place = f"proxy 127.0.0.1:{session.proxy.port}"
        render.verdict("live", f"recording {short(recorder.run)}   {place}{secrets}", err=True)

    def tick() -> str | None:
        ends = recorder.stopped if recorder.spec.fail_open else recorder.broken
        return str(ends) if ends else None

    ended: process.Ended | None = None
    failure: WorldlineError | None = None
    try:
        ended = process.run(command, session.environment(), process.stdout_beside(as_json), tick)
        recorder.outcome = {**ended.outcome(), **recorder.outcome}
    except WorldlineError as error:
        recorder.outcome["outcome"], failure = "failed", error
    sealed, failure = _seal(session, ended, failure)
    path = from_here(sealed)
    with render.overheard(last=True):
        _say(session, path, as_json)
    with render.overheard(last=True):
        if failure is not None:
            render.failure(str(failure), False, failure.kind)
        render.line(str(path), err=True)
    if failure is not None:
        return HARNESS_ERROR
    assert ended is not None
    return ended.code


def _seal(
    session: RecordingSession, ended: process.Ended | None, failure: WorldlineError | None
) -> tuple[Path, WorldlineError | None]:
    recorder = session.recorder
    stopped = recorder.stopped
    interrupted = ended.interrupted_by if ended else None
    reason = f"interrupted by {interrupted}" if interrupted else str(failure) if failure else None
    try:
        return session.close("partial" if reason else "complete", reason), failure or stopped
    except WorldlineError as error:
        session.leave()
        return recorder.run_directory, failure or stopped or error


def _say(session: RecordingSession, path: Path, as_json: bool) -> None:
    recorder = session.recorder
    summary = {**recorder.summary(), **recorder.outcome}
    recording = _opened(session)
    if as_json:
        disposition = recording.disposition if recording is not None else None
        render.emit_json(
            {
                **summary,
                "path": str(path),
                "disposition": disposition,
                "redactions": recorder.vault.redactions,
                "lost": {"why": str(session.lost.why), "calls": session.lost.calls} if session.lost else None,
            }
        )
        return
    if recording is not None:
        render.step_lines(steps(recording), err=True)
    outcome = str(summary.get("outcome"))
    code = render.exit_text(summary)
    tokens = sum(summary["tokens"].values())
    sealed = "sealed, unsigned" if recorder.sealed else "not sealed"
    counts = f"{render.counted(summary['steps'], 'step')}   {render.duration(summary['seconds'])}   {tokens:,} tok"
    render.verdict("ok" if outcome == "succeeded" else "failed", f"{outcome}{code}   {counts}   {sealed}", err=True)
    coverage = recorder.tally.coverage(recorder.spec.capture)
    render.gaps(coverage, err=True)
    if (kept := session.boundary.workspace) is not None:
        for why in dict.fromkeys(kept.missed):
            render.verdict("warn", f"the workspace was not kept at every step: {why}", err=True)
        if kept.degraded:
            render.verdict("warn", kept.degraded, err=True)
        if kept.left_out:
            render.verdict("warn", _left_out(kept.left_out), err=True)
    if (lost := session.lost) is not None:
        broke = f"broke off and the command went on   {render.counted(lost.calls, 'call')} of it on no record"
        render.verdict("warn", f"the recording {broke if lost.calls else 'could not be finished'}", err=True)
        render.line(f"  {lost.why}", err=True)
    elif nothing_crossed(coverage):
        ended_early = summary.get("outcome") == "failed"
        render.verdict("warn", ENDED_FIRST if ended_early else NOTHING_RECORDED, err=True)
    if recording is not None:
        render.line("  " + next_commands(recording, "show {name}", "view {name}"), err=True)


def _opened(session: RecordingSession) -> Recording | None:
    """What was recorded; None where a recording that failed open left nothing that can be read."""
    if session.lost is None:
        return Recording(session.recorder.attempt)
    try:
        recording = Recording(session.recorder.attempt)
        _ = recording.header
    except (WorldlineError, OSError):
        return None
    return recording


def _left_out(paths: Mapping[str, str]) -> str:
    """What of a workspace was not kept for the secrets in it, in a line."""
    named = [f"{path} (it holds {label})" for path, label in sorted(paths.items())]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return f"not kept in any snapshot: {', '.join(named[:MOST_NAMED])}{more}; a branch sees it as it is then, read-only"
