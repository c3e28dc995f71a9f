"""What OpenAI's APIs share: credentials, response headers, the error shape, the model list."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.testing.provider.script import Fail
from worldline.testing.provider.stable import CREATED, DATE, request_id
from worldline.testing.provider.wire import dump

MODELS = ("gpt-4.1", "gpt-4.1-mini")

_DEFAULTS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request is invalid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
}
"""Type, code and message by status, where the script leaves them open."""


def headers(n: int) -> list[tuple[str, str]]:
    """As api.openai.com sends them, the cookie of its edge network included."""
    return [
        ("Date", DATE),
        ("openai-version", "2020-10-01"),
        ("openai-organization", "org-test"),
        ("openai-processing-ms", "1"),
        ("x-ratelimit-limit-requests", "10000"),
        ("x-ratelimit-remaining-requests", "9999"),
        ("x-request-id", request_id(n)),
        ("Set-Cookie", f"__cf_bm=not-a-secret-{n:012d}; path=/; HttpOnly"),
        ("Set-Cookie", f"_cfuvid=not-a-secret-{n:012d}; path=/; HttpOnly"),
        ("Cache-Control", "no-cache"),
    ]


def refusal(headers: Mapping[str, str]) -> Fail | None:
    """401 without a bearer token; its value is not checked."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return None
    return Fail(401, message="You didn't provide an API key. Send it as `Authorization: Bearer YOUR_KEY`.")


def error(fail: Fail, n: int) -> bytes:
    """`{"error": {message, type, param, code}}`."""
    kind, code, message = _DEFAULTS.get(fail.status, _DEFAULTS[500 if fail.status >= 500 else 400])
    detail = {
        "message": fail.message if fail.message is not None else message,
        "type": fail.type or kind,
        "param": None,
        # The default code belongs to the default type; a script that names another type has its own reason.
        "code": fail.code if fail.code is not None or fail.type is not None else code,
    }
    return dump({"error": detail}, indent=4).encode()


def models(model: str | None) -> bytes | None:
    """The list, or one model."""
    cards = [{"id": name, "object": "model", "created": CREATED, "owned_by": "system"} for name in MODELS]
    if model is None:
        return dump({"object": "list", "data": cards}, indent=2).encode()
    return next((dump(card, indent=2).encode() for card in cards if card["id"] == model), None)
