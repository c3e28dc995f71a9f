"""A client of the real SDK: what it does with a server, and all that it sees of it."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

PROGRAMS = Path(__file__).parent / "programs"
SHOP = (sys.executable, "-W", "ignore", str(PROGRAMS / "shop.py"))
Seen = list[Any]


class Guest:
    """A client with every callback; `seen` is what came to it, in order."""

    def __init__(self) -> None:
        self.seen: Seen = []
        self.messages: Seen = []  # what belongs to no request, which over HTTP comes in a stream of its own
        self._all = anyio.Event()

    async def sampling(self, _: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.seen.append(["asked for a model", params.messages[0].content.text, params.max_tokens])
        text = types.TextContent(type="text", text="take two")
        return types.CreateMessageResult(role="assistant", content=text, model="guess-1")

    async def elicitation(self, _: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.seen.append(["asked for a form", params.message])
        return types.ElicitResult(action="accept", content={"size": "small"})

    async def roots(self, _: Any) -> types.ListRootsResult:
        self.seen.append(["asked for roots"])
        return types.ListRootsResult(roots=[types.Root(uri="file:///home")])

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.append(["progress", progress, total, message])

    async def message(self, message: Any) -> None:
        if isinstance(message, Exception):
            self.seen.append(["exception", type(message).__name__])
        elif getattr(message, "method", None) in ("notifications/tools/list_changed", "notifications/message"):
            self.messages = sorted([*self.messages, message.method])
            if len(self.messages) == 2:
                self._all.set()

    @asynccontextmanager
    async def at(self, server: Any, **options: Any) -> Any:
        """A client of `server` with these callbacks."""
        async with Client(
            server,
            sampling_callback=self.sampling,
            elicitation_callback=self.elicitation,
            list_roots_callback=self.roots,
            message_handler=self.message,
            cache=None,
            **options,
        ) as client:
            yield client

    async def call(self, client: Client, tool: str, **arguments: Any) -> None:
        try:
            result = await client.call_tool(tool, arguments, progress_callback=self.progress)
            self.seen.append(result.model_dump(mode="json", by_alias=True))
        except MCPError as error:
            self.seen.append(["error", error.error.code, error.error.message])

    async def visit(self, client: Client) -> Seen:
        """Everything that a client of handshakes does with a shop, once."""
        dump = {"mode": "json", "by_alias": True}
        self.seen.append(client.session.initialize_result.model_dump(**dump))
        self.seen.append((await client.list_tools()).model_dump(**dump))
        for tool, arguments in (("look", {"order": 812}), ("stock", {}), ("refuse", {}), ("count", {"to": 3})):
            await self.call(client, tool, **arguments)
        await self.call(client, "consult", about="lamps")
        await self.call(client, "mail", to="bob")
        await self.call(client, "nosuch")
        self.seen.append((await client.list_resources()).model_dump(**dump))
        self.seen.append((await client.list_resource_templates()).model_dump(**dump))
        self.seen.append((await client.read_resource("shop://menu")).model_dump(**dump))
        self.seen.append((await client.read_resource("shop://item/lamp")).model_dump(**dump))
        try:
            await client.read_resource("shop://nothing")
        except MCPError as error:
            self.seen.append(["error", error.error.code, error.error.message])
        self.seen.append((await client.list_prompts()).model_dump(**dump))
        self.seen.append((await client.get_prompt("greet", {"name": "Bob"})).model_dump(**dump))
        await client.send_ping()
        with anyio.move_on_after(0.2) as gave_up:  # the SDK tells the server that it gave up
            await client.call_tool("wait", {})
        self.seen.append(["gave up", gave_up.cancelled_caught])
        await self.call(client, "grow")
        await self._all.wait()
        self.seen.append(self.messages)
        return self.seen

    async def visit_modern(self, client: Client) -> Seen:
        """What a client without a handshake does."""
        dump = {"mode": "json", "by_alias": True}
        self.seen.append(client.protocol_version)
        self.seen.append([tool.name for tool in (await client.list_tools()).tools])
        for tool, arguments in (("look", {"order": 812}), ("refuse", {}), ("count", {"to": 2}), ("wrap", {})):
            await self.call(client, tool, **arguments)
        self.seen.append((await client.read_resource("shop://menu")).model_dump(**dump))
        self.seen.append((await client.get_prompt("greet", {"name": "Bob"})).model_dump(**dump))
        with anyio.move_on_after(0.2):
            await client.call_tool("wait", {})
        await self.call(client, "known")
        return self.seen


def direct(command: tuple[str, ...] = SHOP, **variables: str) -> StdioServerParameters:
    """A server without a proxy."""
    return StdioServerParameters(command=command[0], args=list(command[1:]), env={**_coverage(), **variables})


def proxied(command: tuple[str, ...] = SHOP, *options: str, **variables: str) -> StdioServerParameters:
    """The same behind a proxy."""
    words = ["-m", "worldline", "mcp", *options, *(["--", *command] if command else ())]
    return StdioServerParameters(command=sys.executable, args=words, env={**_coverage(), **variables})


def _coverage() -> dict[str, str]:
    return {"PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
