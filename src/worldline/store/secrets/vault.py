"""The vault: secrets never reach the disk. One choke point, before hashing and before any write.

The registered set is frozen when the attempt opens; each value is looked for in all its forms (`forms`). What is
found becomes a marker that depends on the label alone, so a replay with another value, or none, still matches. A
secret in base64 leaves its marker as text in the midst of that base64. Then keys of a known shape (`shapes`) are
replaced in what is left, so that both sides of a replay find the same ones. Streams are scanned through a window that
holds back what may be the beginning of either.
"""

from __future__ import annotations

import re
import threading
from binascii import a2b_base64
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from worldline.errors import SecretFound, SecretRefused, UsageError
from worldline.store.secrets import shapes
from worldline.store.secrets.forms import SHORTEST, all_forms, forms
from worldline.store.secrets.scanner import Scanner

__all__ = ["MARKER", "MIN_LENGTH", "Span", "Vault", "Window", "forms", "marker", "unmarked"]

MIN_LENGTH = 8
MARKER = re.compile(rb"\[secret:[A-Za-z0-9_.-]{1,64}\]")
_PREFIX = len("[secret:")
_PART = 1 << 20
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def marker(label: str) -> str:
    """What stands in the record in place of a secret."""
    return f"[secret:{label}]"


def unmarked(text: str, value: Callable[[str], str]) -> str:
    """A text with what `value` gives for a label in the place of each of its markers."""
    data = text.encode("utf-8", "surrogatepass")
    given = MARKER.sub(lambda found: value(found[0][_PREFIX:-1].decode()).encode("utf-8", "surrogatepass"), data)
    return given.decode("utf-8", "surrogatepass")


class Span(NamedTuple):
    """A stretch of a stream: `size` bytes came in and `text` goes out; `secret` where that is a marker.

    `registered` says that the marker stands for a registered secret, not for a key found by its shape.
    """

    size: int
    text: bytes
    secret: bool
    registered: bool = False


