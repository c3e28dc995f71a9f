"""Asks and decisions as OpenTelemetry GenAI attributes (semantic conventions for generative AI).

Only what is known becomes an attribute; nothing is null.
"""

from __future__ import annotations

from worldline.model.dialects.shapes import Ask, Decision, Usage

_PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
    "bedrock": "aws.bedrock",
}
"""First word of a route name: `gen_ai.provider.name`."""

_OPERATIONS = {
    "openai.chat": "chat",
    "openai.responses": "chat",
    "openai.completions": "text_completion",
    "openai.embeddings": "embeddings",
    "anthropic.messages": "chat",
    "anthropic.complete": "text_completion",
    "gemini.generate": "generate_content",
    "gemini.embeddings": "embeddings",
    "bedrock.converse": "chat",
    "pydantic_ai": "chat",
}
"""Route name: `gen_ai.operation.name`. The conventions have no word for the others."""


def gen_ai_request(route_name: str, ask: Ask | None) -> dict[str, object]:
    """Attributes of a request: operation, provider, and `gen_ai.request.*` where there is an ask."""
    ask = ask or Ask()
    return _known(
        {
            "gen_ai.operation.name": _OPERATIONS.get(route_name),
            "gen_ai.provider.name": _PROVIDERS.get(route_name.partition(".")[0]),
            "gen_ai.request.model": ask.model,
            "gen_ai.request.seed": ask.seed,
            "gen_ai.request.temperature": ask.temperature,
            "gen_ai.request.top_p": ask.top_p,
            "gen_ai.request.max_tokens": ask.max_tokens,
        }
    )


def gen_ai_response(decision: Decision | None) -> dict[str, object]:
    """Attributes of an answer: `gen_ai.response.*` and `gen_ai.usage.*`. Token counts are defined at `Usage`."""
    if decision is None:
        return {}
    usage = decision.usage or Usage()
    return _known(
        {
            "gen_ai.response.id": decision.response_id,
            "gen_ai.response.model": decision.model,
            "gen_ai.response.finish_reasons": list(decision.finish_reasons) or None,
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        }
    )


def _known(attributes: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in attributes.items() if value is not None}
