"""Memory in huge pages before a fork, which copies the table of pages: a huge one stands there for 512 small ones.

The kernel moves a block of 2 MiB into one page, in place (`MADV_COLLAPSE`, Linux 6.1). Only a block is moved that is
there (nearly) whole and that no other process shares: moving what is shared would make it twice. It is a hint, as all
of `madvise` is: where the kernel declines, or was told to have no huge pages at all, a fork takes the time that it
takes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

BLOCK = 2 << 20
_COLLAPSE = 25
_ENTRY = 8  # bytes of one in /proc/self/pagemap; the highest says that the page is there (7), and ours alone (0)
_HIGHEST = 7 if sys.byteorder == "little" else 0
_OURS_ALONE = bytes(byte for byte in range(256) if byte & 0x81 == 0x81)
_NOT_THERE = bytes(range(0x80))
_ABSENT = 1 / 8  # of a block may be missing, and is there then: it costs that memory
_SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def gather() -> int:
    """Move what can be moved. Returns how many blocks are in huge pages now; none where there are none to be had."""
    with suppress(OSError):  # no such kernel, or /proc is closed to this user
        if "[never]" not in _SETTING.read_text():
            return _gathered(ctypes.CDLL(None, use_errno=True))
    return 0


def _gathered(libc: ctypes.CDLL) -> int:
    moved = 0
    pages = BLOCK // os.sysconf("SC_PAGE_SIZE")
    pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for begin in list(_blocks()):
            entries = os.pread(pagemap, _ENTRY * pages, begin // BLOCK * _ENTRY * pages)
            others = entries[_HIGHEST::_ENTRY].translate(None, _OURS_ALONE)
            if len(entries) < _ENTRY * pages or len(others) > _ABSENT * pages or others.translate(None, _NOT_THERE):
                continue
            where = ctypes.c_void_p(begin), ctypes.c_size_t(BLOCK), ctypes.c_int(_COLLAPSE)
            moved += libc.madvise(*where) == 0
    finally:
        os.close(pagemap)
    return moved


def _blocks() -> Iterator[int]:
    """Where the aligned blocks of this process's own memory begin."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        for line in maps:
            span, mode, _, _, inode, *name = line.split(maxsplit=5)
            if mode != "rw-p" or inode != "0" or (name and name[0].strip() not in ("", "[heap]")):
                continue
            begin, end = (int(each, 16) for each in span.split("-"))
            yield from range(-(-begin // BLOCK) * BLOCK, end - BLOCK + 1, BLOCK)
