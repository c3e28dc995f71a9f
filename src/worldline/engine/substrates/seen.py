"""What a scanner knows of a workspace that it read: by what a file is known again, and when that can be believed.

A file is as it was where its size, both its times, its inode and its mode are (git's key), and where it had been left
alone for a moment when it was read: else a later change could have the same times.
"""

from __future__ import annotations

import os

import msgspec

from worldline.model.tree import File, Folder, Symlink

Key = tuple[int, int, int, int, int]  # size, mtime and ctime in ns, inode, mode
SETTLED_NS = 20_000_000  # longer than two ticks of any kernel's clock
SETTLED_COARSE_NS = 2_100_000_000  # for file systems that keep whole seconds, or two


class Seen(msgspec.Struct, frozen=True, gc=False):
    """A file or link as it was read: believed again where its key is the same and it was settled."""

    key: Key
    settled: bool
    entry: File | Symlink


class SeenFolder(msgspec.Struct):
    """A folder as it was read, with all below it."""

    entry: Folder
    files: dict[str, Seen] = {}
    folders: dict[str, SeenFolder] = {}


def key_of(state: os.stat_result) -> Key:
    """By what a file is known again."""
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, state.st_mode


def settled(state: os.stat_result, taken: int) -> bool:
    """Whether a file had been left alone when it was read at `taken` (Unix ns), so that a later change shows."""
    latest = max(state.st_mtime_ns, state.st_ctime_ns)
    coarse = latest % 1_000_000_000 == 0
    return latest + (SETTLED_COARSE_NS if coarse else SETTLED_NS) < taken


def same_entries(found: SeenFolder, before: SeenFolder) -> bool:
    """Whether a folder's document would be the same."""
    if found.files.keys() != before.files.keys() or found.folders.keys() != before.folders.keys():
        return False
    files, folders = before.files, before.folders
    return all(seen is files[name] or seen.entry == files[name].entry for name, seen in found.files.items()) and all(
        seen.entry == folders[name].entry for name, seen in found.folders.items()
    )
