"""What to record and how: the spec of one attempt, and what a caller may declare beyond it.

A `RecordingSpec` is opt-in. Without it nothing about a record changes, to the byte; with it the header and the manifest
carry the declaration, and what happens past one of its bounds is what it says.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import UsageError
from worldline.store import layout

WRITER = "worldline/1"  # the contract that a declaration is made under
PAST = ("stop", "loss")
LEVELS = ("none", "L0", "L1")
_AGE = re.compile(r"(\d{1,6})([shdw])")
_SECONDS = {"s": 1, "h": 3600, "d": 86400, "w": 7 * 86400}
_RULE = re.compile(r"model|tool:[^\s:]{1,200}|field:[^\s]{1,200}")


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much may be recorded: rows, bytes of the log, bytes of contents, seconds; None is no bound.

    `past` says what happens then: `stop` ends the recording cleanly, sealed as partial with the reason; `loss` keeps
    crossings but no contents any more, declared by a row `meta/loss`. Rows and their bytes can only stop.
    """

    rows: int | None = None
    log_bytes: int | None = None
    content_bytes: int | None = None
    seconds: float | None = None
    past: str = "stop"


class RecordingSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a caller declares of a recording.

    `replay` is the least level it must allow (`none`, `L0`, `L1`); `restrict` names what goes to the restricted tier
    (see `Restriction`); `retention` gives seconds by tier after which contents may expire (then all contents stand in
    blobs); `writer` is the contract it is made under. `checked` raises `UsageError` for one that cannot be kept.
    """

    bounds: Bounds = Bounds()
    replay: str = "L1"
    restrict: tuple[str, ...] = ()
    retention: dict[str, int] = {}
    writer: str = WRITER

    def checked(self, capture: str) -> RecordingSpec:
        """The spec itself, for a capture level. Raises `UsageError` with what cannot be."""
        for problem in self._problems(capture):
            raise UsageError(f"recording spec: {problem}")
        return self

    def _problems(self, capture: str) -> Any:
        if self.writer != WRITER:
            yield f"it is made for the writer {self.writer!r}, this one is {WRITER}"
        if self.replay not in LEVELS:
            yield f"replay is one of {', '.join(LEVELS)}, not {self.replay!r}"
        elif self.replay == "L1" and capture != "full":
            yield f"replay level L1 needs the capture level full, not {capture!r}; declare replay none"
        for rule in self.restrict:
            if not _RULE.fullmatch(rule):
                yield f"no rule: {rule!r}; write model, tool:NAME or field:NAME"
        for tier, seconds in self.retention.items():
            if tier not in layout.TIERS or type(seconds) is not int or seconds < 0:
                yield f"retention is whole seconds by tier ({', '.join(layout.TIERS)}), not {tier!r}: {seconds!r}"
        bounds = self.bounds
        limits = {name: getattr(bounds, name) for name in ("rows", "log_bytes", "content_bytes", "seconds")}
        for name, limit in limits.items():
            if limit is not None and (isinstance(limit, bool) or limit <= 0):
                yield f"the bound {name} is a positive number, not {limit!r}"
        if bounds.past not in PAST:
            yield f"past is one of {', '.join(PAST)}, not {bounds.past!r}"
        elif bounds.past == "loss" and (bounds.rows is not None or bounds.log_bytes is not None):
            yield "rows are never lost: past a bound of rows or log_bytes a recording can only stop"

    def declared(self) -> dict[str, Any]:
        """The form in header and manifest."""
        out: dict[str, Any] = msgspec.to_builtins(self)
        return out


def read_spec(path: Path) -> RecordingSpec:
    """The recording spec of a TOML file; retention may be written as an age (`"30d"`). Raises `UsageError`."""
    import tomllib  # only the few who write one need it

    try:
        said = tomllib.loads(path.read_text("utf-8"))
        retention = said.get("retention", {})
        if isinstance(retention, dict):
            said["retention"] = {t: seconds_of(age) if isinstance(age, str) else age for t, age in retention.items()}
        return msgspec.convert(said, RecordingSpec)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"no recording spec: {path}: {error}", path=str(path)) from None


def seconds_of(age: str) -> int:
    """A length of time as people write it (`90s`, `12h`, `30d`, `6w`) in seconds. Raises `ValueError`."""
    match = _AGE.fullmatch(age)
    if match is None:
        raise ValueError(f"{age!r} is no age; write hours, days or weeks: 12h, 30d, 6w")
    return int(match[1]) * _SECONDS[match[2]]


class Restriction:
    """Which contents belong to the restricted tier, by the rules of a recording spec.

    `tool:GLOB` means what such tools are given and give; `field:NAME` the arguments or result of any tool in which a
    member of that name stands anywhere; `model` what a model is asked and says. What a tool gave is told to the model
    next, so with any rule at all every model body is restricted, and all of MCP that is no tool's call (`mcp.`).
    """

    def __init__(self, rules: tuple[str, ...] = ()) -> None:
        self.rules = rules
        self._tools = [rule.removeprefix("tool:") for rule in rules if rule.startswith("tool:")]
        self._fields = {rule.removeprefix("field:") for rule in rules if rule.startswith("field:")}

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Restriction:
        """The rules that a header declares."""
        declared = header.get("recording") or {}
        return cls(tuple(declared.get("restrict", ())))

    def tier(self, kind: str, name: str, content: bytes | None) -> str:
        """The tier of a call's inputs or result (JSON text); None is what has no members to look for: an error."""
        if not self.rules:
            return layout.ORDINARY
        of_mcp = kind == "observation" and name.startswith("mcp.")
        if kind == "decision" or of_mcp or any(fnmatch.fnmatchcase(name, glob) for glob in self._tools):
            return layout.RESTRICTED
        found = self._fields and (content is None or self._has_field(msgspec.json.decode(content)))
        return layout.RESTRICTED if found else layout.ORDINARY

    def _has_field(self, value: Any) -> bool:
        if isinstance(value, dict):
            return not self._fields.isdisjoint(value) or any(map(self._has_field, value.values()))
        return isinstance(value, list) and any(map(self._has_field, value))


