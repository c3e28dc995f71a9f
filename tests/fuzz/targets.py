"""Every target by its name, with the longest input that a fuzzer is to try on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.fuzz import store_targets, wire_targets

CORPUS = Path(__file__).parent / "corpus"


class Target(NamedTuple):
    """`run` takes any bytes, and raises for a defect alone. `longest` is in bytes."""

    run: Callable[[bytes], None]
    longest: int


TARGETS = {
    "rows": Target(store_targets.rows, 16_384),
    "log": Target(store_targets.log, 16_384),
    "manifest": Target(store_targets.manifest, 16_384),
    "bundle": Target(store_targets.bundle, 32_768),
    "proof": Target(store_targets.proof, 16_384),
    "request": Target(wire_targets.request, 8_192),
    "answer": Target(wire_targets.answer, 8_192),
    "sse": Target(wire_targets.sse, 4_096),
    "dialect": Target(wire_targets.dialect, 8_192),
}


def inputs(name: str) -> list[Path]:
    """The inputs of a target that stand in the repository."""
    return sorted((CORPUS / name).iterdir())
