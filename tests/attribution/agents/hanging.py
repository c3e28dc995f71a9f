"""Agents that never end, each in its own way. As a command, the one that computes."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


def computes() -> None:
    while True:
        pass


async def awaits() -> None:
    await asyncio.Event().wait()


def swallows() -> None:
    while True:
        with suppress(BaseException):
            threading.Event().wait()


if __name__ == "__main__":
    computes()
