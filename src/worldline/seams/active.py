"""A run as the agent's own code sees it: steps, samples of clock and randomness, observations, permissions, outcome.

The same handle serves a run that is recorded here, one that this process joined, and a replay. Which run a line of code
belongs to is found by context (`current`), so threads, tasks and forked children all find theirs.
"""

from __future__ import annotations

import contextvars
import datetime
import functools
import math
import os
import re
import threading
import uuid as uuids
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from worldline.engine import boundary as doors
from worldline.engine import clock
from worldline.engine.agent_state import AgentState, Upcasters
from worldline.engine.boundary import Boundary, Call, inside
from worldline.engine.content import Content
from worldline.errors import NoRunInContext, UsageError
from worldline.seams.environment import WORLDLINE_URL, child_environment
from worldline.seams.lanes import in_lane, lane
from worldline.seams.permission import Answer, Question
from worldline.seams.remote import RemoteBoundary
from worldline.store.recording import DEEP, JSON

P = ParamSpec("P")
R = TypeVar("R")
PERMISSIONS = ("requested", "granted", "denied", "auto_approved", "escalated", "revoked")
LONGEST_WORD = 200
_SOURCE = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MEDIA_TYPE = re.compile(r"[a-z]{1,40}/[a-z0-9.+-]{1,80}")

_current: ContextVar[ActiveRun | None] = ContextVar("worldline_run", default=None)
_open: list[ActiveRun] = []
_joined: dict[tuple[int, str], ActiveRun] = {}
_lock = threading.Lock()


