"""The exact chance of success from every step, by dynamic programming over the agent's own program."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from benchmarks.attribution.program import Leaf, Program, leaves
from benchmarks.attribution.running import Recorded

TIE = 0.02  # a step whose drop is this close to the largest is a right answer, too


class Values:
    """The chances of one agent, kept as they are worked out."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[tuple[int, Hashable], tuple[float, float]] = {}  # of success, and of a crash

    def at(self, step: int, state: Hashable) -> float:
        """The chance of success, among the runs that do not crash, of an agent that knows `state` before `step`."""
        if (step, self.program.essence(state)) not in self._known:
            self._work_out(step, state)
        success, crash = self._known[step, self.program.essence(state)]
        return success / (1 - crash)

    def _work_out(self, step: int, state: Hashable) -> None:
        """Forth over all that can be reached and is not known yet, then back from the end."""
        length, essence, known = self.program.agent.length, self.program.essence, self._known
        levels = [{essence(state): state}]
        for number in range(step, length):
            after: dict[Hashable, Hashable] = {}
            for reached in levels[-1].values():
                for _, leaf in leaves(self.program.tree(number, reached)):
                    if not leaf.crashed and (number + 1, essence(leaf.result)) not in known:
                        after.setdefault(essence(leaf.result), leaf.result)
            levels.append(after)
        for place, reached in levels.pop().items():
            ends = leaves(self.program.tree(length, reached))
            known[length, place] = (sum(chance for chance, leaf in ends if leaf.result), 0.0)
        for number in range(length - 1, step - 1, -1):
            for place, reached in levels.pop().items():
                ends = list(leaves(self.program.tree(number, reached)))
                parts = [(chance, *self._of(number + 1, leaf)) for chance, leaf in ends]
                success = sum(chance * succeeds for chance, succeeds, _ in parts)
                known[number, place] = (success, sum(chance * crashes for chance, _, crashes in parts))

    def _of(self, step: int, leaf: Leaf) -> tuple[float, float]:
        return (0.0, 1.0) if leaf.crashed else self._known[step, self.program.essence(leaf.result)]


class Truth(NamedTuple):
    """What is true of a recorded run: `values[i]` is the chance of success with the steps before i held."""

    values: tuple[float, ...]

    @property
    def drops(self) -> list[float]:
        """How much each step lost."""
        return [before - after for before, after in zip(self.values, self.values[1:], strict=False)]

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self.drops)

    def right(self, step: int | None) -> bool:
        """Whether this step lost the most, or as good as."""
        return step is not None and 0 <= step < len(self.drops) and self.drops[step] >= self.largest - TIE

    def near(self, step: int | None) -> bool:
        """Whether it, or one beside it, did."""
        return step is not None and any(self.right(step + aside) for aside in (-1, 0, 1))


def truth(run: Recorded, values: Values) -> Truth:
    """The exact values along a recorded run. The last one is the verifier's, asked anew about the final state."""
    return Truth(tuple(values.at(step, state) for step, state in enumerate(run.states)))
