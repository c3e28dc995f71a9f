"""A disk that forgets what was not synced: a real file system, whose power can be cut at any change that reaches it.

Run as a script it mounts itself and serves; its memory is the disk. `LossyDisk` is the side that tests hold: it says at
which change the power goes (whoever asks for that change is killed, and nothing changes any more), and lets what
survives of the tree appear in a plain directory, as often and in as many ways as it likes:

    nothing     what was synced, and nothing else: a file's bytes by its own sync, a name by the sync of its directory
    names       and every name, but no byte that was not synced: files are empty, or as long as they were
    bytes       and every byte, but no name that was not synced
    anything    of every unsynced sector and name, chance (by a seed) says whether it came to the medium

A rename happens whole or not at all, as journals have it; it is durable once both directories were synced.
"""

from __future__ import annotations

import errno
import json
import os
import random
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.fuse import ROOT, Connection, Node

SURVIVES = ("nothing", "names", "bytes", "anything")
SECTOR = 512
Names = dict[bytes, int]


class Move(NamedTuple):
    """A rename that is not durable yet: what was renamed, from where to where, and the directories not synced since."""

    number: int
    source: tuple[int, bytes]
    target: tuple[int, bytes]
    unsynced: set[int]


class Inode:
    """A file or a directory: as every process sees it, and what a sync made of it durable."""

    def __init__(self, mode: int) -> None:
        self.mode = mode
        self.data = bytearray()
        self.names: Names = {}
        self.links = 1
        self.durable_data = b""
        self.durable_names: Names = {}


class Disk:
    """The tree in memory. `cut_at` is the number of the change at which the power goes; 0 for never."""

    def __init__(self) -> None:
        self.inodes = {ROOT: Inode(stat.S_IFDIR | 0o755)}
        self.moves: list[Move] = []
        self.changes = self.cut_at = 0

    # What processes ask for (`tests.faults.fuse.FileSystem`).

    def asked(self, pid: int, verb: str) -> None:
        self.changes += 1
        if self.cut_at and self.changes >= self.cut_at:
            os.kill(pid, signal.SIGKILL)
            raise OSError(errno.EIO, "the power is gone")

    def node(self, number: int) -> Node:
        inode = self.inodes[number]
        return Node(number, inode.mode, inode.links, len(inode.data))

    def find(self, folder: int, name: bytes) -> int:
        if (number := self.inodes[folder].names.get(name)) is None:
            raise OSError(errno.ENOENT, "no such name")
        return number

    def names(self, folder: int) -> Iterable[tuple[bytes, int]]:
        return list(self.inodes[folder].names.items())

    def make(self, folder: int, name: bytes, mode: int) -> int:
        number = max(self.inodes) + 1
        self.inodes[number] = Inode(mode)
        self._name(folder, name, number)
        return number

    def link(self, number: int, folder: int, name: bytes) -> None:
        self._name(folder, name, number)
        self.inodes[number].links += 1

    def unlink(self, folder: int, name: bytes) -> None:
        self.inodes[self.inodes[folder].names.pop(name)].links -= 1

    def rename(self, folder: int, name: bytes, to: int, new: bytes) -> None:
        if (taken := self.inodes[to].names.get(new)) is not None:
            self.inodes[taken].links -= 1
        self.inodes[to].names[new] = number = self.inodes[folder].names.pop(name)
        self.moves.append(Move(number, (folder, name), (to, new), {folder, to}))

    def read(self, number: int, at: int, size: int) -> bytes:
        return bytes(self.inodes[number].data[at : at + size])

    def write(self, number: int, at: int, data: bytes) -> None:
        self.truncate(number, max(at, len(self.inodes[number].data)))
        self.inodes[number].data[at : at + len(data)] = data

    def truncate(self, number: int, size: int) -> None:
        data = self.inodes[number].data
        data[size:] = bytes(max(0, size - len(data)))

    def chmod(self, number: int, mode: int) -> None:
        self.inodes[number].mode = stat.S_IFMT(self.inodes[number].mode) | (mode & 0o7777)

    def sync(self, number: int) -> None:
        inode = self.inodes[number]
        inode.durable_data, inode.durable_names = bytes(inode.data), dict(inode.names)
        for move in self.moves:
            move.unsynced.discard(number)
        self.moves = [move for move in self.moves if move.unsynced]

    def _name(self, folder: int, name: bytes, number: int) -> None:
        if name in self.inodes[folder].names:
            raise OSError(errno.EEXIST, "the name is taken")
        self.inodes[folder].names[name] = number

    # What tests ask for.

    def empty(self, cut_at: int) -> None:
        """Forget everything; the power goes at that change."""
        self.__init__()  # type: ignore[misc]
        self.cut_at = cut_at

    def settle(self, cut_at: int) -> None:
        """All that is there is durable now; the power goes at that change, counted from here."""
        for number in self.inodes:
            self.sync(number)
        self.changes, self.cut_at = 0, cut_at

    def survives(self, way: str, seed: int, into: Path) -> None:
        """Let what outlives the cut appear in a plain directory, hard links and all."""
        _Survivors(self, way, random.Random(f"{way} {seed}")).place(ROOT, into)


