"""A clerk who is recorded in this process: looks an item up, perhaps reads the rules, refunds, and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from openai import OpenAI

import worldline as wl
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

PIXEL = b"\x89PNG\r\n\x1a\n"


def record(
    store: Path,
    *,
    pieces: int = 2,
    cents: int = 64,
    rules: int = 0,
    granted: bool = True,
    screen: bytes = b"one",
    outcome: str = "succeeded",
) -> wl.Run:
    """Record the clerk and open the run. The options are what one run has otherwise than another."""

    @wl.tool(name="look", effect="pure")
    def look(item: str) -> dict[str, Any]:
        return {"item": item, "pieces": pieces, "request_id": str(wl.uuid())}

    @wl.tool(name="rules", effect="pure")
    def read_rules(page: int) -> str:
        return f"page {page}"

    @wl.tool(name="refund", effect="idempotent")
    def refund(order: int, cents: int) -> str:
        return "refunded"

    turns = [("look", {"item": "lamp"}), *(("rules", {"page": page}) for page in range(rules))]
    turns += [("refund", {"order": 812, "cents": cents})]

    def mind(ask: Ask) -> Reply:
        said = sum(message["role"] == "assistant" for message in ask.messages)
        if said == len(turns):
            return Say("It is done.")
        name, arguments = turns[said]
        return Say(f"I {name}.", [ToolCall(name, arguments, f"call_{said}")])

    tools = {"look": look, "rules": read_rules, "refund": refund}
    with Provider(mind) as provider, wl.record(store, task="refund #812") as run:
        client = run.wrap(OpenAI(base_url=provider.openai_url, api_key="not-a-real-key"))
        messages: list[Any] = [{"role": "user", "content": "Refund the lamp."}]
        calls: Any = True
        while calls:
            answer = client.chat.completions.create(model="gpt-5-mini", messages=messages).choices[0].message
            messages.append(answer.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            calls = answer.tool_calls or ()
            for call in calls:
                if call.function.name == "refund":
                    run.permission("granted" if granted else "denied", "irreversible_external", who="eve")
                    run.observe(PIXEL + screen, src="screenshot", media_type="image/png")
                said = tools[call.function.name](**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(said)})
        run.outcome(outcome)
    return wl.open(run.path)
