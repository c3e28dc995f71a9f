"""The snippets of a documentation page, and a way to run them: `python -m checks.snippets PAGE` in any directory.

The fences of one page run in order: `python` in one namespace, `console` lines that start with `$ ` and whole `sh`
fences through sh, everything else is only text. What a page needs beyond that it says in comments that no reader sees:

    <!-- worldline: skip REASON -->     the next fence is not run
    <!-- worldline: file NAME -->       the next fence is written to NAME in the working directory, not run
    <!-- worldline: provider -->        the page runs against the fake provider (tests/house/test_docs.py starts it)
    <!-- worldline: needs PROGRAM -->   the page runs only where that program is installed

A `console` command ends with exit code 0, or with N when its line ends with `# exits N`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

RUN = ("python", "console", "sh")
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *(?P=ticks) *$", re.M | re.S
)
NOTE = re.compile(r"<!-- worldline: (?P<word>skip|file|provider)(?: (?P<rest>[^\n]*?))? -->\s*\Z")
NEEDS = re.compile(r"^<!-- worldline: needs (\S+) -->$", re.M)
PROVIDER = re.compile(r"^<!-- worldline: provider -->$", re.M)
EXITS = re.compile(r"\s+# exits (\d+)$")


@dataclass(frozen=True)
class Snippet:
    """One fence: its language, its first line in the page (from 1), its text, and the file it is written to, if any."""

    language: str
    line: int
    text: str
    file: str = ""


class SnippetFailed(Exception):
    """A snippet did not run as the page promises."""


def wants_provider(page: str) -> bool:
    """Whether the page asks for the fake provider."""
    return PROVIDER.search(page) is not None


def needed(page: str) -> list[str]:
    """The programs that the page cannot run without."""
    return NEEDS.findall(page)


def snippets(page: str) -> Iterator[Snippet]:
    """The snippets of a page that run or are written to a file, in order.

    Raises ValueError for a skip without a reason and a file without a name.
    """
    for fence in FENCE.finditer(page):
        line = page.count("\n", 0, fence.start()) + 2
        note = NOTE.search(page, 0, fence.start())
        word, rest = (note["word"], note["rest"]) if note else ("", "")
        if word in ("skip", "file") and not rest:
            raise ValueError(f"line {line - 1}: `worldline: {word}` says no {'reason' if word == 'skip' else 'name'}")
        if word == "file" or (fence["language"] in RUN and word != "skip"):
            text = textwrap.dedent(fence["text"])
            yield Snippet(fence["language"], line, text, rest if word == "file" else "")


def run(name: str, page: str) -> int:
    """Run the snippets of `page` in the working directory and return how many there were. Raises what they raise."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    todo = list(snippets(page))
    for snippet in todo:
        if snippet.file:
            Path(snippet.file).write_text(snippet.text, encoding="utf-8")
        elif snippet.language == "python":
            # Blank lines before it make a traceback's line numbers those of the page.
            exec(compile("\n" * (snippet.line - 1) + snippet.text, name, "exec", dont_inherit=True), namespace)
        else:
            run_shell(name, snippet)
    return len(todo)


def run_shell(name: str, snippet: Snippet) -> None:
    """Run the commands of one fence in one sh. Raises SnippetFailed when one ends with an exit code not promised."""
    script = console_script(name, snippet) if snippet.language == "console" else "set -e\n" + snippet.text
    done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SnippetFailed(f"{name}:{snippet.line}: the commands of this fence ended with exit code {done.returncode}")


def console_script(name: str, snippet: Snippet) -> str:
    """A script that runs each `$ ` line (and those it is continued on by a backslash) and checks its exit code."""
    parts = []
    lines = enumerate(snippet.text.splitlines(), start=snippet.line)
    for number, line in lines:
        if not line.startswith("$ "):
            continue
        command = line[2:]
        while command.endswith("\\"):
            command += "\n" + next(lines)[1]
        match = EXITS.search(command)
        wanted = int(match[1]) if match else 0
        complaint = shlex.quote(f"{name}:{number}: `{command}` should exit {wanted}, but exits")
        parts.append(f'{command}\ncode=$?; [ "$code" -eq {wanted} ] || {{ echo {complaint} "$code" >&2; exit 99; }}\n')
    return "".join(parts)


def main(arguments: list[str]) -> int:
    """Run the page named by the one argument."""
    if len(arguments) != 1:
        print("usage: python -m checks.snippets PAGE", file=sys.stderr)
        return 64
    sys.path.insert(0, os.getcwd())
    page = Path(arguments[0])
    print(f"{run(str(page), page.read_text(encoding='utf-8'))} snippets ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
