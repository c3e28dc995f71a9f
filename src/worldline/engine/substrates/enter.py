"""Start a command inside an environment's namespace: `python -I -S enter.py HOLDER NAMESPACE USERS FOLDER COMMAND...`.

A program of its own, run by its path, that imports little: it stands before every command. HOLDER is the process id of
the environment's holder, NAMESPACE its descriptor of the namespace, USERS `1` where it has users of its own, FOLDER
the working directory inside.
"""

from __future__ import annotations

import ctypes
import os
import sys


def enter(holder: str, namespace: str, users: str, folder: str, command: list[str]) -> None:
    """Go in and become the command. Returns only by an exception."""
    libc = ctypes.CDLL(None, use_errno=True)
    own_users = [f"/proc/{holder}/ns/user"] if users == "1" else []
    opened = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in (*own_users, f"/proc/{holder}/fd/{namespace}")]
    for descriptor in opened:
        if libc.setns(ctypes.c_int(descriptor), ctypes.c_int(0)) < 0:
            raise OSError(ctypes.get_errno(), "the environment cannot be entered")
    os.chdir(folder)
    os.environ["PWD"] = folder
    os.execvp(command[0], command)


if __name__ == "__main__":
    try:
        enter(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    except OSError as problem:
        missing = isinstance(problem, FileNotFoundError)
        os.write(2, f"{sys.argv[5]}: {problem.strerror or problem}\n".encode(errors="replace"))
        sys.exit(127 if missing else 126)
