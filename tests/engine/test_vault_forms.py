"""Every encoding of a registered secret is found, in any split and with line breaks in it; the text around it stays."""

from __future__ import annotations

import base64
import html
import json
import random
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.recorded import action, answer, decision, exchange_of, recorder_in, written
from worldline.engine.boundary import call
from worldline.store.secrets.vault import Vault

PLAIN = "tok-" + "a1B2c3D4e5F6g7H8"
ODD = "pä/ss+ & \"wörd' <~*>" + "9876"
LINES = "-----BEGIN THING-----\n" + "\n".join("Zx8/+k" * 10 for _ in range(6)) + "\n-----END THING-----"
SECRETS = [PLAIN, ODD, "日本語のパスワード", LINES]
Spell = Callable[[str], bytes]


def utf8(spell: Callable[[str], str]) -> Spell:
    return lambda secret: spell(secret).encode()


def lower(coded: str) -> str:
    """Percent escapes in lower case."""
    return "".join("%" + part[:2].lower() + part[2:] if n else part for n, part in enumerate(coded.split("%")))


def units(secret: str) -> list[int]:
    data = secret.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


ONCE: dict[str, Spell] = {
    "raw": utf8(str),
    "json": utf8(lambda s: json.dumps(s)[1:-1]),
    "json, not ascii": utf8(lambda s: json.dumps(s, ensure_ascii=False)[1:-1]),
    "json twice": utf8(lambda s: json.dumps(json.dumps(s))[3:-3]),
    "json with \\/": utf8(lambda s: json.dumps(s)[1:-1].replace("/", "\\/")),
    "percent": utf8(lambda s: quote(s, safe="")),
    "percent, lower": utf8(lambda s: lower(quote(s, safe=""))),
    "percent, path": utf8(quote),
    "percent, plus": utf8(quote_plus),
    "percent, component": utf8(lambda s: quote(s, safe="!'()*")),
    "percent, all": utf8(lambda s: "".join(f"%{byte:02X}" for byte in s.encode())),
    "percent, all lower": utf8(lambda s: "".join(f"%{byte:02x}" for byte in s.encode())),
    "hex": utf8(lambda s: s.encode().hex()),
    "HEX": utf8(lambda s: s.encode().hex().upper()),
    "\\u": utf8(lambda s: "".join(f"\\u{unit:04x}" for unit in units(s))),
    "\\U": utf8(lambda s: "".join(f"\\u{unit:04X}" for unit in units(s))),
    "utf-16-le": lambda s: s.encode("utf-16-le"),
    "utf-16-be": lambda s: s.encode("utf-16-be"),
    "html": utf8(html.escape),
    "html, decimal": utf8(lambda s: "".join(f"&#{ord(c)};" for c in s)),
    "html, hex": utf8(lambda s: "".join(f"&#x{ord(c):x};" for c in s)),
    "without white space": utf8(lambda s: "".join(s.split())),
    "base64": lambda s: base64.b64encode(s.encode()),
    "base64url": lambda s: base64.urlsafe_b64encode(s.encode()),
    "base64url, bare": lambda s: base64.urlsafe_b64encode(s.encode()).rstrip(b"="),
}
TWICE: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "bare base64": lambda data: base64.b64encode(data).rstrip(b"="),
    "hex": lambda data: data.hex().encode(),
    "HEX": lambda data: data.hex().upper().encode(),
}
EVERY = [(one, two) for one in ONCE for two in TWICE]
VAULTS = {secret: Vault({"KEY": secret}) for secret in SECRETS}


@pytest.mark.parametrize(("one", "two"), EVERY, ids=[" in ".join(filter(None, reversed(pair))) for pair in EVERY])
@pytest.mark.parametrize("secret", SECRETS, ids=["plain", "odd", "wide", "lines"])
def test_every_encoding_is_found_and_the_text_around_it_stays(secret: str, one: str, two: str) -> None:
    coded = TWICE[two](ONCE[one](secret))
    assert VAULTS[secret].redact(b"before: " + coded + b" :after") == b"before: [secret:KEY] :after"


