"""Where studies stand: `<store>/studies/<study>/`, beside the runs they are about, and how one is found by its name.

The rollouts in such a folder are runs like any other and find their parent in the store around it. A study's own id
follows from what it asks, so that the same question goes on with what is known of it.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path

from worldline.errors import AmbiguousRun, RecordingNotFound
from worldline.model import ids
from worldline.store import layout
from worldline.store.studies.journal import JOURNAL

PREFIX = "study"
SCRATCH = ".scratch"  # copies that rollouts work in; gone when each has ended


def derived_id(prefix: str, milliseconds: int, word: str) -> str:
    """An id that follows from a moment and a word: the same again for the same."""
    return ids.spell(prefix, milliseconds, int.from_bytes(hashlib.sha256(word.encode()).digest()[:10], "big"))


def folder_of(store: Path, study: str) -> Path:
    """The folder of a study."""
    return store / layout.STUDIES / study


def studies(store: Path) -> list[Path]:
    """The folders of all studies of a store that have a journal, in the order of their ids."""
    folder = store / layout.STUDIES
    if not folder.is_dir():
        return []
    found = (path for path in folder.iterdir() if ids.is_id(path.name, PREFIX) and (path / JOURNAL).is_file())
    return sorted(found)


def find_study(name: str, store: Path) -> Path:
    """The folder that `name` means: a path, an id, its beginning or its end, `latest`. Raises `RecordingNotFound`."""
    if "/" in name or Path(name, JOURNAL).is_file():
        if not Path(name, JOURNAL).is_file():
            raise RecordingNotFound(f"no study at {name}", path=name)
        return Path(name)
    here = studies(store)
    if name == "latest" and here:
        return max(here, key=lambda path: (path / JOURNAL).stat().st_mtime_ns)
    bare = name.removeprefix(f"{PREFIX}_")
    found = [path for path in here if path.name.removeprefix(f"{PREFIX}_").startswith(bare)]
    found = found or [path for path in here if len(bare) >= 4 and path.name.endswith(bare)]
    if len(found) > 1:
        raise AmbiguousRun(f"{len(found)} studies are called '{name}'", candidates=[path.name for path in found])
    if not found:
        count = f"{len(here)} stud" + ("y" if len(here) == 1 else "ies")
        what = f"no study '{name}' in {store} ({count}; `worldline list --studies`)"
        raise RecordingNotFound(what, name=name, store=str(store))
    return found[0]


def rollouts(folder: Path) -> list[Path]:
    """The rollouts that a study kept, as run directories."""
    return sorted(path for path in folder.iterdir() if ids.is_id(path.name, "run") and path.is_dir())


def kept_rollouts(store: Path) -> list[Path]:
    """The rollouts that any study of a store kept."""
    return [run for folder in studies(store) for run in rollouts(folder)]


def forget_rollout(run: Path) -> None:
    """Remove a rollout that is not kept; its line in the journal stays."""
    shutil.rmtree(run, ignore_errors=True)


def scratch_place(folder: Path, name: str) -> Path:
    """A place for one rollout that is not there yet; what is around it is."""
    target = folder / SCRATCH / name
    layout.make_private(target.parent, shared=True)
    shutil.rmtree(target, ignore_errors=True)
    return target


def scratch_copy(source: Path, folder: Path, name: str) -> Path:
    """A copy of a folder for one rollout to work in, links kept as links."""
    target = scratch_place(folder, name)
    shutil.copytree(source, target, symlinks=True)
    return target


def clear_scratch(folder: Path, name: str | None = None) -> None:
    """Remove the copies of one rollout, or what rollouts that were killed left."""
    shutil.rmtree(folder / SCRATCH if name is None else folder / SCRATCH / name, ignore_errors=True)
    with suppress(OSError):  # other rollouts work in it still, or it is gone
        (folder / SCRATCH).rmdir()
