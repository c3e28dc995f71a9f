"""What a real provider takes from a clock or at random, made stable: times, fingerprints and ids.

An answer's bytes depend on nothing but the request's bytes, so two runs of one agent get the same answers. Ids are
derived from the request rather than counted: parallel calls may arrive in any order, and a provider started anew for
the second half of a conversation must not repeat an id of the first half.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

CREATED = 1_700_000_000
"""Every `created` and `created_at`, in Unix seconds."""

CREATED_ISO = "2023-11-14T22:13:20Z"
"""The same instant as Anthropic writes it."""

DATE = "Tue, 14 Nov 2023 22:13:20 GMT"
"""The same instant as a `date` header."""

FINGERPRINT = "fp_0000000000"
"""OpenAI's `system_fingerprint`."""


def request_id(n: int) -> str:
    """The id of the n-th request (0-based), as it stands in headers and in Anthropic's error bodies."""
    return f"req_{n:012d}"


@dataclass(frozen=True)
class Mint:
    """Ids for the parts of one answer.

    `seed` names the answer: the request's path and body, and how often that same request came before.
    """

    seed: str

    @classmethod
    def for_request(cls, path: str, body: bytes, attempt: int) -> Mint:
        """The mint of the answer to `body` at `path`, asked for the `attempt`-th time (0-based)."""
        return cls(f"{path} {hashlib.sha256(body).hexdigest()} {attempt}")

    def id(self, prefix: str, index: int = 0) -> str:
        """`prefix` and 24 hexadecimal digits; `index` tells the parts of one kind apart."""
        return prefix + hashlib.sha256(f"{self.seed} {prefix} {index}".encode()).hexdigest()[:24]
