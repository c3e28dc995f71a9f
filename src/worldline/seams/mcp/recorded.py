"""The recorded messages of a server beside its answers, and when each may be given again.

One that came during a call is given once that call was asked for, and once the call has left that had ended before the
message came; one that came between calls when the one before it has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from worldline.engine.messages import Message
from worldline.engine.order import GRACE_SECONDS


class Recorded:
    """The messages of one server, in their order. Lives in one event loop."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._during: dict[str, list[Message]] = {}
        self._between: dict[str | None, list[Message]] = {}
        for message in messages:
            if message.on is not None:
                self._during.setdefault(message.on, []).append(message)
            else:
                self._between.setdefault(message.after, []).append(message)
        self._left: dict[str, asyncio.Event] = {}

    def during(self, call: str) -> list[Message]:
        """Those that came while `call` was under way; each once."""
        return self._during.pop(call, [])

    def behind(self, call: str | None) -> list[Message]:
        """Those that came between `call` and the next; None for those before any call. Each once."""
        return self._between.pop(call, [])

    def leave(self, call: str) -> None:
        """The answer of `call` has left."""
        self._event(call).set()

    async def come(self, message: Message, patient: Callable[[], bool]) -> None:
        """Return when what had ended before `message` has left; where it does not come, a bounded while later.

        That while begins anew for as long as one is `patient`.
        """
        while message.after is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._event(message.after).wait(), GRACE_SECONDS)
                return
            if not patient():
                return

    def _event(self, call: str) -> asyncio.Event:
        return self._left.setdefault(call, asyncio.Event())
