"""Promises of the client side: what is sent, which connections are kept, TLS, proxies, and the name of each failure."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require
from tests.seams.raw_http import CHUNKED_HEAD, Raw, chunked, raw_upstream, relayed, upstream_at
from worldline.errors import UsageError
from worldline.seams.wire.http import NotSendable, Piece, UpstreamError, header, strip_hop_by_hop
from worldline.seams.wire.upstream import Upstream

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def fetch(upstream: Upstream, target: str = "/", body: bytes = b"") -> bytes:
    answer = await upstream.send("POST", target, (("Host", "agent"),), body)
    return b"".join([piece.data async for piece in answer.pieces()])


async def failure(upstream: Upstream) -> str:
    with pytest.raises(UpstreamError) as caught:
        await fetch(upstream)
    assert caught.value.facts["failure"] == caught.value.kind
    assert caught.value.facts["host"] in str(caught.value)
    return caught.value.kind


async def answering(raw: Raw) -> None:
    while True:
        await raw.take_request()
        await raw.send(OK)


async def test_a_request_goes_out_in_the_given_order_and_case_less_what_speaks_of_one_hop() -> None:
    heads: list[bytes] = []

    async def script(raw: Raw) -> None:
        heads.append(b"".join(await raw.take_request()))
        await raw.send(OK)

    given = (
        *(("x-Api-KEY", "k"), ("Connection", "keep-alive, X-Hop"), ("hOST", "127.0.0.1:1"), ("X-Hop", "1")),
        *(("TE", "trailers"), ("content-LENGTH", "999"), ("Transfer-Encoding", "chunked"), ("Expect", "100-continue")),
        *(("accept", "é"), ("Accept", "b")),
    )
    async with raw_upstream(script) as listening, upstream_at(listening.url + "/v1/") as upstream:
        answer = await upstream.send("POST", "/chat/completions?a=%20", given, b"{}")
        assert [piece async for piece in answer.pieces()] == [Piece(b"ok", True)]
        for target in ("http://elsewhere/", "*", "/a b", "/é"):
            with pytest.raises(NotSendable):
                await upstream.send("POST", target, (), b"")
        with pytest.raises(NotSendable):
            await upstream.send("GET", "/", (("X", "1\r\nY: 2"),), b"")
    assert heads == [
        f"POST /v1/chat/completions?a=%20 HTTP/1.1\r\nx-Api-KEY: k\r\nhOST: 127.0.0.1:{listening.port}\r\n"
        "content-LENGTH: 2\r\naccept: é\r\nAccept: b\r\n\r\n{}".encode("latin-1")
    ]


def test_hop_by_hop_headers_are_those_of_the_standard_and_those_that_connection_names() -> None:
    headers = (
        ("A", "1"),
        ("keep-alive", "5"),
        ("connection", "A , b"),
        ("B", "2"),
        ("C", "3"),
        ("Connection", "close"),
    )
    assert strip_hop_by_hop(headers) == (("C", "3"),)
    assert header(headers, "KEEP-ALIVE") == "5"
    assert header(headers, "absent") is None


async def test_connections_are_kept_and_taken_again() -> None:
    async def script(raw: Raw) -> None:
        await raw.take_request()
        await raw.send(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", CHUNKED_HEAD, chunked(b"one")
        )
        await raw.take_request()
        await raw.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        await raw.take_request()
        await raw.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nthree")

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        assert [await fetch(upstream) for _ in range(3)] == [b"one", b"", b"three"]
        assert (upstream.connects, listening.connections) == (1, 1)
        assert await fetch(upstream) == b"one"
        assert (upstream.connects, listening.connections) == (2, 2)


async def test_parallel_requests_do_not_share_and_a_given_up_answer_is_not_kept() -> None:
    async with raw_upstream(answering) as listening, upstream_at(listening.url) as upstream:
        first = await upstream.send("GET", "/", (), b"")
        assert await fetch(upstream) == b"ok"
        await first.close()
        await first.close()
        with pytest.raises(NotSendable):
            await anext(first.pieces())
        assert [await fetch(upstream) for _ in range(2)] == [b"ok", b"ok"]
        assert listening.connections == upstream.connects == 2


@pytest.mark.parametrize("when", ["while idle", "on the next request", "by reset on the next request"])
async def test_a_kept_connection_found_closed_is_replaced_once(when: str) -> None:
    idle_closed = asyncio.Event()

    async def script(raw: Raw) -> None:
        await raw.take_request()
        await raw.send(OK)
        if listening.connections > 1:
            await raw.take_request()
        elif when == "while idle":
            raw.close()
            await raw.writer.wait_closed()
            idle_closed.set()
        else:
            await raw.take_request()
            raw.reset() if "reset" in when else raw.close()

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        assert await fetch(upstream) == b"ok"
        if when == "while idle":
            await idle_closed.wait()
        assert await fetch(upstream) == b"ok"
        assert upstream.connects == 2


async def test_a_request_is_never_sent_twice_once_a_byte_of_its_answer_came() -> None:
    async def script(raw: Raw) -> None:
        await raw.take_request()
        await raw.send(OK)
        await raw.take_request()
        await raw.send(b"H")

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        assert await fetch(upstream) == b"ok"
        assert await failure(upstream) == "broken"
        assert (upstream.connects, listening.connections) == (1, 1)


async def test_bytes_that_nobody_asked_for_end_a_kept_connection() -> None:
    sent = asyncio.Event()

    async def script(raw: Raw) -> None:
        await raw.take_request()
        await raw.send(OK)
        await raw.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        sent.set()
        await raw.reader.read()

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        assert await fetch(upstream) == b"ok"
        await sent.wait()
        assert await fetch(upstream) == b"ok"
        assert upstream.connects == 2


async def test_an_answer_before_the_request_was_read_is_not_lost() -> None:
    async def script(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        await asyncio.Event().wait()  # never reads the body

    async with raw_upstream(script) as listening, upstream_at(listening.url) as upstream:
        assert await fetch(upstream, body=b"x" * 16 * 1024 * 1024) == b"big"
        assert await fetch(upstream) == b"big"
        assert upstream.connects == 2  # a half-sent request cannot be followed by another


@pytest.mark.parametrize("status", [200, 204, 304])
async def test_bodiless_answers_pass_the_relay_with_their_headers(status: int) -> None:
    async def script(raw: Raw) -> None:
        while True:
            head, _ = await raw.take_request()
            extra = b"Content-Encoding: gzip\r\nContent-Length: 77\r\n" if head.startswith(b"HEAD") else b""
            await raw.send(b"HTTP/1.1 %d X\r\n%bETag: e\r\n\r\n" % (status, extra))

    async with relayed(script) as (client, upstream, _):
        for _ in range(2):
            await client.send(b"%b / HTTP/1.1\r\nHost: a\r\n\r\n" % (b"HEAD" if status == 200 else b"GET"))
            head = await client.take_head()
            assert head.startswith(b"HTTP/1.1 %d X\r\n" % status)
            assert (b"Content-Length: 77" in head) == (status == 200)
        assert upstream.connects == 1


async def test_a_name_that_nobody_knows_is_a_dns_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody_knows(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(
        asyncio.get_running_loop(), "getaddrinfo", nobody_knows
    )  # a real look-up would leave the machine
    async with upstream_at("http://models.invalid") as upstream:
        assert await failure(upstream) == "dns"


async def test_each_failure_has_its_word() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    async with upstream_at(f"http://127.0.0.1:{port}") as upstream:
        assert await failure(upstream) == "refused"
        assert upstream.connects == 1
    async with upstream_at(f"http://{'x' * 64}.invalid") as upstream:  # no name can be that long
        assert await failure(upstream) == "dns"

    async def silent(raw: Raw) -> None:
        await raw.reader.read()

    async with raw_upstream(silent) as listening:
        async with upstream_at(listening.url, read_timeout=0.05) as upstream:
            assert await failure(upstream) == "timeout"
        async with upstream_at(listening.url.replace("http", "https"), connect_timeout=0.05) as upstream:
            assert await failure(upstream) == "timeout"

    for said, kind in (
        (b"", "broken"), (b"HTTP/1.1 200 OK\r\nCont", "broken"), (b"SSH-2.0-x\r\n\r\n", "protocol"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "protocol"), (CHUNKED_HEAD + b"zz\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "protocol"), (CHUNKED_HEAD + b"5\r\nab", "broken"),
    ):  # fmt: skip

        async def saying(raw: Raw, said: bytes = said) -> None:
            await raw.take_request()
            await raw.send(said)

        async with raw_upstream(saying) as listening, upstream_at(listening.url) as upstream:
            assert await failure(upstream) == kind, said
            assert upstream.connects == 1


@pytest.mark.parametrize(
    "url",
    ["localhost:80", "ftp://h", "http://", "http://h:99999", "http://u:pw-fake@h", "http://h/?a=1", "http://[::1"],
)
def test_an_unusable_base_url_is_refused_without_repeating_a_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Upstream(url)
    assert "pw-fake" not in str(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and self-signed certificate for localhost, in one file, made now."""
    require("openssl", shutil.which("openssl"), "no openssl binary to make a certificate with")
    place = tmp_path_factory.mktemp("tls") / "localhost.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    made = [*command.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", str(place), "-out", f"{place}.crt"]
    subprocess.run(made, check=True, capture_output=True)
    place.write_bytes(place.read_bytes() + Path(f"{place}.crt").read_bytes())
    return place


