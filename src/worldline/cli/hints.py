"""What to type next: commands that do what they say when they are typed, for the run at hand.

A run is named as briefly as works from here: by its last characters in the default store, else by its path. No replay
is offered that is known to be refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from worldline.errors import WorldlineError
from worldline.model.ids import short
from worldline.store.bundle.packed import PackedRecording
from worldline.store.catalog import default_store
from worldline.store.recording import Recording


def name_of(recording: Recording) -> str:
    """The shortest name of a run that works from here."""
    if isinstance(recording, PackedRecording):
        return shlex.quote(recording.source.name)
    if recording.run_directory.parent.resolve() == default_store().resolve():
        return short(recording.run_id)
    return shlex.quote(str(from_here(recording.path)))


def from_here(path: Path) -> Path:
    """A path as people here would write it: relative where it lies below the working directory."""
    path, here = path.absolute(), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def next_commands(recording: Recording, *verbs: str) -> str:
    """A line of commands: the verbs given, and a replay of the recorded command where one can work."""
    name = name_of(recording)
    commands = [f"worldline {verb.format(name=name)}" for verb in verbs]
    if (replay := _replay(recording, name)) is not None:
        commands.append(replay)
    return "    ".join(commands)


def _replay(recording: Recording, name: str) -> str | None:
    try:
        # As recorded: no secret comes back to the screen.
        command = recording.header.data.get("agent", {}).get("command")
    except WorldlineError:
        return None
    manifest = recording.manifest
    if manifest is None or manifest.derived_from is not None:
        return None
    if not command or recording.damages or manifest.capture == "refs" or recording.expiry.removals:
        return None
    tools, models = manifest.coverage.get("tools", {}), manifest.coverage.get("decision", {})
    lost = tools.get("unrecordable") or models.get("outside") or manifest.coverage.get("losses")
    if nothing_crossed(manifest.coverage) or lost:
        return None
    option = " --tools run" if tools.get("outside") or models.get("unread") else ""
    return f"worldline replay {name}{option} -- {shlex.join(command)}"


def nothing_crossed(coverage: Mapping[str, Any]) -> bool:
    """Whether a sealed run holds no crossing at all."""
    tools, samples = coverage.get("tools", {}), coverage.get("samples", {})
    return not (coverage.get("decision", {}).get("recorded") or tools.get("recorded") or samples.get("recorded"))
