"""What Gemini's API has for all its methods: credentials, response headers, the error shape, the model list."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.testing.provider.script import Fail
from worldline.testing.provider.stable import DATE
from worldline.testing.provider.wire import dump

MODELS = ("gemini-2.5-flash", "gemini-2.5-pro")

_DEFAULTS: dict[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "The request is invalid."),
    403: ("PERMISSION_DENIED", "The API key may not do this."),
    404: ("NOT_FOUND", "The model is not found."),
    429: ("RESOURCE_EXHAUSTED", "The quota is used up."),
    500: ("INTERNAL", "An internal error has occurred."),
    503: ("UNAVAILABLE", "The model is overloaded."),
}
"""Status and message by HTTP status, where the script leaves them open."""


def headers(n: int) -> list[tuple[str, str]]:
    """As the service sends them."""
    return [("Date", DATE), ("Vary", "Origin"), ("Vary", "X-Origin"), ("X-Content-Type-Options", "nosniff")]


def refusal(headers: Mapping[str, str]) -> Fail | None:
    """403 without a key in a header; its value is not checked."""
    if headers.get("x-goog-api-key", "").strip() or headers.get("authorization", "").strip():
        return None
    return Fail(403, message="The request has no API key. Send one as `x-goog-api-key`.")


def error(fail: Fail, n: int) -> bytes:
    """`{"error": {code, message, status}}`."""
    status, message = _DEFAULTS.get(fail.status, _DEFAULTS[500 if fail.status >= 500 else 400])
    said = message if fail.message is None else fail.message
    return dump({"error": {"code": fail.status, "message": said, "status": fail.type or status}}, indent=2).encode()


def models(model: str | None) -> bytes | None:
    """The list, or one model."""
    cards = [{"name": f"models/{name}", "displayName": name} for name in MODELS]
    if model is None:
        return dump({"models": cards}, indent=2).encode()
    return next((dump(card, indent=2).encode() for card in cards if card["name"] == f"models/{model}"), None)
