"""Which endpoint a path is, whatever the base in front of it: `/v1`, `/openai/deployments/x`, a gateway's prefix.

The table is searched from the top, so a longer tail stands above a shorter one that it ends with.
"""

from __future__ import annotations

import re

from worldline.model.dialects.shapes import Route

_ID = r"[^/:]+"

_TABLE: tuple[tuple[str, str, str], ...] = (
    # name, method, tail as a pattern that ends the path
    ("openai.chat", "POST", "/chat/completions"),
    ("openai.completions", "POST", "/completions"),
    ("openai.responses.compact", "POST", "/responses/compact"),
    ("openai.responses.input_tokens", "POST", "/responses/input_tokens"),
    ("openai.responses.cancel", "POST", f"/responses/{_ID}/cancel"),
    ("openai.responses", "POST", "/responses"),
    ("openai.responses.retrieve", "GET", f"/responses/{_ID}"),
    ("openai.threads.messages", "", f"/threads/{_ID}/messages"),
    ("openai.embeddings", "POST", "/embeddings"),
    ("openai.moderations", "POST", "/moderations"),
    ("openai.images", "POST", "/images/(?:generations|edits|variations)"),
    ("openai.audio", "POST", "/audio/(?:speech|transcriptions|translations)"),
    ("openai.realtime", "GET", "/realtime"),
    ("anthropic.count_tokens", "POST", "/messages/count_tokens"),
    ("anthropic.batches", "", "/messages/batches"),
    ("anthropic.messages", "POST", "/messages"),
    ("anthropic.complete", "POST", "/v1/complete"),
    ("gemini.generate", "POST", f"/models/{_ID}:(?:generateContent|streamGenerateContent)"),
    ("gemini.embeddings", "POST", f"/models/{_ID}:(?:embedContent|batchEmbedContents)"),
    ("gemini.count_tokens", "POST", f"/models/{_ID}:countTokens"),
    ("bedrock.converse", "POST", r"/model/[^/]+/(?:converse|converse-stream)"),
    ("bedrock.invoke", "POST", r"/model/[^/]+/(?:invoke|invoke-with-response-stream)"),
    ("openai.models", "GET", "/models"),
    ("openai.models", "GET", f"/models/{_ID}"),
)

UNKNOWN = "http"
"""The route of what is none of the table's."""

TOOLLESS = frozenset(
    {
        "openai.completions",
        "anthropic.complete",
        "openai.responses.compact",
        "openai.responses.input_tokens",
        "openai.responses.cancel",
        "openai.threads.messages",
        "openai.embeddings",
        "openai.moderations",
        "openai.images",
        "openai.audio",
        "openai.models",
        "anthropic.count_tokens",
        "anthropic.batches",
        "gemini.embeddings",
        "gemini.count_tokens",
    }
)
"""Routes whose answers never call a tool, by what their interface is."""

_ASKS = re.compile(
    r"/(?:chat|generate|generate_stream|complete|invoke|invocations|predictions|score)$"
    r"|:(?:predict|rawPredict|streamRawPredict|serverStreamingPredict)$"
)


def may_ask(method: object, path: object) -> bool:
    """Whether a request whose route is unknown looks as if it asked a model, and not for a list or a file.

    Paths that model servers have for it (Ollama, Cohere, TGI, vLLM, SageMaker, Vertex AI, Replicate, Azure ML).
    """
    return method == "POST" and isinstance(path, str) and _ASKS.search(path.rstrip("/")) is not None


_PATTERNS = tuple((name, method, re.compile(f"{tail}$")) for name, method, tail in _TABLE)


def route(method: str, path: str) -> Route:
    """The route of a request by its method and path; a query is ignored. Unknown ones are `http` with the whole path.

    The method counts: `GET /v1/chat/completions` lists stored completions and is no chat.
    """
    bare = path.partition("?")[0]
    trimmed = bare.rstrip("/")
    for name, expected, pattern in _PATTERNS:
        if expected in ("", method.upper()) and (found := pattern.search(trimmed)):
            return Route(name=name, tail=found.group())
    return Route(name=UNKNOWN, tail=bare)
