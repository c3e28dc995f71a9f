"""What a server told its client beside its answers, and when: notifications, and requests of its own.

Such a message is a row `observation/mcp` and no crossing: nothing asked for it. `on` is the call during which it came,
`after` the last call of its connection that had ended then. Whoever serves the calls again gives the messages again,
each when both have come.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from worldline.engine.content import Content
from worldline.model.events import Event
from worldline.store.recording import Recording

SOURCE = "mcp"


class Message(msgspec.Struct, frozen=True):
    """One message: JSON-RPC as it came; the calls that say when; whether it came apart, in no call's own stream."""

    content: Content
    on: str | None = None
    after: str | None = None
    apart: bool = False


def is_message(event: Event) -> bool:
    """Whether a row holds one."""
    return event.kind == "observation" and event.src == SOURCE


def messages(rows: Iterable[Event], recording: Recording, server: str) -> list[Message]:
    """The messages of the server of that name, in their order."""
    return [
        Message(
            content=Content(*recording.encoded(row.data.get("value"))),
            on=row.data.get("on"),
            after=row.data.get("after"),
            apart=bool(row.data.get("apart")),
        )
        for row in rows
        if row.data.get("name") == server
    ]
