"""An environment that holds 100 MB, and the same memory in a process that is forked by hand: `python -m ...heavy`."""

from __future__ import annotations

import gc
import os
import sys
import time

from worldline.engine.substrates import hugepages

MEGABYTES = 100


class Heavy:
    """An environment that holds 100 MB."""

    def __init__(self) -> None:
        self.memory = bytearray(b"\1" * (MEGABYTES << 20))

    def __call__(self, action: object) -> object:
        """Give the action back."""
        return action


def fork_by_hand() -> float:
    """Seconds until a child of `os.fork` has said that it is there."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.write(writing, b"x")
        os._exit(0)
    os.read(reading, 1)
    took = time.perf_counter() - began
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)
    return took


def main() -> None:
    """Fork at each line of input, with the memory in pages as the zygote has it, or as the kernel gave it (`small`)."""
    held = Heavy()
    gc.collect()
    gc.freeze()
    if sys.argv[1:] != ["small"]:
        hugepages.gather()
    for _ in sys.stdin:
        print(fork_by_hand(), flush=True)
    del held


if __name__ == "__main__":
    main()
