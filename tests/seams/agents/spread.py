"""An agent that spreads its calls over processes, one way for each word on its command line.

    python spread.py STORE|- WAY...

With a store it records by itself, with `-` it only joins. It prints what the tools gave, as one line of JSON.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from typing import Any

import worldline as wl

N = 3


@wl.tool(effect="pure")
def leaf(i: int) -> str:
    return f"{i * i}"


@wl.tool(effect="pure")
def outer(way: str) -> list[str]:
    return WAYS[way]()


def pool(kind: str) -> list[str]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind)) as workers:
        return list(workers.map(leaf, range(N)))


def process(kind: str) -> list[str]:
    context = multiprocessing.get_context(kind)
    queue = context.Queue()
    workers = [context.Process(target=put, args=(queue, i)) for i in range(N)]
    for worker in workers:
        worker.start()
    results = sorted(queue.get(timeout=30) for _ in workers)
    for worker in workers:
        worker.join()
    return results


def put(queue: Any, i: int) -> None:
    queue.put(leaf(i))


def subprocesses() -> list[str]:
    def run(i: int) -> str:
        command = [sys.executable, __file__, "-", "leaf", str(i)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    return [run(i) for i in range(N)]


def os_fork() -> list[str]:
    results = []
    for i in range(N):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, leaf(i).encode())
            sys.exit(0)  # unwinds through the parent's `with wl.record()`, which is not the child's to seal
        os.close(writing)
        results.append(os.read(reading, 100).decode())
        os.close(reading)
        assert os.waitpid(child, 0)[1] == 0
    return results


WAYS = {
    "pool-fork": lambda: pool("fork"),
    "pool-spawn": lambda: pool("spawn"),
    "process-fork": lambda: process("fork"),
    "process-spawn": lambda: process("spawn"),
    "subprocess": subprocesses,
    "os-fork": os_fork,
}


def main(store: str, *words: str) -> None:
    with wl.record(store) if store != "-" else nullcontext():
        if words[0] == "leaf":
            results: Any = leaf(int(words[1]))
        elif words[0] == "inside":
            results = [outer(way) for way in words[1:]]
        else:
            results = [WAYS[way]() for way in words]
        print(json.dumps(results), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
