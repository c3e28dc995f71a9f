"""`python -m benchmarks.proxy_process STORE`: a recording proxy as a process, until the end of its stdin.

It says where it listens in one line of JSON. With `--profile FILE` what its threads do is profiled into the file.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import sys
import threading
from pathlib import Path
from unittest import mock

from worldline.engine.spec import Spec
from worldline.seams.session import RecordingSession


def main() -> None:
    """Record until stdin ends, then seal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("--profile", type=Path)
    said = parser.parse_args()
    if said.profile is None:
        _record(said.store)
        return
    profiles: list[cProfile.Profile] = []
    run = threading.Thread.run

    def profiled(thread: threading.Thread) -> None:
        profiles.append(cProfile.Profile())
        profiles[-1].runcall(run, thread)

    with mock.patch.object(threading.Thread, "run", profiled):
        _record(said.store)
    stats = pstats.Stats(profiles[0])
    for profile in profiles[1:]:
        stats.add(profile)
    stats.dump_stats(said.profile)


def _record(store: Path) -> None:
    session = RecordingSession(Spec(store=store), os.environ)
    print(json.dumps({"openai": session.proxy.base_url("openai")}), flush=True)
    sys.stdin.buffer.read()
    session.close()


if __name__ == "__main__":
    main()
