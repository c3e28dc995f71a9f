"""Secrets: found in every form and any split, replaced by a marker that is their label's, and never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.engine.recorded import action, answer, decision, recorder_in, written
from worldline.engine.boundary import call
from worldline.engine.cassette import Cassette
from worldline.engine.replay import ReplayBoundary, inspect, resolve_secrets
from worldline.errors import SecretFound, SecretRefused, UsageError
from worldline.store.recording import Recording
from worldline.store.secrets.vault import Vault, forms

PLAIN = "sk-test-" + "a1b2c3d4"
ODD = 'pä/ss"wörd\\' + "\n\t1234"
SPELLINGS = [
    lambda s: s,
    lambda s: json.dumps(s)[1:-1],
    lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    lambda s: json.dumps(json.dumps(s)[1:-1])[1:-1],
    lambda s: json.dumps({"k": json.dumps({"a": s})}),
    lambda s: json.dumps(s)[1:-1].replace("/", "\\/"),
]


@pytest.mark.parametrize("secret", [PLAIN, ODD, "\ud800" + "lone1234", "日本語のパスワード", "12345678"])
@pytest.mark.parametrize("spell", SPELLINGS)
def test_every_form_is_found_and_its_surroundings_stay(secret: str, spell: Any) -> None:
    vault = Vault({"KEY": secret})
    text = spell(secret).encode("utf-8", "surrogatepass")
    found = vault.redact(b"before " + text + b" after")
    assert b"[secret:KEY]" in found and found.startswith(b"before ") and found.endswith(b" after")
    assert not any(form in found for form in forms(secret))
    assert vault.redactions == 1


@given(st.binary(max_size=60), st.lists(st.integers(0, 60)))
def test_bytes_without_a_secret_are_the_same_bytes(data: bytes, cuts: list[int]) -> None:
    vault = Vault({"KEY": PLAIN, "ODD": ODD})
    assert vault.redact(data) is data
    assert through_window(vault, data, cuts) == data and vault.redactions == 0


pieces_of_secrets = st.sampled_from(
    [
        PLAIN.encode(),
        PLAIN.encode()[:-1],
        PLAIN.encode()[1:],
        (PLAIN + "-long").encode(),
        ODD.encode(),
        b"sk-test-",
        b"x",
    ]
)


def through_window(vault: Vault, data: bytes, cuts: list[int]) -> bytes:
    window, out, size, at = vault.window(), [], 0, 0
    for cut in [*sorted({min(cut, len(data)) for cut in cuts}), None]:
        for span in window.feed(data[at:cut], last=cut is None):
            out.append(span.text)
            size += span.size
        at = cut or at
    assert size == len(data)
    return b"".join(out)


@given(st.lists(pieces_of_secrets, max_size=8).map(b"".join), st.lists(st.integers(0, 150), max_size=12))
@example(PLAIN.encode() * 2, list(range(40)))
def test_a_window_over_any_split_decides_as_over_the_whole(data: bytes, cuts: list[int]) -> None:
    secrets = {"KEY": PLAIN, "LONG": PLAIN + "-long", "ODD": ODD}
    whole, streamed = Vault(secrets), Vault(secrets)
    assert through_window(streamed, data, cuts) == whole.redact(data)
    assert streamed.redactions == whole.redactions
    left = whole.redact(data)
    assert not any(form in left for secret in secrets.values() for form in forms(secret))


@given(st.text(min_size=8, max_size=20), st.text(max_size=30), st.text(max_size=30), st.lists(st.integers(0, 99)))
def test_any_secret_is_found_anywhere(secret: str, before: str, after: str, cuts: list[int]) -> None:
    assume(secret not in "[secret:KEY]")
    vault, text = Vault({"KEY": secret}), json.dumps({"text": before + secret + after}).encode()
    assert b"[secret:KEY]" in vault.redact(text)
    assert through_window(vault, text, cuts) == vault.redact(text)


def test_the_longer_of_two_secrets_wins_and_each_has_its_own_marker() -> None:
    vault = Vault({"SHORT": "abcdefgh", "LONG": "abcdefghij"})
    assert vault.redact(b"abcdefghij abcdefghi") == b"[secret:LONG] [secret:SHORT]i"
    overlap = Vault({"A": "xxabcdef", "B": "cdefghyy"})
    assert overlap.redact(b"xxabcdefghyy") == b"[secret:A]ghyy"  # the first one; of the other a part is left


@pytest.mark.parametrize("value", ["", "1234567", "ééé"])
def test_short_secrets_are_refused_by_label(value: str) -> None:
    with pytest.raises(SecretRefused) as refused:
        Vault({"PIN": value})
    assert refused.value.facts == {"label": "PIN"} and (not value or value not in str(refused.value))


@pytest.mark.parametrize("label", ["", "a b", "a]", "x" * 65, "é"])
def test_a_label_is_a_plain_word(label: str) -> None:
    with pytest.raises(UsageError):
        Vault({label: PLAIN})


def test_markers_count_the_plants_wherever_they_stand(tmp_path: Path) -> None:
    """Arguments, keys, results, bytes, lone surrogates, errors, bodies, lanes, the task, the outcome, blobs."""
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": PLAIN, "ODD": ODD}, task=f"use {PLAIN}")
    call(
        boundary,
        action("t", {"a": PLAIN, ODD: [b"x" + PLAIN.encode()], "s": "\ud800" + PLAIN}),
        lambda: {"b": [ODD] * 2},
    )
    call(boundary, action("big"), lambda: "x" * 50_000 + PLAIN)
    call(boundary, action("deep"), lambda: nested(200, PLAIN))
    with pytest.raises(OSError, match="sk-test"):
        call(boundary, action("fails"), lambda: raise_(OSError(f"no {PLAIN}")))
    answer(
        boundary, decision(json.dumps({"messages": [ODD, {"k": PLAIN}]}).encode(), lane=f"l {PLAIN}"), [PLAIN.encode()]
    )
    boundary.note("marker", "outcome", "main", {}, {"outcome": f"failed {PLAIN}"})
    path = recorder.seal()
    files = written(tmp_path)
    for secret in (PLAIN, ODD):
        for form in forms(secret):
            assert not [name for name, content in files.items() if form in content]
    cassette = Cassette(Recording(path))
    assert cassette.inputs(cassette.exchanges[0]) == {
        "a": "[secret:KEY]", "[secret:ODD]": [b"x[secret:KEY]"], "s": "\ud800[secret:KEY]"
    }  # fmt: skip
    assert json.loads(path.read_text())["outcome"] == "failed [secret:KEY]"
    assert inspect(Recording(path)).verdict == "equivalent"


def nested(levels: int, value: Any) -> Any:
    for _ in range(levels):
        value = [value]
    return value


def raise_(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("secret", "value", "recorded"),
    [
        ("1234567890", {"id": 1234567890, "near": 91234567890}, {"id": "[secret:KEY]", "near": "[secret:KEY]"}),
        ("12345678901234567890123", {"id": 12345678901234567890123}, {"id": "[secret:KEY]"}),
        ("3.14159265", [3.14159265, "3.14159265!"], ["[secret:KEY]", "[secret:KEY]!"]),
        ('{"id":"x","key":"y"}', {"account": {"id": "x", "key": "y"}}, {"account": "[secret:KEY]"}),
        ("nabcdefgh", "\nabcdefgh", "[secret:KEY]"),
        ("abcdefgh\\", 'abcdefgh"', "[secret:KEY]"),
        ("u0001abcdef", ["\x01abcdef", 1], ["[secret:KEY]", 1]),
    ],
)
def test_a_secret_that_is_no_text_of_its_own_leaves_a_whole_record(
    tmp_path: Path, secret: str, value: Any, recorded: Any
) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": secret})
    call(boundary, action("t", {"v": value}), lambda: value)
    recording = Recording(recorder.seal())
    cassette = Cassette(recording)
    assert cassette.inputs(cassette.exchanges[0]) == {"v": recorded}
    assert recording.value(cassette.exchanges[0].data["result"]) == recorded
    replay = ReplayBoundary(recording, {"KEY": secret})
    assert call(replay, action("t", {"v": value}), lambda: 1 / 0) == recorded
    assert replay.report().equivalent
    files = written(tmp_path)
    assert not any(form in content for form in forms(secret) for content in files.values())


def test_requests_match_with_the_real_value_and_with_a_placeholder(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": PLAIN})
    body = lambda key: json.dumps({"messages": [{"role": "user", "content": f"use {key}"}]}).encode()  # noqa: E731
    answer(boundary, decision(body(PLAIN)), [b"ok"])
    recording = Recording(recorder.seal())
    for environment in ({"KEY": PLAIN}, {"KEY": "another-value-1"}, {}):
        secrets = resolve_secrets(recording, environment)
        replay = ReplayBoundary(recording, secrets)
        assert b"".join(piece for piece, _ in replay.begin(decision(body(secrets["KEY"]))).pieces()) == b"ok"


@pytest.mark.parametrize("where", ["arguments", "result", "body", "lane", "note", "error"])
def test_under_stop_the_run_ends_as_a_sanitized_partial(tmp_path: Path, where: str) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"KEY": PLAIN}, policy="stop")
    call(boundary, action("fine", {"a": 1}), lambda: 2)
    with pytest.raises(SecretFound) as found:
        match where:
            case "arguments":
                call(boundary, action("t", {"a": PLAIN}), lambda: pytest.fail("it ran"))
            case "result":
                call(boundary, action("t"), lambda: [PLAIN])
            case "body":
                answer(boundary, decision(PLAIN.encode()), [])
            case "lane":
                boundary.begin(action("t", lane=PLAIN))
            case "note":
                boundary.note("marker", "outcome", "main", {}, {"outcome": PLAIN})
            case _:
                call(boundary, action("t"), lambda: raise_(ValueError(PLAIN)))
    assert found.value.facts == {"label": "KEY"} and PLAIN not in str(found.value)
    assert recorder.broken is found.value
    with pytest.raises(SecretFound):
        boundary.note("marker", "step", "main", {}, {"phase": "begin"})
    recorder.outcome["error"] = recorder.vault.masked(f"ValueError: {PLAIN}")
    recording = Recording(recorder.seal())
    assert (recording.disposition, recording.published) == ("sanitized-partial", None)
    assert not any(PLAIN.encode() in content for content in written(tmp_path).values())
    assert Cassette(recording).exchanges[0].name == "fine"
