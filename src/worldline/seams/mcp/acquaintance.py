"""What a server has to know of its client before it can be asked: the handshake, the log level, subscriptions.

On a branch the client said all that to the record. So it is said again, by the proxy, to the server that is started
behind the prefix; what the server answers is compared with what the client was told.
"""

from __future__ import annotations

import asyncio
from typing import Any

from worldline.errors import NotReproducible
from worldline.model import canon
from worldline.seams.mcp import frames
from worldline.seams.mcp.ends import Server
from worldline.seams.mcp.frames import Frame

PATIENCE = 60.0  # seconds for a server to answer each of these
_OURS = "worldline-"  # what ids of our own requests begin with
_STANDING = ("initialize", "logging/setLevel", "resources/subscribe")


class Acquaintance:
    """Keeps what was said to the record, and says it to a server."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._said: dict[tuple[str, Any], Frame] = {}
        self._told: Frame | None = None  # what the client was told when it introduced itself
        self._waiting: dict[bytes, asyncio.Future[Frame]] = {}

    def hear(self, frame: Frame) -> None:
        """A notification of the client."""
        if frame.method == "notifications/initialized":
            self._said[frame.method, None] = frame

    def served(self, frame: Frame, response: Frame) -> None:
        """A request of the client that the record answered."""
        if "result" not in response.value:
            return
        if frame.method == "initialize":
            self._told = response
        if frame.method in _STANDING:
            self._said[frame.method, frame.params.get("uri")] = frame
        elif frame.method == "resources/unsubscribe":
            self._said.pop(("resources/subscribe", frame.params.get("uri")), None)

    async def introduce(self, server: Server) -> str | None:
        """Say it to a server. A warning where it is not quite the one that was recorded.

        Raises `NotReproducible` where it cannot be spoken with as was agreed, and what sending raises.
        """
        warning = None
        for number, frame in enumerate(self._said.values()):
            if not frame.is_request:
                await server.send(frame)
                continue
            mine = frames.made({**frame.value, "id": f"{_OURS}{number}"})
            answer = self._waiting[mine.key] = asyncio.get_running_loop().create_future()
            await server.send(mine)
            try:
                response = await asyncio.wait_for(answer, PATIENCE)
            except TimeoutError:
                raise NotReproducible(
                    f"{self._server} does not answer {frame.method}, as it did when it was recorded"
                ) from None
            finally:
                self._waiting.pop(mine.key, None)
            if frame.method == "initialize":
                warning = self._differs(response)
        return warning

    def answered(self, frame: Frame) -> bool:
        """Whether a response is to a request of ours: then it is taken, and nobody else's."""
        waiting = self._waiting.get(frame.key)
        if waiting is not None and not waiting.done():
            waiting.set_result(frame)
        return waiting is not None

    def _differs(self, now: Frame) -> str | None:
        before = self._told.value.get("result", {}) if self._told is not None else {}
        if "error" in now.value:
            raise NotReproducible(
                f"{self._server} refuses the client that it welcomed when it was recorded: {now.value['error']}"
            )
        found = list(canon.differences(before, now.value["result"]))
        for path, recorded, actual in found:
            if path == "$.protocolVersion":
                raise NotReproducible(
                    f"{self._server} speaks another version of MCP than when it was recorded: {actual}, not {recorded}",
                    kind="changed",
                    path=path,
                    recorded=recorded,
                    actual=actual,
                )
        if not found:
            return None
        path, recorded, actual = found[0]
        return f"{self._server} is not what was recorded: {path} was {_short(recorded)}, is {_short(actual)}"


def _short(value: Any) -> str:
    return repr(value) if value is canon.MISSING else canon.canonical(value).decode("utf-8", "replace")[:80]
