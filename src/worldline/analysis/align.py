"""Two runs side by side: which step of one is which step of the other. Pure: it sees keys, not runs.

Myers' greedy difference (E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986) over the keys of steps.
Between the steps that are the same, steps of one action in the same order are pairs whose arguments changed. So a step
that was inserted shifts nothing. The panel aligns by the same rule, row for row (`viewer/src/core/alignment.ts`).

Runs that differ in over `MOST_EDITS` places are split at keys that occur once on either side, and each part is aligned
alone; behind `MOST_ROUNDS` of work what is left is not looked at any more. Both are said (`Alignment.shortest`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import msgspec

MOST_EDITS = 1500  # more differences than these are looked at in parts
MOST_ROUNDS = 20_000_000  # of the inner loop, over all parts: some ten seconds

Pair = tuple[int, int]  # a place on either side; -1 on the side that has none


class Keys(msgspec.Struct, frozen=True):
    """The keys of one run's steps: `whole` with what tells a call from its neighbours, `action` without."""

    whole: Sequence[str]
    action: Sequence[str]


class Row(msgspec.Struct, frozen=True):
    """One row of the spine: the place of the step on either side, -1 where it has none; `exact`: equal keys."""

    left: int
    right: int
    exact: bool


class Alignment(msgspec.Struct, frozen=True):
    """All rows in order. `shortest` is false where the runs differ too much for it to be the shortest there is."""

    rows: list[Row]
    shortest: bool

    @property
    def first(self) -> int:
        """The first row that is not exact; -1 where all are."""
        return next((number for number, row in enumerate(self.rows) if not row.exact), -1)


def align(left: Keys, right: Keys) -> Alignment:
    """Align two runs by their keys."""
    rows: list[Row] = []
    here: list[int] = []
    there: list[int] = []
    work = _Difference()

    def changed() -> None:
        """What stands between two steps that are the same."""
        actions = work.pairs([left.action[a] for a in here], [right.action[b] for b in there])
        rows.extend(Row(here[a] if a >= 0 else -1, there[b] if b >= 0 else -1, False) for a, b in actions)
        here.clear()
        there.clear()

    for a, b in work.pairs(left.whole, right.whole):
        if a >= 0 and b >= 0:
            changed()
            rows.append(Row(a, b, True))
        elif a >= 0:
            here.append(a)
        else:
            there.append(b)
    changed()
    return Alignment(rows, work.shortest)


class _Difference:
    """Differences of sequences, with one bound over all of them."""

    def __init__(self) -> None:
        self.shortest = True
        self._rounds = MOST_ROUNDS

    def pairs(self, left: Sequence[str], right: Sequence[str]) -> list[Pair]:
        """Pairs of places in order. Deletions stand before insertions."""
        numbers: dict[str, int] = {}
        a, b = ([numbers.setdefault(key, len(numbers)) for key in side] for side in (left, right))
        out: list[Pair] = []
        work: list[tuple[int, int, int, int] | Iterator[Pair]] = [(0, len(a), 0, len(b))]
        while work:  # no recursion: a part may be split as often as it has steps
            part = work.pop()
            if isinstance(part, tuple):
                self._part(a, b, part, out, work)
            else:
                out.extend(part)
        return out

    def _part(
        self,
        a: list[int],
        b: list[int],
        part: tuple[int, int, int, int],
        out: list[Pair],
        work: list[tuple[int, int, int, int] | Iterator[Pair]],
    ) -> None:
        """Append the pairs of a part; what has to wait for others goes to `work`, the last first."""
        a0, a1, b0, b1 = part
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            out.append((a0, b0))
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
        work.append(zip(range(a1, part[1]), range(b1, part[3]), strict=True))
        if a0 == a1 or b0 == b1 or set(a[a0:a1]).isdisjoint(b[b0:b1]):
            out.extend(_apart(a0, a1, b0, b1))
        elif (script := self._myers(a[a0:a1], b[b0:b1])) is not None:
            out.extend((a0 + x if x >= 0 else -1, b0 + y if y >= 0 else -1) for x, y in script)
        else:
            self.shortest = False
            split = _split(a, b, a0, a1, b0, b1)
            if split is None or self._rounds <= 0:
                out.extend(_apart(a0, a1, b0, b1))
            else:
                x, y = split
                work.append((x + 1, a1, y + 1, b1))
                work.append(iter([split]))
                work.append((a0, x, b0, y))

    def _myers(self, a: list[int], b: list[int]) -> list[Pair] | None:
        """The shortest script, or None where it has too many edits."""
        n, m = len(a), len(b)
        most = min(n + m, MOST_EDITS)
        middle = most + 1
        furthest = array("q", bytes(8 * (2 * most + 3)))  # by diagonal, how far `a` was come
        trace: list[array[int]] = []
        for edits in range(most + 1):
            self._rounds -= edits + 1
            if self._rounds <= 0:
                return None
            trace.append(furthest[middle - edits - 1 : middle + edits + 2])
            for k in range(-edits, edits + 1, 2):
                below, above = furthest[middle + k - 1], furthest[middle + k + 1]
                x = above if k == -edits or (k != edits and below < above) else below + 1
                y = x - k
                while x < n and y < m and a[x] == b[y]:
                    x, y = x + 1, y + 1
                furthest[middle + k] = x
                if x >= n and y >= m:
                    return _walk_back(trace, edits, n, m)
        return None


def _walk_back(trace: list[array[int]], edits: int, x: int, y: int) -> list[Pair]:
    """The script from its end to its beginning, turned round."""
    out: list[Pair] = []
    for d in range(edits, 0, -1):
        reached, k = trace[d], x - y
        below, above = reached[k + d], reached[k + d + 2]
        inserts = k == -d or (k != d and below < above)
        before = k + 1 if inserts else k - 1
        from_x = above if inserts else below
        # Back along the diagonal to right behind the edit that led there.
        start_x = from_x if inserts else from_x + 1
        while x > start_x:
            x, y = x - 1, y - 1
            out.append((x, y))
        x, y = from_x, from_x - before
        out.append((-1, y) if inserts else (x, -1))
    while x > 0:
        x, y = x - 1, y - 1
        out.append((x, y))
    return out[::-1]


def _apart(a0: int, a1: int, b0: int, b1: int) -> Iterator[Pair]:
    """Nothing of the two is the same."""
    yield from ((x, -1) for x in range(a0, a1))
    yield from ((-1, y) for y in range(b0, b1))


def _split(a: list[int], b: list[int], a0: int, a1: int, b0: int, b1: int) -> Pair | None:
    """A pair of keys that stands once on either side, as near to the middle as there is one."""
    here, there = _once(a, a0, a1), _once(b, b0, b1)
    middle = (a0 + a1) / 2
    found = ((x, there[key]) for key, x in here.items() if key in there)
    return min(found, key=lambda pair: abs(pair[0] - middle), default=None)


def _once(keys: list[int], begin: int, end: int) -> dict[int, int]:
    """Where each key stands that stands there once."""
    places: dict[int, int] = {}
    for place in range(begin, end):
        places[keys[place]] = -1 if keys[place] in places else place
    return {key: place for key, place in places.items() if place >= 0}