class _Survivors:
    def __init__(self, disk: Disk, way: str, chance: random.Random) -> None:
        self._inodes = disk.inodes
        self._way = way
        self._chance = chance
        self._placed: dict[int, Path] = {}
        self._all_names = {
            number: self._names(inode) for number, inode in disk.inodes.items() if stat.S_ISDIR(inode.mode)
        }
        for move in disk.moves:
            self._happened(move)

    def place(self, number: int, path: Path) -> None:
        inode = self._inodes[number]
        if number in self._placed:
            os.link(self._placed[number], path)
        elif stat.S_ISDIR(inode.mode):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, inner in self._all_names[number].items():
                self.place(inner, path / os.fsdecode(name))
        else:
            path.write_bytes(self._data(inode))
            path.chmod(stat.S_IMODE(inode.mode))
            self._placed[number] = path

    def _names(self, inode: Inode) -> Names:
        if self._way in ("nothing", "bytes"):
            return dict(inode.durable_names)
        if self._way == "names":
            return dict(inode.names)
        return {
            name: number
            for name in sorted(inode.names.keys() | inode.durable_names.keys())
            if (number := self._either(inode.names.get(name), inode.durable_names.get(name))) is not None
        }

    def _happened(self, move: Move) -> None:
        """Let a rename have happened, or not, whatever else did."""
        happened = self._way == "names" or (self._way == "anything" and self._chance.random() < 0.5)
        for (folder, name), there in ((move.source, not happened), (move.target, happened)):
            if there:
                self._all_names[folder][name] = move.number
            elif self._all_names[folder].get(name) == move.number:
                del self._all_names[folder][name]

    def _data(self, inode: Inode) -> bytes:
        if self._way in ("nothing", "names"):
            return inode.durable_data
        if self._way == "bytes":
            return bytes(inode.data)
        size = self._either(len(inode.data), len(inode.durable_data))
        before, after = inode.durable_data.ljust(size, b"\0"), bytes(inode.data).ljust(size, b"\0")
        sectors = range(0, size, SECTOR)
        return b"".join(self._either(after[at : at + SECTOR], before[at : at + SECTOR]) for at in sectors)[:size]

    def _either(self, new: Any, old: Any) -> Any:
        return new if new == old else self._chance.choice((new, old))


class LossyDisk:
    """A mounted disk in a process of its own. Raises `OSError` where it cannot be mounted."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.lossy_disk", str(place)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        if why := self._answer().get("cannot"):
            self.close()
            raise OSError(why)

    def empty(self, cut_at: int = 0) -> None:
        """Forget everything; the power goes at that change (0: never)."""
        self._ask("empty", cut_at)

    def settle(self, cut_at: int = 0) -> None:
        """What is there now is durable; the power goes at that change, counted from here (0: never)."""
        self._ask("settle", cut_at)

    def changes(self) -> int:
        """How many changes and syncs were asked for since."""
        return int(self._ask("changes")["is"])

    def survives(self, way: str, seed: int, into: Path) -> Path:
        """A plain directory with what outlives a cut right now, in one of the ways of `SURVIVES`."""
        self._ask("survives", way, seed, str(into))
        return into

    def close(self) -> None:
        """Unmount."""
        self._to.close()
        self._process.wait()
        self._from.close()

    def _ask(self, verb: str, *words: Any) -> dict[str, Any]:
        self._to.write(json.dumps([verb, *words]).encode() + b"\n")
        self._to.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._from.readline())
        return answer


def _obey(disk: Disk, verb: str, *words: Any) -> dict[str, Any]:
    match verb:
        case "empty":
            disk.empty(*words)
        case "settle":
            disk.settle(*words)
        case "changes":
            return {"is": disk.changes}
        case "survives":
            disk.survives(words[0], words[1], Path(words[2]))
    return {}


def main(place: Path) -> None:
    """Mount, and serve until stdin is closed."""
    disk = Disk()
    try:
        connection = Connection(disk, place)
    except OSError as error:
        print(json.dumps({"cannot": str(error)}), flush=True)
        return
    print("{}", flush=True)
    try:
        with open(0, "rb", buffering=0, closefd=False) as asks:
            while True:
                ready, _, _ = select.select([connection.device, asks], [], [])
                if connection.device in ready:
                    connection.serve()
                elif not (line := asks.readline()):
                    return
                else:
                    print(json.dumps(_obey(disk, *json.loads(line))), flush=True)
    finally:
        connection.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
