"""An answer while it is being put together: blocks of text, reasoning and tool calls that grow by fragments.

Every dialect drives the same assembly, from one JSON body or from the events of a stream.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from typing import Literal

from worldline.model.dialects.shapes import Decision, Runner, ToolUse, Usage

Kind = Literal["text", "reasoning", "tool"]

_SURROGATE = re.compile("[\ud800-\udfff]")


class Block:
    """A stretch of one kind that grows by fragments. A tool block has an id and a name; its text is the arguments.

    `fallback` is the text it turns out to have if no fragment comes before its end.
    """

    __slots__ = ("fallback", "id", "kind", "name", "pieces", "runner")

    def __init__(self, kind: Kind, call_id: str, name: str, runner: Runner) -> None:
        self.kind = kind
        self.id = call_id
        self.name = name
        self.runner = runner
        self.fallback = ""
        self.pieces: list[str] = []

    def add(self, fragment: str) -> None:
        """Grow by a fragment."""
        if fragment:
            self.pieces.append(fragment)

    def settle(self, text: str) -> None:
        """Take the provider's final text in place of the fragments. An empty one says nothing and changes nothing."""
        if text:
            self.pieces = [text]


class Assembly:
    """What has come of one answer.

    `finish` holds the reason of each choice by its index, empty until the choice gives one. `counts` are the raw
    token counts of a dialect that sends them bit by bit; `calls` and `called` count the tool calls of one that numbers
    none, all and those without an id by name. `ended` says that the dialect's end mark was seen.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget everything: the provider began a new message in the same stream."""
        self.model: str | None = None
        self.response_id: str | None = None
        self.finish: dict[int, str] = {}
        self.counts: dict[str, object] = {}
        self.calls = 0
        self.called: Counter[str] = Counter()
        self.usage: Usage | None = None
        self.ended = False
        self.error: str | None = None
        self._blocks: list[Block] = []
        self._open: dict[Hashable, Block] = {}

    def block(
        self, key: Hashable, kind: Kind, *, call_id: str = "", name: str = "", runner: Runner = "client"
    ) -> Block:
        """The block at `key`, begun here if it is new. A known key with another id begins a new block.

        Compatible servers number all parallel calls 0; only the id tells them apart.
        """
        block = self._open.get(key)
        if block is None or (call_id and block.id and call_id != block.id):
            block = self._open[key] = Block(kind, call_id, name, runner)
            self._blocks.append(block)
        block.id = block.id or call_id
        block.name = block.name or name
        return block

    def known(self, key: Hashable) -> Block | None:
        """The block at `key` if one was begun."""
        return self._open.get(key)

    def fail(self, error: str) -> None:
        """Note an error; the first one stays, since later ones are its consequences."""
        self.error = self.error or error

    def decision(self) -> Decision:
        """What there is, as an answer."""
        complete = self.ended and self.error is None
        return Decision(
            model=self.model,
            response_id=self.response_id,
            text=self._joined("text", complete),
            reasoning=self._joined("reasoning", complete),
            tool_uses=tuple(
                ToolUse(block.id, block.name, _mend("".join(block.pieces), complete), block.runner)
                for block in self._blocks
                if block.kind == "tool"
            ),
            finish_reasons=tuple(reason for _, reason in sorted(self.finish.items()) if reason),
            usage=self.usage,
            complete=complete,
            error=self.error,
        )

    def _joined(self, kind: Kind, complete: bool) -> str:
        return _mend("".join(piece for block in self._blocks if block.kind == kind for piece in block.pieces), complete)


def _mend(text: str, complete: bool) -> str:
    """Join surrogate halves that came in two fragments; a half at the end of an unfinished text waits for the other."""
    if not _SURROGATE.search(text):
        return text
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if not complete and text and "\ud800" <= text[-1] <= "\udbff":
        return text[:-1]
    return text
