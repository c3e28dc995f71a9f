"""An agent's program, explored: what each of its steps can come to, found by executing it once for every way to go.

The exact truth is summed up over these ways. They also make thousands of rollouts cheap: `Walk` throws the same dice
for the same steps as an execution would, and leaves out the steps at which nothing is decided. A draw is a function of
its key and place, so leaving one out changes no other: a walk ends as the execution ends, rollout for rollout.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.attribution.chance import STRIDE, Keyed
from benchmarks.attribution.running import Agent, Crashed


class Leaf(NamedTuple):
    """What a step came to; `crashed` where it came to nothing."""

    result: Hashable
    crashed: bool = False


class Throw(NamedTuple):
    """A throw of the dice within a step: its weights, and what follows each face (None for one without weight)."""

    weights: tuple[float, ...]
    faces: tuple[Leaf | Throw | None, ...]


Tree = Leaf | Throw


class _Throws(Exception):
    """The step throws once more than it was told."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self.weights = tuple(weights)


class _Told:
    """Dice that fall as told."""

    def __init__(self, faces: tuple[int, ...]) -> None:
        self._faces = iter(faces)

    def pick(self, weights: Sequence[float]) -> int:
        for face in self._faces:
            return face
        raise _Throws(weights)

    def happens(self, odds: float) -> bool:
        return self.pick((1 - odds, odds)) == 1


def explored(act: Callable[[_Told], Hashable], told: tuple[int, ...] = ()) -> Tree:
    """Every way `act` can go: it is executed anew for each throw and each end."""
    try:
        return Leaf(act(_Told(told)))
    except Crashed:
        return Leaf(None, crashed=True)
    except _Throws as throws:
        weights = throws.weights
    faces = (explored(act, (*told, face)) if weight > 0 else None for face, weight in enumerate(weights))
    return Throw(weights, tuple(faces))


def leaves(tree: Tree) -> Iterator[tuple[float, Leaf]]:
    """Its ends, each with its probability."""
    if isinstance(tree, Leaf):
        yield 1.0, tree
        return
    for weight, face in zip(tree.weights, tree.faces, strict=True):
        if face is not None:
            yield from ((weight * chance, leaf) for chance, leaf in leaves(face))


class Program:
    """The trees of one agent's steps, explored when they are asked for."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._trees: dict[tuple[int, Hashable], Tree] = {}
        # An agent may carry words along that decide nothing: what decides is its `essence`.
        self.essence: Callable[[Hashable], Hashable] = getattr(agent, "essence", lambda state: state)

    def tree(self, step: int, state: Hashable) -> Tree:
        """What step `step` can come to; behind the last step what the verifier can say."""
        place = (step, self.essence(state))
        if place not in self._trees:
            if step == self.agent.length:
                self._trees[place] = explored(lambda dice: self.agent.passed(state, dice))
            else:
                self._trees[place] = explored(lambda dice: self.agent.step(step, state, dice))
        return self._trees[place]


class Walk:
    """Rollouts along the trees of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._deciding: dict[tuple[int, Hashable], tuple[int, Tree]] = {}

    def deciding(self, states: Sequence[Hashable]) -> int:
        """At how many of the steps of a run, which went through these states, something is decided."""
        return len({self._next(at, state)[0] for at, state in enumerate(states)})

    def finished(self, at: int, state: Hashable, dice: Keyed) -> bool | None:
        """How the execution from step `at` on ends: by the verifier, None where it crashes."""
        length = self._program.agent.length
        while True:
            at, tree = self._next(at, state)
            dice.place = at * STRIDE
            while isinstance(tree, Throw):
                face = tree.faces[dice.pick(tree.weights)]
                if face is None:
                    raise AssertionError("dice fell on a face without weight")
                tree = face
            if tree.crashed:
                return None
            if at == length:
                return bool(tree.result)
            at, state = at + 1, tree.result

    def _next(self, at: int, state: Hashable) -> tuple[int, Tree]:
        """The next step that decides something, or the verifier."""
        passed: list[tuple[int, Hashable]] = []
        while (place := (at, self._program.essence(state))) not in self._deciding:
            tree = self._program.tree(at, state)
            passed.append(place)
            if at == self._program.agent.length or self._decides(tree):
                self._deciding[place] = (at, tree)
                break
            at, state = at + 1, next(leaf.result for _, leaf in leaves(tree))
        found = self._deciding[place]
        self._deciding.update(dict.fromkeys(passed, found))
        return found

    def _decides(self, tree: Tree) -> bool:
        """Whether a step can end in ways that differ."""
        ends = [leaf for _, leaf in leaves(tree)]
        return any(leaf.crashed for leaf in ends) or len({self._program.essence(leaf.result) for leaf in ends}) > 1