@pytest.mark.parametrize("secret", SECRETS, ids=["plain", "odd", "wide", "lines"])
@pytest.mark.parametrize("before", [b"", b"u", b"us"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_inside_base64_of_a_document_at_each_alignment(
    secret: str, before: bytes, encode: Callable[..., bytes]
) -> None:
    """All that the secret alone decides goes: at most a character at either end is shared with its neighbours."""
    document = b"some text " + before + secret.encode() + b" and more of it"
    coded = encode(document)
    head, marker, tail = VAULTS[secret].redact(coded).partition(b"[secret:KEY]")
    assert marker and coded.startswith(head) and coded.endswith(tail)
    gone = len(coded) - len(head) - len(tail)
    assert 8 * len(secret.encode()) - 10 <= 6 * gone <= 8 * len(secret.encode())
    assert base64.urlsafe_b64decode(head[: len(head) // 4 * 4].translate(bytes.maketrans(b"+/", b"-_"))) in document


@pytest.mark.parametrize("width", [60, 64, 76])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\\n", b"\n    "])
@pytest.mark.parametrize("secret", [PLAIN, ODD, LINES], ids=["plain", "odd", "lines"])
@pytest.mark.parametrize("encode", [base64.b64encode, lambda data: data.hex().encode()], ids=["base64", "hex"])
def test_line_breaks_inside_an_encoding(
    secret: str, newline: bytes, width: int, encode: Callable[[bytes], bytes]
) -> None:
    keeper = VAULTS[secret]
    for shift in range(0, 80, 13):
        coded = encode(b"x" * shift + secret.encode() + b"y" * 90)
        wrapped = newline.join(coded[at : at + width] for at in range(0, len(coded), width))
        found = keeper.redact(wrapped)
        assert found.count(b"[secret:KEY]") == 1, (shift, wrapped)
        assert len(found) < len(wrapped) - len(secret.encode()) + 14
        assert through(keeper, wrapped, list(range(0, len(wrapped), 29))) == found


def through(keeper: Vault, data: bytes, cuts: list[int]) -> bytes:
    window, at, spans = keeper.window(), 0, []
    for cut in [*sorted({min(cut, len(data)) for cut in cuts}), len(data)]:
        spans += window.feed(data[at:cut])
        at = cut
    spans += window.feed(b"", last=True)
    assert sum(span.size for span in spans) == len(data)
    return b"".join(span.text for span in spans)


plants = st.sampled_from([TWICE[two](ONCE[one](PLAIN)) for one, two in EVERY])
parts = (
    plants
    | plants.map(lambda data: data[:-1])
    | st.sampled_from([b"\n", b"\\n", b" ", b"x", b"==", b"%74", b"\\u0074"])
)


@settings(max_examples=200, deadline=None)
@given(st.lists(parts, max_size=6).map(b"".join), st.lists(st.integers(0, 700), max_size=12))
def test_any_split_decides_as_the_whole(data: bytes, cuts: list[int]) -> None:
    whole, streamed = VAULTS[PLAIN], Vault({"KEY": PLAIN})
    before = whole.redactions
    assert through(streamed, data, cuts) == whole.redact(data)
    assert streamed.redactions == whole.redactions - before


def test_a_stream_is_held_back_only_where_a_secret_may_begin() -> None:
    window = Vault({"KEY": PLAIN}).window()
    event = b'data: {"choices":[{"delta":{"content":"hello"}}]}\n\n'
    assert b"".join(span.text for span in window.feed(event)) == event
    assert b"".join(span.text for span in window.feed(b"a tok-")) == b"a "


def test_each_plant_is_a_marker_and_nothing_of_it_is_on_the_disk(tmp_path: Path) -> None:
    """Base64 of JSON in arguments, an error, a file name, a result, a request and a streamed answer, in pieces."""
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": PLAIN})
    document = base64.b64encode(json.dumps({"user": "ada", "password": PLAIN}).encode()).decode()
    call(boundary, action("read", {"path": f"/tmp/{quote(PLAIN, safe='')}.txt", "blob": document}), lambda: document)
    with pytest.raises(OSError, match="no such"):
        call(boundary, action("fails", {"hex": PLAIN.encode().hex()}), lambda: refuse(document))
    body = json.dumps({"messages": [{"role": "user", "content": f"what is {document}?"}]}).encode()
    said = f'data: {{"text": "it is {document}, or {PLAIN}"}}\n\n'.encode()
    exchange = answer(boundary, decision(body), [said[at : at + 5] for at in range(0, len(said), 5)])
    cassette, recorded = exchange_of(recorder, exchange)
    assert cassette.body(recorded).count(b"[secret:KEY]") == 2
    recorder.seal()
    files = written(tmp_path)
    for one in ONCE.values():
        for two in TWICE.values():
            assert not [name for name, content in files.items() if two(one(PLAIN)) in content]
    cores = {base64.b64encode(b"x" * shift + PLAIN.encode())[4:-4] for shift in range(3)}
    assert not [name for name, content in files.items() for core in cores if core in content]
    marks = b"".join(content for name, content in files.items() if name.suffix == ".jsonl").count(b"[secret:KEY]")
    assert marks == recorder.vault.redactions >= 8


def refuse(document: str) -> None:
    raise OSError(f"no such {document}")


def test_random_text_has_no_secret_in_it() -> None:
    chance = random.Random(3)
    keeper = Vault({f"K{n}": f"secret-value-{n:08d}" for n in range(5)} | {"S": "12345678"})
    for _ in range(20):
        data = chance.randbytes(20_000)
        for coded in (data, base64.b64encode(data), data.hex().encode()):
            assert keeper.redact(coded) is coded


@pytest.mark.parametrize("at", [0, (1 << 20) - 9, 1 << 20, (1 << 20) + 20_000, 3_000_000 - 20])
def test_in_a_text_of_megabytes(at: int) -> None:
    """It is looked through in parts; a secret on their border is in one of them."""
    data = bytearray(b"x." * 1_500_000)
    data[at : at + len(PLAIN)] = PLAIN.encode()
    assert VAULTS[PLAIN].redact(bytes(data)).count(b"[secret:KEY]") == 1
    assert VAULTS[PLAIN].finds_in_base64(memoryview(base64.b64encode(data)))
