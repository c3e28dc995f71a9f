"""An agent of the real SDK under `record`, `replay` and `fork`, with its client configured once and for all of them."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cli.terminal import environment, worldline
from tests.fork.outside import Outside
from tests.mcp.scene import PROGRAMS, SHOP
from worldline.run import Run
from worldline.store.catalog import find
from worldline.testing.provider import Ask, Provider, Reply, Say, ToolCall

CLERK = [sys.executable, "-W", "ignore", str(PROGRAMS / "clerk.py")]
STORE = Path(".worldline/runs")


def model(ask: Ask) -> Reply:
    """Looks, mails, answers; another model mails somebody else."""
    said = sum(message["role"] == "assistant" for message in ask.messages)
    to = "eve" if ask.model == "other" else "bob"
    turns = [
        Say("I look.", [ToolCall("look", {"order": 812}, "call_1")]),
        Say("I mail.", [ToolCall("mail", {"to": to}, "call_2")]),
        Say("Done."),
    ]
    return turns[min(said, 2)]


def test_an_agent_is_recorded_replayed_and_forked_with_one_configuration(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    starts = tmp_path / "starts"
    agent = [*CLERK, sys.executable, "-m", "worldline", "mcp", "--name", "shop", "--trust-hints", "--", *SHOP]
    with Outside() as outside, Provider(model) as provider:
        env = environment(provider, **outside.environment, SHOP_STARTS=str(starts))
        done = worldline("record", "--", *agent, env=env)
        assert done.code == 0, done.err
        assert done.out.splitlines() == ["look: order 812: lamp", "mail: done 1", "Done."]
        run = Run(find("latest", STORE))
        assert [[call.name for call in step.calls] for step in run.steps] == [["look"], ["mail"], []]
        assert run.recording.manifest.coverage["tools"]["outside"] == {}

        again = worldline("replay", "latest", "--json", "--", *agent, env=env)
        assert again.json["verdict"] == "equivalent", again.out
        assert outside.posted == ["/mail/bob"]
        assert starts.read_text() == "started\n", "a replay started the server"

        rules = tmp_path / "worldline.toml"
        rules.write_text('[[policy.rule]]\ntool = "mail"\ndecision = "allow"\n')
        branch = worldline("fork", run.id, "--at", "step:1", "--set", "model=other", "--json", "--", *agent, env=env)
        told = branch.json["branches"][0]
        assert (told["prefix"], told["live"], told["refused"]) == (2, 3, 0), branch.out + branch.err
        assert outside.posted == ["/mail/bob", "/mail/eve"]
        assert starts.read_text() == "started\n" * 2, "only the mail that was let out needs the server"
