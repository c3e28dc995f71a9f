"""What an LLM wire says, in one shape for every dialect: an `Ask` goes out, a `Decision` comes back.

All are plain immutable data. Text may contain lone surrogates: JSON allows `"\\ud800"`, some servers send it, and
these shapes keep it as it came. Encode such text with `errors="surrogatepass"`, or with `"replace"` for display.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Runner = Literal["client", "provider", "approval"]
"""Who runs a tool: the `client`, the `provider` inside its own answer, or the provider once an `approval` comes."""


class Route(msgspec.Struct, frozen=True):
    """An endpoint: its `name` (`openai.chat`), and the `tail` of the path that gave it (`/chat/completions`).

    A path that no dialect knows has the name `http` and is its own tail.
    """

    name: str
    tail: str


class ToolUse(msgspec.Struct, frozen=True):
    """One tool call as the model made it.

    `arguments` is the text exactly as assembled: JSON by contract, but cut or invalid where the model or the wire
    made it so, and free text for OpenAI custom tools. `id` is the name itself for OpenAI's legacy `function_call`,
    which has no call ids, and so it is for a call of Gemini's without one (the second of an answer: `NAME#2`). A
    `runner` other than `client` means that no tool of the agent runs.
    """

    id: str
    name: str
    arguments: str
    runner: Runner = "client"


class ToolResult(msgspec.Struct, frozen=True):
    """The result of call `id` as a later request carries it, flattened to text, at the JSON `path` of its content.

    `name` is the tool's, on a wire where a result says whose it is.
    """

    id: str
    content: str
    path: str
    name: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one exchange; None where the provider said nothing.

    `input_tokens` follows OpenTelemetry GenAI: *all* input tokens, those read from and written to a cache included.
    OpenAI counts so. Anthropic counts only the uncached rest, so there the three are added up. `cache_read` and
    `cache_write` are parts of `input_tokens`; `reasoning` is a part of `output_tokens`.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class Decision(msgspec.Struct, frozen=True):
    """One answer of a model, assembled.

    `text` is what the first choice says, a refusal included. `tool_uses` holds the calls of all choices in the order
    in which they began. `finish_reasons` are the provider's words (Responses: the status, or why it is incomplete).
    `complete` is true only if the answer reached its end without an `error`; an answer that the model had to end at
    a length limit is complete.
    """

    model: str | None = None
    response_id: str | None = None
    text: str = ""
    reasoning: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    finish_reasons: tuple[str, ...] = ()
    usage: Usage | None = None
    complete: bool = False
    error: str | None = None


class Ask(msgspec.Struct, frozen=True):
    """One model request: its parameters (None where absent) and the history it carries.

    `tool_names` has one name per entry of the request's tools, `roles` one word per message or input item (the type
    of an item without a role), so that both can be indexed by a JSON path. `tool_uses` and `tool_results` are all
    that the history holds, in order. `last_user` is the last text of a user. `server_held` names the state at the
    provider that this request continues (`previous_response_id` or `conversation`).
    """

    model: str | None = None
    stream: bool = False
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    tool_names: tuple[str, ...] = ()
    tool_uses: tuple[ToolUse, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    roles: tuple[str, ...] = ()
    last_user: str | None = None
    server_held: str | None = None
