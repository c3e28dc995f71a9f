"""Every snippet of the README and of docs/ runs as it stands there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.snippets import SnippetFailed, needed, run, snippets, wants_provider
from tests.conftest import ROOT, require

SECONDS = 420
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if page.is_file()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_snippets_of_a_page_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = page.read_text(encoding="utf-8")
    if not any(True for _ in snippets(text)):
        return
    for program in needed(text):
        require(program, shutil.which(program), "not installed")
    home = tmp_path / "home"
    place = tmp_path / "place"
    home.mkdir()
    place.mkdir()
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "SSL_CERT_DIR": os.environ["SSL_CERT_DIR"],
    }
    if wants_provider(text):
        environment |= request.getfixturevalue("provider")
    run_page(page, place, environment)


def run_page(page: Path, place: Path, environment: dict[str, str]) -> None:
    """Run a page in a process of its own, and end whatever its snippets left running."""
    child = subprocess.Popen(
        [sys.executable, "-m", "checks.snippets", page],
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        end_group(child)
        output, _ = child.communicate()
        pytest.fail(f"{page.relative_to(ROOT)} is not through after {SECONDS} s:\n{output}", pytrace=False)
    end_group(child)
    if child.returncode != 0:
        pytest.fail(f"{page.relative_to(ROOT)} does not run:\n{output}", pytrace=False)


def end_group(child: subprocess.Popen[str]) -> None:
    """End the processes of the child's session, if there are any left."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture(scope="session")
def provider() -> Iterator[dict[str, str]]:
    """The fake provider in a process of its own; the environment variables that lead the SDKs to it.

    What it says follows from what it is asked, so one serves all pages.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "worldline.testing.provider"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line, "python -m worldline.testing.provider ended without saying its addresses"
        urls = json.loads(line)
        try:
            yield {
                "OPENAI_BASE_URL": urls["openai"],
                "ANTHROPIC_BASE_URL": urls["anthropic"],
                "OPENAI_API_KEY": "not-a-real-key-openai",
                "ANTHROPIC_API_KEY": "not-a-real-key-anthropic",
            }
        finally:
            child.terminate()


# ------------------------------------------------------------------------------------------ the runner's promises


def page_of(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_python_shares_one_namespace_and_files_are_written(tmp_path: Path) -> None:
    page = page_of(
        "<!-- worldline: file agent.py -->",
        "```python",
        "NAME = 'agent'",
        "```",
        "```python",
        "x = 20",
        "```",
        "text between",
        "- ```python",
        "```console",
        "$ cat agent.py",
        "NAME = 'agent'",
        "$ cd sub 2>/dev/null || mkdir sub && cd sub",
        "$ test $(basename $(pwd)) = sub",
        "$ sh -c 'exit 3'   # exits 3",
        "```",
    )
    assert [snippet.language for snippet in snippets(page)] == ["python", "python", "console"]
    assert run("page.md", page) == 3
    assert (tmp_path / "agent.py").read_text() == "NAME = 'agent'\n"
    with pytest.raises(ZeroDivisionError) as caught:
        run("page.md", page_of("```python", "x = 0", "```", "", "```python", "1 / x", "```"))
    assert caught.traceback[-1].lineno == 5


@pytest.mark.parametrize(
    "lines",
    [
        ("```console", "$ false", "$ true", "```"),
        ("```console", "$ true # exits 1", "```"),
        ("```sh", "false", "true", "```"),
    ],
)
def test_a_command_with_another_exit_code_fails_the_page(lines: tuple[str, ...]) -> None:
    with pytest.raises(SnippetFailed, match=r"page\.md:2"):
        run("page.md", page_of(*lines))


def test_text_and_skipped_fences_do_not_run_and_a_skip_gives_its_reason() -> None:
    assert run("page.md", page_of("```text", "$ false", "```", "```", "$ false", "```")) == 0
    assert run("page.md", page_of("<!-- worldline: skip needs a key -->", "```console", "$ false", "```")) == 0
    with pytest.raises(ValueError, match="says no reason"):
        run("page.md", page_of("<!-- worldline: skip -->", "```console", "$ false", "```"))
