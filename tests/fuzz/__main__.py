"""`make fuzz`: every target for its share of FUZZ_SECONDS (300), under atheris, in an environment of its own.

    python -m tests.fuzz [TARGET ...]      fuzz; ends with 1 where something was found
    python -m tests.fuzz TARGET FILE ...   run a target on files once, without atheris

What is found is kept in `build/fuzz/findings` and printed with the command that has it again. The inputs that reach
more code are kept in `build/fuzz/corpus`, so the next run goes on from there; the ones in the repository are read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.targets import CORPUS, TARGETS

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "fuzz"
SECONDS = float(os.environ.get("FUZZ_SECONDS", "300"))
SLOWEST = 20  # seconds that one input may take
MEMORY = 2048  # MiB


def main(words: list[str]) -> int:
    """Fuzz the targets, or run one on files."""
    if len(words) > 1 and words[0] in TARGETS and all(Path(word).is_file() for word in words[1:]):
        for word in words[1:]:
            TARGETS[words[0]].run(Path(word).read_bytes())
        print(f"{words[0]}: nothing wrong with {len(words) - 1} inputs")
        return 0
    if unknown := set(words) - TARGETS.keys():
        print(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 64
    names = words or list(TARGETS)
    found = [path for name in names for path in fuzzed(name, max(1, round(SECONDS / len(names))))]
    for path in found:
        name = path.name.partition("-")[0]
        print(f"found: {path}\n  again: python -m tests.fuzz {name} {path}")
    print(f"{len(found)} found in {len(names)} targets")
    return 1 if found else 0


def fuzzed(name: str, seconds: int) -> list[Path]:
    """Fuzz one target in a process of its own. Returns what it found."""
    grown, findings = BUILD / "corpus" / name, BUILD / "findings"
    for folder in (grown, findings):
        folder.mkdir(parents=True, exist_ok=True)
    before, log = set(findings.iterdir()), BUILD / f"{name}.log"
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={TARGETS[name].longest}",
        f"-timeout={SLOWEST}",
        f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={findings}/{name}-",
        "-print_final_stats=1",
    ]
    begun = time.monotonic()
    with log.open("wb") as said:
        command = [sys.executable, "-m", "tests.fuzz.under_atheris", name, *options, grown, CORPUS / name]
        ran = subprocess.run(command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT, check=False)
    lines = log.read_text("utf-8", "replace").splitlines()
    runs = next((line.split()[-1] for line in lines if "number_of_executed_units" in line), "?")
    print(
        f"{name:<10} {runs:>9} inputs in {time.monotonic() - begun:3.0f} s, {len(list(grown.iterdir()))} kept",
        flush=True,
    )
    fresh = sorted(set(findings.iterdir()) - before)
    if ran.returncode != 0:
        traces = [number for number, line in enumerate(lines) if "Traceback" in line or "ERROR: libFuzzer" in line]
        print("\n".join(f"  | {line}" for line in lines[traces[0] if traces else -20 :][:40]))
        if not fresh:
            raise SystemExit(f"{name}: the fuzzer itself ended with {ran.returncode}; see {log}")
    return fresh


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
