"""Threads for the door's blocking work, apart from the executor of the agent's own loop.

An agent may fill its default executor with work that waits for the very call that crosses, and on a replay many calls
wait at once for others to come: neither may starve the other. Threads start when they are needed.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
MOST = 1024

_pools: list[ThreadPoolExecutor] = []
os.register_at_fork(after_in_child=_pools.clear)  # a forked child has none of its parent's threads


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `function` in a thread of ours, in the caller's context; raises what it raises."""
    if not _pools:
        _pools.append(ThreadPoolExecutor(MOST, thread_name_prefix="worldline-door"))
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_pools[0], lambda: context.run(function, *args, **kwargs))
