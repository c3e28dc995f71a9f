"""What a dialect must be able to do. One file per dialect fills this in; `reading` holds the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from worldline.model.dialects.assembly import Assembly
from worldline.model.dialects.foreign import name, obj
from worldline.model.dialects.shapes import Ask

Body = dict[str, object]


@dataclass(frozen=True)
class Dialect:
    """How one provider's wire is read.

    `route` is the name of its endpoint. `ask` reads a request body; `answer` a whole JSON answer and `event` one
    event of a stream, both into an assembly. `end_data` is the data of the event that ends a stream without being
    JSON, where there is one. `listed` says that an answer may be a JSON array of such events.
    """

    route: str
    ask: Callable[[Body], Ask]
    answer: Callable[[Assembly, Body], None]
    event: Callable[[Assembly, Body], None]
    end_data: str | None = None
    listed: bool = False


def tool_name(tool: object) -> str:
    """The name of one entry of a request's tools: the function's own, an MCP server's label, or the built-in's type."""
    body = obj(tool)
    for holder in (obj(body.get("function")), obj(body.get("custom")), body):
        if found := name(holder.get("name")):
            return found
    return name(body.get("server_label")) or name(body.get("mcp_server_name")) or name(body.get("type")) or ""
