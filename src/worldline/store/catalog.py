"""The runs of a store: listing them without reading their logs, and finding one by what people type.

A run is named by its path, its id, any unambiguous prefix of the id (with or without `run_`), its last four or more
characters, or `latest`.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from worldline.errors import AmbiguousRun, Contained, Damaged, RecordingNotFound, WorldlineError
from worldline.model.ids import is_id
from worldline.store import layout
from worldline.store.bundle.packed import open_recording
from worldline.store.listed import Entry, Listed
from worldline.store.recording import Recording
from worldline.store.studies.folder import kept_rollouts

BUNDLE = ".skn"  # what the names of bundles end with


def runs(store: Path) -> list[Path]:
    """The run directories of a store, oldest first. No directory is no runs."""
    if not store.is_dir():
        return []
    with os.scandir(store) as found:
        return [store / name for name in sorted(each.name for each in found if _is_run(each))]


def entries(store: Path) -> list[Entry]:
    """Every run of a store, oldest first. A damaged run is listed as `damaged` and never blocks the list.

    One of which an attempt was contained, and none published since, is listed as `contained`. So is every bundle that
    stands there: of those only the index and the manifest are read. What was listed before and has not changed since
    is not opened again (`listed`).
    """
    if not store.is_dir():
        return []
    listed, found = Listed(store), list[Entry]()
    missing, packed = [], []
    with os.scandir(store) as standing:
        for each in standing:
            name = each.name
            if (entry := listed.entry(name)) is not None:
                found.append(entry)
            elif _is_run(each):
                missing.append(name)
            elif name.endswith(BUNDLE) and (store / name).is_file():
                packed.append(store / name)
    listed.begin(len(missing))
    for run in missing:
        entry, recording = _entry(store / run)
        found.append(entry)
        if recording is not None:
            listed.keep(entry, recording)
    listed.save()
    found += map(_bundle_entry, packed)
    return sorted(found, key=attrgetter("run", "path"))


def _is_run(each: os.DirEntry[str]) -> bool:
    """Whether a name in a store is a run's, and a directory stands behind it."""
    try:
        return is_id(each.name, "run") and each.is_dir()
    except OSError:  # a link that leads round in circles
        return False


def _bundle_entry(path: Path) -> Entry:
    try:
        recording = open_recording(path)
        said = {"outcome": None, **recording.summary, "path": str(path)}
        return msgspec.convert({**said, "run": recording.run_id, "disposition": recording.disposition}, Entry)
    except (WorldlineError, OSError, msgspec.ValidationError):
        return Entry(path.name, str(path), None, "damaged", None, None, None, None, None)


def _entry(run: Path) -> tuple[Entry, Recording | None]:
    """The entry of a run, and what was opened for it."""
    try:
        recording = Recording(run)
        disposition = recording.disposition
        if recording.manifest is not None and not recording.summary:
            raise Damaged(f"{recording.path}: its result cannot be read")
        summary = {"outcome": None, **(recording.summary or _opened(recording)), "path": str(recording.path)}
        if disposition in ("running", "interrupted"):
            summary["outcome"] = None
        return msgspec.convert({**summary, "run": run.name, "disposition": disposition}, Entry), recording
    except Contained:
        return Entry(run.name, str(run), None, "contained", None, None, None, None, None), None
    except (WorldlineError, OSError, msgspec.ValidationError):
        return Entry(run.name, str(run), None, "damaged", None, None, None, None, None), None


def _opened(recording: Recording) -> dict[str, Any]:
    """What the header says of a run that has neither result nor progress yet."""
    data = recording.header.data
    return {
        "task": data.get("task", {}).get("text"),
        "started": int(data["t0_wall"]) / 1e9,
        "session": data.get("session"),
        "steps": 0,
        "seconds": None,
    }


def find(name: str, store: Path) -> Recording:
    """The recording that `name` means. Raises `RecordingNotFound`, `AmbiguousRun` or what opening raises."""
    recording = _named(name, store)
    with suppress(Damaged):  # what is good of it can be read all the same
        _ = recording.header  # raises `NewerFormat`
    return recording


def _named(name: str, store: Path) -> Recording:
    path = path_of(name, store)
    return open_recording(name if path is None else path)


def path_of(name: str, store: Path) -> Path | None:
    """The directory of the run that `name` means; None where it is a path or URL itself. Nothing is opened."""
    path = Path(name)
    looks_like_path = "/" in name or path.suffix in (".json", ".skn")
    if looks_like_path or (path.exists() and not is_id(name, "run")):
        return None
    here = runs(store)
    if name == "latest":
        if not here:
            raise RecordingNotFound(f"no runs in {store} yet; `worldline record -- CMD` makes one", store=str(store))
        return here[-1]
    bare = name.removeprefix("run_")
    found = [run for run in here if run.name.removeprefix("run_").startswith(bare)]
    if not found and len(bare) >= 4:
        found = [run for run in here if run.name.endswith(bare)]
    if not found and len(bare) >= 4:  # a rollout that a study kept is no run of the list, and can be named all the same
        kept = kept_rollouts(store)
        found = [run for run in kept if run.name.removeprefix("run_").startswith(bare) or run.name.endswith(bare)]
    if len(found) > 1:
        some = ", ".join(run.name for run in found[:4])
        how = "begin" if found[0].name.removeprefix("run_").startswith(bare) else "end"
        raise AmbiguousRun(f"{len(found)} runs {how} with '{name}': {some}", candidates=[run.name for run in found])
    if not found:
        count = f"{len(here)} run" + ("" if len(here) == 1 else "s")
        raise RecordingNotFound(f"no run '{name}' in {store} ({count}; `worldline list`)", name=name, store=str(store))
    return found[0]


def default_store(given: Path | None = None) -> Path:
    """The store to use: as given, else `.worldline/runs` of the nearest folder upwards that has one, else of here.

    The search ends at the repository's top, at the home folder, and before a folder that others can write in.
    """
    if given is not None:
        return given
    here = Path.cwd()
    for folder in (here, *here.parents):
        if folder != here and folder.stat().st_mode & stat.S_IWOTH:
            break
        if (folder / layout.DEFAULT_STORE).is_dir():
            return _relative(folder / layout.DEFAULT_STORE, here)
        if (folder / ".git").exists() or folder == _home():
            break
    return layout.DEFAULT_STORE


def _home() -> Path | None:
    """The home folder; None for a user of whom the system knows none."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _relative(path: Path, here: Path) -> Path:
    return path.relative_to(here) if path.is_relative_to(here) else path
