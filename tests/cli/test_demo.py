"""The demo does in any directory what it says: an agent recorded, verified, replayed, forked, and explained."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.terminal import TIMEOUT, environment, worldline
from tests.conftest import ROOT


def test_the_demo() -> None:
    command = [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=3 * TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "one of them with a 429 that the SDK retried" in done.stdout
    assert "✓ equivalent   13 exchanges served, none passed on to a provider" in done.stdout
    assert "connections to the provider: 0; refunds paid again: 0" in done.stdout
    assert "✓ branch" in done.stdout and "6 calls served, 7 live   succeeded" in done.stdout
    assert "  first difference at step 3, decision   worldline diff " in done.stdout
    assert "the provider answered 3 requests; refunds paid again: 0" in done.stdout
    assert "✓ Step 3 cost 0." in done.stdout and "   decisive" in done.stdout
    assert "drawn anew there it went well: refund(order=812, cents=4900" in done.stdout
    assert "refunds paid again: 0\n$ worldline report latest" in done.stdout
    branch, entry = worldline("list", "--json").json  # the newest first
    assert (entry["task"], entry["outcome"], entry["steps"]) == ("refund #812", "failed", 6)
    assert branch["outcome"] == "succeeded"