class Vault:
    """Holds the frozen secrets of one attempt: `{label: value}`.

    `policy` is `redact` (a value becomes its marker and is counted) or `stop` (the first one found raises
    `SecretFound`; the recorder takes nothing more then, and how the run ended is told with markers). With
    `key_shapes`, keys that nobody registered are replaced by rule, under either policy; `shapes` counts them by label.
    Raises `SecretRefused` for a value under 8 bytes.
    """

    def __init__(
        self, secrets: Mapping[str, str] | None = None, policy: str = "redact", key_shapes: bool = False
    ) -> None:
        self.policy = policy
        self.met: SecretFound | None = None  # the first secret found under the policy `stop`
        self.redactions = 0
        self.shapes: Counter[str] = Counter()
        self.unscanned = 0
        self._count_lock = threading.Lock()
        for label, value in (secrets or {}).items():
            if not _LABEL.fullmatch(label):
                raise UsageError(f"a secret's label is 1-64 of A-Z a-z 0-9 _ . -, not {label!r}", label=label)
            if len(value.encode("utf-8", "surrogatepass")) < MIN_LENGTH:
                raise SecretRefused(
                    f"the secret {label} has under {MIN_LENGTH} bytes; it would be found everywhere", label=label
                )
        self.labels = tuple(sorted(secrets or {}))
        self._scanner = _scanner(tuple((secrets or {}).items()))
        self._shapes = key_shapes
        self.active = bool(secrets) or key_shapes  # whether there is anything to look for
        self._stretches = shapes.STRETCHES if key_shapes else None
        if secrets:
            self._stretches = self._scanner.stretches and self._scanner.stretches.merged(self._stretches)

    def finds(self, data: bytes) -> bool:
        """Whether there may be a secret in `data`; nothing is counted or stopped. Memory stays near one part's."""
        if len(data) <= _PART:
            return self._finds(data)
        overlap = shapes.LONGEST + 3 * self._scanner.longest
        starts = range(0, max(1, len(data) - overlap), _PART)
        return any(self._finds(data[at : at + _PART + overlap] if len(starts) > 1 else data) for at in starts)

    def _finds(self, part: bytes) -> bool:
        if len(part) < SHORTEST or not self.active:
            return False
        if self._stretches is not None and not self._stretches.any(part):
            broken = self._scanner.parted(part) and self._scanner.finds(part)
            return broken or (self._shapes and bool(shapes.passwords(part)))
        return self._scanner.finds(part) or (self._shapes and bool(shapes.hits(part)))

    def finds_in_base64(self, text: memoryview) -> bool:
        """`finds` for the bytes that a base64 text stands for."""
        overlap = (shapes.LONGEST + 3 * self._scanner.longest) * 4
        starts = range(0, max(1, len(text) - overlap), 4 * _PART)
        return any(self._finds(a2b_base64(text[at : at + 4 * _PART + overlap])) for at in starts)

    def redact(self, data: bytes) -> bytes:
        """`data` with every secret replaced. Raises `SecretFound` under the policy `stop`."""
        if not self.finds(data):
            return data
        return b"".join(span.text for span in self._spans(data, b"", True))

    def masked(self, text: str) -> str:
        """`redact_text` for the words of a run's end: under `stop` it raises nothing, but is `met` all the same."""
        try:
            return self.redact_text(text)
        except SecretFound:
            return self.redact_text(text)  # only the first one raises

    def redact_text(self, text: str) -> str:
        """`redact` for text, lone surrogates kept."""
        data = text.encode("utf-8", "surrogatepass")
        return self.redact(data).decode("utf-8", "surrogatepass")

    def holds_secret(self, text: str) -> str | None:
        """The markers of the registered secrets in `text`, joined and counted, or None where it holds none.

        For what is never written itself (a header, a variable): no reason to stop under the policy `stop`.
        """
        labels = [hit.label for hit in self._scanner.hits(text.encode("utf-8", "surrogatepass"))]
        self._count(len(labels))
        return "".join(map(marker, labels)) or None

    def checked(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The parts of a stream that is kept as it is, each once it is certain that no registered secret begins in it.

        Raises `SecretFound` with the label before the part in which one begins, under either policy.
        """
        waiting: deque[bytes] = deque()
        held, ready = b"", 0  # `ready`: bytes of what waits in which nothing begins
        for part in parts:
            waiting.append(part)
            held += part
            limit = self._scanner.undecided(held)
            self.refuse(held, limit)
            held, ready = held[limit:], ready + limit
            while waiting and len(waiting[0]) <= ready:
                ready -= len(waiting[0])
                yield waiting.popleft()
        self.refuse(held)
        yield from waiting

    def refuse(self, data: bytes, limit: int | None = None) -> None:
        """Raise `SecretFound` where a registered secret begins in `data` before `limit`."""
        hits = self._scanner.hits(data) if limit != 0 else ()
        if hits and (limit is None or hits[0].start < limit):
            label = hits[0].label
            raise SecretFound(f"the secret {label} stands in what was to be kept", label=label)

    def held_in(self, data: bytes) -> str | None:
        """The label of the first registered secret in what is not to be kept then; None where it holds none."""
        return next((hit.label for hit in self._scanner.hits(data)), None)

    def without(self, text: str) -> str:
        """A name with markers for what is registered; nothing is counted, and nothing stopped."""
        data, done, parts = text.encode("utf-8", "surrogatepass"), 0, []
        for hit in self._scanner.hits(data):
            parts += [data[done : hit.start], marker(hit.label).encode("ascii")]
            done = hit.end
        return b"".join([*parts, data[done:]]).decode("utf-8", "surrogatepass")

    def _spans(self, data: bytes, before: bytes, last: bool) -> Iterator[Span]:
        """The stretches of `data` that are decided; with `last`, all. `before` is the end of what stood in front."""
        limit = len(data) if last else self._scanner.undecided(data)
        done = 0
        for hit in self._scanner.hits(data) if limit else ():
            if hit.start >= limit:
                break
            yield from self._shaped(data[done : hit.start], before, True)
            yield Span(hit.end - hit.start, self._found(hit.label), True, True)
            done, before = hit.end, b"]"
        yield from self._shaped(data[done:limit], before, last)

    def _shaped(self, text: bytes, before: bytes, last: bool) -> Iterator[Span]:
        """The stretches of a text without registered secrets; unless it is all there is, those that are decided."""
        if not self._shapes:
            if text:
                yield Span(len(text), text, False)
            return
        text, done = before + text, len(before)
        limit = len(text) if last else max(done, shapes.undecided(text))
        if limit == done:
            return
        for hit in shapes.hits(text):
            if hit.start >= limit:
                break
            if hit.start > done:
                yield Span(hit.start - done, text[done : hit.start], False)
            self._count_shape(hit.label)
            yield Span(hit.end - hit.start, marker(hit.label).encode("ascii"), True)
            done = hit.end
        if limit > done:
            yield Span(limit - done, text[done:limit], False)

    def _found(self, label: str) -> bytes:
        if self.policy == "stop" and self.met is None:
            self.met = SecretFound(f"the secret {label} was about to be written; the run was stopped", label=label)
            raise self.met
        self._count(1)
        return marker(label).encode("ascii")

    def not_scanned(self, what: str) -> None:
        """Something goes into the record that could not be looked into. Under `stop`, with secrets held, it stops."""
        self.unscanned += 1
        if self.policy == "stop" and self.labels and self.met is None:
            self.met = SecretFound(f"{what} cannot be searched for secrets; the run was stopped", label=None)
            raise self.met

    def _count(self, found: int) -> None:
        with self._count_lock:
            self.redactions += found

    def _count_shape(self, label: str) -> None:
        with self._count_lock:
            self.shapes[label] += 1

    def window(self) -> Window:
        """A scanner for one stream."""
        return Window(self)


@lru_cache(maxsize=4)
def _scanner(secrets: tuple[tuple[str, str], ...]) -> Scanner:
    """Building one takes some 10 ms a secret; the runs of one process mostly hold the same ones back."""
    return Scanner({label: all_forms(value) for label, value in secrets})


class Window:
    """Scans a stream piece by piece, holding back what could be the beginning of a secret."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._held = b""
        self._before = b""

    def feed(self, data: bytes, last: bool = False) -> Iterable[Span]:
        """The stretches that are decided now; with `last`, all that is left. Sizes add up to what came in."""
        if not self._vault.active:
            return [Span(len(data), data, False)] if data else []
        self._held += data
        spans = list(self._vault._spans(self._held, self._before, last))
        taken = 0
        for span in spans:
            came = self._held[taken : taken + span.size]
            self._before = b"]" if span.registered else (self._before + came)[-shapes.CONTEXT :]
            taken += span.size
        self._held = self._held[taken:]
        return spans
