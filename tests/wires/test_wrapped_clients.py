"""`run.wrap` changes nothing of a client but its way out: what it was made with still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import openai

import worldline as wl
from tests.wires.drive import KEY

MODELS = {"object": "list", "data": []}


class Corporate:
    """A client of one's own: its transport, headers and hooks. Counts what went through them."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []
        self.hooked = 0

        def answer(request: Any) -> Any:
            self.seen.append(request.headers.get("x-corporate"))
            return httpx2.Response(200, json=MODELS)

        def hook(request: Any) -> None:
            self.hooked += 1

        self.http = httpx2.Client(
            transport=httpx2.MockTransport(answer), headers={"x-corporate": "yes"}, event_hooks={"request": [hook]}
        )
        self.client = openai.OpenAI(
            api_key=KEY, base_url="http://nowhere.invalid/v1", max_retries=0, http_client=self.http
        )


def test_a_wrapped_client_goes_out_as_it_was_made_to(tmp_path: Path) -> None:
    own = Corporate()

    def agent() -> None:
        with wl.record(tmp_path) as run:
            assert run.wrap(own.client).models.list().data == []

    agent()
    assert (own.seen, own.hooked) == (["yes"], 1)
    assert wl.open("latest", tmp_path).replay(agent).equivalent
    assert (own.seen, own.hooked) == (["yes"], 2), "the hook is the agent's own; the transport was not asked"


def test_a_wrapped_client_can_be_closed_and_wrapped_again_and_the_first_one_lives(tmp_path: Path) -> None:
    own = Corporate()
    for _ in range(2):
        with wl.record(tmp_path) as run:
            wrapped = run.wrap(own.client)
            again = run.wrap(wrapped)
            again.models.list()
            again.close()
        [exchange] = wl.open(run.path).cassette.exchanges  # once, though wrapped twice
        assert exchange.data["status"] == 200
    own.client.models.list()
    assert len(own.seen) == 3


def test_a_timeout_in_process_is_a_timeout_on_the_replay(tmp_path: Path) -> None:
    def late(request: Any) -> Any:
        raise httpx2.ReadTimeout("too late", request=request)

    told: list[str] = []

    def agent() -> None:
        http = httpx2.Client(transport=httpx2.MockTransport(late))
        client = openai.OpenAI(api_key=KEY, base_url="http://nowhere.invalid/v1", max_retries=0, http_client=http)
        with wl.record(tmp_path) as run:
            try:
                run.wrap(client).models.list()
            except openai.APIConnectionError as error:
                told.append(type(error).__name__)

    agent()
    assert wl.open("latest", tmp_path).replay(agent).equivalent
    assert told == ["APITimeoutError"] * 2
