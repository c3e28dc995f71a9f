"""A child of `worldline record` that names its provider in code: its twin joins the run through the door.

So a base URL in code does not get past the recording, and a client of the proxy beside it is recorded once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.wires.drive import Unreachable, worldline
from worldline.engine.cassette import Cassette
from worldline.store.recording import Recording
from worldline.testing.provider import Ask, Provider, Say

AGENT = """
import json, os
import openai, worldline

ASKED = [{"role": "user", "content": "refund #812 ü€💡"}]
told = []
with worldline.record() as run:
    assert run.joined
    direct = openai.OpenAI(base_url=os.environ["SHOP_MODEL_URL"], max_retries=0)
    with run.wrap(direct) as client:
        told.append(client.chat.completions.create(model="m", messages=ASKED).choices[0].message.content)
        pieces = client.chat.completions.create(model="m", messages=ASKED, stream=True)
        told.append([piece.choices[0].delta.content for piece in pieces])
    with run.wrap(openai.OpenAI(max_retries=0)) as client:
        told.append(client.responses.create(model="m", input="once").output_text)
print(json.dumps(told))
"""


def script(ask: Ask) -> Say:
    return Say(f"zwei Lampen – {ask.attempt} 灯", pieces="awkward" if ask.stream else "events")


def test_a_base_url_in_code_is_recorded_and_served_through_the_door() -> None:
    Path("agent.py").write_text(AGENT)
    agent = ["--", sys.executable, "agent.py"]
    with Provider(script) as provider:
        bases = {"OPENAI_BASE_URL": provider.openai_url, "SHOP_MODEL_URL": provider.openai_url}
        recorded = worldline("record", *agent, **bases)
        asked = len(provider.requests)
    assert recorded.returncode == 0, recorded.stderr
    told = json.loads(recorded.stdout)
    assert (told[0], "".join(filter(None, told[1]))) == ("zwei Lampen – 0 灯", "zwei Lampen – 0 灯")
    path = recorded.stderr.splitlines()[-1]
    names = [exchange.name for exchange in Cassette(Recording(path)).exchanges]
    assert names == ["openai.chat", "openai.chat", "openai.responses"] and asked == 3

    nobody = Unreachable()
    replayed = worldline("replay", path, *agent, OPENAI_BASE_URL=nobody.url, SHOP_MODEL_URL=nobody.url)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert json.loads(replayed.stdout.splitlines()[0]) == told
    assert "3 exchanges served, none passed on" in replayed.stdout
    assert nobody.connects() == 0
    nobody.close()
