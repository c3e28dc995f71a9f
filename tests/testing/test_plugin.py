"""The pytest plugin: `replay` re-drives an agent with no key, no tool and no network, and says what changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from worldline.testing.plugin import NetworkShut

pytest_plugins = ["pytester"]

AGENT = """
import os

import openai
import worldline as wl

QUESTION = os.environ.get("QUESTION", "refund #812")


@wl.tool(effect="side_effecting")
def refund(order):
    with open("refunds.txt", "a") as file:
        file.write(f"{order}\\n")
    return {"paid": 4900, "at": wl.now().isoformat()}


def main():
    with openai.OpenAI(max_retries=0) as client:
        messages = [{"role": "user", "content": QUESTION}]
        answer = client.chat.completions.create(model="m", messages=messages).choices[0].message
        [call] = answer.tool_calls
        messages.append({"role": "assistant", "tool_calls": [call.model_dump()]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(refund(812))})
        return client.chat.completions.create(model="m", messages=messages).choices[0].message.content


async def main_async():
    async with openai.AsyncOpenAI(max_retries=0) as client:
        messages = [{"role": "user", "content": QUESTION}]
        answer = (await client.chat.completions.create(model="m", messages=messages)).choices[0].message
        [call] = answer.tool_calls
        messages.append({"role": "assistant", "tool_calls": [call.model_dump()]})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(refund(812))})
        return (await client.chat.completions.create(model="m", messages=messages)).choices[0].message.content

"""


RECORD = """
import os
import subprocess
import sys
from pathlib import Path

import agent
import worldline as wl
from worldline.testing.provider import Provider, Say, ToolCall


def clerk(ask):
    return Say("Paid back.") if ask.tool_results else Say("", [ToolCall("refund", {"order": 812})])


with Provider(clerk) as provider:
    os.environ["OPENAI_BASE_URL"] = provider.openai_url
    os.environ["OPENAI_API_KEY"] = "test-" + "key"
    with wl.record() as run:
        os.environ["OPENAI_BASE_URL"] = run.proxy.openai
        assert agent.main() == "Paid back."
