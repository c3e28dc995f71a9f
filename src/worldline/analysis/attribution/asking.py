"""What a method of attribution asks for, and what it answers: draws in, outcomes out, an attribution at the end.

A method is a generator, pure in index order: it yields a batch of draws, gets their outcomes in the same order, and
returns an attribution. It knows no clock, no chance and no agent; so the same outcomes give the same attribution on
every executor, whichever rollout ended first, and after a resume from a journal.

`V(i)` is the chance of success when the steps before i are held as they were recorded. The attribution of step i is
the drop `V(i) - V(i + 1)`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Literal, TypeVar

import msgspec

from worldline.errors import Ineligible, UsageError, WorldlineError

SHARED = "shared"
"""Draws whose tag begins so share their chance between prefixes: the k-th at one and the k-th at another are a pair."""

Verdict = Literal["decisive", "partial", "diffuse", "systematic", "not-reproducible", "noisy-verifier", "budget"]
VERDICTS: tuple[Verdict, ...] = (
    "decisive",
    "partial",
    "diffuse",
    "systematic",
    "not-reproducible",
    "noisy-verifier",
    "budget",
)


class Do(msgspec.Struct, frozen=True):
    """One intervention at one step.

    `hold` serves the step where its own inputs come again, `resample` draws it anew (also before `at`), `force` puts
    the action `value` (JSON text) in its place, `mock` its observation, `remove` leaves it out, and `set` changes the
    requests from it on (`model=b`).
    """

    step: int
    kind: Literal["hold", "resample", "force", "mock", "remove", "set"]
    value: str = ""


class Draw(msgspec.Struct, frozen=True):
    """The k-th rollout that holds the steps before `at`, in the stream `tag`: another tag is another, fresh draw.

    `do` is what is done beside: to hold further steps, or to force some. `at` equal to the number of steps asks for a
    replay with everything held, judged by the verifier once more.
    """

    at: int
    k: int
    tag: str = ""
    do: tuple[Do, ...] = ()

    @property
    def chance(self) -> tuple[int | None, str, int]:
        """What a seed is derived from, beside the study's: prefix, stream and k; a shared stream has no prefix."""
        return (None if self.tag.startswith(SHARED) else self.at, self.tag, self.k)


class Outcome(msgspec.Struct, frozen=True):
    """How a rollout ended. `success` is None where it came to no verdict (undefined), and `why` says why.

    `score` is the verifier's, in [0, 1]. `diverged` is set where a held step could not be served: the agent asked for
    something else. Seconds and tokens are of the rollout alone, `live_steps` those that were not served.
    """

    success: bool | None
    score: float | None = None
    live_steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    money: float = 0.0
    run: str | None = None
    diverged: bool = False
    why: str | None = None


class RecordedSteps(msgspec.Struct, frozen=True):
    """The recorded run, as far as a method needs it.

    `resamplable` says of each step whether a policy can draw it anew (empty: all); the others are always served and
    no attribution is made to them. `outcome` is whether the recorded run succeeded. `prior` weighs the steps; it only
    chooses where to look first. `history` says that a step's inputs carry what happened before it: then a step that is
    held binds only while all before it are, and coalitions of steps mean nothing.
    """

    length: int
    resamplable: list[bool] = []
    outcome: bool = False
    prior: list[float] | None = None
    history: bool = True

    def __post_init__(self) -> None:
        for name, given in (("resamplable", self.resamplable), ("prior", self.prior or [])):
            if given and len(given) != self.length:
                raise UsageError(f"{name} is about {len(given):,} steps, the run has {self.length:,}")
        if any(not 0 <= weight < float("inf") for weight in self.prior or ()):
            raise UsageError("a weight of the prior is a finite number, 0 or more")

    @property
    def open_steps(self) -> list[int]:
        """The steps that can be drawn anew, in order."""
        return [step for step in range(self.length) if not self.resamplable or self.resamplable[step]]

    def failed(self) -> list[int]:
        """`open_steps` of a run that failed. Raises `Ineligible` where there is nothing to attribute, or nobody."""
        if self.length == 0:
            raise Ineligible("the run has no steps: nothing can have caused its outcome", reasons=["no steps"])
        if self.outcome:
            raise Ineligible("the run did not fail: there is no failure to attribute", reasons=["the run succeeded"])
        if not self.open_steps:
            raise Ineligible(
                "no step of the run can be drawn anew: on record no model is asked and no chance drawn, so the agent "
                "does the same every time. Change the agent, no step is to blame",
                reasons=["no step is resamplable"],
            )
        return self.open_steps


class Budget(msgspec.Struct, frozen=True):
    """Caps of a study; None is no cap. At a cap a method ends with what it knows."""

    rollouts: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            cap = getattr(self, name)
            if cap is not None and not cap >= 0:
                raise UsageError(f"a budget of {cap} {name} cannot be kept: give 0 or more")


