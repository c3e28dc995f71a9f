"""Which substrate keeps a workspace: each is probed, the best that can be had is taken, and a lesser one says why.

    need            tried in this order
    files           btrfs, files               (the default: no state of processes is needed)
    process         criu, vm, btrfs, files     (foreign processes, daemons)
    in-process      zygote, btrfs, files       (an environment in this Python process: its `factory` is named)
    nothing         none

The zygote keeps the files beside the process. What takes its place keeps the files alone, and that is said. A substrate
that is not built in is never chosen. `git` and `overlay` are taken by name alone: the one does not keep
all, the other holds the agent's edits in layers while it works in the user's own folder. Who asks for one by name gets
it or the next one down, with the reason; with `strict` it is that one or `Unavailable`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.substrates.btrfs import Btrfs
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.git import Git
from worldline.engine.substrates.none import Nothing
from worldline.engine.substrates.overlay import Overlay
from worldline.engine.substrates.substrate import Caps, Degraded, Env, Policy, Substrate
from worldline.engine.substrates.zygote import Zygote
from worldline.errors import Unavailable, UsageError

_log = logging.getLogger("worldline")
AUTO = "auto"
ORDER = {
    "files": ("btrfs", "files"),
    "process": ("criu", "vm", "btrfs", "files"),
    "in-process": ("zygote", "btrfs", "files"),
    "nothing": ("none",),
}
_BELOW = {
    "git": ("files",),
    "none": (),
    "files": (),
}  # what a named one degrades to; any other to the order of its need

Make = Callable[[Path], Substrate]  # of a store of runs
BUILT_IN: dict[str, Make] = {
    "none": Nothing,
    "git": Git,
    "files": Files,
    "btrfs": Btrfs,
    "overlay": Overlay,
    "zygote": Zygote,
}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The substrate that was taken, the environment that it opened, and what was given up for it, in order."""

    substrate: Any
    env: Any
    degraded: tuple[Degraded, ...] = ()

    def facts(self) -> dict[str, Any]:
        """As reports and rows carry it: `{"substrate": .., "degraded": text | None}`."""
        return {"substrate": self.substrate.name, "degraded": "; ".join(map(str, self.degraded)) or None}


def open_workspace(
    workspace: Path,
    policy: Policy,
    wanted: str = AUTO,
    *,
    need: str | None = None,
    factory: str | None = None,
    strict: bool = False,
    known: Mapping[str, Make] | None = None,
) -> Choice:
    """Open a folder with the best substrate that can be had, or with the one that is `wanted`.

    `factory` (`module:name`) makes the environment that is to be kept with the folder: then `need` is `in-process`,
    else it is `files`, where nothing else is said. What the factory raises is its user's, and is no reason to degrade.
    Raises `Unavailable` where none can be had (or, with `strict`, the wanted one cannot), `UsageError` for a name that
    names none.
    """
    makes = dict(BUILT_IN if known is None else known)
    if factory is not None and makes.get("zygote") is Zygote:
        makes["zygote"] = partial(Zygote, factory=factory)
    need = need or ("files" if factory is None else "in-process")
    if need not in ORDER or (wanted != AUTO and wanted not in makes):
        raise UsageError(f"a substrate is one of {AUTO}, {', '.join(sorted(makes))}, not {wanted!r}", substrate=wanted)
    order = ORDER[need] if wanted == AUTO else (wanted, *_BELOW.get(wanted, ORDER[need]))
    given_up: list[tuple[str, str]] = []
    for name in dict.fromkeys(name for name in order if name in makes):
        substrate = makes[name](policy.store)
        try:
            env = opened(substrate, workspace, policy)
        except Unavailable as refused:
            given_up.append((name, str(refused.facts.get("why") or refused)))
            if strict and wanted != AUTO:
                raise
            continue
        degraded = tuple(Degraded(wanted=other, used=name, why=why) for other, why in given_up)
        for each in degraded:
            _log.log(logging.INFO if wanted == AUTO and need == "files" else logging.WARNING, "%s", each)
        return Choice(substrate=substrate, env=env, degraded=degraded)
    reasons = "; ".join(f"{name}: {why}" for name, why in given_up)
    raise Unavailable(f"no substrate can keep {workspace}: {reasons}", substrate=wanted, why=reasons)


def opened(substrate: Substrate, workspace: Path, policy: Policy) -> Env:
    """Open a folder with a substrate that can be had. Raises `Unavailable`."""
    why = substrate.probe().why_not
    if why is not None:
        raise Unavailable(f"{substrate.name}: {why}", substrate=substrate.name, why=why)
    return substrate.open(workspace, policy)


def substrate_of(name: str, store: Path, known: Mapping[str, Make] | None = None) -> Substrate:
    """The substrate that took a snapshot. Raises `Unavailable` for one that this installation does not have."""
    makes = BUILT_IN if known is None else known
    if name not in makes:
        why = "it is not part of this installation"
        raise Unavailable(f"{name}: {why}", substrate=name, why=why)
    return makes[name](store)


def probed(store: Path, known: Mapping[str, Make] | None = None) -> list[Caps]:
    """What every substrate can do here."""
    makes = BUILT_IN if known is None else known
    return [makes[name](store).probe() for name in sorted(makes)]
