"""Linux's calls for namespaces and mounts, by ctypes. The new mount API takes layers one by one (Linux 6.7).

The older `mount(2)` puts all layers into one page of text, which 100 of them fill. Nothing is imported but the standard
library, and nothing at all is called where this is not Linux.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Sequence
from functools import cache

NEW_NAMESPACE, NEW_USERS = 0x0002_0000, 0x1000_0000
DETACH = 2  # of umount2: out of sight now, gone when nobody holds it
_RECURSIVE = 1 << 14
_RECURSIVE_SLAVE = _RECURSIVE | (1 << 19)
_BIND, _REMOUNT, _READ_ONLY = 1 << 12, 1 << 5, 1
_LOCKED = {os.ST_NOSUID: 1 << 1, os.ST_NODEV: 1 << 2, os.ST_NOEXEC: 1 << 3, os.ST_NOATIME: 1 << 10}
_FSOPEN, _FSCONFIG, _FSMOUNT, _MOVE_MOUNT = 430, 431, 432, 429  # the same on every architecture
_SET_FLAG, _SET_STRING, _CREATE = 0, 1, 6
_CLOEXEC, _MOVE_EMPTY_PATH, _HERE = 1, 4, -100
_DEATH_SIGNAL, _SUBREAPER = 1, 36


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _call(what: str, number: int, *arguments: object) -> int:
    return _checked(_libc().syscall(ctypes.c_long(number), *arguments), what)


def _text(text: str | None) -> ctypes.c_char_p:
    return ctypes.c_char_p(None if text is None else os.fsencode(text))


def unshare(flags: int) -> None:
    """Put this process into namespaces of its own. Raises `OSError`."""
    _checked(_libc().unshare(ctypes.c_int(flags)), "unshare")


def take_users() -> None:
    """A user namespace in which this user, and nobody else, is who they are, and may mount. Raises `OSError`."""
    user, group = os.getuid(), os.getgid()
    unshare(NEW_USERS | NEW_NAMESPACE)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def join(namespace: int) -> None:
    """Go into the namespace that a descriptor names. Raises `OSError`."""
    _checked(_libc().setns(ctypes.c_int(namespace), ctypes.c_int(0)), "setns")


def die_with_parent(signal: int) -> None:
    """Be sent `signal` when the thread that started this process ends. Raises `OSError`."""
    _checked(_libc().prctl(_DEATH_SIGNAL, ctypes.c_ulong(signal), 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends. Raises `OSError`."""
    _checked(_libc().prctl(_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0), "prctl")


def keep_to_ourselves() -> None:
    """Nothing that is mounted in this namespace from here on shows outside; what is mounted outside shows here."""
    _mount(None, "/", None, _RECURSIVE_SLAVE)


def mount_memory(target: str) -> None:
    """An empty folder in memory at `target`. Raises `OSError`."""
    _mount("none", target, "tmpfs", 0)


def mount_again(source: str, target: str, *, with_below: bool = False) -> None:
    """Let `source` be seen at `target`, too; what is mounted below it only on request. Raises `OSError`."""
    _mount(source, target, None, _BIND | (_RECURSIVE if with_below else 0))


def make_read_only(target: str) -> None:
    """Nothing can be written through the mount at `target` any more. Raises `OSError`."""
    state = os.statvfs(target)  # what a mount has already cannot be taken off by who is not root outside
    locked = sum(flag for bit, flag in _LOCKED.items() if state.f_flag & bit)
    _mount(None, target, None, _BIND | _REMOUNT | _READ_ONLY | locked)


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    result = _libc().mount(_text(source), _text(target), _text(kind), ctypes.c_ulong(flags), _text(None))
    _checked(result, f"mount {target}")


def unmount(target: str, flags: int = 0) -> None:
    """Raises `OSError`: EBUSY while a process has a file or its working directory in it."""
    _checked(_libc().umount2(_text(target), ctypes.c_int(flags)), f"umount {target}")


def mount_overlay(
    target: str, lowers: Sequence[str], upper: str | None, work: str | None, options: Iterable[str | tuple[str, str]]
) -> None:
    """Mount layers at `target`, the topmost first; without an upper one they are read-only. Raises `OSError`."""
    context = _call("fsopen overlay", _FSOPEN, _text("overlay"), ctypes.c_uint(_CLOEXEC))
    try:
        for lower in lowers:
            _set(context, "lowerdir+", lower)
        if upper is not None:
            _set(context, "upperdir", upper)
            _set(context, "workdir", work)
        for option in options:
            _set(context, *((option, None) if isinstance(option, str) else option))
        _configure(context, _CREATE, None, None)
        made = _call("fsmount overlay", _FSMOUNT, ctypes.c_int(context), ctypes.c_uint(_CLOEXEC), ctypes.c_uint(0))
    except OSError as error:
        said = _said(context)
        raise OSError(error.errno, f"{error.strerror}{f' ({said})' if said else ''}") from None
    finally:
        os.close(context)
    try:
        where = (ctypes.c_int(made), _text(""), ctypes.c_int(_HERE), _text(target))
        _call(f"move_mount {target}", _MOVE_MOUNT, *where, ctypes.c_uint(_MOVE_EMPTY_PATH))
    finally:
        os.close(made)


def _set(context: int, key: str, value: str | None) -> None:
    _configure(context, _SET_FLAG if value is None else _SET_STRING, key, value)


def _configure(context: int, command: int, key: str | None, value: str | None) -> None:
    asked = (ctypes.c_int(context), ctypes.c_uint(command), _text(key), _text(value), ctypes.c_int(0))
    _call(f"overlay {key or 'create'}", _FSCONFIG, *asked)


def _said(context: int) -> str:
    """The kernel's own words on what was wrong with a mount."""
    words = []
    while True:
        try:
            words.append(os.read(context, 4096).decode(errors="replace").strip())
        except OSError as error:
            if error.errno != errno.EINTR:
                return "; ".join(words)


def mount_id(descriptor: int) -> int:
    """The number of the mount that an open file lies on, unique on this machine while it is mounted."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        for line in file:
            if line.startswith("mnt_id:"):
                return int(line.split()[1])
    raise OSError(errno.ENOSYS, "no mnt_id in fdinfo")
