"""MCP over stdin and stdout: the client that started us, and the server that we start.

Reading and writing of our own stdin and stdout happens in threads, so that it works with pipes, files and terminals
alike and changes nothing about them for others. The server has a process group of its own, so that all of it can be
ended; it never outlives the proxy.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from subprocess import PIPE
from typing import Protocol

from worldline.engine.threads import in_thread
from worldline.errors import CommandNotFound
from worldline.seams.mcp import frames
from worldline.seams.mcp.ends import Asked, Refusal, ServerGone
from worldline.seams.mcp.frames import Frame, Lines, NoMessage
from worldline.seams.wire.http import ClientGone, Headers

READ = 65_536
LAST_WORDS_SECONDS = 0.5  # for what an ended server has left in its pipe, where another process holds that open


class Listener(Protocol):
    """Who hears a server: a conversation."""

    async def told(
        self, frame: Frame, on: Asked | None = None, event: str | None = None, *, apart: bool = False
    ) -> None:
        """It said a message."""

    async def stray(self, data: bytes, why: str) -> None:
        """It wrote what is no message."""

    async def server_ended(self, why: str) -> None:
        """It is gone."""


class StdioClient:
    """The client behind our own stdin and stdout. An outlet."""

    def __init__(self, stdin: int = 0, stdout: int = 1, most: int = frames.FRAME_MAX) -> None:
        self._stdin, self._stdout, self._most = stdin, stdout, most
        self._one = asyncio.Lock()
        self._gone = False

    async def send(self, frame: Frame, event: str | None = None) -> None:
        """One line, written whole before the next."""
        async with self._one:
            if self._gone:
                raise ClientGone("the client no longer reads")
            try:
                await in_thread(_write, self._stdout, frames.one_line(frame.raw) + b"\n")
            except OSError as error:
                self._gone = True
                raise ClientGone(f"the client no longer reads ({error.strerror})") from None

    async def prime(self, event: str) -> None:
        """Nothing to do: pipes are not resumed."""

    async def refuse(self, frame: Frame, refusal: Refusal) -> None:
        """As an error: over pipes there is no status."""
        why = f"the server answered HTTP {refusal.status} {refusal.reason}".rstrip()
        data = {"status": refusal.status, "body": refusal.body}
        await self.send(frames.error(frame.id, frames.SERVER_GONE, why, data))

    async def messages(self) -> AsyncIterator[Frame]:
        """What the client says, to its end. What is no message is answered here, with one error."""
        lines = Lines(self._most)
        chunks: asyncio.Queue[bytes] = asyncio.Queue(4)
        loop = asyncio.get_running_loop()

        def read() -> None:
            data = b"?"
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                while data:
                    try:
                        data = os.read(self._stdin, READ)
                    except OSError:
                        data = b""
                    asyncio.run_coroutine_threadsafe(chunks.put(data), loop).result()

        threading.Thread(target=read, name="worldline-mcp-stdin", daemon=True).start()
        while data := await chunks.get():
            for line in lines.feed(data):
                if (frame := await self._read(line)) is not None:
                    yield frame
        if (rest := lines.end()) and (frame := await self._read(rest)) is not None:
            yield frame

    async def _read(self, line: bytes | None) -> Frame | None:
        try:
            if line is None:
                raise NoMessage(frames.INVALID_REQUEST, f"a message of more than {self._most:,} bytes")
            return frames.parse(line)
        except NoMessage as error:
            with suppress(ClientGone):
                await self.send(frames.error(None, error.code, f"worldline: {error}"))
            return None


class StdioServer:
    """A server behind pipes. `open` starts it.

    Its end is waited for apart from its pipes: what it started may hold those open for ever.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], stdout: asyncio.StreamReader, listener: Listener, name: str, most: int
    ) -> None:
        self._process = process
        self._stdout = stdout
        self._listener = listener
        self._name = name
        self._most = most
        self._closing = False
        self.gone = asyncio.Event()
        self._one = asyncio.Lock()
        self._reading = asyncio.create_task(self._read())
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def open(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        listener: Listener,
        name: str,
        most: int = frames.FRAME_MAX,
    ) -> StdioServer:
        """Start it. Raises `CommandNotFound`."""
        try:
            process = await in_thread(_start, command, environment)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CommandNotFound(f"cannot start the server '{command[0]}': {why}", command=command[0]) from error
        stdout = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), process.stdout)
        return cls(process, stdout, listener, name, most)

    async def send(self, frame: Frame, asked: Asked | None = None, headers: Headers = ()) -> None:
        """One line. Raises `ServerGone`."""
        stdin = self._process.stdin
        assert stdin is not None, "it was opened with a pipe"
        async with self._one:
            try:
                await in_thread(_write, stdin.fileno(), frames.one_line(frame.raw) + b"\n")
            except (OSError, ValueError) as error:
                raise ServerGone(f"{self._name} does not read any more ({error})") from None

    async def drop(self, asked: Asked) -> None:
        """Nothing to do: it was told by a notification."""

    async def leave(self) -> None:
        """Its stdin ends."""
        self._closing = True
        async with self._one:  # not under a write: its number might be another file's by then
            if self._process.stdin is not None:
                self._process.stdin.close()

    async def close(self, grace: float) -> None:
        """Its stdin ends; then it has `grace` seconds, then it is ended with all that it started."""
        closing = asyncio.create_task(self.leave())
        await self._gone_within(grace)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self._watching.done():
                self._signal(number)
                await self._gone_within(grace if number == signal.SIGTERM else None)
        self._signal(signal.SIGKILL)  # what it started and left behind
        await closing

    async def _gone_within(self, seconds: float | None) -> None:
        await asyncio.wait({self._watching}, timeout=seconds)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read(self) -> None:
        lines = Lines(self._most)
        while data := await self._stdout.read(READ):
            for line in lines.feed(data):
                if line is None:
                    await self._too_long()
                    return
                await self._take(line)
        if rest := lines.end():
            await self._take(rest)

    async def _too_long(self) -> None:
        """A message that cannot be passed on, and whose id nobody knows, ends a server: nobody can wait for it."""
        self._closing = True
        await self._listener.server_ended(f"{self._name} sent a message of more than {self._most:,} bytes")
        self._signal(signal.SIGTERM)
        while await self._stdout.read(READ):
            pass

    async def _take(self, line: bytes) -> None:
        try:
            frame = frames.parse(line)
        except NoMessage as error:
            await self._listener.stray(line, str(error))
            return
        await self._listener.told(frame)

    async def _watch(self) -> None:
        """Its end: what it still said is heard first."""
        code = await in_thread(self._process.wait)
        await asyncio.wait({self._reading}, timeout=LAST_WORDS_SECONDS)
        self._reading.cancel()
        self.gone.set()
        if not self._closing:
            how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with {code}"
            await self._listener.server_ended(f"{self._name} ended {how} before it answered")


def _start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, bufsize=0, start_new_session=True)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