assert Path("refunds.txt").read_text() == "812\\n"
print(run.path)
"""


def recorded(script: str) -> Path:
    """The recording whose path `script` prints last.

    Made in a process of its own: `pytester` drops the modules that were first imported beside it, and the tests after
    these would meet their doubles.
    """
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240)
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.splitlines()[-1])


@pytest.fixture
def recording(pytester: pytest.Pytester) -> Path:
    """A recording of the agent against a real server that is gone since; the agent lies beside it as `agent.py`."""
    pytester.makepyfile(agent=AGENT)
    return recorded(RECORD)


def outcome(pytester: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=test)
    quiet = ("-p", "no:cacheprovider", "-p", "no:xdist", "-o", "asyncio_default_fixture_loop_scope=function")
    sockets = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")  # what an SDK leaves open as its loop ends
    return pytester.runpytest_subprocess(*quiet, *sockets, *arguments, timeout=240)


def test_an_unchanged_agent_passes_with_no_key_no_network_and_no_tool_run(
    pytester: pytest.Pytester, recording: Path
) -> None:
    done = outcome(
        pytester,
        f"""
        import os
        import agent

        def test_refund(replay):
            assert not [name for name in os.environ if name.endswith("_API_KEY")]
            answers = []
            report = replay({str(recording)!r}, lambda: answers.append(agent.main()))
            assert report.equivalent, report.first_divergence
            assert answers == ["Paid back."]
            # Two model calls and the tool; the time it asked for is inside the tool, which did not run.
            assert (report.served, report.live) == (3, 0)
            assert not [name for name in os.environ if name.endswith("_BASE_URL") or name == "WORLDLINE_URL"]

        def test_by_name_and_by_level(replay):
            assert replay("latest").level == "L0"
            assert replay("latest", agent.main).equivalent
        """,
    )
    done.assert_outcomes(passed=2)
    assert Path("refunds.txt").read_text() == "812\n", "the tool ran again"


@pytest.mark.parametrize("style", ["def", "async def"])
def test_an_async_agent_passes_in_a_plain_and_in_an_async_test(
    pytester: pytest.Pytester, recording: Path, style: str
) -> None:
    done = outcome(
        pytester,
        f"""
        import agent

        {style} test_refund(replay):
            report = replay({str(recording)!r}, agent.main_async)
            assert report.equivalent, (report.first_divergence, report.notes)
            assert report.served == 3
        """,
        "-o",
        "asyncio_mode=auto",
    )
    done.assert_outcomes(passed=1)


def test_a_changed_agent_fails_with_a_divergence_that_can_be_read(
    pytester: pytest.Pytester, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUESTION", "refund #813")
    done = outcome(
        pytester,
        f"""
        import agent

        def test_refund(replay):
            report = replay({str(recording)!r}, agent.main)
            assert report.equivalent, report.first_divergence
        """,
    )
    done.assert_outcomes(failed=1)
    [line] = [line for line in done.outlines if line.startswith("E ") and "AssertionError" in line]
    for part in ("changed at openai.chat", "seq ", "$.messages[0].content", "'refund #812'", "'refund #813'"):
        assert part in line, line
    assert Path("refunds.txt").read_text() == "812\n"


def test_the_network_is_shut_and_opens_again(pytester: pytest.Pytester, recording: Path) -> None:
    done = outcome(
        pytester,
        f"""
        import asyncio, errno, socket, urllib.request
        import pytest
        from worldline.testing.plugin import NetworkShut

        def connects(): socket.create_connection(("192.0.2.1", 443), timeout=5)
        def connects_ex(): socket.socket().connect_ex(("192.0.2.1", 443))
        def connects_v6(): socket.socket(socket.AF_INET6).connect(("2001:db8::1", 443))
        def looks_up(): socket.getaddrinfo("provider.invalid", 443)
        no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
        def by_url(): no_proxy.open("http://192.0.2.1/", timeout=5)
        async def awaits(): await asyncio.open_connection("192.0.2.1", 443)
        async def awaits_name(): await asyncio.open_connection("provider.invalid", 443)

        @pytest.mark.filterwarnings("ignore")
        @pytest.mark.parametrize("agent", [connects, connects_ex, connects_v6, looks_up, by_url, awaits, awaits_name])
        def test_shut(replay, agent):
            report = replay({str(recording)!r}, agent)
            assert report.verdict == "diverged"
            assert "the replayed agent tried to" in report.notes[-1], report.notes

        def test_this_machine_is_not_the_network(replay):
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(("localhost", server.getsockname()[1]), timeout=5).close()

        def test_open_again():
            assert "checked" not in socket.socket.connect.__qualname__
            assert "checked" not in socket.getaddrinfo.__qualname__
        """,
    )
    done.assert_outcomes(passed=9)


def test_an_ineligible_recording_fails_with_its_reason(pytester: pytest.Pytester) -> None:
    run = recorded('import worldline as wl\nwith wl.record("runs", capture="refs") as run: pass\nprint(run.path)')
    done = outcome(
        pytester,
        f"""
        def test_refund(replay):
            report = replay({str(run)!r}, lambda: None)
            assert report.equivalent, report.first_divergence
        """,
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*AssertionError*--capture full*"])


def test_a_recording_made_under_pytest_is_marked_and_stays_in_its_store(pytester: pytest.Pytester) -> None:
    done = outcome(
        pytester,
        """
        import worldline as wl

        def test_records(tmp_path):
            with wl.record(tmp_path / "runs") as run:
                pass
            assert wl.open(run.path).recording.header.data["origin"] == "pytest"
        """,
    )
    done.assert_outcomes(passed=1)
    assert not Path(".worldline").exists()


def test_the_plugin_costs_nothing_until_it_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_loaded():
            assert "worldline.testing.plugin" in sys.modules
            assert not {"worldline.run", "worldline.engine", "msgspec", "h11"} & set(sys.modules)
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist", "-p", "no:asyncio", timeout=240).assert_outcomes(passed=1)


def test_what_the_network_guard_raises_is_an_os_error() -> None:
    assert issubclass(NetworkShut, OSError), "agents handle a failing connection; this is one"
