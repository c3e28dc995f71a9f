"""What a manifest says that follows from the header and the counts: the same for a writer and for who seals later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worldline.engine.tally import Tally
from worldline.model import values
from worldline.store import layout


def declared(header: Mapping[str, Any], header_hash: str, tally: Tally) -> dict[str, Any]:
    """The manifest's facts from the header's data, its hash (hex), and what was counted over all rows."""
    coverage, parent = tally.coverage(header["capture"]), header["parent"]
    recording = header.get("recording")
    retention = (recording or {}).get("retention") or None
    return {
        **{key: header[key] for key in ("format", "session", "run", "attempt", "durability", "limits", "capture")},
        "header": header_hash,
        "parent": parent,
        "genesis": parent["genesis"] if parent else header_hash,
        "coverage": coverage,
        "checkpoint_dag": tally.checkpoints,
        "masks": list(header.get("masks") or ()),
        "writer": header["writer"],
        "recording": recording,
        "retention": retention and {tier: retention.get(tier) for tier in layout.TIERS},
        "codecs": list(values.CODECS),
        "capabilities": levels(header["capture"], coverage),
    }


def levels(capture: str, coverage: Mapping[str, Any]) -> list[str]:
    """The replay levels that a recording can be used for, as far as its own counts say."""
    if capture != "full":
        return []
    tools, models = coverage.get("tools", {}), coverage.get("decision", {})
    lost = coverage.get("losses") or tools.get("unrecordable") or models.get("outside")
    return ["L0"] if lost else ["L0", "L1"]
