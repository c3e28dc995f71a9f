"""The process that holds environments' namespaces: `python -P -m ...substrates.holder SOCKET PARENT USERS`.

Every mount of an overlay stands in a namespace that only this process and what was started inside hold, so nobody else
sees it, and it ends with them. The holder ends when its parent does, whatever ended that, and takes along what still
runs inside. It needs no root where a user may have a user namespace; then it has one, in which it may mount.

One environment is one namespace: the layers are mounted at a place that exists in it alone (a path that leaks out leads
nowhere, not into the folder underneath), and once more at the workspace's own path. Requests and answers are JSON on a
socket of packets: `{"op": "stack", ...}`; an error is `{"errno": n, "why": text}`.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from worldline.engine.substrates import mounts

LONGEST = 1 << 20  # bytes of a request
_ROOM, _INODES = 256 << 10, 32  # bytes, and files: many times what the kernel takes for two work folders
HIDDEN = "workspace"  # what the place in the private memory is called


class Layers(NamedTuple):
    """What is mounted: folders from the top down, the one that is written to and its work folder, options."""

    lowers: list[str]
    upper: str | None
    work: str | None
    options: list[Any]


class Lost(Exception):
    """Nothing is mounted any more, and nothing can be."""


class Held:
    """One namespace. `workspace` is where commands see the layers (None: nowhere), `private` the folder for a view."""

    def __init__(self, outside: int, private: str, workspace: str | None) -> None:
        self.workspace = workspace
        self.view = f"{private}/{HIDDEN}"
        self.root: int | None = None
        self.mounted: Layers | None = None
        mounts.join(outside)
        mounts.unshare(mounts.NEW_NAMESPACE)
        self.namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        mounts.mount_memory(private)
        os.mkdir(self.view, 0o700)

    def enter(self) -> None:
        """Go into it."""
        mounts.join(self.namespace)

    def stack(self, layers: Layers) -> dict[str, Any]:
        """Take down what is mounted, and mount these layers. A failure leaves all as it was.

        Raises `OSError`, `Lost` where what was mounted could not be mounted again.
        """
        self.enter()
        before = self.mounted
        if before is not None and layers.work is not None:
            _refuse_full(layers.work)
        self._take_down()
        try:
            return self._mount(layers)
        except OSError as error:
            if before is None:
                raise
            try:
                if before.work is not None:
                    _unmark(before)
                self._mount(before)
            except OSError as again:
                raise Lost(f"{error.strerror}; and what was mounted before: {again.strerror}") from error
            raise

    def _mount(self, layers: Layers) -> dict[str, Any]:
        mounts.mount_overlay(self.view, *layers)
        if layers.upper is not None and os.statvfs(self.view).f_flag & os.ST_RDONLY:
            # The kernel had no room for its work folder, and lets nobody write rather than say so.
            mounts.unmount(self.view)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.mounted = layers
        if self.workspace is not None:
            mounts.mount_again(self.view, self.workspace)
        return self._shown()

    def _take_down(self) -> None:
        if self.mounted is None:
            return
        if self.workspace is not None:
            mounts.unmount(self.workspace)
        assert self.root is not None, "what is mounted is shown"
        reserved = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(reserved, self.root, inheritable=False)  # our own hold; the number stays taken
        os.close(reserved)
        try:
            mounts.unmount(self.view)
        except OSError:
            if self.workspace is not None:
                mounts.mount_again(self.view, self.workspace)
            self._shown()
            raise
        self.mounted = None

    def _shown(self) -> dict[str, Any]:
        """Open the root at its number, which stays the same for as long as the environment lives."""
        opened = os.open(self.view, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        if self.root is None:
            self.root = opened
        else:
            os.dup2(opened, self.root, inheritable=False)
            os.close(opened)
        return {"root": self.root, "namespace": self.namespace, "mounts": self.ids()}

    def ids(self) -> list[int]:
        """The numbers of the mounts that a process can hold."""
        found = []
        for path in filter(None, (self.view, self.workspace)):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            found.append(mounts.mount_id(descriptor))
            os.close(descriptor)
        return found

    def close(self) -> None:
        """End what runs inside, and let go. The kernel unmounts when the last hold is gone."""
        inode = os.fstat(self.namespace).st_ino
        for process in _inside(inode):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.enter()
        with suppress(OSError):  # it may be mounted nowhere; whatever is goes with the namespace
            if self.workspace is not None and self.mounted is not None:
                mounts.unmount(self.workspace, mounts.DETACH)
            mounts.unmount(os.path.dirname(self.view), mounts.DETACH)
        for descriptor in (self.root, self.namespace):
            if descriptor is not None:
                os.close(descriptor)


def _inside(inode: int) -> list[int]:
    """The processes that live in a mount namespace, this one not among them."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it ended, or it is somebody else's
            if os.stat(f"/proc/{name}/ns/mnt").st_ino == inode and int(name) != os.getpid():
                found.append(int(name))
    return found


