"""The kernel's side of a file system in user space, spoken directly: the FUSE protocol over /dev/fuse (Linux, root).

`Connection` mounts, decodes each request for a `FileSystem` and encodes what it answers. Only what a recorder uses is
here: files, directories, hard links, renaming, syncing. Nothing is cached for longer than a call, so what the file
system says is what every process sees. Structures: linux/fuse.h, protocol 7.31.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

DEVICE = Path("/dev/fuse")
ROOT = 1
MOST = 128 << 10  # bytes of one write
BLOCK = 4096
DETACH = 2
OPCODES = {
    1: "lookup", 3: "getattr", 4: "setattr", 9: "mkdir", 10: "unlink", 11: "rmdir", 12: "rename", 13: "link",
    14: "open", 15: "read", 16: "write", 17: "statfs", 18: "release", 20: "fsync", 25: "flush", 26: "init",
    27: "opendir", 28: "readdir", 29: "release", 30: "fsync", 35: "create", 45: "rename2",
}  # fmt: skip
UNANSWERED = (2, 36, 42)  # forget, interrupt, batch_forget
MODE, SIZE = 1, 8  # what a setattr sets


class Node(NamedTuple):
    """What `stat` tells of an inode: its number, mode, number of names and size (bytes)."""

    number: int
    mode: int
    links: int
    size: int


class FileSystem(Protocol):
    """What a file system does. Inodes are numbers, names are bytes; each method may raise `OSError`."""

    def asked(self, pid: int, verb: str) -> None:
        """Process `pid` asks for a change or a sync (`verb`), which comes next."""

    def node(self, number: int) -> Node:
        """An inode."""

    def find(self, folder: int, name: bytes) -> int:
        """The inode of a name."""

    def names(self, folder: int) -> Iterable[tuple[bytes, int]]:
        """The names in a directory."""

    def make(self, folder: int, name: bytes, mode: int) -> int:
        """A new file or directory."""

    def link(self, number: int, folder: int, name: bytes) -> None:
        """A further name."""

    def unlink(self, folder: int, name: bytes) -> None:
        """One name less."""

    def rename(self, folder: int, name: bytes, to: int, new: bytes) -> None:
        """Another name, which may be taken: then what had it loses it."""

    def read(self, number: int, at: int, size: int) -> bytes:
        """Bytes of a file."""

    def write(self, number: int, at: int, data: bytes) -> None:
        """Put bytes into a file."""

    def truncate(self, number: int, size: int) -> None:
        """Cut or lengthen a file."""

    def chmod(self, number: int, mode: int) -> None:
        """Set the permissions."""

    def sync(self, number: int) -> None:
        """Make a file's bytes, or a directory's names, durable."""


CHANGING = ("setattr", "mkdir", "unlink", "rmdir", "rename", "rename2", "link", "write", "fsync", "create")


class Connection:
    """A mounted file system. Raises `OSError` where it cannot be mounted."""

    def __init__(self, system: FileSystem, place: Path) -> None:
        self._system = system
        self._place = str(place).encode()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other".encode()
        if self._libc.mount(b"lossy", self._place, b"fuse", 0, options) != 0:
            code = ctypes.get_errno()
            os.close(self.device)
            raise OSError(code, os.strerror(code), str(place))

    def close(self) -> None:
        """Unmount."""
        self._libc.umount2(self._place, DETACH)
        os.close(self.device)

    def serve(self) -> None:
        """Answer one request; it has to be there."""
        request = os.read(self.device, MOST + BLOCK)
        _, opcode, unique, node, _, _, pid, _ = struct.unpack_from("<IIQQIIII", request)
        if opcode in UNANSWERED:
            return
        verb = OPCODES.get(opcode)
        answer, code = b"", errno.ENOSYS
        if verb is not None:
            try:
                if verb in CHANGING:
                    self._system.asked(pid, verb)
                method: Callable[[int, bytes], bytes] = getattr(self, f"_{verb}")
                answer, code = method(node, request[40:]), 0
            except OSError as error:
                code = error.errno or errno.EIO
        os.write(self.device, struct.pack("<IiQ", 16 + len(answer), -code, unique) + answer)

    def _attributes(self, number: int) -> bytes:
        node = self._system.node(number)
        blocks = -(-node.size // 512)
        times = (0,) * 3
        owner = (os.getuid(), os.getgid())
        head = struct.pack("<6Q", number, node.size, blocks, *times)
        return head + struct.pack("<10I", *times, node.mode, node.links, *owner, 0, BLOCK, 0)

    def _entry(self, number: int) -> bytes:
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self._attributes(number)

    def _init(self, node: int, body: bytes) -> bytes:
        return struct.pack("<4I2H2I2H2I6I", 7, 31, MOST, 0, 12, 9, MOST, 1, MOST // BLOCK, 0, 0, 0, *(0,) * 6)

    def _lookup(self, node: int, body: bytes) -> bytes:
        return self._entry(self._system.find(node, body[:-1]))

    def _getattr(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self._attributes(node)

    def _setattr(self, node: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        if valid & SIZE:
            self._system.truncate(node, size)
        if valid & MODE:
            (mode,) = struct.unpack_from("<I", body, 68)
            self._system.chmod(node, mode)
        return self._getattr(node, body)

    def _mkdir(self, node: int, body: bytes) -> bytes:
        mode, umask = struct.unpack_from("<II", body)
        return self._entry(self._system.make(node, body[8:-1], stat.S_IFDIR | (mode & ~umask & 0o7777)))

    def _create(self, node: int, body: bytes) -> bytes:
        _, mode, umask = struct.unpack_from("<III", body)
        made = self._system.make(node, body[16:-1], stat.S_IFREG | (mode & ~umask & 0o7777))
        return self._entry(made) + self._open(made, b"")

    def _link(self, node: int, body: bytes) -> bytes:
        (old,) = struct.unpack_from("<Q", body)
        self._system.link(old, node, body[8:-1])
        return self._entry(old)

    def _unlink(self, node: int, body: bytes) -> bytes:
        self._system.unlink(node, body[:-1])
        return b""

    _rmdir = _unlink

    def _rename(self, node: int, body: bytes, start: int = 8) -> bytes:
        (to,) = struct.unpack_from("<Q", body)
        old, new, _ = body[start:].split(b"\0")
        self._system.rename(node, old, to, new)
        return b""

    def _rename2(self, node: int, body: bytes) -> bytes:
        return self._rename(node, body, start=16)

    def _open(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0)

    _opendir = _open

    def _release(self, node: int, body: bytes) -> bytes:
        return b""

    _flush = _release

    def _read(self, node: int, body: bytes) -> bytes:
        _, at, size = struct.unpack_from("<QQI", body)
        return self._system.read(node, at, size)

    def _write(self, node: int, body: bytes) -> bytes:
        _, at, size = struct.unpack_from("<QQI", body)
        self._system.write(node, at, body[40 : 40 + size])
        return struct.pack("<II", size, 0)

    def _fsync(self, node: int, body: bytes) -> bytes:
        self._system.sync(node)
        return b""

    def _readdir(self, node: int, body: bytes) -> bytes:
        _, at, size = struct.unpack_from("<QQI", body)
        answer = b""
        for index, (name, number) in enumerate(self._system.names(node)):
            kind = stat.S_IFMT(self._system.node(number).mode) >> 12
            entry = struct.pack("<QQII", number, index + 1, len(name), kind) + name
            entry += bytes(-len(entry) % 8)
            if index >= at:
                if len(answer) + len(entry) > size:
                    break
                answer += entry
        return answer

    def _statfs(self, node: int, body: bytes) -> bytes:
        plenty = 1 << 20
        return struct.pack("<5Q4I6I", *(plenty,) * 5, BLOCK, 255, BLOCK, 0, *(0,) * 6)
