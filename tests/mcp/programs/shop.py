"""A shop as an MCP server, with the SDK's high-level API: tools of every kind, resources, prompts, questions."""

from __future__ import annotations

import os
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Annotated

import anyio
import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

shop = MCPServer("shop", version="1.0", instructions="A small shop.", log_level="CRITICAL")
with Path(os.environ.get("SHOP_STARTS", os.devnull)).open("a") as starts:
    starts.write("started\n")


class Size(BaseModel):
    size: str


@shop.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def look(order: int) -> str:
    """What was ordered."""
    return f"order {order}: lamp"


@shop.tool()
def mail(to: str) -> str:
    """Post a mail: an effect outside, which is counted there."""
    with urllib.request.urlopen(urllib.request.Request(f"{os.environ['SHOP']}/mail/{to}", b"")) as answer:
        return answer.read().decode()


@shop.tool()
def stock() -> dict[str, int | float | str]:
    """Plain data, with what JSON libraries quarrel about."""
    return {"lamps": 2**63 + 1, "price": 1.0, "name": "Lämpchen 🕯"}


@shop.tool()
def refuse() -> str:
    """It fails."""
    raise ValueError("we are closed")


@shop.tool()
async def count(to: int, ctx: Context) -> str:
    """Reports how far it is."""
    for at in range(to):
        await ctx.report_progress(at + 1, to, f"at {at + 1}")
    return f"counted to {to}"


@shop.tool()
async def consult(about: str, ctx: Context) -> str:
    """Asks the client's model, then its user, then for its roots."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=about))
    said = await ctx.session.create_message([message], max_tokens=10)
    size = await ctx.elicit("Which size?", Size)
    roots = await ctx.session.list_roots()
    return f"{said.content.text}, {size.data.size if size.action == 'accept' else size.action}, {len(roots.roots)} root"


@shop.tool()
async def grow(ctx: Context) -> str:
    """Says that its tools are others now, and logs that."""
    await ctx.info("growing")
    await ctx.session.send_tool_list_changed()
    return "grown"


@shop.tool()
async def wait() -> str:
    """Never ends by itself."""
    await anyio.sleep_forever()
    return ""


@shop.tool()
async def known(ctx: Context) -> bool:
    """Whether its client shows a token."""
    return "authorization" in (ctx.headers or {})


async def which() -> Elicit[Size]:
    """The question before a tool runs."""
    return Elicit("Which size?", Size)


@shop.tool()
async def wrap(size: Annotated[Size, Resolve(which)]) -> str:
    """Asks before it runs, in whichever way its client knows."""
    return f"wrapped {size.size}"


@shop.resource("shop://menu")
def menu() -> str:
    """What there is."""
    return "lamps"


@shop.resource("shop://item/{name}")
def item(name: str) -> str:
    """One thing."""
    return f"a {name}"


@shop.prompt()
def greet(name: str) -> str:
    """How to greet."""
    return f"Greet {name}."


def over_http(stateless: bool) -> None:
    """On a free port, which is said on stdout once it listens."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = shop.streamable_http_app(stateless_http=stateless)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listener])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        over_http(stateless=sys.argv[1] == "stateless")
    else:
        shop.run("stdio")
