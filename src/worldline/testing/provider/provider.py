"""The provider as tests hold it: a server in a background thread with its own loop, started and stopped by `with`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from worldline.errors import PortInUse, UsageError
from worldline.testing.provider.routes import Request, Routes
from worldline.testing.provider.script import Script, parrot
from worldline.testing.provider.server import HOST, Server


class Provider:
    """A model provider on loopback that plays `script`.

    It speaks OpenAI Chat Completions and Responses below `openai_url`, Anthropic Messages below `anthropic_url` and
    Gemini's generateContent below `gemini_url`.
    Starting and stopping take milliseconds, so it may also be used within a running event loop. `port=0` takes a free
    one. `on_request` is called in the provider's thread with each request before it is answered.

    Leaving the `with` block raises the first error that the script raised, unless the block itself failed.
    """

    def __init__(
        self, script: Script = parrot, *, port: int = 0, on_request: Callable[[Request], None] | None = None
    ) -> None:
        self._asked_port = port
        self._port: int | None = None
        self._routes = Routes(script, on_request)
        self._server = Server(self._routes.respond)
        self._thread = threading.Thread(target=self._run, name="worldline-provider", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._settled = threading.Event()
        self._refused: OSError | None = None

    def start(self) -> Self:
        """Listen and serve; returns once the port is open.

        Raises:
            PortInUse: the port asked for is taken or not allowed.
            UsageError: it has been started before.
        """
        if self._thread.ident is not None:
            raise UsageError("this provider has been started before; make a new one")
        self._thread.start()
        self._settled.wait()
        if self._refused is not None:
            self._thread.join()
            raise PortInUse(
                f"the provider cannot listen on {HOST}:{self._asked_port} ({self._refused}); give another port, "
                "or 0 for a free one",
                port=self._asked_port,
            ) from self._refused
        return self

    def stop(self) -> None:
        """Stop listening and cut every connection. May be called again, and from the script."""
        if self._thread.ident is None or not self._thread.is_alive() or self._loop is None:
            return
        if threading.current_thread() is self._thread:
            self._server.cut()
            self._stopping.set()
            return
        # A closed loop raises: another thread has stopped it since the check.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None and self.failures:
            raise self.failures[0]

    @property
    def port(self) -> int:
        """The port it listens on, or listened on before it was stopped. Raises `UsageError` before the start."""
        if self._port is None:
            raise UsageError("the provider has no port yet; start it first, with `with Provider() as provider:`")
        return self._port

    @property
    def openai_url(self) -> str:
        """What `OPENAI_BASE_URL` takes."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        """What `ANTHROPIC_BASE_URL` takes."""
        return f"http://{HOST}:{self.port}"

    @property
    def gemini_url(self) -> str:
        """What `GOOGLE_GEMINI_BASE_URL` takes."""
        return f"http://{HOST}:{self.port}"

    @property
    def requests(self) -> list[Request]:
        """Everything seen so far, in order of arrival."""
        return self._routes.requests

    @property
    def connections(self) -> int:
        """How many TCP connections were accepted."""
        return self._server.connections

    @property
    def failures(self) -> list[Exception]:
        """What the script raised; the agent got a 500 each time."""
        return self._routes.failures

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self._port = self._server.start(self._asked_port)
        except (OSError, OverflowError) as error:
            self._refused = error if isinstance(error, OSError) else OSError(str(error))
            return
        finally:
            self._settled.set()
        await self._stopping.wait()
        self._server.cut()
        await self._server.closed()
