"""An agent that uses every word of the API, in its own process and in children: `python diary.py STORE`.

What it prints holds the time, random numbers and ids, so equal output means that they were equal.
"""

from __future__ import annotations

import subprocess
import sys

import worldline as wl


@wl.tool(effect="side_effecting")
def append(line: str) -> int:
    with open("diary.txt", "a", encoding="utf-8") as file:
        file.write(line + "\n")
    return len(line)


def entry(child: str) -> None:
    with wl.step(f"entry {child}"):
        line = f"{child} {wl.now().isoformat()} {wl.uuid()} {wl.rng().random()} {wl.rng().randrange(10**9)}"
        print(line, append(line), flush=True)
        wl.observe({"line": line}, src="terminal", name="screen")
        wl.permission("auto_approved", "reversible_local", tool="append")


def main(store: str) -> None:
    with wl.record(store, task="diary"):
        entry("parent")
        for child in ("first", "second", "third"):
            subprocess.run([sys.executable, __file__, "--child", child], check=True)
        entry("parent again")
        wl.outcome(reward=0.5, done=True, lines=5)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        entry(sys.argv[2])
    else:
        main(sys.argv[1])