class Holder:
    """Answers requests on a socket until it closes or the parent ends."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.outside = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        self.held: dict[str, Held] = {}
        self.operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "open": self.open,
            "stack": lambda asked: self.held[asked["env"]].stack(_layers(asked)),
            "close": self.close,
        }

    def open(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A new namespace, with layers in it."""
        held = Held(self.outside, asked["private"], asked["workspace"])
        try:
            answer = held.stack(_layers(asked))
        except OSError:
            held.close()
            raise
        self.held[asked["env"]] = held
        return answer

    def close(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Let go of one."""
        if (held := self.held.pop(asked["env"], None)) is not None:
            held.close()
            mounts.join(self.outside)
        return {}

    def serve(self, parent: int) -> None:
        """Until the parent has ended, whatever ended it, or closed the socket."""
        waiting = select.poll()
        for descriptor in (self.control.fileno(), parent):
            waiting.register(descriptor, select.POLLIN)
        while parent not in (ready := [descriptor for descriptor, _ in waiting.poll()]):
            if self.control.fileno() in ready and not self.answer():
                break
        for held in self.held.values():
            held.close()

    def answer(self) -> bool:
        """Answer one request. False where there will be no more."""
        data = self.control.recv(LONGEST)
        if not data:
            return False
        asked = json.loads(data)
        try:
            answer = self.operations[asked["op"]](asked)
        except OSError as error:
            answer = {"errno": error.errno or errno.EIO, "why": error.strerror or str(error)}
        except Lost as lost:
            answer = {"lost": str(lost)}
        with suppress(BrokenPipeError):  # then the next turn sees that nobody asks any more
            self.control.send(json.dumps(answer).encode())
        return True


def _layers(asked: dict[str, Any]) -> Layers:
    options = [option if isinstance(option, str) else tuple(option) for option in asked["options"]]
    return Layers(asked["lowers"], asked["upper"], asked["work"], options)


def _refuse_full(place: str) -> None:
    """Raise `OSError` where the kernel may find no room for what it makes in a work folder, or made there before."""
    state = os.statvfs(place)
    if state.f_bavail * state.f_frsize < _ROOM or (state.f_files and state.f_favail < _INODES):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _unmark(layers: Layers) -> None:
    """Let the kernel take layers again that were mounted volatile: it marks them, since a crash may have torn them.

    There was none: they were unmounted a moment ago, with all that was written to them.
    """
    assert layers.work is not None, "only what is written to is marked"
    mark = os.path.join(layers.work, "work", "incompat")
    with suppress(FileNotFoundError):
        os.unlink(f"{mark}/volatile/dirty")
    for path in (f"{mark}/volatile", mark):
        with suppress(FileNotFoundError):
            os.rmdir(path)


def main(descriptor: int, parent: int, own_users: bool) -> int:
    """Take namespaces, say so, and serve."""
    control = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt at the terminal is the parent's to handle
    try:
        watched = os.pidfd_open(parent)
        if os.getppid() != parent:  # it ended before it was watched
            return 1
        if own_users:
            mounts.take_users()
        else:
            mounts.unshare(mounts.NEW_NAMESPACE)
        mounts.keep_to_ourselves()
    except OSError as error:
        control.send(json.dumps({"errno": error.errno, "why": error.strerror or str(error)}).encode())
        return 1
    control.send(b"{}")
    Holder(control).serve(watched)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1"))