class Bases:
    """The base URLs of this run's proxy: `run.proxy.openai`, `run.proxy.anthropic`, or `run.proxy["gemini"]`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __getitem__(self, provider: str) -> str:
        return f"{self.url}{provider}"

    @property
    def openai(self) -> str:
        """For `OpenAI(base_url=...)`."""
        return self["openai"]

    @property
    def anthropic(self) -> str:
        """For `Anthropic(base_url=...)`."""
        return self["anthropic"]


class Seeds:
    """The seeds that a generator of one lane has to go on from: one for each fork that the agent came past."""

    def __init__(self, run: ActiveRun, here: str) -> None:
        self._run = run
        self._lane = here
        self._passed = run.boundary.forks() or 0

    def __call__(self) -> Iterator[int]:
        """Those that are due."""
        while self._passed < (self._run.boundary.forks() or 0):
            self._passed += 1
            with in_lane(self._lane):
                seed = self._run.seed_behind(self._passed)
            yield seed


class ActiveRun:
    """A run that is open in this process. `mode` is `record`, `replay` or `fork`.

    `path` names the recording: once it is sealed, or at once where this process joined.
    """

    def __init__(
        self, boundary: Boundary, url: str, run: str, joined: bool = False, secrets: Iterable[str] = ()
    ) -> None:
        self.run = run
        self.secrets = frozenset(secrets)  # the labels of what is held back
        self.url = url
        self.joined = joined
        self.proxy = Bases(url)
        self.path: Path | None = None
        self._boundary = boundary
        self._pid = os.getpid()
        self._generators: dict[str, clock.Generator] = {}

    @property
    def boundary(self) -> Boundary:
        """The door. A forked child of the recording process reaches it over HTTP."""
        if os.getpid() != self._pid:
            self._boundary, self._pid = RemoteBoundary(self.url), os.getpid()
        return self._boundary

    @property
    def mode(self) -> str:
        """`record`, `replay`, or `fork` for a branch."""
        return self.boundary.mode

    @contextmanager
    def step(self, name: str | None = None, *, state: AgentState | None = None) -> Iterator[None]:
        """Everything inside is one step of this lane, whatever the model calls in it.

        Where the run keeps a workspace, `state` makes the step a checkpoint of both: a fork restores the agent there.
        """
        here, home = lane(), os.getpid()
        half = {} if state is None else {"schema": state.schema, "state": Content.of(state.dump())}
        self.boundary.note("marker", "step", here, {}, {"phase": "begin", "name": name, **half})
        try:
            yield
        finally:
            if os.getpid() == home:  # a child forked inside leaves a step that is its parent's to end
                self.boundary.note("marker", "step", here, {}, {"phase": "end", "name": name})

    def restore(self, agent: AgentState, upcasters: Upcasters | None = None) -> bool:
        """On a branch that was forked to restore it, give the agent back the state that it dumped there: True then.

        Anywhere else nothing happens, so a program says it always, before its first step. `upcasters` raise what an
        older version of it dumped. Raises `Ineligible`, `NewerFormat` for a state that this agent cannot read.
        """
        found = self.boundary.restored()
        if found is None:
            return False
        agent.load((upcasters or Upcasters()).raised(found.state, found.schema, agent.schema))
        return True

    def lane(self, name: str) -> AbstractContextManager[None]:
        """Everything inside belongs to the agent, thread or task `name`."""
        return in_lane(name)

    def environment(self) -> dict[str, str]:
        """The environment for a child process of this run: its model calls and tools are recorded, or served."""
        return child_environment(os.environ, self.url, self.proxy.__getitem__)

    def observe(self, value: Any, *, src: str, name: str | None = None, media_type: str | None = None) -> None:
        """Record something that the agent saw: `src` says what kind (`terminal`, `file`, `screenshot` ...).

        With a `media_type` (`image/png`) `value` is the bytes of a file, kept as they are. Raises `ValueRefused` for a
        value that no record can carry.
        """
        if not _SOURCE.fullmatch(src):
            raise UsageError(f"an observation's src is a lower-case word, not {src!r}", src=src)
        content = Content.of(value) if media_type is None else _file(value, media_type)
        self.boundary.note("observation", src, lane(), {}, {"name": name, "value": content})

    def permission(self, src: str, capability: str, **facts: Any) -> None:
        """Record a permission event: `src` is one of `PERMISSIONS`; `facts` are plain data (who, why, policy)."""
        if src not in PERMISSIONS:
            raise UsageError(f"a permission is one of {', '.join(PERMISSIONS)}, not {src!r}", src=src)
        self.boundary.note("permission", src, lane(), {}, {"capability": capability, "facts": Content.of(facts)})

    def ask(
        self,
        capability: str,
        *,
        reason: str | None = None,
        timeout: float | None = None,
        default: str = "denied",
        **facts: Any,
    ) -> Answer:
        """Ask whoever watches this run for permission, and wait; a replay gives the recorded answer and asks nobody.

        `worldline view RUN --live` answers. After `timeout` seconds `default` counts (`granted` or `denied`); without
        one it waits until somebody answers or the run ends. `reason` and `facts` (plain data) are shown to them.
        """
        question = Question(capability, reason=reason, timeout=timeout, default=default, facts=facts)
        return question.ask(self.boundary)

    async def ask_async(
        self,
        capability: str,
        *,
        reason: str | None = None,
        timeout: float | None = None,
        default: str = "denied",
        **facts: Any,
    ) -> Answer:
        """The same for an async agent: its other tasks go on meanwhile."""
        question = Question(capability, reason=reason, timeout=timeout, default=default, facts=facts)
        return await question.ask_async(self.boundary)

    def outcome(
        self, outcome: str | None = None, *, reward: float | None = None, done: bool | None = None, **facts: Any
    ) -> None:
        """Say how the run ended: `succeeded`, `failed` or a word of yours; a reward; whether the task is done."""
        if outcome is not None and not isinstance(outcome, str):
            raise UsageError(f"an outcome is a word, not {outcome!r}; a number goes into reward=")
        if outcome is not None and len(outcome) > LONGEST_WORD:
            raise UsageError(f"an outcome is a word of up to {LONGEST_WORD} characters; say more in facts")
        if reward is not None:
            reward = _finite(reward)
        if outcome is None and done is not None:
            outcome = "succeeded" if done else "failed"
        plain = {"outcome": outcome, "reward": reward, "done": done}
        self.boundary.note(
            "marker", "outcome", lane(), {}, {**plain, **({"facts": Content.of(facts)} if facts else {})}
        )

    def now(self) -> datetime.datetime:
        """The time, recorded: a replay gives the same again. Aware, in UTC, to the microsecond."""
        nanoseconds = self._sample("clock", clock.wall_ns)
        return datetime.datetime.fromtimestamp(nanoseconds // 1000 / 1e6, datetime.UTC)

    def uuid(self) -> uuids.UUID:
        """A random UUID, recorded."""
        return uuids.UUID(self._sample("uuid", clock.new_uuid, clock.uuid_from))

    def rng(self) -> clock.Generator:
        """This lane's random generator; its seed is recorded when it is first asked for."""
        here = lane()
        if here not in self._generators:
            seed = self._sample("rng", clock.new_seed, clock.seed_from)
            may_fork = self.boundary.forks() is not None
            self._generators[here] = clock.Reseeding(seed, Seeds(self, here)) if may_fork else clock.generator(seed)
        return self._generators[here]

    def _sample(
        self, name: str, draw: Callable[[], Any], seeded: Callable[[str], Any] | None = None, **more: Any
    ) -> Any:
        here = lane()
        inputs = Content.of({"lane": here, **more})
        call = Call(kind="observation", name=name, inputs=inputs, lane=here, parent=inside.get())
        return doors.call(self.boundary, call, draw, seeded=seeded)

    def seed_behind(self, fork: int) -> int:
        """The seed from which this lane's generator goes on behind a fork of the lineage, recorded as any sample."""
        seed: int = self._sample("rng", clock.new_seed, clock.seed_from, fork=fork)
        return seed

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function` as it runs in this run and lane, for threads and executors that start without a context."""
        context = contextvars.copy_context()
        context.run(_current.set, self)

        @functools.wraps(function)
        def bound(*args: P.args, **kwargs: P.kwargs) -> R:
            return context.copy().run(function, *args, **kwargs)

        return bound

    def wrap(self, client: Any) -> Any:
        """An SDK client (OpenAI, Anthropic, sync or async) whose calls are recorded in process.

        A client whose base URL is this run's proxy already comes back as it is: nothing is recorded twice.
        """
        from worldline.seams.wire.transport import wrap_client  # needs an HTTP library that only some users have

        return wrap_client(self, client)

    def transport(self, inner: Any) -> Any:
        """A transport of httpx or httpx2 around `inner`, for clients that you build yourself."""
        from worldline.seams.wire.transport import twin

        return twin(self, inner)


def _file(value: Any, media_type: str) -> Content:
    """The bytes of a file as they are kept. Raises `UsageError` for what is none."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise UsageError(f"with a media_type the value is bytes, not {type(value).__name__}")
    if not _MEDIA_TYPE.fullmatch(media_type) or media_type in (JSON, DEEP):
        raise UsageError(f"no media type of a file: {media_type!r}; write it like image/png", name=media_type)
    return Content(bytes(value), media_type)


def _finite(reward: Any) -> float:
    """A reward as every JSON reader reads it: NaN would turn into null on its way."""
    if not (isinstance(reward, int | float) and math.isfinite(reward)):
        raise UsageError(f"a reward is a finite number, not {reward!r}")
    return float(reward)


def current() -> ActiveRun | None:
    """The run that this line of code belongs to, or None where nothing records.

    By context first; else the only run that is open in this process; else the run that WORLDLINE_URL names. Raises
    `NoRunInContext` where several are open and the context says none of them.
    """
    found = _current.get()
    if found is not None:
        return found
    if len(_open) == 1:
        return _open[0]
    if _open:
        raise NoRunInContext(
            f"{len(_open)} runs are open and this thread is in none of them: start it with run.bind(f)"
        )
    return join()


def join() -> ActiveRun | None:
    """The run of another process that WORLDLINE_URL names, joined once per process. Raises `JoinError`."""
    url = os.environ.get(WORLDLINE_URL)
    if not url:
        return None
    key = (os.getpid(), url)
    with _lock:
        if key not in _joined:
            boundary = RemoteBoundary(url)
            told = boundary.info
            _joined[key] = ActiveRun(boundary, url, told["run"], joined=True, secrets=told["secrets"])
            _joined[key].path = Path(told["path"])
        return _joined[key]


def enclosing() -> ActiveRun | None:
    """The run that this very context has entered, if any."""
    return _current.get()


def is_own_url(url: str | None) -> bool:
    """Whether `url` is that of a run which this process itself holds open."""
    return any(run.url == url for run in _open)


@contextmanager
def entered(run: ActiveRun, environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """Make `run` the run of this context, and of this process while it is the only one.

    Then child processes find it too, through WORLDLINE_URL. `environment` is set while it lasts (for a replay here).
    """
    mark = _current.set(run)
    before = {name: os.environ.get(name) for name in environment or ()}
    os.environ.update(environment or {})
    _register(run, add=True)
    try:
        yield
    finally:
        _register(run, add=False)
        for name, value in before.items():
            _restore(name, value)
        try:
            _current.reset(mark)
        except ValueError:  # left in another context than entered (async fixtures, generators): that one ends anyway
            _current.set(None)


def _register(run: ActiveRun, add: bool) -> None:
    with _lock:
        was_ours = is_own_url(os.environ.get(WORLDLINE_URL))
        if add:
            _open.append(run)
        else:
            _open.remove(run)
        if len(_open) == 1:
            os.environ[WORLDLINE_URL] = _open[0].url
        elif was_ours or not _open:
            os.environ.pop(WORLDLINE_URL, None)


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
