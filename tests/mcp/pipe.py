"""A client of a few lines, without any SDK: it writes lines to a proxy and reads what comes back."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

BARE = (sys.executable, str(Path(__file__).parent / "programs" / "bare.py"))
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pipe", "version": "1"}}
PATIENCE = 60  # seconds for what comes at once


class Pipe:
    """A proxy, as its client has it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.others: list[Any] = []  # what came that is no answer to what was asked last
        self._id = 0
        self.err = b""

    async def raw(self, data: bytes) -> None:
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def say(self, method: str, **params: Any) -> None:
        await self.raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    async def begin(self, method: str, **params: Any) -> int:
        self._id += 1
        asked = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        await self.raw(json.dumps(asked).encode() + b"\n")
        return self._id

    async def line(self) -> Any:
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        return json.loads(line) if line else None

    async def answer(self, identifier: Any) -> Any:
        while (line := await self.line()) is not None:
            if line.get("id") == identifier and "method" not in line:
                return line
            self.others.append(line)
        return None

    async def ask(self, method: str, **params: Any) -> Any:
        """The result, or the error."""
        answer = await self.answer(await self.begin(method, **params))
        return answer.get("result", answer.get("error"))

    async def call(self, tool: str, **arguments: Any) -> Any:
        """The text of a tool's result; the error where there is none."""
        result = await self.ask("tools/call", name=tool, arguments=arguments)
        return result["content"][0]["text"] if "content" in result else result

    async def hello(self) -> None:
        await self.ask("initialize", **INITIALIZE)
        await self.say("notifications/initialized")
        await self.ask("tools/list")

    async def close(self) -> int:
        """Its exit code. `err` is all that it and what it started said: nobody may be left who could say more."""
        self.process.stdin.close()
        self.err = await asyncio.wait_for(self.process.stderr.read(), PATIENCE)
        return await self.process.wait()


@asynccontextmanager
async def pipe(*options: str, server: tuple[str, ...] = BARE, **variables: str) -> AsyncIterator[Pipe]:
    """A proxy before `server`; closed at the end, where it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "worldline", "mcp", "--name", "bare", *options, *(("--", *server) if server else ())),
        env={**os.environ, **variables},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=8 << 20,
    )
    opened = Pipe(process)
    try:
        yield opened
    finally:
        if process.returncode is None:
            await opened.close()
