"""Starting a command so that it finds a branch's workspace where the recorded run had its own: at the same path.

    python -m worldline.seams.within BRANCH ORIGINAL [--keep PATH]... -- CMD...

It makes a mount namespace of its own, with a user namespace around it where it is not root, puts the branch's folder in
the place of the original, and becomes the command. Nobody else sees that, and nothing of it is left when the command
has ended. Each `PATH` below the original was no part of the environment; the command sees it as it is, read-only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from worldline.engine.substrates import mounts

if TYPE_CHECKING:
    from worldline.engine.spec import WorkspaceSpec

CANNOT = 126  # the exit code of shells for what cannot be executed


def launched(branch: Path, original: Path, keep: Sequence[Path], command: Sequence[str]) -> list[str]:
    """The words that start `command` with `branch` in the place of `original`."""
    kept = [word for path in keep for word in ("--keep", str(path))]
    return [sys.executable, "-m", __name__, str(branch), str(original), *kept, "--", *command]


@cache
def why_not() -> str | None:
    """Why a command cannot have a view of its own of the file system here; None where it can, found out by doing it."""
    if sys.platform != "linux":
        return f"{sys.platform} has no mount namespaces"
    tried = subprocess.run(
        launched(Path("/"), Path("/"), [], ["true"]), capture_output=True, text=True, check=False, timeout=30
    )
    said = tried.stderr.strip().splitlines()
    return None if tried.returncode == 0 else (said[-1] if said else f"it ended with {tried.returncode}")


class Start(NamedTuple):
    """How a command starts in a workspace that stands elsewhere: its words, its folder (None: where we are).

    `masked` says why it sees that workspace at another path than the recorded one; None where it does not.
    """

    words: list[str]
    folder: Path | None
    masked: str | None


def placed(root: Path, spec: WorkspaceSpec, command: Sequence[str], left_out: Sequence[str] = ()) -> Start:
    """Start a command in `root`, at the path where the recorded run had its workspace wherever that can be.

    What was excluded there, and the files of `left_out`, are seen as they are.
    """
    original = Path(spec.path)
    why = why_not() if original.is_dir() else "it is gone"
    if why is not None:
        return Start(list(command), root, why)
    keep = [path for glob in spec.exclude for path in sorted(original.glob(glob))]
    keep += [path for path in map(original.joinpath, left_out) if path.exists()]
    return Start(launched(root, original, keep, command), None, None)


def enter(branch: Path, original: Path, keep: Sequence[Path]) -> None:
    """Show `branch` in the place of `original` to this process and its children. Raises `OSError`."""
    here = Path.cwd()
    if os.geteuid() == 0:
        mounts.unshare(mounts.NEW_NAMESPACE)
    else:  # it stays who it was: files that it makes are its own, outside too
        mounts.take_users()
    mounts.keep_to_ourselves()
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in keep if path.exists()}
    if branch != original:
        mounts.mount_again(os.fspath(branch), os.fspath(original), with_below=True)
    for path, descriptor in held.items():
        _show(path, descriptor)
    os.chdir(here if here.is_relative_to(original) and here.is_dir() else original)


def _show(path: Path, descriptor: int) -> None:
    """What stands behind `descriptor`, at `path` and read-only; where the branch has nothing there a place is made."""
    source = Path(f"/proc/self/fd/{descriptor}")
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if source.is_dir() else path.touch()
    mounts.mount_again(os.fspath(source), os.fspath(path), with_below=True)
    mounts.make_read_only(os.fspath(path))


def main(words: list[str]) -> None:
    """Enter, and become the command."""
    mine, command = words[: words.index("--")], words[words.index("--") + 1 :]
    branch, original, *kept = (Path(word) for word in mine if word != "--keep")
    try:
        enter(branch, original, kept)
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"worldline: {command[0]}: {error.strerror}\n")
        sys.exit(CANNOT)


if __name__ == "__main__":
    main(sys.argv[1:])
