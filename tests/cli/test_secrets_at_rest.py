"""No registered secret is ever written: not from a body, a header, a variable or the command line, in no form.

The provider's own log shows that each form really was on the wire; the markers show that each was found.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import KEY, Ended, agent, environment, worldline
from worldline.testing.provider import Ask, Provider, Raw, Reply, Say

TOKEN = "tok-" + "0123456789abcdef"  # nobody's
PASSWORD = 'pä"ss\\wo\nrd/' + "9876543210"  # needs every escape there is
STRANGER = "unregistered-" + "credential-1"
SHARED = {"SHOP_TOKEN": TOKEN, "SHOP_PASSWORD": PASSWORD}
REGISTERED = ["--secret-env", "SHOP_TOKEN", "--secret-env", "SHOP_PASSWORD"]
UMASK_000 = ("sh", "-c", 'umask 000; exec "$@"', "sh")


def escaped(value: str) -> set[bytes]:
    """A value as it is and as JSON writes it."""
    return {value.encode(), *(json.dumps(value, ensure_ascii=a)[1:-1].encode() for a in (True, False))}


def files(store: Path = Path(".worldline")) -> Iterator[tuple[Path, bytes]]:
    found = [path for path in sorted(store.rglob("*")) if path.is_file()]
    assert found, "nothing was written at all"
    for path in found:
        yield path, path.read_bytes()


def assert_nowhere(*values: str, said: Ended) -> None:
    """None of the values, in no form, in any file's bytes or name, nor in what the recorder said."""
    for value in values:
        for form in escaped(value):
            assert not [path for path, data in files() if form in data or form in str(path).encode()], form
            assert form.decode() not in said.err


def manifest() -> Any:
    [path] = Path(".worldline").rglob("manifest.json")
    return json.loads(path.read_bytes())


def echo(ask: Ask) -> Reply:
    """The question back, in one delta, its bytes cut everywhere."""
    return Say(ask.last_user, chunk=10_000, pieces="bytes:5")


def test_every_form_is_held_back_counted_and_still_matches() -> None:
    questions = ["token $SHOP_TOKEN", "password $SHOP_PASSWORD", f"on the command line {TOKEN}"]
    headers = json.dumps({"X-Shop-Token": f"Token {TOKEN}"})
    with Provider(echo) as provider:
        env = environment(provider, HEADERS=headers, **SHARED)
        command = [*agent("questions"), *questions]
        recorded = worldline("record", "--task", f"try {TOKEN}", *REGISTERED, "--", *command, env=env, prefix=UMASK_000)
    assert recorded.code == 0, recorded.err
    # The provider's own log saw each form.
    seen = provider.requests
    assert all(request.header["x-shop-token"] == f"Token {TOKEN}" for request in seen)
    assert all(request.header["authorization"] == f"Bearer {KEY}" for request in seen)
    assert [TOKEN.encode() in request.body for request in seen] == [True, False, True]
    assert json.dumps(PASSWORD)[1:-1].encode() in seen[1].body
    assert (
        recorded.out == f"token {TOKEN}\npassword {PASSWORD}\non the command line {TOKEN}\n"
    )  # the answers came whole
    # Nothing of it was written, and every plant is a marker in the log.
    assert_nowhere(TOKEN, PASSWORD, KEY, said=recorded)
    log = b"".join(data for path, data in files() if path.suffix == ".jsonl")
    markers = [label.decode() for label in re.findall(rb"\[secret:([A-Z_]+)\]", log)]
    plants = {
        "SHOP_TOKEN": 1 + 1 + 2 + 3 + 2 + 2,  # task, command line, two variables, headers, requests, answers
        "SHOP_PASSWORD": 1 + 1 + 1,  # variable, request, answer
        "OPENAI_API_KEY": 1 + 3,  # variable, headers
    }
    assert {label: markers.count(label) for label in markers} == plants
    assert manifest()["secrets"]["redactions"] == sum(plants.values())
    assert manifest()["secrets"]["labels"] == ["OPENAI_API_KEY", "SHOP_PASSWORD", "SHOP_TOKEN"]
    assert "on the command line [secret:SHOP_TOKEN]" in recorded.err  # what to type next, without it
    # Owner only, whatever the umask.
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path(".worldline").rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in [Path(".worldline"), *Path(".worldline").rglob("*/")]}
    assert (modes, folders) == ({0o600}, {0o700})
    # With the real values it replays, with other ones, and without any.
    without = [*command[:-1], "on the command line [secret:SHOP_TOKEN]"]
    for env, words in (
        (environment(HEADERS=headers, **SHARED), command),
        (environment(SHOP_TOKEN="another-" + "token", SHOP_PASSWORD="another-" + "password"), without),
        ({name: value for name, value in environment().items() if name != "OPENAI_API_KEY"}, without),
    ):
        report = worldline("replay", "latest", "--json", "--", *words, env=env).json
        assert (report["verdict"], report["served"], report["live"]) == ("equivalent", 3, 0), report


