"""What a process draws by chance, drawn anew: after a fork of its memory every generator in it has a twin.

    chance = Chance()
    chance.gather()                  # before the snapshot: finds what there is
    chance.reseed(seed)              # in the branch, before its gate opens; says what it did

Generators that can be seeded go on from seeds derived of the branch's, so the branch can be repeated; OpenSSL, which
is for secrets, is stirred with fresh entropy. What else must not be shared (tokens, cookies, cached keys) is
named by whoever holds it: `on_branch(hook)`. `os.urandom`, `uuid4` and `secrets` ask the kernel, which has no twin.
"""

from __future__ import annotations

import gc
import hashlib
import json
import random  # noqa: TID251  # to find who draws from it, not to draw
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from worldline.errors import ReseedFailed

KERNEL = "/dev/urandom"
STIRRED = 32  # bytes for OpenSSL, read raw from the kernel
Hook = Callable[[str], object]

_hooks: list[tuple[str, Hook]] = []
_registered: list[Any] = []


def on_branch(hook: Hook, name: str | None = None) -> Hook:
    """Have `hook(seed)` called in each branch before it goes live: it drops tokens, makes cached keys anew.

    An exception in it keeps the branch from going live. Works as a decorator.
    """
    _hooks.append((name or str(getattr(hook, "__qualname__", type(hook).__name__)), hook))
    return hook


def register(generator: Any) -> None:
    """Name a generator that cannot be found: one inside of C, or with a `seed` method of its own.

    Where an agent is driven again in a process that others share, only these are seeded anew.
    """
    _registered.append(generator)


def derived(seed: str, what: str, number: int = 0) -> int:
    """256 bits for one use of a branch's seed: the same each time, and another for each use."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{what}/{number}".encode()).digest(), "big")


def generated_key(run: str, branch: str, seq: int, call: str) -> str:
    """An idempotency key for a call that declares none: no twin makes the same, and a repetition of the call does."""
    return hashlib.sha256(json.dumps([run, branch, seq, call]).encode()).hexdigest()[:32]


class Chance:
    """The generators of this process, in the order in which they were found, which is the same in every twin."""

    def __init__(self) -> None:
        self._found: list[Callable[[], Any]] = []
        self._seen: set[int] = set()

    def gather(self) -> None:
        """Find the generators that came since the last time. What `gc.freeze` took out of sight was found before."""
        kinds = _kinds()
        known: dict[type, bool] = {}  # by class: a look at an object itself may run its code
        for thing in gc.get_objects():
            kind = type(thing)
            if (wanted := known.get(kind)) is None:
                wanted = known[kind] = issubclass(kind, kinds) and not issubclass(kind, random.SystemRandom)
            if wanted and thing is not random._inst and id(thing) not in self._seen:
                self._seen.add(id(thing))
                self._found.append(_weak(thing, self._seen))

    def generators(self) -> Iterator[Any]:
        """Those that are alive, the modules' own first."""
        yield random._inst  # what random.random() and its like draw from
        if (numpy_random := sys.modules.get("numpy.random")) is not None:
            yield numpy_random.mtrand._rand
        yield from _registered
        yield from (thing for find in self._found if (thing := find()) is not None)

    def reseed(self, seed: str) -> tuple[str, ...]:
        """Draw all anew from `seed` (hex). Returns what was: `random:3`, `numpy:1`, `openssl`, `hook:session` ...

        Raises `ReseedFailed`.
        """
        counts: dict[str, int] = {}
        done: set[int] = set()
        for number, generator in enumerate(self.generators()):
            if _state(generator) not in done:
                done.add(_state(generator))
                kind = _reseeded(generator, derived(seed, "generator", number))
                counts[kind] = counts.get(kind, 0) + 1
        what = [f"{kind}:{count}" for kind, count in counts.items()]
        return (*what, *_stirred(), *_uuids(), *_hooked(seed))


def branched(seed: str) -> tuple[str, ...]:
    """Draw anew what was named to us, and nothing that is only found: in a process that others work in, too.

    This is for a branch whose agent is driven again. Returns what was drawn. Raises `ReseedFailed`.
    """
    for number, generator in enumerate(_registered):
        _reseeded(generator, derived(seed, "registered", number))
    return (*([f"registered:{len(_registered)}"] if _registered else []), *_hooked(seed))


def _hooked(seed: str) -> tuple[str, ...]:
    """Call the hooks, each with a seed of its own."""
    for number, (name, hook) in enumerate(_hooks):
        try:
            hook(f"{derived(seed, 'hook', number):064x}")
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise ReseedFailed(f"the hook {name} of the branch failed: {said}", what=f"hook:{name}") from error
    return tuple(f"hook:{name}" for name, _ in _hooks)


def _kinds() -> tuple[type, ...]:
    """The classes of generators that this process has."""
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is None:
        return (random.Random,)
    return random.Random, numpy_random.Generator, numpy_random.RandomState, numpy_random.BitGenerator


def _weak(thing: Any, seen: set[int]) -> Callable[[], Any]:
    """A way back to a generator that does not keep it alive, where that can be."""
    key = id(thing)
    try:
        return weakref.ref(thing, lambda _: seen.discard(key))
    except TypeError:
        return lambda: thing


def _state(generator: Any) -> int:
    """What holds a generator's numbers: several of numpy's can share one."""
    return id(getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", generator))


def _reseeded(generator: Any, seed: int) -> str:
    """Seed one generator. Returns its kind."""
    try:
        if isinstance(generator, random.Random):
            random.Random.seed(generator, seed)
            return "random"
        bits = getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", generator)
        numpy_random: Any = sys.modules.get("numpy.random")
        if numpy_random is not None and isinstance(bits, numpy_random.BitGenerator):
            bits.state = type(bits)(numpy_random.SeedSequence(seed)).state
            return "numpy"
        generator.seed(seed)
    except Exception as error:
        what = f"a generator ({type(generator).__name__}) could not be seeded: {type(error).__name__}: {error}"
        raise ReseedFailed(what, what=type(generator).__name__) from error
    return "registered"


def _stirred() -> Iterator[str]:
    """OpenSSL's generator, where this process has it."""
    if "_ssl" in sys.modules:
        import ssl

        with open(KERNEL, "rb", buffering=0) as kernel:
            fresh = kernel.read(STIRRED)
        ssl.RAND_add(fresh, float(len(fresh)))
        yield "openssl"


def _uuids() -> Iterator[str]:
    """The module that makes uuids by the time remembers the last one."""
    uuid: Any = sys.modules.get("uuid")
    if uuid is not None:
        uuid._last_timestamp = None
        yield "uuid"