UNRESTRICTED = Restriction()


class WorkspaceSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run's header says of its workspace: `path` as the agent saw it, what is no part of it, the substrate.

    It is kept every `every` steps; None leaves that to what it costs (`engine.cadence`).
    """

    path: str
    exclude: tuple[str, ...] = ()
    substrate: str = "files"
    every: int | None = 1

    def declared(self) -> dict[str, Any]:
        """The form in the header."""
        out: dict[str, Any] = msgspec.to_builtins(self)
        return out


def workspace_spec(
    folder: str | Path | None, exclude: Iterable[str] = (), every: int | None = 1
) -> WorkspaceSpec | None:
    """What is said of a folder that is to be kept; None for none. Raises `UsageError` where it is none."""
    if folder is None:
        return None
    path = Path(folder).absolute()
    if not path.is_dir():
        raise UsageError(f"no folder to keep: {folder}", path=str(folder))
    return WorkspaceSpec(str(path), tuple(exclude), every=every)


def declarable(masks: str | Iterable[str]) -> tuple[str, ...]:
    """Masks for a header, each checked. Raises `UsageError` for what is none, or says nothing of what crosses."""
    if not masks:
        return ()
    from worldline.engine.masks import crossing_masks, in_force  # only the few who declare some need it

    return tuple(mask.text for mask in in_force(crossing_masks(masks)).all)


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What to record: where, which task, with which secrets and capture level (`full` or `refs`).

    With `shapes`, keys that nobody registered are replaced where a rule knows their shape. `recording` is what is
    declared beyond that, if anything.
    """

    store: Path
    task: str | None = None
    task_id: str | None = None
    task_type: str | None = None
    agent: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    policy: str = "redact"
    shapes: bool = True
    capture: str = "full"
    session: str | None = None
    run: Path | None = None  # an existing run directory: this is its next attempt
    continues: dict[str, Any] | None = None
    parent: dict[str, Any] | None = None  # the row at which a branch left its parent: {run, attempt, seq, h, genesis}
    first_call: int = 0  # a branch counts its calls on from its parent's
    tier_key: bytes | None = None  # a branch names restricted contents as its parent does
    origin: str | None = None  # who asked for it, where that matters ("pytest")
    recording: RecordingSpec | None = None
    workspace: WorkspaceSpec | None = None  # the folder that is kept beside the record
    masks: tuple[str, ...] = ()  # what a replay or fork of it leaves out of the comparison
    fail_open: bool = False  # the agent goes on where nothing more can be written
