"""Plant each mutant in a copy of the source, run its tests and see them fail: `python -m tests.mutants [NAME|AREA...]`.

A mutant is caught when every test that it names fails, in the test itself: what could not be imported, collected or
set up catches nothing, nor does a run that never ends. The same tests must be green on a copy without a fault. Exit
code 1 when one is missed, 64 when a name names none.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import PACKAGE, ROOT, SOURCE, Mutant, catalogue

TIMEOUT = 600  # seconds for the tests of one mutant
GRACE = 10  # seconds between asking them to stop and killing them
FAILED, GREEN = 1, 0  # of pytest's exit codes


class Outcome(NamedTuple):
    """Of one run of tests: pytest's exit code (None: it never ended), the tests that failed, seconds, its words."""

    code: int | None
    failed: list[str]
    seconds: float
    output: str


def run(tests: Iterable[str], mutant: Mutant | None) -> Outcome:
    """Run tests against a copy of the source with the mutant in it, or none."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        place = Path(folder)
        source = place / "src"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            (source / "worldline" / mutant.file).write_text(mutant.planted(), encoding="utf-8")
        (failed := place / "failed").touch()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment |= {"PYTHONPATH": str(source), "MUTANT_SOURCE": str(source), "MUTANT_FAILED": str(failed)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", f"{PACKAGE}.in_force", "-p", "no:cacheprovider"]
        command += ["--tb=short", f"--basetemp={place / 'tmp'}", *tests]
        begun = time.monotonic()
        code, output = _ended(
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return Outcome(code, failed.read_text().splitlines(), time.monotonic() - begun, output)


def _ended(process: subprocess.Popen[bytes]) -> tuple[int | None, str]:
    """Its exit code and words; None where it had to be stopped. What it started in its group ends with it."""
    try:
        output, _ = process.communicate(timeout=TIMEOUT)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # its tests end what they started
        try:
            output, _ = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        return None, output.decode(errors="replace")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def missed(mutant: Mutant, outcome: Outcome) -> str:
    """Why a mutant counts as missed; empty where it is caught."""
    if outcome.code is None:
        return f"the tests did not end within {TIMEOUT} s"
    if outcome.code not in (FAILED, GREEN):
        return f"pytest could not run the tests (exit code {outcome.code})"
    green = [test for test in mutant.tests if not any(_is_of(failed, test) for failed in outcome.failed)]
    return f"still green: {', '.join(green)}" if green else ""


def _is_of(failed: str, test: str) -> bool:
    return failed == test or failed.startswith((f"{test}[", f"{test}::"))


def chosen(words: list[str]) -> list[tuple[str, Mutant]]:
    """The mutants that names and areas mean, all without any. Raises `KeyError` for a word that means none."""
    everything = [(area, mutant) for area, mutants in catalogue().items() for mutant in mutants]
    for word in words:
        if not any(word in (area, mutant.name) for area, mutant in everything):
            raise KeyError(word)
    return [(area, mutant) for area, mutant in everything if not words or {area, mutant.name} & set(words)]


def main(arguments: list[str]) -> int:
    """Run the mutants that are asked for, print a table and return the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m {PACKAGE}", description="Plant faults; see the tests fail.")
    parser.add_argument("names", nargs="*", metavar="NAME|AREA", help="of mutants; all without any")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many run at the same time")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    asked = parser.parse_args(arguments)
    try:
        mutants = chosen(asked.names)
    except KeyError as error:
        print(f"mutants: no mutant and no area is named {error}", file=sys.stderr)
        return 64
    width = max((len(mutant.name) for _, mutant in mutants), default=0)
    if asked.list:
        for area, mutant in mutants:
            print(f"{area:<8} {mutant.name:<{width}}  promise {mutant.promise:<2}  {mutant.breaks}")
        return 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        sets = list(dict.fromkeys(mutant.tests for _, mutant in mutants))
        wrong = 0
        for tests, outcome in zip(sets, pool.map(lambda tests: run(tests, None), sets), strict=True):
            if outcome.code != GREEN:
                wrong += 1
                print(f"✕ not green without a mutant: {', '.join(tests)}\n{outcome.output}", flush=True)
        outcomes = pool.map(lambda each: run(each[1].tests, each[1]), mutants)
        for (area, mutant), outcome in zip(mutants, outcomes, strict=True):
            why = missed(mutant, outcome)
            wrong += bool(why)
            said = f"{'MISSED' if why else 'caught'}  {outcome.seconds:6.1f} s"
            print(
                f"{'✕' if why else '✓'} {area:<8} {mutant.name:<{width}}  promise {mutant.promise:<2}  {said}",
                flush=True,
            )
            if why:
                print(
                    f"    {mutant.breaks}\n    {why}\n    " + outcome.output[-2000:].replace("\n", "\n    "), flush=True
                )
    print(f"{len(mutants)} mutants, {wrong} missed or without a green run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
