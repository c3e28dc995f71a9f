"""Giving a recorded answer over HTTP, border for border, and ending it as it ended.

Its last piece waits until the record's order lets it out. Where the client hung up in the record it got no more than it
had then, until it hangs up again: so a race that one call lost is lost again. That waiting is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from worldline.engine.boundary import Served, its_turn
from worldline.seams.way_out import WayOut
from worldline.seams.wire.exchange import led_on, served_headers
from worldline.seams.wire.http import ClientGone, Headers, ResponseHead
from worldline.seams.wire.server import Reply, error_body

NO_RETRY: Headers = (("x-should-retry", "false"),)  # both big SDKs obey it: a refusal is no reason to ask again
REFUSED = 424


async def serve(answer: Served, reply: Reply, way_out: WayOut, place: str) -> None:
    """Give `answer` to the client of `reply`, whose provider is at `place` here. Raises `ClientGone`."""
    data = answer.data
    if answer.never_ended:
        await _until_gone(answer, reply)
        await refuse(reply, "record-ends", answer.never_ended)
    elif "error" in data:
        await way_out.wait(answer)
        await reply.json(502, upstream_failed(data["error"]), NO_RETRY)
    else:
        try:
            await _response(answer, reply, way_out, place)
        except ClientGone:
            await its_turn(answer)  # a client that hung up has what it wanted; the order goes on
            raise


async def _response(answer: Served, reply: Reply, way_out: WayOut, place: str) -> None:
    data, pieces = answer.data, answer.pieces()
    hung_up = hung_up_at(data)
    if hung_up is not None and hung_up < 0:
        await _until_gone(answer, reply)
    head = _head(data, pieces)
    await reply.start(msgspec.structs.replace(head, headers=led_on(head.headers, place)))
    for index, (piece, _) in enumerate(pieces[:-1]):
        if index == hung_up:
            await _until_gone(answer, reply)
        await reply.piece(piece)
    await way_out.wait(answer)
    if hung_up is not None and hung_up >= len(pieces) - 1:
        await _until_gone(answer, reply)
    if pieces:
        await reply.piece(pieces[-1][0])
    if data["complete"] or hung_up is not None:
        await reply.end()
    else:
        reply.abort()


def hung_up_at(data: Mapping[str, Any]) -> int | None:
    """The piece at which the client hung up in the record (-1: before the head), None where it did not."""
    return int(data["closed_at"]) if data.get("closed_by") == "client" else None


def _head(data: Mapping[str, Any], pieces: list[tuple[bytes, bool]]) -> ResponseHead:
    """The recorded head. A whole body's length is counted anew: a marker may be longer than its secret."""
    length = None
    if data["framing"] == "length":
        whole = data["complete"] or data.get("closed_by") == "client"
        length = sum(len(piece) for piece, _ in pieces) if whole else data.get("length")
    return ResponseHead(data["status"], data["reason"], served_headers(data), data["framing"], length)


async def _until_gone(answer: Served, reply: Reply) -> None:
    """Wait, bounded, for the client to hang up as it did; raises `ClientGone` when it does."""
    with suppress(TimeoutError):
        await asyncio.wait_for(reply.gone.wait(), answer.patience)
        raise ClientGone("the client hung up, as in the record")


async def refuse(reply: Reply, kind: str, message: str) -> None:
    """Say no in a way that SDKs show and do not retry."""
    await reply.json(REFUSED, error_body(f"worldline_{kind}", message), NO_RETRY)


def upstream_failed(failure: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The JSON body for an upstream that gave no answer, live and served."""
    return error_body("upstream_" + str(failure.get("kind", "failed")), str(failure.get("message", "")))
