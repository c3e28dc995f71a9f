"""The near side of the process that holds namespaces (`holder.py`): starts, asks, names who keeps it busy."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from worldline.engine.substrates import mounts
from worldline.errors import Busy, ResourceExhausted, Unavailable

ENTER = str(Path(__file__).with_name("enter.py"))
_FULL = {
    errno.ENOSPC: "disk",
    errno.EDQUOT: "disk",
    errno.ENOMEM: "memory",
    errno.EMFILE: "files",
    errno.ENFILE: "files",
}
_ANSWER = 1 << 16

Option = str | tuple[str, str]


class Layers(NamedTuple):
    """What is mounted: folders from the top down, the one that is written to (None: read-only) and its work folder."""

    lowers: Sequence[str]
    upper: str | None = None
    work: str | None = None


class Shown(NamedTuple):
    """The layers' folder as this process sees it, the namespace's descriptor in the holder, and its mounts."""

    root: Path
    namespace: int
    mounts: tuple[int, ...]


class Namespaces:
    """One holder process and what it holds. It is started with the first question and ends with `close`, or with us.

    With `own_users` it has a user namespace, which needs no root. Raises `Unavailable` where it cannot be had.
    """

    def __init__(self, own_users: bool) -> None:
        self.own_users = own_users
        self.options: tuple[Option, ...] = ("volatile", ("index", "off"), *(("userxattr",) if own_users else _ROOTS))
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the holder, None while there is none."""
        return self._process.pid if self._process is not None else None

    def open(self, env: str, layers: Layers, private: Path, workspace: Path | None) -> Shown:
        """A new namespace with these layers in it. `private` is a folder that its view is hidden behind."""
        place = {"private": str(private), "workspace": None if workspace is None else str(workspace)}
        return self._shown(self._ask({"op": "open", "env": env, **place, **self._layers(layers)}), layers)

    def stack(self, env: str, layers: Layers) -> Shown:
        """Other layers in the same namespace. Raises `OSError` with EBUSY and nothing changed while it is in use."""
        return self._shown(self._ask({"op": "stack", "env": env, **self._layers(layers)}), layers)

    def forget(self, env: str) -> None:
        """End what runs in a namespace and let go of it. Nothing happens where the holder has ended, and it with it."""
        if self._process is not None:
            with suppress(Unavailable):
                self._ask({"op": "close", "env": env})

    def command(self, shown: Shown, folder: Path, argv: Iterable[str]) -> list[str]:
        """The words that start a command inside."""
        users = "1" if self.own_users else "0"
        inside = [str(self.pid), str(shown.namespace), users, str(folder)]
        return [sys.executable, "-I", "-S", ENTER, *inside, *argv]

    def close(self) -> None:
        """End the holder, and all that it holds."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.wait()
            self._control = self._process = None

    def _layers(self, layers: Layers) -> dict[str, Any]:
        options = self.options if layers.upper is not None else [each for each in self.options if each != "volatile"]
        return {**layers._asdict(), "options": options}

    def _shown(self, answer: dict[str, Any], layers: Layers) -> Shown:
        if (lost := answer.get("lost")) is not None:
            raise _unavailable(lost)
        number = answer.get("errno")
        if number is None:
            return Shown(Path(f"/proc/{self.pid}/fd/{answer['root']}"), answer["namespace"], tuple(answer["mounts"]))
        if number in _FULL:
            what = f"{len(layers.lowers)} layers cannot be mounted: {answer['why']}"
            raise ResourceExhausted(what, resource=_FULL[number])
        raise OSError(number, answer["why"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._process is None:
                self._start()
            assert self._control is not None, "a holder that was started is listened to"
            try:
                self._control.send(json.dumps(question).encode())
                data = self._control.recv(_ANSWER)
            except OSError as error:
                raise _unavailable(f"its holder cannot be asked: {error.strerror}") from None
        if not data:
            raise _unavailable("the process that holds its mounts has ended")
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            theirs_to_use = [str(theirs.fileno()), str(os.getpid()), "1" if self.own_users else "0"]
            module = f"{__package__}.holder"
            try:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", module, *theirs_to_use],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    cwd="/",
                )
            except OSError as error:
                ours.close()
                raise _unavailable(f"its holder cannot be started: {error.strerror}") from None
        said = ours.recv(_ANSWER)
        if said != b"{}":
            ours.close()
            process.wait()
            raise _unavailable(json.loads(said)["why"] if said else "its holder did not start")
        self._process, self._control = process, ours


# Root's layers let folders be renamed. An index would keep hard links in two layers together, and lose them in more.
_ROOTS: tuple[Option, ...] = (("redirect_dir", "on"),)


def _unavailable(why: str) -> Unavailable:
    return Unavailable(f"overlay is not available: {why}", substrate="overlay", why=why)


def busy(ids: Sequence[int], holder: int | None) -> Busy:
    """The error for mounts that are in use, with who uses them as far as this process may see it."""
    pids, paths = [], []
    for name in filter(str.isdigit, os.listdir("/proc")):
        held = _held(Path("/proc", name), frozenset(ids)) if int(name) != holder else []
        if held:
            pids.append(int(name))
            paths += held
    who = f"process {', '.join(map(str, pids))}: {', '.join(paths)}" if pids else "something this user cannot see"
    return Busy(f"the workspace is in use by {who}; snapshots are taken between tool calls", pids=pids, fds=paths)


def _held(process: Path, ids: frozenset[int]) -> list[str]:
    """What of these mounts a process holds: open files, its working directory, its root, its program."""
    found = []
    links = [process / "cwd", process / "root", process / "exe"]
    with suppress(OSError):  # it ended, or it is somebody else's
        links += (process / "fd").iterdir()
    for link in links:
        with suppress(OSError):
            descriptor = os.open(link, os.O_PATH | os.O_CLOEXEC)
            try:
                if mounts.mount_id(descriptor) in ids:
                    found.append(os.readlink(link))
            finally:
                os.close(descriptor)
    return found
