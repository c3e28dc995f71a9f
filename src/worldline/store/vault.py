"""The vault: registered secrets never reach the disk. One choke point, before hashing and before any write.

The set is frozen when the attempt opens. Each value is looked for as it is and as JSON writes it (once and twice
escaped, ASCII or not). What is found becomes a marker that depends on the label alone, so a replay with another value,
or none, still matches. Streams are scanned through a window that holds back the longest form less one byte.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from worldline.errors import SecretFound, SecretRefused, UsageError

MIN_LENGTH = 8
MARKER = re.compile(rb"\[secret:[A-Za-z0-9_.-]{1,64}\]")
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def marker(label: str) -> str:
    """What stands in the record in place of a secret."""
    return f"[secret:{label}]"


def forms(value: str) -> set[bytes]:
    """The byte forms in which a value is looked for."""
    found = {value}
    for _ in range(2):
        found |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in found for ascii_only in (True, False)}
        found |= {text.replace("/", "\\/") for text in found}
    return {text.encode("utf-8", "surrogatepass") for text in found}


class Span(NamedTuple):
    """A stretch of a stream: `size` bytes came in and `text` goes out; `secret` where that is a marker."""

    size: int
    text: bytes
    secret: bool


class Vault:
    """Holds the frozen secrets of one attempt: `{label: value}`.

    `policy` is `redact` (a value becomes its marker and is counted) or `stop` (the first one found raises
    `SecretFound`; the recorder takes nothing more then, and how the run ended is told with markers).
    Raises `SecretRefused` for a value under 8 bytes.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None, policy: str = "redact") -> None:
        self.policy = policy
        self.met: SecretFound | None = None  # the first secret found under the policy `stop`
        self.redactions = 0
        self.unscanned = 0
        self._count_lock = threading.Lock()
        self._labels: dict[bytes, str] = {}
        for label, value in (secrets or {}).items():
            if not _LABEL.fullmatch(label):
                raise UsageError(f"a secret's label is 1-64 of A-Z a-z 0-9 _ . -, not {label!r}", label=label)
            if len(value.encode("utf-8", "surrogatepass")) < MIN_LENGTH:
                raise SecretRefused(
                    f"the secret {label} has under {MIN_LENGTH} bytes; it would be found everywhere", label=label
                )
            for form in forms(value):
                self._labels.setdefault(form, label)
        self.labels = tuple(sorted(secrets or {}))
        ordered = sorted(self._labels, key=len, reverse=True)
        self.longest = len(ordered[0]) if ordered else 0
        self._forms = ordered
        self._pattern = re.compile(b"|".join(re.escape(form) for form in ordered)) if ordered else None

    def finds(self, data: bytes) -> bool:
        """Whether a secret is in `data`; nothing is counted or stopped."""
        return any(form in data for form in self._forms)

    def redact(self, data: bytes) -> bytes:
        """`data` with every secret replaced. Raises `SecretFound` under the policy `stop`."""
        if not self.finds(data):
            return data
        return b"".join(span.text for span in self._spans(data, len(data)))

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
        """The markers of the secrets in `text`, joined and counted, or None where it holds none.

        For what is never written itself (a header, a variable): no reason to stop under the policy `stop`.
        """
        data = text.encode("utf-8", "surrogatepass")
        labels = [self._labels[match[0]] for match in self._pattern.finditer(data)] if self._pattern else []
        self._count(len(labels))
        return "".join(map(marker, labels)) or None

    def _spans(self, data: bytes, limit: int) -> Iterator[Span]:
        """The stretches of `data`; a secret that begins at or after `limit` is left to the next call."""
        done = 0
        for match in self._pattern.finditer(data) if self._pattern else ():
            if match.start() >= limit:
                break
            if match.start() > done:
                yield Span(match.start() - done, data[done : match.start()], False)
            yield Span(len(match[0]), self._found(match[0]), True)
            done = match.end()
        if limit > done:
            yield Span(limit - done, data[done:limit], False)

    def _found(self, form: bytes) -> bytes:
        label = self._labels[form]
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

    def window(self) -> Window:
        """A scanner for one stream."""
        return Window(self)


class Window:
    """Scans a stream piece by piece, holding back what could be the beginning of a secret."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._held = b""

    def feed(self, data: bytes, last: bool = False) -> Iterable[Span]:
        """The stretches that are decided now; with `last`, all that is left. Sizes add up to what came in."""
        if self._vault.longest == 0:
            return [Span(len(data), data, False)] if data else []
        self._held += data
        limit = len(self._held) if last else max(0, len(self._held) - self._vault.longest + 1)
        spans = list(self._vault._spans(self._held, limit))
        self._held = self._held[sum(span.size for span in spans) :]
        return spans