def test_stop_ends_the_run_before_the_secret_is_written_or_sent() -> None:
    with Provider(echo) as provider:
        env = environment(provider, **SHARED)
        command = [*agent("questions"), "nothing secret", "token $SHOP_TOKEN", "never asked"]
        stopped = worldline("record", "--secrets", "stop", *REGISTERED, "--", *command, env=env)
    # A key in its header is never written, so it stops nothing.
    assert [json.loads(request.body)["messages"][0]["content"] for request in provider.requests] == ["nothing secret"]
    assert stopped.code == 4
    assert "worldline: the secret SHOP_TOKEN was about to be written; the run was stopped" in stopped.err
    assert_nowhere(TOKEN, PASSWORD, KEY, said=stopped)
    path = Path(stopped.last)
    assert [entry.name for entry in path.iterdir()] == ["trajectory"]  # nothing is published
    [entry] = worldline("list", "--json").json
    assert (entry["disposition"], entry["steps"]) == ("sanitized-partial", 1)
    verified = worldline("verify", path, "--json")
    assert (verified.code, verified.json["verdicts"]["publication"]) == (0, "withheld")


def test_stop_refuses_a_secret_on_the_command_line_before_anything_starts() -> None:
    env = environment(**SHARED)
    refused = worldline("record", "--secrets", "stop", *REGISTERED, "--", "touch", TOKEN, env=env)
    assert refused.code == 4
    assert refused.complaint == "the secret SHOP_TOKEN was about to be written; the run was stopped"
    assert not Path(TOKEN).exists()
    assert not list(Path(".worldline/runs").iterdir())


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("short", "the secret SHOP_TOKEN has under 8 bytes; it would be found everywhere"),
        ("", "--secret-env SHOP_TOKEN: the variable is not set"),
    ],
)
def test_a_secret_that_cannot_be_held_back_is_refused(value: str, complaint: str) -> None:
    refused = worldline("record", "--secret-env", "SHOP_TOKEN", "--", "true", env=environment(SHOP_TOKEN=value))
    assert (refused.code, refused.complaint) == (64, complaint)
    assert not Path(".worldline").exists()


def test_credentials_that_nobody_registered_are_withheld_by_their_place() -> None:
    """Headers by allow-list, query parameters by their name; a replay matches without any of them."""

    def cookies(ask: Ask) -> Reply:
        event = b'data: {"choices": [{"delta": {"content": "fine"}}]}\n\ndata: [DONE]\n\n'
        headers = [("Content-Type", "text/event-stream"), ("Set-Cookie", f"session={STRANGER}; HttpOnly")]
        return Raw(200, [*headers, ("X-Internal-Token", STRANGER)], [event])

    names = ["Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "X-House-Credential"]
    query = f"?key={STRANGER}&code={STRANGER}&access_token={STRANGER}&page=2"
    with Provider(cookies) as provider:
        env = environment(provider, HEADERS=json.dumps(dict.fromkeys(names, STRANGER)), QUERY=query)
        recorded = worldline("record", "--", *agent("questions"), "one", env=env)
    assert recorded.out == "fine\n", recorded.err
    assert all(provider.requests[0].header[name.lower()] == STRANGER for name in names)
    assert provider.requests[0].path.count(STRANGER) == 3
    assert_nowhere(STRANGER, said=recorded)
    other = environment(QUERY="?key=another&code=another&access_token=another&page=2")
    command = [*agent("questions"), "one"]
    assert worldline("replay", "latest", "--json", "--", *command, env=other).json["verdict"] == "equivalent"
    page = environment(QUERY="?key=another&code=another&access_token=another&page=3")
    report = worldline("replay", "latest", "--json", "--", *command, env=page).json
    assert report["divergence"]["path"].startswith("request.query")
