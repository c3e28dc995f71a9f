"""What a crossing is: the call that wants to cross, the answer that is served, the live one that is carried out.

`Boundary.begin(Call)` answers `Served` (the record has the answer) or `Live` (go and do it). `engine.boundary` records,
`engine.replay` serves, `engine.fork` serves a prefix and lets the rest go live; the seams know none of them apart.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec

from worldline.engine.agent_state import Dumped
from worldline.engine.content import Content, redact_json
from worldline.engine.messages import Message
from worldline.engine.order import GRACE_SECONDS
from worldline.engine.spec import UNRESTRICTED, Restriction
from worldline.errors import ReplayError
from worldline.model import canon
from worldline.store import recording
from worldline.store.secrets.vault import Vault

inside: ContextVar[str | None] = ContextVar("worldline_inside", default=None)
"""The call whose function runs in this context: what crosses inside it names it as its parent."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What wants to cross.

    `kind` is `decision` (a model is asked), `action` (a tool runs) or `observation` (a sample of clock, randomness).
    `inputs` is the JSON text that makes the key, with `body` (raw bytes of a request, `key_body` where the key reads
    it differently). `facts` go into the started row; a lane is an agent, thread or task; `parent` is the outer call.
    """

    kind: str
    name: str
    inputs: Content
    body: bytes | None = None
    key_body: bytes | None = None
    effect: str | None = None
    idempotency_key: str | None = None
    lane: str = "main"
    parent: str | None = None
    facts: dict[str, Any] = {}


class Keyed(msgspec.Struct, frozen=True):
    """A call's key, and its inputs and body as the record may hold them (secrets replaced); the tier they belong to."""

    key: str
    inputs: bytes
    body: bytes | None
    tier: str


def keyed(
    call: Call,
    vault: Vault,
    restriction: Restriction = UNRESTRICTED,
    key: Callable[[str, str], str] = lambda key, tier: key,
) -> Keyed:
    """The key of a call: kind, name, canonical inputs and body, all after the vault.

    `key` turns it into the one that a row of the tier carries: no digest of restricted content stands there.
    """
    inputs = redact_json(call.inputs.data, vault)
    digest = hashlib.sha256(canon.canonical(canon.parse(inputs)))
    body = vault.redact(call.body) if call.body is not None else None
    if body is not None:
        compared = vault.redact(call.key_body) if call.key_body is not None else body
        with suppress(ValueError):  # no JSON: the bytes themselves
            compared = canon.canonical(canon.parse(compared))
        digest.update(b"\x00" + compared)
    tier = restriction.tier(call.kind, call.name, inputs if call.inputs.media_type == recording.JSON else None)
    return Keyed(key(canon.op_key(call.kind, call.name, digest.digest()), tier), inputs, body, tier)


class Served(ABC):
    """The record has the answer: `data` is the finished row's data, `content` the value of a function's result."""

    data: Mapping[str, Any]
    call: str
    never_ended: str | None = None  # why the record has no end of this call although it goes on: it was given up
    patience: float = GRACE_SECONDS  # seconds in which whoever gave up waiting in the record has done so again

    @abstractmethod
    def content(self) -> Content | None:
        """The recorded result of a function, or None where it failed (then `data["error"]` says how)."""

    def value(self) -> Any:
        """The value of a function's result, where it did not fail."""
        content = self.content()
        assert content is not None, "what failed has no result"
        return content.value()

    @abstractmethod
    def pieces(self) -> list[tuple[bytes, bool]]:
        """The recorded body of a response: (bytes, whether a transfer chunk ends here)."""

    @abstractmethod
    def turn(self, into: Future[None] | None = None) -> Future[None]:
        """Done when the record's order lets this answer out (sooner finished, sooner served).

        `into` is a future of the caller's to use: what it has chained to it then happens in that order too.
        """

    def leaves(self) -> bool:
        """Whether the answer may go out at once, and with that has: for a caller that goes on in this very thread.

        Where it may not, `turn` says when.
        """
        return False


class RecordEnds(ReplayError):
    """The record has no answer and no divergence to report: it stops here, or the call was given up in it."""


class Live(ABC):
    """Nothing is recorded for this call: go and do it, and say what came."""

    call: str
    body: bytes | None = None  # of a request that a fork changed: what is to be sent in place of what was asked
    seed: str | None = None  # of a sample in a rollout: what its chance is derived from, so that it comes again

    @abstractmethod
    def encoded(self, encoding: str) -> None:
        """The body that will come has this content encoding (`gzip`, `br` ...): say so before the first piece."""

    @abstractmethod
    def chunk(self, data: bytes, ends_chunk: bool = True) -> None:
        """A piece of a streamed body came. Never blocks on the disk."""

    @abstractmethod
    def due(self) -> None:
        """Some time passed; whoever carries a stream may say so about ten times a second, also while nothing comes.

        What came before is then on disk, however long the other side is silent. Never blocks on the disk.
        """

    @abstractmethod
    def finish(self, data: Mapping[str, Any], result: Content | None = None) -> None:
        """The answer is whole. `data` goes into the finished row."""

    @abstractmethod
    def fail(self, error: Mapping[str, Any]) -> None:
        """It ended in an error, which a replay gives back."""

    @abstractmethod
    def abandon(self, why: str) -> None:
        """Nobody will know how it ended: the call stays *unknown*."""


class Boundary(Protocol):
    """Where crossings are decided: `mode` is `record`, `replay` or `fork`."""

    mode: str

    def begin(self, call: Call) -> Served | Live:
        """Decide one crossing. Raises `Diverged` on a replay that has no such call."""

    def note(self, kind: str, src: str, lane: str, keys: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Add a row that is no crossing (a marker, a permission, an observation); a replay checks nothing of it."""

    def forks(self) -> int | None:
        """How many forks the agent has come past; None where it can come past none.

        Behind each its random generators go on from a seed of their own, else branches of one parent would be twins.
        """

    def restored(self) -> Dumped | None:
        """The agent's state that it goes on from, on a branch that was opened to restore it; else None."""

    def heard(self, server: str) -> list[Message]:
        """What the record has of a server's messages beside its answers, as far as answers are served from it."""
