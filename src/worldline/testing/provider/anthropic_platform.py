"""What Anthropic's APIs share: credentials and version, response headers, the error shape, the model list."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.testing.provider.script import Fail
from worldline.testing.provider.stable import CREATED_ISO, DATE, request_id
from worldline.testing.provider.wire import dump

MODELS = ("claude-sonnet-5-5", "claude-haiku-5-5")

_DEFAULTS: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "The request is invalid."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}
"""Type and message by status, where the script leaves them open."""


def headers(n: int) -> list[tuple[str, str]]:
    """As api.anthropic.com sends them."""
    return [
        ("Date", DATE),
        ("Cache-Control", "no-cache"),
        ("anthropic-organization-id", "00000000-0000-0000-0000-000000000000"),
        ("anthropic-ratelimit-requests-limit", "4000"),
        ("anthropic-ratelimit-requests-remaining", "3999"),
        ("request-id", request_id(n)),
    ]


def refusal(headers: Mapping[str, str]) -> Fail | None:
    """401 without an API key or bearer token, 400 without `anthropic-version`; values are not checked."""
    if not headers.get("x-api-key") and not headers.get("authorization", "").lower().startswith("bearer "):
        return Fail(401, message="x-api-key header is required")
    if not headers.get("anthropic-version"):
        return Fail(400, message="anthropic-version: header is required")
    return None


def error(fail: Fail, n: int) -> bytes:
    """`{"type": "error", "error": {type, message}, "request_id"}`."""
    kind, message = _DEFAULTS.get(fail.status, _DEFAULTS[500 if fail.status >= 500 else 400])
    detail = {"type": fail.type or kind, "message": fail.message if fail.message is not None else message}
    return dump({"type": "error", "error": detail, "request_id": request_id(n)}).encode()


def models(model: str | None) -> bytes | None:
    """The list, or one model."""
    cards = [{"type": "model", "id": name, "display_name": name, "created_at": CREATED_ISO} for name in MODELS]
    if model is None:
        page = {"data": cards, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
        return dump(page).encode()
    return next((dump(card).encode() for card in cards if card["id"] == model), None)
