"""Masks at work: the keys of crossings under them, and what they left out.

Rows carry the key of everything that was asked. Under masks the matcher makes other keys of both sides, of the call and
of what the record has of each exchange; nothing of that is written. Every mask that is in force is counted and told.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import msgspec

from worldline.engine.cassette import Cassette, rebuild
from worldline.engine.crossing import Call, Keyed
from worldline.engine.exchanges import Exchange
from worldline.engine.masks import MaskUse
from worldline.model import canon
from worldline.model.masks import REQUEST, TOOL, Applied, Masks

_NOTHING: Counter[int] = Counter()


class Asked(msgspec.Struct, frozen=True):
    """A call's key under masks, the key that its row would carry, and what of it was left out, by mask."""

    key: str
    exact: str
    met: Counter[int]


class Masking:
    """The keys of one cassette's exchanges, and of calls, under masks. Without masks they are the rows' own."""

    def __init__(self, masks: Masks, cassette: Cassette) -> None:
        self.masks = masks
        self._cassette = cassette
        self._values: Counter[int] = Counter()
        self._exchanges: Counter[int] = Counter()
        self.relied = 0  # exchanges that answered a call which differs from them in what was left out
        self._keys = self._recorded() if masks else {}

    def key_of(self, exchange: Exchange) -> str:
        """The key of a recorded exchange."""
        return self._keys.get(exchange.call, exchange.key)

    def asked(self, call: Call, known: Keyed) -> Asked:
        """The key of a call."""
        if not self.masks:
            return Asked(known.key, known.key, _NOTHING)
        inputs = canon.parse(known.inputs)
        applied = self.applied(call.kind, call.name, inputs, known.body)
        if applied is None or not applied.met:
            return Asked(known.key, known.key, _NOTHING)
        return Asked(_key(call.kind, call.name, inputs, known.body, applied), known.key, applied.met)

    def applied(self, kind: str, name: str, inputs: Any, body: bytes | None) -> Applied | None:
        """What is compared of a crossing, without what is left out; None where no mask can speak of it.

        That is a body that is no JSON, and a sample: its row does not say what it was asked with.
        """
        try:
            if body is not None:
                return self.masks.applied(REQUEST, name, canon.parse(body))
            return self.masks.applied(TOOL, name, inputs) if kind == "action" else None
        except ValueError:
            return None

    def without(self, where: str, name: str, document: Any) -> Any:
        """A document with `Left` where something is left out of it; the one given stays as it is."""
        if not self.masks.speak_of(where, name):
            return document
        return self.masks.applied(where, name, canon.parse(canon.canonical(document))).document

    def answered(self, exchange: Exchange, asked: Asked) -> None:
        """This exchange is the answer to that call: count what was left out."""
        if asked.met:  # mostly nothing was
            self._values.update(asked.met)
            self._exchanges.update(asked.met.keys())
        self.relied += exchange.key != asked.exact

    def uses(self) -> list[MaskUse]:
        """What each mask left out of the calls that were answered."""
        return [
            MaskUse(mask=mask.text, origin=mask.origin, values=self._values[n], exchanges=self._exchanges[n])
            for n, mask in enumerate(self.masks.all)
        ]

    def _recorded(self) -> dict[str, str]:
        """The keys of recorded exchanges of which something is left out."""
        found, recording = dict[str, str](), self._cassette.recording
        by_call = {exchange.call: exchange for exchange in self._cassette.exchanges}
        if self.masks.speak_of(REQUEST):
            for call, body, _ in rebuild(recording):
                exchange = by_call.get(call)
                if exchange is not None and exchange.kind == "decision":
                    self._note(found, exchange, exchange.start_data.get("inputs", {}), body)
        for exchange in by_call.values():
            if exchange.kind == "action" and self.masks.speak_of(TOOL, exchange.name):
                arguments = recording.loaded(exchange.start_data.get("arguments"))
                self._note(found, exchange, canon.parse(canon.canonical(arguments)), None)  # its row stays as it is
        return found

    def _note(self, found: dict[str, str], exchange: Exchange, inputs: Any, body: bytes | None) -> None:
        applied = self.applied(exchange.kind, exchange.name, inputs, body)
        if applied is not None and applied.met:
            found[exchange.call] = _key(exchange.kind, exchange.name, inputs, body, applied)


def _key(kind: str, name: str, inputs: Any, body: bytes | None, applied: Applied) -> str:
    """The key under masks: of kind, name, what stands beside the body, and what is left of the rest."""
    beside = canon.canonical(inputs) if body is not None else b""
    digest = hashlib.sha256(b"masked\0" + beside + b"\0" + applied.canonical())
    return canon.op_key(kind, name, digest.digest())
