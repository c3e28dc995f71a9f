"""A support agent for a lamp shop: GPT does the work, Claude gives a second opinion and writes the mail.

    python examples/support_agent.py ["refund #812"]

The shop is in the directory `shop`, or where SUPPORT_SHOP says. It asks whatever OPENAI_BASE_URL and ANTHROPIC_BASE_URL
point to; with the models of `support_world.py` it makes a mistake, and the shop's audit fails (exit code 1).
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from anthropic import Anthropic
from openai import OpenAI
from support_world import Shop

import worldline as wl

MODEL = os.environ.get("SUPPORT_MODEL", "gpt-4.1-mini")
ADVISER = "claude-sonnet-5-5"
RULES = "You work for a lamp shop. Pay back what was broken, never more. Look things up before you act."

shop = Shop(Path(os.environ.get("SUPPORT_SHOP", "shop")))


# ------------------------------------------------------------------------------------------------------------ its tools


@wl.tool(effect="pure")
def lookup_order(order: int) -> dict[str, Any]:
    """The lines of an order, with their state and price."""
    return shop.order(order)


@wl.tool(effect="pure")
def lookup_customer(order: int) -> dict[str, Any]:
    """Who placed an order, and what they last wrote."""
    return shop.customer_of(order)


@wl.tool(effect="side_effecting", idempotency_key=lambda order, **_: f"refund:{order}")
def refund(order: int, cents: int, reason: str) -> dict[str, Any]:
    """Pay money back to the customer of an order."""
    return shop.refund(order, cents, reason)


@wl.tool(effect="side_effecting")
def send_mail(to: str, subject: str, body: str) -> dict[str, Any]:
    """Send a mail to a customer."""
    return shop.send_mail(to, subject, body)


@wl.tool(effect="pure")
def audit(order: int) -> dict[str, Any]:
    """The shop's own judgement of how an order was handled."""
    return shop.audit(order)


TOOLS = {"lookup_order": lookup_order, "lookup_customer": lookup_customer, "refund": refund}
ORDER, CENTS, REASON = ({"type": kind} for kind in ("integer", "integer", "string"))
PARAMETERS: dict[str, dict[str, Any]] = {
    "lookup_order": {"order": ORDER},
    "lookup_customer": {"order": ORDER},
    "refund": {"order": ORDER, "cents": CENTS, "reason": REASON},
}
TOOL_SPECS: Any = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": TOOLS[name].__doc__,
            "parameters": {"type": "object", "properties": parameters, "required": list(parameters)},
        },
    }
    for name, parameters in PARAMETERS.items()
]


# ------------------------------------------------------------------------------------------------------------- its loop


def work(client: OpenAI, messages: list[Any], said: str) -> str:
    """Tell the clerk something and let it call tools until it has nothing more to do. Gives its last words."""
    messages.append({"role": "user", "content": said})
    while True:
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOL_SPECS) as stream:
            message = stream.get_final_completion().choices[0].message
        calls = message.tool_calls or []
        turn: dict[str, Any] = {"role": "assistant", "content": message.content}
        if calls:
            turn["tool_calls"] = [call.model_dump(include={"id", "type", "function"}) for call in calls]
        messages.append(turn)
        print(f"clerk: {message.content}")
        if not calls:
            return message.content or ""
        for call in calls:
            result = TOOLS[call.function.name](**json.loads(call.function.arguments))
            print(f"  {call.function.name} {call.function.arguments} -> {json.dumps(result, ensure_ascii=False)}")
            content = json.dumps(result, ensure_ascii=False)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def advise(client: Anthropic, question: str) -> str:
    """Ask the adviser and print the answer as it comes."""
    print("adviser: ", end="")
    answer = ""
    with client.messages.stream(
        model=ADVISER, max_tokens=500, system=RULES, messages=[{"role": "user", "content": question}]
    ) as stream:
        for text in stream.text_stream:
            print(text, end="", flush=True)
            answer += text
    print()
    return answer


def main(task: str) -> int:
    """Handle one task. Gives 0 when the shop is content, else 1."""
    order = int(re.findall(r"\d+", task)[0])
    messages: list[Any] = [{"role": "system", "content": RULES}]
    with OpenAI() as clerk, Anthropic() as adviser:
        proposal = work(clerk, messages, task)
        facts = "\n".join(message["content"] for message in messages if message["role"] == "tool")
        opinion = advise(adviser, f"Give a second opinion.\nFacts:\n{facts}\nProposal: {proposal}")
        outcome = work(clerk, messages, f"Second opinion: {opinion}\nNow act.")
        mail = advise(adviser, f"Write a short mail to the customer.\nDone: {outcome}")
    address = lookup_customer(order=order)["mail"]
    send_mail(to=address, subject=f"Your order #{order}", body=mail)
    verdict = audit(order=order)
    due, paid = verdict["due_cents"] / 100, verdict["paid_cents"] / 100
    print(f"audit: {'passed' if verdict['passed'] else 'FAILED'}: €{paid:.2f} paid back, €{due:.2f} due")
    return 0 if verdict["passed"] else 1


def again() -> None:
    """The task once more in this process: `worldline attribute --agent support_agent:again` loads the SDKs once."""
    shop.moved(Path(os.environ.get("SUPPORT_SHOP", "shop")))
    sys.exit(main("refund #812"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "refund #812"))
