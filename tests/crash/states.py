"""The states in which a power loss may leave a disk, enumerated at every point of a trace.

At a point some operations are not durable yet. Of those on names any subset may have happened. Of the bytes behind the
last sync of a file any of these may be there: all, none, any prefix (cut at rows, inside them, at sectors), a file that
grew and holds zeros, a hole of zeros before or behind what arrived, sectors in any pattern. Where the combinations are
few all are taken; else the extremes, each deviation from them alone, and a sample that follows from a seed.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple

from tests.crash.disk import Op, State, durable_at, renumbered, written
from tests.crash.trace import Trace

SECTOR = 512  # bytes that a medium writes at once
SUBSETS = 32  # of the operations on names, at one point
MIXTURES = 6  # of what is left of several files, for each of these


class Crashed(NamedTuple):
    """A state, and how many operations it lies behind.

    It is `telling` where all of what was not durable is lost, or nothing, or one operation alone.
    """

    state: State
    behind: int
    telling: bool


def crashes(trace: Trace, since: int = 0) -> list[Crashed]:
    """Every distinct state, each once: with the latest point that can leave it, where most had been promised.

    Only points behind the first `since` operations count. The latest points come first.
    """
    found: dict[bytes, Crashed] = {}
    durable = durable_at(trace.ops)
    for count in range(len(trace.ops), since - 1, -1):
        for telling, state in _states(trace, durable, count):
            state = renumbered(state)
            key = digest(state)
            if key not in found or (telling and not found[key].telling):
                latest = found[key].behind if key in found else count
                found[key] = Crashed(state, latest, telling)
    return list(found.values())


def sample(crashed: list[Crashed], most: int) -> list[Crashed]:
    """The telling states, and as many of the others, spread evenly, as come to `most` together."""
    telling = [each for each in crashed if each.telling]
    others = [each for each in crashed if not each.telling]
    room = min(max(0, most - len(telling)), len(others))
    return telling + [others[number * len(others) // room] for number in range(room)]


def digest(state: State) -> bytes:
    """What tells states apart: paths, bytes, and which names are of one file."""
    said = hashlib.blake2b(digest_size=16)
    for path, number, contents in state:
        kind = b"/" if contents is None else b"%d" % len(contents)
        said.update(b"%s\0%d\0%s\0" % (path.encode(), number, kind))
        said.update(contents or b"")
    return said.digest()


def _states(trace: Trace, durable: list[int], count: int) -> Iterator[tuple[bool, State]]:
    chance = random.Random(count)
    tree = trace.before.copy()
    pending: dict[int, list[Op]] = {}
    kept: list[int] = []
    names: list[int] = []  # of the operations on names, in the order in which they were made
    for index, op in enumerate(trace.ops[:count]):
        if op.names:
            (kept if durable[index] <= count else names).append(index)
        elif op.file is not None and durable[index] <= count:
            tree.apply(op)
        elif op.file is not None:
            pending.setdefault(op.file, []).append(op)
    left = {file: remains(tree.contents[file], ops, chance) for file, ops in pending.items()}
    for lost in subsets(names, chance):
        tree.entries = {folder: dict(entries) for folder, entries in trace.before.entries.items()}
        for index in sorted({*kept, *names} - lost):
            tree.apply(trace.ops[index])
        reachable = {number for _, number in tree.paths()}
        files = [file for file in left if file in reachable]
        for chosen in combinations([left[file] for file in files], MIXTURES, chance):
            tree.contents.update(zip(files, chosen, strict=True))
            whole = [value == left[file][-1] for file, value in zip(files, chosen, strict=True)]
            gone = [value == left[file][0] for file, value in zip(files, chosen, strict=True)]
            few = len(lost) <= 1 or len(lost) == len(names)
            yield few and (all(whole) or all(gone)), tree.state()


def subsets(names: list[int], chance: random.Random) -> Iterator[set[int]]:
    """Which operations are lost: all subsets, or where they are too many the telling ones and a sample."""
    if 2 ** len(names) <= SUBSETS:
        for size in range(len(names) + 1):
            yield from map(set, itertools.combinations(names, size))
        return
    told: list[set[int]] = [set(), set(names)]
    for at, name in enumerate(names):
        told += [{name}, set(names) - {name}, set(names[at:]), set(names[:at])]
    while len(told) < SUBSETS:
        told.append({name for name in names if chance.random() < 0.5})
    yield from told


def combinations(choices: list[list[bytes]], most: int, chance: random.Random) -> Iterator[tuple[bytes, ...]]:
    """One of each: every combination, or each choice beside the extremes of the others, and a sample."""
    size = 1
    for each in choices:
        size *= len(each)
    if size <= most or len(choices) <= 1:
        yield from itertools.product(*choices)
        return
    for at, each in enumerate(choices):
        for value in each:
            for extreme in (0, -1):
                yield (*(c[extreme] for c in choices[:at]), value, *(c[extreme] for c in choices[at + 1 :]))
    for _ in range(most):
        yield tuple(chance.choice(each) for each in choices)


def remains(before: bytes, ops: list[Op], chance: random.Random) -> list[bytes]:
    """What a file may hold of unsynced operations on it: nothing of them first, all of them last."""
    after = before
    found = [before]
    for op in ops:
        if op.data is None:
            after = written(after, op)
            found.append(after)
            if op.offset < len(before):  # what is written next may arrive, and the truncation not
                found += [written(before, other) for other in ops if other.data is not None]
        else:
            after = written(after, op)
    synced = min([len(before), *(op.offset for op in ops)])
    found += torn(after, synced, chance)
    return [*(each for each in dict.fromkeys(found) if each != after), after]


def torn(whole: bytes, synced: int, chance: random.Random) -> Iterator[bytes]:
    """What may be left of a file that grew from its first `synced` bytes to the whole."""
    lines = [at + 1 for at in range(synced, len(whole)) if whole[at] == 10]
    sectors = list(range((synced // SECTOR + 1) * SECTOR, len(whole), SECTOR))
    inside = [cut for start, end in itertools.pairwise([synced, *lines, len(whole)]) for cut in (start + 1, end - 1)]
    middle = [(start + end) // 2 for start, end in itertools.pairwise([synced, *lines])]
    sizes = sorted({cut for cut in (*lines, *sectors, *inside, *middle) if synced < cut <= len(whole)})
    pieces = list(itertools.pairwise([synced, *sectors, len(whole)]))
    for size in sizes:
        yield whole[:size]
        yield whole[:synced].ljust(size, b"\0")
    for size in {len(whole), *lines[-2:], *inside[-2:]}:
        for line in lines:
            if line < size:
                yield zeroed(whole, synced, line)[:size]
                yield zeroed(whole, line, size)[:size]
        for start, end in pieces:
            if start < size:
                yield zeroed(whole, start, end)[:size]
                yield zeroed(zeroed(whole, synced, start), end, size)[:size]
    for _ in range(2 * len(pieces)):
        left = whole
        for start, end in pieces:
            if chance.random() < 0.5:
                left = zeroed(left, start, end)
        yield left


def zeroed(data: bytes, start: int, end: int) -> bytes:
    """The data with zeros in the place of a stretch."""
    end = min(end, len(data))
    return data[:start] + bytes(max(0, end - start)) + data[end:] if start < end else data
