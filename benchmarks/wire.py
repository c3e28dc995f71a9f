"""The proxy's toll: a streamed chat call of 21 events, recorded, against the same call without a recorder."""

from __future__ import annotations

import http.client
import os
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from benchmarks.measure import Row, ratio
from worldline.engine.spec import Spec
from worldline.seams.session import RecordingSession
from worldline.testing.provider import Provider, Say

CALLS = 40
BODY = msgspec.json.encode(
    {"model": "gpt-5", "stream": True, "messages": [{"role": "user", "content": "say it in pieces"}]}
)
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer benchmark"}


def rows() -> list[Row]:
    """All rows of this file."""
    with (
        Provider(lambda ask: Say(text="word " * 19, chunk=5)) as provider,
        tempfile.TemporaryDirectory(dir=".") as place,
    ):
        session = RecordingSession(Spec(store=Path(place)), {**os.environ, "OPENAI_BASE_URL": provider.openai_url})
        try:
            return [
                ratio(
                    what,
                    lambda: _calls(session.proxy.base_url("openai")),
                    lambda: _calls(provider.openai_url),
                    per=CALLS,
                    peer_name="the same call, not recorded",
                    target=target,
                    unit="ms",
                    cpu=cpu,
                )
                for what, target, cpu in (
                    ("proxied streamed call of 21 events, wall", "+1.5 ms", False),
                    ("the same, CPU of the process that holds both", "+2.5 ms", True),
                )
            ]
        finally:
            session.close()


def _calls(base: str) -> None:
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    for _ in range(CALLS):
        connection.request("POST", f"{parts.path}/chat/completions", BODY, HEADERS)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"the provider answered {response.status}")
    connection.close()
