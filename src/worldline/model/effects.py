"""What a crossing does to the world, how it is answered, and what it must be able to do."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Where the answer of a crossing came from."""

    LIVE = "live"
    RECORDED = "recorded"
    MOCK = "mock"


class Effect(StrEnum):
    """What running a tool again would do."""

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    SIDE_EFFECTING = "side_effecting"


class Capability(StrEnum):
    """What a tool must be allowed to do, weakest first."""

    READ_ONLY = "read_only"
    REVERSIBLE_LOCAL = "reversible_local"
    CODE_EXECUTING = "code_executing"
    TRUST_MUTATING = "trust_mutating"
    IRREVERSIBLE_EXTERNAL = "irreversible_external"
