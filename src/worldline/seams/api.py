"""The Python API: `record`, and the words of the run that the calling code belongs to.

Everything works without a run too: tools just run, steps mark nothing, `now` is the clock. So one unchanged program
runs plain, recorded and replayed.
"""

from __future__ import annotations

import datetime
import functools
import logging
import os
import uuid as uuids
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from worldline.engine import clock
from worldline.engine.agent_state import AgentState
from worldline.engine.spec import RecordingSpec, Spec, declarable, workspace_spec
from worldline.engine.threads import in_thread
from worldline.errors import JoinError, UsageError
from worldline.model import values
from worldline.seams.active import ActiveRun, current, enclosing, entered, is_own_url, join
from worldline.seams.environment import WORLDLINE_URL, provider_keys
from worldline.seams.lanes import in_lane
from worldline.seams.permission import Answer, Question
from worldline.store.catalog import default_store
from worldline.store.secrets.vault import MIN_LENGTH

if TYPE_CHECKING:
    from worldline.seams.session import RecordingSession

_log = logging.getLogger("worldline")
NOTHING_CROSSED = (
    "nothing crossed this recording: wrap the client (run.wrap(OpenAI())), give it run.proxy.openai as its base URL, "
    "or decorate tools with @worldline.tool"
)
Secrets = Mapping[str, str] | Iterable[str]
CAPTURES = ("full", "refs")
POLICIES = ("redact", "stop")


