"""`python -m benchmarks.peer_proxy`: timefork's recording proxy as a process, until the end of its stdin.

What `timefork up` does, in the working directory; it says where it listens in one line of JSON.
"""

from __future__ import annotations

import json
import sys

from timefork.proxy import Mode, Session
from timefork.proxy.app import build_app
from timefork.runtime import BackgroundProxy
from timefork.tape import Tape


def main() -> None:
    """Record until stdin ends."""
    tape = Tape.open_or_init()
    run = tape.new_run(cmd="benchmark", label=None)
    with BackgroundProxy(build_app(tape, Session(tape, run.id, mode=Mode.RECORD))) as proxy:
        print(json.dumps({"openai": proxy.env["OPENAI_BASE_URL"]}), flush=True)
        sys.stdin.buffer.read()
    tape.finish(run.id, "done")


if __name__ == "__main__":
    main()
