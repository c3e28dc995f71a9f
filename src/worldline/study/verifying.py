"""The verifier of a study: how one is named, what version it is, and what it says of a branch, bounded in time.

It gives a score in [0, 1]; success is a score of at least the threshold. One that raises, hangs or gives anything else
has given no verdict: the rollout is undefined, never failed.
"""

from __future__ import annotations

import hashlib
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worldline.engine.executors import processes
from worldline.errors import NoVerdict, UsageError
from worldline.run import Run, grader
from worldline.seams.branch import BranchResult
from worldline.study.agents import named_function

BUILT_IN = ("exit-code", "outcome")


@dataclass(frozen=True)
class Verifier:
    """`said` is `exit-code`, `outcome`, `FILE.py:FUNCTION`, `module:function` or a function. `timeout` in seconds."""

    said: str | Callable[[Run], float]
    threshold: float = 1.0
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise UsageError(f"a threshold is a score above 0 and up to 1, not {self.threshold!r}")
        if not self.timeout > 0:
            raise UsageError(f"a verifier's time is a number of seconds above 0, not {self.timeout!r}")

    @property
    def name(self) -> str:
        """As people name it."""
        if isinstance(self.said, str):
            return self.said
        return f"{getattr(self.said, '__module__', '?')}:{getattr(self.said, '__qualname__', 'verifier')}"

    @property
    def version(self) -> str:
        """What tells it from another verifier: its name, and the text it stands in."""
        return f"{self.name} {self.threshold:g} {hashlib.sha256(self._source().encode()).hexdigest()}"

    def _source(self) -> str:
        if self.said in BUILT_IN:
            return ""
        if isinstance(self.said, str) and Path(self.said.rpartition(":")[0]).is_file():
            return Path(self.said.rpartition(":")[0]).read_text("utf-8", "replace")
        function = named_function(self.said) if isinstance(self.said, str) else self.said
        try:
            return inspect.getsource(inspect.getmodule(function) or function)
        except (OSError, TypeError):
            return ""

    def loaded(self) -> Callable[[Run, BranchResult], float]:
        """The function that grades. Raises `UsageError` where there is none."""
        said = self.said
        if isinstance(said, str) and said not in BUILT_IN and not Path(said.rpartition(":")[0]).is_file():
            if ":" not in said or said.rpartition(":")[0].endswith(".py"):
                raise UsageError(
                    f"no verifier {said!r}: it is exit-code, outcome, FILE.py:FUNCTION or module:function",
                    verifier=said,
                )
            said = named_function(said)
        return grader(said)

    def score(self, run: Run, result: BranchResult) -> float:
        """Its score, bounded in time. Raises `NoVerdict`."""
        if self.said in BUILT_IN:
            return self.loaded()(run, result)
        answer: list[float] = []
        failure: list[BaseException] = []

        def ask() -> None:
            try:
                answer.append(self.loaded()(run, result))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a verifier is anyone's code; its failure is told
                failure.append(error)

        thread = threading.Thread(target=ask, name="worldline-verifier", daemon=True)
        thread.start()
        thread.join(self.timeout)
        if answer:
            return answer[0]
        if failure:
            error = failure[0]
            if isinstance(error, UsageError) and "a number from 0 to 1" in str(error):
                raise NoVerdict(f"the verifier gave no score: {error}")
            raise NoVerdict(f"the verifier raised {type(error).__name__}: {error}")
        if processes.in_pool():
            processes.replace_this_process()  # its thread goes on for ever
        raise NoVerdict(f"the verifier said nothing within {self.timeout:g} s")

    def passes(self, score: float) -> bool:
        """Whether a score is a success."""
        return score >= self.threshold


def recorded_end(run: Run) -> BranchResult:
    """How the recorded run ended, in the form in which a branch says it."""
    said: dict[str, Any] = run.recording.summary
    code = said.get("exit")
    return BranchResult(
        run=run.id,
        path=str(run.path),
        outcome=str(said.get("outcome")),
        prefix=0,
        live=0,
        mocked=0,
        refused=0,
        exit=code if isinstance(code, int) else None,
    )