class record:
    """Record what happens inside the block; leaving it seals. Works with `with` and `async with`.

    Under `worldline record -- CMD` or a replay it *joins* that run and opens no second. `store` is a directory (default
    `.worldline/runs`); `secrets` are values that must never be written (a mapping labels them); `capture` is `full` or
    `refs`; `policy` is `redact` or `stop`; `spec` declares bounds, tiers and retention. `workspace` is the folder that
    the agent works on: it is kept at each step, but for what `exclude` names (globs), so that forks begin in it. What a
    replay or fork leaves out of the comparison is said by one `mask` or several: `$.messages[*].content=~REGEX`. With
    `fail_open` the agent goes on where nothing more can be written, and the run stays unsealed; else calls raise then.

    Raises what opening raises. An exception that leaves the block is the run's outcome and goes on; the recording is
    complete all the same.
    """

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        task: str | None = None,
        secrets: Secrets = (),
        capture: str = "full",
        policy: str = "redact",
        session: str | None = None,
        agent: Mapping[str, Any] | None = None,
        spec: RecordingSpec | None = None,
        workspace: str | Path | None = None,
        exclude: Iterable[str] = (),
        mask: str | Iterable[str] = (),
        fail_open: bool = False,
    ) -> None:
        if capture not in CAPTURES or policy not in POLICIES:
            raise UsageError(
                f"capture is one of {', '.join(CAPTURES)}, policy one of {', '.join(POLICIES)}; "
                f"not {capture!r} and {policy!r}"
            )
        where = (Path(store) if store is not None else default_store()).absolute()  # the agent may change directory
        self._secrets = labelled(secrets)
        self._spec = Spec(
            store=where,
            task=task,
            secrets={**provider_keys(os.environ, MIN_LENGTH), **self._secrets},
            capture=capture,
            policy=policy,
            session=session,
            agent=values.plain(dict(agent or {})),
            recording=spec,
            workspace=workspace_spec(workspace, exclude),
            masks=declarable(mask),
            fail_open=fail_open,
            origin="pytest" if "PYTEST_CURRENT_TEST" in os.environ else None,
        )
        self._stack = ExitStack()
        self._session: RecordingSession | None = None
        self._run: ActiveRun | None = None

    def __enter__(self) -> ActiveRun:
        if self._session is not None:
            raise UsageError("this recording is open already; call worldline.record() anew for each block")
        url = os.environ.get(WORLDLINE_URL)
        joined = enclosing() or (join() if url and not is_own_url(url) else None)
        if joined is not None:
            self._check_secrets(joined)
            return joined
        self._owner = os.getpid()
        from worldline.seams.session import RecordingSession  # a program that joins a run needs no proxy of its own

        self._session = RecordingSession(self._spec, os.environ)
        self._run = ActiveRun(
            self._session.boundary,
            self._session.proxy.url,
            self._session.recorder.run,
            secrets=self._session.recorder.vault.labels,
        )
        self._stack.enter_context(entered(self._run))
        return self._run

    def _check_secrets(self, joined: ActiveRun) -> None:
        """A run that is joined froze its secrets when it began. Raises `JoinError` where it would write one of ours."""
        held = {os.environ.get(label) for label in joined.secrets}
        missing = [label for label, value in self._secrets.items() if label not in joined.secrets and value not in held]
        if missing and joined.mode != "replay":
            raise JoinError(
                f"the run that is joined does not hold back {', '.join(missing)}; name the variable that has it when "
                "that run begins: `worldline record --secret-env NAME`",
                labels=missing,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is None or self._run is None or self._owner != os.getpid():
            return  # joined; or a forked child that leaves its parent's block, which is the parent's to seal
        self._stack.close()
        session, self._session = self._session, None
        outcome = session.recorder.outcome
        if session.recorder.log.seq == 1 and error is None:
            _log.warning(NOTHING_CROSSED)
        interrupted = isinstance(error, KeyboardInterrupt)
        content = error is None or (isinstance(error, SystemExit) and not error.code)
        if content:
            outcome.setdefault("outcome", "succeeded")
        else:
            outcome.setdefault("outcome", "failed")
            told = values.readable(f"{type(error).__name__}: {error}"[:500])
            outcome["error"] = session.recorder.vault.masked(told)
        self._run.path = session.close("partial" if interrupted else "complete", "interrupted" if interrupted else None)

    async def __aenter__(self) -> ActiveRun:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Sealing waits for running exchanges and the disk; the loop goes on meanwhile.
        context = functools.partial(self.__exit__, kind, error, trace)
        if self._session is None or self._owner != os.getpid():
            return
        self._stack.close()
        self._stack = ExitStack()
        await in_thread(context)


def labelled(secrets: Secrets) -> dict[str, str]:
    """Secrets with their labels: a mapping's own, else the variable that holds the value, else `secret-1` and so on."""
    if isinstance(secrets, Mapping):
        return dict(secrets)
    if isinstance(secrets, str):
        raise UsageError("secrets is a set of values or a mapping of labels to values, not one text")
    by_value = {value: name for name, value in sorted(os.environ.items()) if value}
    return {by_value.get(value, f"secret-{number}"): value for number, value in enumerate(sorted(set(secrets)), 1)}


def step(name: str | None = None, *, state: AgentState | None = None) -> AbstractContextManager[None]:
    """Everything inside is one step of the current run; nothing happens without one."""
    run = current()
    return nullcontext() if run is None else run.step(name, state=state)


def lane(name: str) -> AbstractContextManager[None]:
    """Everything inside belongs to the agent, thread or task `name`; it tells sub-agents of one run apart."""
    return in_lane(name)


def observe(value: Any, *, src: str, name: str | None = None, media_type: str | None = None) -> None:
    """Record something that the agent saw (`ActiveRun.observe`); nothing happens without a run."""
    if (run := current()) is not None:
        run.observe(value, src=src, name=name, media_type=media_type)


def permission(src: str, capability: str, **facts: Any) -> None:
    """Record a permission event (`ActiveRun.permission`); nothing happens without a run."""
    if (run := current()) is not None:
        run.permission(src, capability, **facts)


def ask(
    capability: str,
    *,
    reason: str | None = None,
    timeout: float | None = None,
    default: str = "denied",
    **facts: Any,
) -> Answer:
    """Ask whoever watches the current run for permission, and wait (`ActiveRun.ask`); true where it was granted.

    Without a run nobody can be asked: the answer is `default`, at once.
    """
    run = current()
    question = Question(capability, reason=reason, timeout=timeout, default=default, facts=facts)
    return question.unasked() if run is None else question.ask(run.boundary)


def outcome(outcome: str | None = None, *, reward: float | None = None, done: bool | None = None, **facts: Any) -> None:
    """Say how the current run ended (`ActiveRun.outcome`); nothing happens without one."""
    if (run := current()) is not None:
        run.outcome(outcome, reward=reward, done=done, **facts)


def now() -> datetime.datetime:
    """The time in UTC, recorded where a run is open and the same again on its replay."""
    run = current()
    return run.now() if run is not None else datetime.datetime.fromtimestamp(clock.wall_ns() / 1e9, datetime.UTC)


def uuid() -> uuids.UUID:
    """A random UUID, recorded where a run is open."""
    run = current()
    return run.uuid() if run is not None else uuids.UUID(clock.new_uuid())


def rng() -> clock.Generator:
    """A random generator, its seed recorded where a run is open."""
    run = current()
    return run.rng() if run is not None else clock.generator(clock.new_seed())
