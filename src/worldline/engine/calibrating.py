"""Calibration: an agent is served its record by position, and what it asks otherwise becomes proposals of masks.

By position each call gets the next answer of its kind and name, whatever it asks. So nothing is judged: what differed
and looks volatile gives a mask, ready to be used, and the rest is listed as what it is, a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from worldline.engine.exchanges import Exchange
from worldline.engine.masks import MaskUse
from worldline.engine.matcher import Differences, Divergence, quoted
from worldline.engine.proposing import proposals
from worldline.model.masks import ELEMENTS, Mask, place

MOST_OTHERS = 100  # differences that look like no noise and are kept


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A mask that would leave out `values` in `exchanges` that differed, with the first of them as an example."""

    mask: str
    values: int
    exchanges: int
    recorded: Any
    actual: Any


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """A place that differed and does not look volatile, in the recorded call of row `seq`."""

    name: str
    call: str
    seq: int
    path: str
    recorded: Any
    actual: Any


class Calibration(msgspec.Struct, kw_only=True):
    """What a calibration found. It is no verdict.

    `served` counts answers, `moved` those that another request was given by its place. `masks` were in force already.
    `ended` is where the agent could not be served on, or did not ask for all that is recorded; then more may differ.
    `reasons` says why it was not tried at all.
    """

    proposals: list[Proposal] = []
    others: list[Other] = []
    more: int = 0  # differences like `others` that are not kept
    served: int = 0
    moved: int = 0
    masks: list[MaskUse] = []
    ended: Divergence | None = None
    notes: list[str] = []
    reasons: list[str] = []

    def to_json(self) -> dict[str, Any]:
        """The form of `worldline replay --calibrate --json`."""
        out: dict[str, Any] = msgspec.to_builtins(self)
        return out


class _Met(msgspec.Struct):
    """One form of noise at places that are alike but for their indices."""

    masks: list[Mask]
    exchanges: set[str]
    example: tuple[Any, Any]


class Calibrating:
    """Takes what differed of each call that was served by its place."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, ...], _Met] = {}
        self._others: list[Other] = []
        self._more = 0

    def moved_to(self, exchange: Exchange, differences: Differences) -> None:
        """A call was given this exchange's answer although it differs so."""
        for path, recorded, actual in differences:
            found = proposals(exchange.kind, exchange.name, path, recorded, actual)
            for mask in found:
                met = self._met.setdefault(_alike(mask), _Met([], set(), quoted(recorded, actual)))
                met.masks.append(mask)
                met.exchanges.add(exchange.call)
            if not found:
                self._other(exchange, path, recorded, actual)

    def _other(self, exchange: Exchange, path: str, recorded: Any, actual: Any) -> None:
        if len(self._others) == MOST_OTHERS:
            self._more += 1
            return
        before, now = quoted(recorded, actual)
        self._others.append(
            Other(name=exchange.name, call=exchange.call, seq=exchange.started, path=path, recorded=before, actual=now)
        )

    def found(self) -> Calibration:
        """The proposals, in the order in which they were met, and the rest."""
        made = [
            Proposal(
                mask=_over(met.masks),
                values=len(met.masks),
                exchanges=len(met.exchanges),
                recorded=met.example[0],
                actual=met.example[1],
            )
            for met in self._met.values()
        ]
        return Calibration(proposals=made, others=self._others, more=self._more)


def _alike(mask: Mask) -> tuple[str, ...]:
    """What proposals have in common that become one: all but the indices in their paths."""
    path = place(ELEMENTS if isinstance(part, int) else part for part in mask.path)
    return mask.where, mask.tool, path, mask.pattern.pattern if mask.pattern is not None else ""


def _over(masks: Iterable[Mask]) -> str:
    """One mask over all of them: each element of a list where they are about several."""
    first, *rest = masks
    path = [part if all(each.path[n] == part for each in rest) else ELEMENTS for n, part in enumerate(first.path)]
    before = f"tool:{first.tool} " if first.tool else ""
    after = f"=~{first.pattern.pattern}" if first.pattern is not None else ""
    return before + place(path) + after
