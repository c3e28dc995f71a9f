"""Clients in these tests see no key, no base URL and no proxy of whoever runs them."""

from __future__ import annotations

import os

import pytest

OUTSIDE = (
    "OPENAI_",
    "ANTHROPIC_",
    "GEMINI_",
    "GOOGLE_",
    "OPENROUTER_",
    "NODE_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith(OUTSIDE)]:
        monkeypatch.delenv(name)
