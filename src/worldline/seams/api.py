"""The Python API: `record`, `tool`, and the words of the run that the calling code belongs to.

Everything works without a run too: tools just run, steps mark nothing, `now` is the clock. So one unchanged program
runs plain, recorded and replayed.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import logging
import os
import uuid as uuids
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from worldline.engine import boundary as doors
from worldline.engine import clock
from worldline.engine.agent_state import AgentState
from worldline.engine.boundary import Call, inside
from worldline.engine.content import Content
from worldline.engine.spec import RecordingSpec, Spec, declarable, workspace_spec
from worldline.engine.threads import in_thread
from worldline.errors import JoinError, UsageError, ValueRefused
from worldline.model import values
from worldline.model.effects import Capability, Effect
from worldline.seams.active import ActiveRun, current, enclosing, entered, is_own_url, join
from worldline.seams.environment import WORLDLINE_URL, provider_keys
from worldline.seams.lanes import in_lane
from worldline.seams.lanes import lane as lane_here
from worldline.seams.permission import Answer, Question
from worldline.seams.taken import is_tool_taken
from worldline.store.catalog import default_store
from worldline.store.secrets.vault import MIN_LENGTH

if TYPE_CHECKING:
    from worldline.seams.session import RecordingSession

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
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


@overload
def tool(function: F) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    effect: str = ...,
    idempotency_key: Callable[..., str] | None = None,
    capability: str | None = None,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    *,
    name: str | None = None,
    effect: str = Effect.SIDE_EFFECTING,
    idempotency_key: Callable[..., str] | None = None,
    capability: str | None = None,
) -> F | Callable[[F], F]:
    """Let a function's calls cross the door: recorded while a run records, served on a replay, plain otherwise.

    `name` is what the model calls it (default: the function's name); `effect` is `pure`, `idempotent` or
    `side_effecting` (the default: what is not known to be harmless is not); `idempotency_key` makes the key of a call
    from its arguments; `capability` is what it must be allowed to do, which rules for live branches may name
    (`model.effects.Capability`). Arguments and results must be plain data (`model.values`); `self` of a method is left
    out. Raises `UsageError` for a generator. Calls raise `ValueRefused` for arguments that no record can carry, and
    `EffectRefused` on a live branch whose gate refuses them.
    """
    if function is None:
        return lambda found: tool(  # type: ignore[call-overload]
            found, name=name, effect=effect, idempotency_key=idempotency_key, capability=capability
        )
    if isinstance(function, staticmethod | classmethod):  # whichever of the two decorators stands above the other
        inner = tool(name=name, effect=effect, idempotency_key=idempotency_key, capability=capability)(
            function.__func__
        )
        return cast(F, type(function)(inner))
    name = name or getattr(function, "__name__", None)
    if name is None:
        raise UsageError(f"a {type(function).__name__} has no name; give it one: tool(name=...)(function)")
    if effect not in tuple(Effect):
        raise UsageError(f"the effect of {name} is one of {', '.join(Effect)}, not {effect!r}", effect=effect)
    if capability is not None and capability not in tuple(Capability):
        raise UsageError(f"a capability is one of {', '.join(Capability)}, not {capability!r}", capability=capability)
    code: Any = function
    if not inspect.isroutine(function):  # an object that can be called
        code = type(function).__call__
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        raise UsageError(f"{name} is a generator; a tool returns its result whole")
    crossing = Crossing(function, name, Effect(effect), idempotency_key, capability)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(code):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            run = current()
            if run is None or is_tool_taken(crossing.name, awaited):
                return await function(*args, **kwargs)
            call = crossing.call(args, kwargs)
            return await doors.acall(run.boundary, call, lambda: function(*args, **kwargs), crossing.scope)

        return cast(F, _declared(awaited, crossing))

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        run = current()
        if run is None or is_tool_taken(crossing.name, called):
            return function(*args, **kwargs)
        call = crossing.call(args, kwargs)
        return doors.call(run.boundary, call, lambda: function(*args, **kwargs), crossing.scope)

    return cast(F, _declared(called, crossing))


def _declared(wrapper: Any, crossing: Crossing) -> Any:
    wrapper.__worldline__ = crossing
    return wrapper


def crossing_of(function: Any) -> Crossing | None:
    """How calls of a function under `@tool` cross; None of any other. For bridges, which then own its calls."""
    found = getattr(function, "__worldline__", None)
    return found if isinstance(found, Crossing) else None


class Crossing:
    """How one tool's calls become `Call`s."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        effect: Effect,
        idempotency_key: Callable[..., str] | None,
        capability: str | None = None,
    ) -> None:
        self._signature = inspect.signature(function)
        self.name = name
        self._effect = effect
        self._idempotency_key = idempotency_key
        self._facts = {} if capability is None else {"capability": str(capability)}
        self.scope: Mapping[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
        names = list(self._signature.parameters)
        simple = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in self._signature.parameters.values())
        self._names = names if simple else None
        # A function inside a class whose first parameter is self or cls is a method: the object is no input.
        self._skip = (
            names[0] if names and "." in getattr(function, "__qualname__", "") and names[0] in ("self", "cls") else None
        )

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """The call that these arguments make. Raises `ValueRefused`, or `TypeError` where they do not fit."""
        return self._call(self._bound(args, kwargs))

    def named(self, arguments: Mapping[str, Any]) -> Call:
        """The same for a framework that gives arguments by name and may add some that are its own, as a context."""
        bound = self._signature.bind_partial(**arguments)
        bound.apply_defaults()
        return self._call(dict(bound.arguments))

    def _call(self, arguments: dict[str, Any]) -> Call:
        if self._skip is not None:
            arguments.pop(self._skip, None)
        return Call(
            kind="action",
            name=self.name,
            inputs=self._inputs(arguments),
            effect=self._effect.value,
            idempotency_key=self._key(arguments),
            lane=lane_here(),
            parent=inside.get(),
            facts=self._facts,
        )

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, in the signature's order. Raises `TypeError` for a call that does not fit it."""
        names = self._names
        if names is not None and not kwargs and len(args) == len(names):
            return dict(zip(names, args, strict=True))
        if names is not None and not args and kwargs.keys() == set(names):
            return {name: kwargs[name] for name in names}
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _inputs(self, arguments: Mapping[str, Any]) -> Content:
        try:
            return Content.of(arguments)
        except ValueRefused as refused:
            what, path = refused.facts["type"], refused.facts["path"]
            message = f"{self.name} was not run: its call has {what} at {path}; a recorded tool takes plain data"
            raise ValueRefused(message, **refused.facts) from None

    def _key(self, arguments: Mapping[str, Any]) -> str | None:
        return None if self._idempotency_key is None else str(self._idempotency_key(**arguments))


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
