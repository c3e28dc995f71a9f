"""The mounts and loop devices of this machine that are not another worker's: tests beside these mount disks, too."""

from __future__ import annotations

from pathlib import Path, PurePath

from tests.conftest import IN_MEMORY, WORKER
from worldline.testing import subject

FOLDERS = (f"popen-{WORKER}", IN_MEMORY)  # how those of this worker's tests begin, see pytest-xdist and `quick`
OF_ANY = ("popen-gw", "worldline-gw")


def world() -> dict[str, set[str]]:
    """`worldline.testing.subject.world`, without what stands in the folders of other workers' tests."""
    found = subject.world()
    loops = {name: backing_file(name) for name in found["loops"]}
    return {
        **found,
        "mounts": {line for line in found["mounts"] if not is_of_others(line.split(" ")[4])},
        "loops": {name for name, path in loops.items() if path is not None and not is_of_others(path)},
    }


def is_of_others(path: str) -> bool:
    """Whether a path leads into a folder of another worker's test."""
    return any(part.startswith(OF_ANY) and not part.startswith(FOLDERS) for part in PurePath(path).parts)


def backing_file(loop: str) -> str | None:
    """The file behind a loop device; None where it is in use no more."""
    try:
        return Path(f"/sys/block/{loop}/loop/backing_file").read_text().strip()
    except OSError:
        return None
