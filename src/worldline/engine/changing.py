"""A model call as a fork changes it: before it is keyed, so that a replay that makes the same change finds it again."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from worldline.engine.crossing import Call
from worldline.model.dialects.change import Change, change_request


def changed(call: Call, change: Change) -> tuple[Call, list[str]]:
    """The call with its request changed, and what was; the same call where nothing is. Raises `ValueError`."""
    if not change or call.body is None or call.kind != "decision":
        return call, []
    body, done = change_request(call.name, call.body, change)
    return (msgspec.structs.replace(call, body=body, key_body=None), done) if done else (call, [])


def variants(call: Call, changes: Iterable[Change]) -> list[Call]:
    """The call as the agent asks, and as each fork of a lineage would have had it sent."""
    found = [call]
    for change in changes:
        try:
            other, _ = changed(call, change)
        except ValueError:  # it cannot be changed so: then that fork did not have it
            continue
        if other is not call:
            found.append(other)
    return found
