"""The worker as an async agent that takes its way to the model from its run, as several in one process must."""

from __future__ import annotations

import httpx

import worldline as wl
from tests.attribution.agents.worker import STEPS


async def work() -> None:
    run = wl.current()
    assert run is not None
    messages: list[dict[str, str]] = [{"role": "system", "content": "You work on a line."}]
    said = []
    async with httpx.AsyncClient(base_url=run.proxy.openai, headers={"Authorization": "Bearer none"}) as client:
        for number in range(STEPS):
            messages.append({"role": "user", "content": f"job {number}"})
            answer = await client.post("/chat/completions", json={"model": "gpt-5", "messages": messages})
            answer.raise_for_status()
            said.append(answer.json()["choices"][0]["message"]["content"])
            messages.append({"role": "assistant", "content": said[-1]})
    if any(word.startswith("bad") for word in said):
        raise SystemExit(1)