def tls_server(certificate: Path, names: list[str | None]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _, name, __: names.append(name)
    return context


async def test_tls_with_a_trusted_certificate_and_refusal_of_an_untrusted_one(certificate: Path) -> None:
    names: list[str | None] = []

    async def script(raw: Raw) -> None:
        await raw.take_request()
        await raw.send(CHUNKED_HEAD, chunked(b"in", b"the tunnel"))
        await raw.take_request()
        await raw.send(CHUNKED_HEAD, chunked(b"cut", end=False))

    trusting = ssl.create_default_context(cafile=str(certificate))
    async with raw_upstream(script, tls_server(certificate, names)) as listening:
        url = f"https://localhost:{listening.port}"
        async with upstream_at(url, ssl_context=trusting) as upstream:
            answer = await upstream.send("GET", "/", (), b"")
            assert [piece.data async for piece in answer.pieces()] == [b"in", b"the tunnel"]
            assert await failure(upstream) == "broken"
            assert upstream.connects == 1
        assert names == ["localhost"]
        async with upstream_at(url) as upstream:
            assert await failure(upstream) == "tls"
        async with upstream_at(url.replace("localhost", "127.0.0.1"), ssl_context=trusting) as upstream:
            assert await failure(upstream) == "tls"  # the name is checked
    async with (
        raw_upstream(lambda raw: raw.send(OK)) as plain,
        upstream_at(f"https://localhost:{plain.port}") as upstream,
    ):
        assert await failure(upstream) == "tls"


async def test_a_forward_proxy_gets_connect_for_https_and_the_whole_url_for_http(certificate: Path) -> None:
    asked: list[bytes] = []

    async def proxying(raw: Raw) -> None:
        head = await raw.take_head()
        asked.append(head)
        if not head.startswith(b"CONNECT"):
            await raw.send(OK)
            return
        port = int(head.split(b" ")[1].rpartition(b":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await raw.send(b"HTTP/1.1 200 Connection ", b"established\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(raw.reader, writer), pump(reader, raw.writer))

    async def refusing(raw: Raw) -> None:
        await raw.take_head()
        await raw.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    trusting = ssl.create_default_context(cafile=str(certificate))
    async with raw_upstream(answering, tls_server(certificate, [])) as listening, raw_upstream(proxying) as proxy:
        https = f"https://localhost:{listening.port}"
        through = proxy.url.replace("//", "//user:p%40ss-fake@")
        async with upstream_at(https, proxy=through, ssl_context=trusting) as upstream:
            assert [await fetch(upstream) for _ in range(2)] == [b"ok", b"ok"]
        async with upstream_at("http://models.invalid:81/v1", proxy=through) as upstream:
            assert await fetch(upstream, "/x") == b"ok"
        address = b"localhost:%d" % listening.port
        assert asked[0].startswith(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (address, address))
        assert asked[1].startswith(b"POST http://models.invalid:81/v1/x HTTP/1.1\r\nHost: models.invalid:81\r\n")
        assert all(b"Proxy-Authorization: Basic dXNlcjpwQHNzLWZha2U=\r\n" in head for head in asked)
        assert len(asked) == 2
        async with raw_upstream(refusing) as no, upstream_at(https, proxy=no.url) as upstream:
            with pytest.raises(UpstreamError, match="407") as caught:
                await fetch(upstream)
            assert caught.value.kind == "refused"
    with pytest.raises(UsageError, match="http://"):
        Upstream("http://h", proxy="socks5://localhost:1")