class LocateOptions(msgspec.Struct, frozen=True):
    """How to look. Chances in [0, 1]; the defaults are those that the figures were measured with.

    `delta` is the chance of a false claim that is accepted, `v_min` the least chance of success worth a search, `mu`
    the least drop looked for, `share` the part of the whole loss that a decisive step has, `lead` how far it is ahead.
    `batch` rollouts are asked for at once, `cap` at most at one split, `fresh` at least on each side of a certificate;
    `checks` is how often the verifier judges the recorded end again (0: not at all). `paired` certifies with shared
    chance; `every` goes on when the largest drop is certified, until all of `mu` or more are; `each` is the number of
    rollouts per prefix of a scan.
    """

    delta: float = 0.05
    v_min: float = 0.10
    batch: int = 16
    share: float = 0.5
    lead: float = 0.10
    mu: float = 0.15
    fresh: int = 32
    cap: int = 120
    checks: int = 10
    paired: bool = False
    every: bool = False
    each: int = 50
    budget: Budget = Budget()

    def __post_init__(self) -> None:
        for name in ("delta", "v_min", "share", "mu"):
            if not 0 < getattr(self, name) < 1:
                raise UsageError(f"{name} is a chance between 0 and 1, not {getattr(self, name)}")
        for name in ("batch", "fresh", "cap", "each"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is a number of rollouts, 1 or more, not {getattr(self, name)}")
        if not 0 <= self.lead < 1 or self.checks < 0:
            raise UsageError("lead is a chance and checks a number of times, neither is negative")


class Count(msgspec.Struct, frozen=True):
    """Outcomes of one kind of rollout: `undefined` of `n` came to no verdict."""

    n: int = 0
    successes: int = 0
    undefined: int = 0

    @property
    def defined(self) -> int:
        """Those with a verdict."""
        return self.n - self.undefined

    def share(self, undefined: float | None = None) -> float:
        """How many succeeded, of those with a verdict, or with each undefined one as `undefined` successes; else 0."""
        tries = self.defined if undefined is None else self.n
        return (self.successes + (undefined or 0.0) * self.undefined) / tries if tries else 0.0


class Drop(msgspec.Struct, frozen=True):
    """The drop at one step, from fresh rollouts on both sides, with its interval.

    `ci` takes undefined rollouts as not drawn, `bounds` (at least as wide) as failures and as successes, whichever is
    worse.
    """

    step: int
    drop: float
    ci: tuple[float, float]
    bounds: tuple[float, float]
    before: Count
    after: Count


class CurvePoint(msgspec.Struct, frozen=True):
    """`V(at)` as far as it is known: estimate and confidence sequence, which holds however often one has looked."""

    at: int
    v: float
    low: float
    high: float
    n: int
    successes: int
    undefined: int = 0


class Rescue(msgspec.Struct, frozen=True):
    """A rollout that drew the culprit anew and succeeded: its draw, and the run it became."""

    at: int
    k: int
    tag: str
    run: str | None = None
    score: float | None = None


class Untested(msgspec.Struct, frozen=True):
    """Steps from..to (not included) that were not split further; `drop` is the estimated net loss over them."""

    interval: tuple[int, int]
    drop: float


class StepValue(msgspec.Struct, frozen=True):
    """What a method that scores every step gives to one."""

    step: int
    value: float
    ci: tuple[float, float] | None = None


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. `step` is None where no step can be named; `interval` [a, b] always holds the steps a <= step < b.

    `drop` and `ci` are of `step`, or of the whole interval where none is named. `certified` are the drops whose
    interval excludes 0, largest first; `tested` those that were tested in vain. `values` are Shapley values or scores
    of the methods that give each step one. `stopped` names the cap that ended the search.
    """

    verdict: Verdict
    method: str
    steps: int
    interval: tuple[int, int]
    step: int | None = None
    drop: float | None = None
    ci: tuple[float, float] | None = None
    share: float | None = None
    certified: list[Drop] = []
    tested: list[Drop] = []
    unexplained: float | None = None
    curve: list[CurvePoint] = []
    untested: list[Untested] = []
    values: list[StepValue] = []
    not_attributable: list[int] = []
    rescued: list[Rescue] = []
    rollouts: int = 0
    live_steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    money: float = 0.0
    undefined: int = 0
    diverged: int = 0
    delta: float = 0.05
    stopped: str | None = None
    why: str = ""
    warnings: list[str] = []

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values, in the order of the fields."""
        built = msgspec.to_builtins(self)
        if not isinstance(built, dict):
            raise TypeError("an attribution is a JSON object")
        return built


Answer = TypeVar("Answer")
Asking = Generator[list[Draw], list[Outcome], Answer]
"""What asks for draws and returns an `Answer`."""
Controller = Asking[Attribution]


def drive(controller: Asking[Answer], draw: Callable[[list[Draw]], list[Outcome]]) -> Answer:
    """Run a method in place: `draw` gives the outcomes of a batch, in its order. Executors do the same, elsewhere."""
    try:
        batch = next(controller)
        while True:
            outcomes = draw(batch)
            if len(outcomes) != len(batch):
                raise WorldlineError(f"{len(batch):,} rollouts were asked for, {len(outcomes):,} outcomes came")
            batch = controller.send(outcomes)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
