"""A command whose model and tools repeat a secret in every encoding, token by token: nothing of it is on the disk.

The provider's own log shows that each was on the wire; the manifest counts them.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.cli.terminal import agent, environment, worldline
from worldline.testing.provider import Ask, Provider, Reply, Say

TOKEN = "tok-" + "0123456789/abcdef"  # nobody's
STRANGER = "sk-ant-api03-" + "aB3" * 20  # and registered nowhere
PLANTS = {
    "raw": TOKEN,
    "json": json.dumps({"key": json.dumps({"key": TOKEN})}),
    "percent": quote(TOKEN, safe=""),
    "hex": TOKEN.encode().hex(),
    "base64": base64.b64encode(TOKEN.encode()).decode(),
    "base64 of json": base64.b64encode(json.dumps({"user": "ada", "key": TOKEN, "n": 1}).encode()).decode(),
    "base64 of base64": base64.b64encode(base64.b64encode(TOKEN.encode())).decode(),
    "unicode": "".join(f"\\u{ord(c):04x}" for c in TOKEN),
    "html": "".join(f"&#{ord(c)};" for c in TOKEN),
    "shape": STRANGER,
}


@pytest.mark.parametrize("chunk", [1, 10_000])
def test_every_encoding_in_every_split(chunk: int) -> None:
    def echo(ask: Ask) -> Reply:
        return Say(ask.last_user, chunk=chunk, pieces="bytes:5")

    with Provider(echo) as provider:
        env = environment(provider, SHOP_TOKEN=TOKEN)
        command = [*agent("questions"), *(f"{name}: {plant} :end" for name, plant in PLANTS.items())]
        recorded = worldline("record", "--secret-env", "SHOP_TOKEN", "--", *command, env=env)
    assert recorded.code == 0, recorded.err
    asked = [json.loads(request.body)["messages"][-1]["content"] for request in provider.requests]
    assert asked == [f"{name}: {plant} :end" for name, plant in PLANTS.items()]  # each was on the wire
    assert recorded.out.splitlines() == asked  # and the agent was given each as it was said
    files = {path: path.read_bytes() for path in Path(".worldline").rglob("*") if path.is_file()}
    core = base64.b64encode(TOKEN.encode())[:26]
    for plant in (*(text.encode() for text in PLANTS.values()), core):
        assert not [path for path, data in files.items() if plant in data or plant in str(path).encode()], plant
    events = worldline("show", "latest", "--json")
    assert all(plant not in events.out for plant in PLANTS.values())
    [manifest] = [json.loads(data)["secrets"] for path, data in files.items() if path.name == "manifest.json"]
    log = b"".join(data for path, data in files.items() if path.suffix == ".jsonl")
    markers = [label.decode() for label in re.findall(rb"\[secret:([A-Za-z_-]+)\]", log)]
    # The command line, the request and the answer of each, and one variable.
    assert markers.count("SHOP_TOKEN") == 3 * (len(PLANTS) - 1) + 1
    assert markers.count("anthropic-key") == 3 == manifest["shapes"]["anthropic-key"]
    assert manifest["redactions"] >= markers.count("SHOP_TOKEN")
    # The text around is intact, and it replays without any network.
    text = log.decode()
    assert all(f"{name}: " in text for name in PLANTS)
    report = worldline("replay", "latest", "--json", "--", *command, env=environment(SHOP_TOKEN=TOKEN)).json
    assert (report["verdict"], report["served"]) == ("equivalent", len(PLANTS))
