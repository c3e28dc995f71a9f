"""Nobody else gets an answer: no other host, no other page, no guess, no path; and nothing recorded ever runs."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from worldline.store.recording import Recording
from worldline.view.page import viewer_page
from worldline.view.server import MOST_BODY, policy_of

SECRETS = ("worldline/1", "look", "run_", "ainst_")  # what an answer to a stranger must not hold


def refused(got: Any, *statuses: int) -> None:
    assert got.status in statuses, got
    assert not any(word.encode() in got.body for word in SECRETS)
    assert "access-control-allow-origin" not in got.headers


@pytest.fixture
def serve(panel: Any, sealed: Path) -> Any:
    return panel(sealed)


def test_every_answer_may_be_kept_framed_embedded_and_run_nowhere(serve: Any) -> None:
    for path in ("", "api/session", f"r/{serve.ids[0]}/events.jsonl", "nothing", f"r/{serve.ids[0]}/live"):
        headers = serve.get(path).headers
        assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "set-cookie" not in headers and "access-control-allow-origin" not in headers
        if path:
            assert (
                "sandbox" in headers["content-security-policy"] and "script" not in headers["content-security-policy"]
            )


def test_the_page_is_served_under_a_policy_stricter_than_its_own(serve: Any) -> None:
    got = serve.get("")
    assert got.body == viewer_page() and got.headers["content-type"] == "text/html; charset=utf-8"
    policy = got.headers["content-security-policy"]
    own = re.search(rb'Content-Security-Policy" content="([^"]*)"', got.body)
    assert own is not None
    hashes = re.findall(r"'sha256-[^']*'", own[1].decode())
    assert hashes and all(one in policy for one in hashes) and "connect-src 'self';" in policy
    assert "'unsafe-eval'" not in policy and "http:" not in policy
    assert "script-src 'none'" in policy_of(b"<html>no policy of its own</html>")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1]:{port}", ""]
)
def test_another_name_for_this_address_is_refused(serve: Any, host: str) -> None:
    named = host.format(port=serve.server.port)
    refused(serve.get("api/session", Host=named), 403)


def test_no_host_or_two_are_refused(serve: Any) -> None:
    own = f"Host: 127.0.0.1:{serve.server.port}\r\n"
    for hosts in ("", own + own, own + "Host: evil.example\r\n"):
        answer = serve.raw(f"GET {serve.base}api/session HTTP/1.1\r\n{hosts}\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403") and b"worldline/1" not in answer


def test_localhost_is_this_machine_too(serve: Any) -> None:
    assert serve.get("api/session", Host=f"localhost:{serve.server.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"},
    ],
)
def test_another_page_is_refused_whatever_it_knows(serve: Any, headers: dict[str, str]) -> None:
    refused(serve.get("api/session", **headers), 403)
    refused(serve.run("events.jsonl", **headers), 403)


def test_a_link_leads_to_the_page_and_nowhere_else(serve: Any) -> None:
    come = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert serve.get("", **come).status == 200
    refused(serve.get(f"r/{serve.ids[0]}/about", **come), 403)


@pytest.mark.parametrize("path", ["annotations", "audit", "permission", "fork"])
def test_only_the_page_itself_writes(serve: Any, path: str) -> None:
    target = f"r/{serve.ids[0]}/{path}"
    own = {"X_Worldline": "1", "Origin": serve.origin}
    for wrong in (
        {**own, "Origin": "http://evil.example"},
        {**own, "Origin": "null"},
        {**own, "Origin": "null", "Sec_Fetch_Site": "cross-site"},
        {"X_Worldline": "1"},
        {"Origin": serve.origin},
        {**own, "X_Worldline": "0"},
    ):
        refused(serve.ask("POST", serve.base + target, b"{}", **wrong), 403)
    assert serve.post(target, {}).status == 400, "with the right headers it is read, and says what is missing"
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert serve.ask(method, serve.base + target, **own).status in (403, 405, 501)


def test_the_token_is_needed_and_guesses_look_alike(serve: Any) -> None:
    token = serve.server.token
    wrong = ["", "/", "/api/session", f"/{token[:-1]}/api/session", f"/{token}x/api/session", f"/{token.swapcase()}/"]
    wrong += ["/%2e%2e/api/session", f"/{token[:-1]}%{ord(token[-1]):02x}/api/session", "*"]
    answers = {serve.ask("GET", target).body for target in wrong if target} | {serve.ask("POST", "/x/y", b"{}").body}
    assert answers == {b'{"error":"refused"}'}
    got = serve.ask("GET", f"/{token}")
    assert got.status == 308 and got.headers["location"] == f"/{token}/"


def test_what_opens_the_browser_leads_there_once(serve: Any) -> None:
    """A command line can be read by other users of the machine; the token does not stand there."""
    opener = serve.server.opener.removeprefix(serve.origin)
    assert serve.server.token not in opener
    refused(serve.ask("GET", opener, Host="evil.example"), 403)
    first = serve.ask("GET", opener)
    assert first.status == 303 and first.headers["location"] == serve.base
    refused(serve.ask("GET", opener), 404)


NAMES = [
    "../../../../etc/passwd",
    "..%2f..%2fevents.jsonl",
    "%2e%2e/%2e%2e/lock",
    "....//lock",
    "contents/../lock",
    "contents/..%2f..%2flock",
    "contents/%2fetc%2fpasswd",
    "contents/" + "a" * 64,
    "contents/" + "A" * 64,
    "contents/" + "a" * 63 + "%00",
    "blobs/restricted/key",
    "chunks/000000.jsonl",
    "restricted/key",
    "lock",
    "open.json",
    "manifest.staged.json",
    "manifest.json%00",
    "manifest.json/",
    "manifest.json/x",
    "%ff%fe",
    "a\\..\\b",
    "x" * 4000,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_leads_nowhere_but_to_what_is_served(serve: Any, name: str) -> None:
    got = serve.run(name)
    if name == "manifest.json/":  # no other words than those of the manifest itself
        assert got.json["format"] == "worldline/1"
        return
    assert got.status in (400, 404), (name, got)
    assert b"root:" not in got.body and len(got.body) < 6000


@pytest.mark.parametrize(
    "name", ["..", ".", "run_" + "0" * 26, "%2e%2e", "runs", ".live", ".catalog", "latest", "*.skn", "x.skn"]
)
def test_only_an_id_that_the_server_gave_opens_a_run(serve: Any, name: str) -> None:
    assert serve.get(f"r/{name}/about").status == 404
    assert serve.get(f"r/{name}/contents/{'a' * 64}").status == 404


def test_recorded_html_is_a_file_to_be_saved_in_which_nothing_runs(serve: Any, sealed: Path) -> None:
    manifest = Recording(sealed).manifest
    assert manifest is not None
    types = set()
    for name, size, kind, _, _ in manifest.blobs:
        got = serve.run(f"contents/{name}")
        assert got.status == 200 and len(got.body) == size
        assert got.headers["content-type"].partition(";")[0] == kind
        assert got.headers["content-disposition"].startswith("attachment")
        policy = got.headers["content-security-policy"]
        assert "sandbox" in policy and "allow-" not in policy and "default-src 'none'" in policy
        types.add(kind)
    assert {"text/html", "image/svg+xml", "application/json"} <= types


def test_a_type_that_a_row_makes_up_is_no_header(panel: Any, writer: Any) -> None:
    """While a run is written no manifest lists its contents: the type is what the page says, if it is one."""
    writer.do("rows", large=60_000)
    serve = panel(writer.path)
    (blob,) = Recording(writer.path).attempt.glob("blobs/ordinary/??/*")
    assert serve.run(f"contents/{blob.name}?type=image/png").headers["content-type"] == "image/png"
    for odd in ("text/html%0d%0aX-Evil:%201", "nonsense", "a/" + "b" * 200, ""):
        got = serve.run(f"contents/{blob.name}?type={odd}")
        assert got.headers["content-type"] == "application/octet-stream" and "x-evil" not in got.headers


def test_what_is_no_request_ends_the_connection_and_nothing_else(serve: Any) -> None:
    own = f"Host: 127.0.0.1:{serve.server.port}\r\n"
    posted = f"POST {serve.base}r/{serve.ids[0]}/audit HTTP/1.1\r\n{own}X-Worldline: 1\r\nOrigin: {serve.origin}\r\n"
    for sent in (
        b"\x00\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        (posted + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n").encode(),
        (posted + "Content-Length: -1\r\n\r\n").encode(),
        (posted + f"Content-Length: {MOST_BODY + 1}\r\n\r\n").encode(),
        (posted + "Content-Length: 9\r\n\r\n[1,2,3,4]").encode(),
        (posted + "Content-Length: 3\r\n\r\n{\xff}").encode("latin-1"),
    ):
        answer = serve.raw(sent)
        assert answer == b"" or re.match(rb"HTTP/1\.[01] (4|5)\d\d |\{", answer), answer[:200]
        assert b"worldline/1" not in answer
    assert serve.get("api/session").status == 200


def test_a_client_that_hangs_up_hurts_nobody(serve: Any, sealed: Path, caplog: pytest.LogCaptureFixture) -> None:
    own = f"Host: 127.0.0.1:{serve.server.port}\r\n"
    target = f"{serve.base}r/{serve.ids[0]}/events.jsonl"
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", serve.server.port)) as connection:
            connection.sendall(f"GET {target} HTTP/1.1\r\n{own}\r\n".encode())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # a reset
    assert serve.run("events.jsonl").status == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_one_connection_takes_one_request_after_another(serve: Any) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", serve.server.port, timeout=30)
    try:
        for path in ("api/session", f"r/{serve.ids[0]}/about", "nothing", f"r/{serve.ids[0]}/index.json"):
            connection.request("GET", serve.base + path)
            answer = connection.getresponse()
            assert json.loads(answer.read()) and not answer.will_close
    finally:
        connection.close()
