"""Reading what crosses an LLM wire: OpenAI Chat Completions and Responses, Anthropic Messages, Gemini.

Pure functions from bytes to facts. They read for people and for indexes; what is stored and replayed is always the
bytes themselves, so a dialect that misreads something can be mended later without touching a recording.
"""

from __future__ import annotations

from worldline.model.dialects.difference import what_changed
from worldline.model.dialects.genai import gen_ai_request, gen_ai_response
from worldline.model.dialects.reading import can_read, carries_tools, model_of, read_request, read_response
from worldline.model.dialects.routes import route
from worldline.model.dialects.shapes import Ask, Decision, Route, Runner, ToolResult, ToolUse, Usage
from worldline.model.dialects.sse import SseEvent, SseParser

__all__ = [
    "Ask",
    "Decision",
    "Route",
    "Runner",
    "SseEvent",
    "SseParser",
    "ToolResult",
    "ToolUse",
    "Usage",
    "can_read",
    "carries_tools",
    "gen_ai_request",
    "gen_ai_response",
    "model_of",
    "read_request",
    "read_response",
    "route",
    "what_changed",
]
