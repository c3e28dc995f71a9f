"""Keys nobody registered are found by their shape, whole and in any split; what only looks a little like one stays."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT
from worldline.store.secrets.shapes import hits
from worldline.store.secrets.vault import Vault

LETTERS = string.ascii_letters + string.digits
BASE64 = LETTERS + "+/"
HEX = "0123456789abcdef"
CHANCE = random.Random(812)


def some(size: int, alphabet: str = LETTERS) -> str:
    return "".join(CHANCE.choices(alphabet, k=size))


def pem(kind: str, lines: int, end: str = "\n") -> str:
    body = [some(64, BASE64) for _ in range(lines)]
    return end.join([f"-----BEGIN {kind}PRIVATE KEY-----", *body, some(30, BASE64) + "==", f"-----END {kind}PRIVATE KEY-----"])  # fmt: skip  # noqa: E501


KEYS: list[tuple[str, str]] = [
    ("anthropic-key", f"sk-ant-api03-{some(93)}AA"),
    ("openai-key", f"sk-proj-{some(120)}"),
    ("openai-key", f"sk-{some(48)}"),
    ("openrouter-key", f"sk-or-v1-{some(64, HEX)}"),
    ("stripe-key", f"sk_live_{some(24)}"),
    ("stripe-key", f"rk_test_{some(24)}"),
    ("aws-access-key-id", f"AKIA{some(16, 'ABCDEFGHJKLM234567')}"),
    ("github-token", f"ghp_{some(36)}"),
    ("github-token", f"github_pat_{some(22)}_{some(59)}"),
    ("google-key", f"AIza{some(35)}"),
    ("google-key", f"GOCSPX-{some(28)}"),
    ("slack-token", f"xoxb-{some(12, string.digits)}-{some(13, string.digits)}-{some(24)}"),
    ("gitlab-token", f"glpat-{some(20)}"),
    ("huggingface-token", f"hf_{some(34)}"),
    ("npm-token", f"npm_{some(36)}"),
    ("pypi-token", f"pypi-AgE{some(150)}"),
    ("groq-key", f"gsk_{some(52)}"),
    ("xai-key", f"xai-{some(80)}"),
    ("jwt", f"eyJ{some(33)}.eyJ{some(120)}.{some(43)}"),
    ("private-key", pem("RSA ", 24)),
    ("private-key", pem("", 3)),
    ("private-key", pem("OPENSSH ", 5, "\r\n")),
]
NAMED: list[tuple[str, str, str]] = [  # label, before, value and what may follow
    ("bearer", "Authorization: Bearer ", some(40) + "1"),
    ("bearer", '{"authorization":"bearer ', some(20) + "1"),
    ("basic-auth", "Authorization: Basic ", some(30) + "=="),
    ("url-password", "postgresql+psycopg://shop:", "p!ss9word-" + some(4)),
    ("url-password", "DATABASE_URL=mongodb+srv://shop:", some(16)),
    ("aws-secret-key", "aws_secret_access_key = ", some(40, BASE64)),
    ("aws-secret-key", '{"SecretAccessKey": "', some(40, BASE64)),
    ("token", '{"access_token":"', some(30) + "/+~.1"),
    ("token", "{'refresh_token': '", some(40)),
    ("token", '{"id_token" : "', some(40)),
    ("token", '{"client_secret":"', some(16)),
    ("token", '{"SAMLResponse":"', some(9000, BASE64) + "="),
    ("url-token", "https://shop.test/back?state=1&code=", some(30)),
    ("url-token", "https://shop.test/back#access_token=", some(30)),
    ("url-token", "/bucket/file?X-Amz-Signature=", some(64, HEX)),
    ("url-token", "/bucket/file?se=2030&sig=", some(40) + "%3D"),
    ("url-token", "/bucket/file?Signature=", some(40) + "%2F"),
    ("url-token", "SAMLResponse=", some(5000, BASE64) + "%3D"),
]
AFTER = {"url-password": "@db.test:5432/shop", "token": '", "expires_in": 3600}'}
CASES = [(label, "", key, "") for label, key in KEYS] + [
    (label, before, value, "'}" if before.startswith("{'") else AFTER.get(label, "")) for label, before, value in NAMED
]
WRAPPINGS = [
    lambda text: text,
    lambda text: f"\n{text}\n",
    lambda text: json.dumps({"out": f"line\n{text}\nline"}),
    lambda text: json.dumps(json.dumps({"out": f"line\n{text}\n"})),
]


def vault() -> Vault:
    return Vault(key_shapes=True)


@pytest.mark.parametrize(("label", "before", "key", "after"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)])
@pytest.mark.parametrize("wrap", WRAPPINGS)
def test_a_key_is_found_by_its_shape_and_the_text_around_it_stays(label: str, before: str, key: str, after: str, wrap) -> None:  # type: ignore[no-untyped-def]  # fmt: skip  # noqa: E501
    keeper = vault()
    found = keeper.redact(wrap(f"{before}{key}{after}").encode())
    assert found == wrap(f"{before}[secret:{label}]{after}").encode()
    assert keeper.shapes == {label: 1} and keeper.redactions == 0


@pytest.mark.parametrize(
    "text",
    [
        "key={}",
        "{},",
        "'{}'",
        "`{}`",
        "x={};",
        "<{}>",
        "({})",
        "a,{},b",
        "https://u.test/?k={}&b=1",
        "%22{}%22",
        r"\u0022{}\u0022",
    ],
)
@pytest.mark.parametrize(("label", "key"), KEYS[:-3])
def test_it_is_found_in_any_surroundings(text: str, label: str, key: str) -> None:
    assert vault().redact(text.format(key).encode()) == text.format(f"[secret:{label}]").encode()


def through(keeper: Vault, data: bytes, cuts: list[int]) -> bytes:
    window, at, spans = keeper.window(), 0, []
    for cut in [*sorted({min(cut, len(data)) for cut in cuts}), len(data)]:
        spans += window.feed(data[at:cut], last=False)
        at = cut
    spans += window.feed(b"", last=True)
    assert sum(span.size for span in spans) == len(data)
    return b"".join(span.text for span in spans)


parts = st.sampled_from([b + v + a for _, b, v, a in CASES if len(v) < 2000]) | st.sampled_from(
    [
        "sk-",
        "eyJ",
        "-----BEGIN ",
        "://",
        "a://b:c",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "\\n",
        "?code=",
        "x",
        " ",
        '"',
        "Bearer ",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(parts, max_size=5).map("".join), st.lists(st.integers(0, 3000), max_size=10), st.booleans())
def test_any_split_decides_as_the_whole(text: str, cuts: list[int], registered: bool) -> None:
    secrets = {"KEY": KEYS[1][1]} if registered else {}
    whole, streamed = Vault(secrets, key_shapes=True), Vault(secrets, key_shapes=True)
    assert through(streamed, text.encode(), cuts) == whole.redact(text.encode())
    assert (streamed.shapes, streamed.redactions) == (whole.shapes, whole.redactions)


@pytest.mark.parametrize(("label", "before", "key", "after"), CASES[:-1])
def test_byte_by_byte(label: str, before: str, key: str, after: str) -> None:
    data = json.dumps(f"{before}{key}{after}").encode() + b" end"
    data = data if len(data) < 4000 else data[:0]
    assert through(vault(), data, list(range(len(data)))) == vault().redact(data)


def test_a_window_holds_back_nothing_that_cannot_be_a_key() -> None:
    window = vault().window()
    event = b'data: {"id":"chatcmpl-B1a2c3d4e5f6g7h8i9","choices":[{"delta":{"content":"hello"}}]}\n\n'
    assert b"".join(span.text for span in window.feed(event)) == event


IMAGE = base64.b64encode(random.Random(1).randbytes(200_000)).decode()
INNOCENT = [
    '{"token_count":12,"tokenizer":"bpe","max_tokens":4096,"prompt_tokens_details":{"cached_tokens":0}}',
    "api_key=self._key",
    "client = OpenAI(api_key=os.environ['OPENAI_API_KEY'], base_url=settings.base_url_of_the_provider)",
    "access_token = get_access_token_from_the_store_of_tokens(refresh_token=refresh_token_of_the_user)",
    'url = f"https://shop.test/back?access_token={access_token}&client_secret={client_secret_of_the_application}"',
    '{"access_token": "your_access_token_goes_here", "client_secret": "YOUR_CLIENT_SECRET_HERE"}',
    '{"properties": {"access_token": {"type": "string", "description": "the token-of-the-session"}}}',
    "the bearer of this-very-long-compound-word shall pass; Bearer authentication-is-required-here",
    "postgres://user:${DB_PASSWORD}@db/shop postgres://user:<password>@db/shop https://example.com:8443/@scope/name",
    "git clone git@github.com:owner/repository-with-a-long-name.git; see https://medium.com/@someone/a-long-post-name",
    "-----BEGIN PRIVATE KEY----- is the first line of such a file, and what follows is base64 of sixty-four columns",
    "-----BEGIN CERTIFICATE-----\n" + "\n".join(some(64, BASE64) for _ in range(10)) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + some(64, BASE64) + "\n-----END PUBLIC KEY-----",
    *(str(UUID(int=CHANCE.getrandbits(128))) for _ in range(20)),
    *(hashlib.sha1(bytes([n])).hexdigest() for n in range(20)),
    *(hashlib.sha512(bytes([n])).hexdigest() for n in range(20)),
    *(
        prefix + some(size)
        for prefix in (
            "chatcmpl-",
            "call_",
            "toolu_",
            "msg_",
            "resp_",
            "rs_",
            "fc_",
            "file-",
            "req_",
            "run_",
            "asst_",
            "thread_",
            "fp_",
            "ft:gpt-",
        )
        for size in (24, 29, 48)
    ),
    f"data:image/png;base64,{IMAGE}",
    json.dumps({"image": IMAGE, "url": f"data:image/png;base64,{quote(IMAGE[:4000])}"}),
    "sha256-" + base64.b64encode(hashlib.sha256(b"x").digest()).decode(),
    "ask-about-the-weather-in-a-city-that-is-far-away task-management-system risk-assessment-of-the-project-2026",
    "sk-learn-style-names-with-many-dashes class=sk-toggle-content-arrow",
    "hf_model_name_or_path=hf_hub_download_with_a_very_long_name npm_config_registry=npm_package_json_of_the_project",
    "disk_live_usage_of_the_machine_1234567890 xoxo-love-and-kisses-from-all-of-us-here",
    "?code=E1234&sig=none&page=2 /search?q=a_very_long_query_about_code_and_signatures&token_type=bearer",
    "AKIA is how they begin; ASIA-PACIFIC-REGION-SOUTHEAST and EURASIAN12345678901234",
    "encrypted_content: gAAAAABo" + some(400) + "==",
    "signature: ErUB" + some(300, BASE64),
]


@pytest.mark.parametrize("text", INNOCENT, ids=range(len(INNOCENT)))
def test_ordinary_data_is_byte_identical(text: str) -> None:
    for data in (text.encode(), json.dumps({"x": text}).encode(), f"\n{text}\n".encode()):
        keeper = vault()
        assert keeper.redact(data) is data
        assert through(keeper, data, list(range(0, len(data), 997))) == data and not keeper.shapes


def test_no_rule_fires_on_the_source_of_a_whole_project() -> None:
    files = [path for part in ("src", "docs") for path in (ROOT / part).rglob("*") if path.suffix in (".py", ".md")]
    fired = {str(path): hits(path.read_bytes()) for path in files}
    assert len(files) > 60 and {path: found for path, found in fired.items() if found} == {}


def test_random_bytes_and_base64_fire_no_rule() -> None:
    chance = random.Random(7)
    for _ in range(5):
        data = chance.randbytes(100_000)
        for coded in (data, base64.b64encode(data), base64.urlsafe_b64encode(data), data.hex().encode(), base64.b85encode(data)):  # fmt: skip  # noqa: E501
            assert hits(coded) == []


def test_what_a_rule_matches_is_bounded() -> None:
    for text in (
        "sk-" + "a1" * 400,
        "eyJ" + "a" * 30_000,
        "Bearer " + "a1" * 5000,
        "A" * 100_000,
        "-" * 50_000,
        "://" * 9000,
    ):
        assert vault().redact(text.encode()) == text.encode()
    window, out = vault().window(), 0
    for _ in range(400):
        out += sum(span.size for span in window.feed(b"eyJ" + b"a" * 997))
    assert out >= 400_000 - 21_000


def test_registered_values_come_first_so_that_a_placeholder_matches(tmp_path: Path) -> None:
    real, other = (
        Vault({"KEY": KEYS[1][1]}, key_shapes=True),
        Vault({"KEY": "worldline-placeholder-KEY"}, key_shapes=True),
    )
    text = "Authorization: Bearer {} and postgres://u:{}@db/x"
    assert real.redact(text.format(KEYS[1][1], KEYS[1][1]).encode()) == other.redact(
        text.format("worldline-placeholder-KEY", "worldline-placeholder-KEY").encode()
    )
    assert not real.shapes and real.redactions == other.redactions == 2
