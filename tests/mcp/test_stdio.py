"""The proxy over stdin and stdout, the SDK on both sides: a client can tell neither the proxy nor a replay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fork.outside import Outside
from tests.mcp.scene import Guest, direct, proxied
from worldline.engine.spec import Spec
from worldline.seams.session import RecordingSession, ReplaySession
from worldline.store.catalog import find

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


async def test_a_client_sees_through_the_proxy_and_on_a_replay_what_it_sees_without(tmp_path: Path) -> None:
    with Outside() as outside:
        more = {**outside.environment, "SHOP_STARTS": str(tmp_path / "starts")}
        plain, recorded, replayed = Guest(), Guest(), Guest()
        async with plain.at(direct(**more), mode="legacy") as client:
            await plain.visit(client)

        outside.posted.clear()
        session = RecordingSession(Spec(store=tmp_path / "runs", task="visit"), os.environ)
        server = proxied(**more, WORLDLINE_URL=session.proxy.url)
        async with recorded.at(server, mode="legacy") as client:
            await recorded.visit(client)
        session.recorder.outcome["outcome"] = "succeeded"
        session.close()
        assert recorded.seen == plain.seen
        assert outside.posted == ["/mail/bob"]

        starts = (tmp_path / "starts").read_text()
        replay = ReplaySession(find("latest", tmp_path / "runs"), os.environ)
        server = proxied(**more, WORLDLINE_URL=replay.proxy.url)
        async with replayed.at(server, mode="legacy") as client:
            await replayed.visit(client)
        report = replay.close(0)
        assert replayed.seen == plain.seen
        assert report.equivalent, report.first_divergence
        assert report.relaxed == 0
        assert outside.posted == ["/mail/bob"], "a replay did it again"
        assert (tmp_path / "starts").read_text() == starts, "a replay started the server"
