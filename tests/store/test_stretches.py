"""The vault's quick looks pass over nothing that the exhaustive search finds, nor over what plainly stands there."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from worldline.store.secrets import shapes
from worldline.store.secrets.forms import BASE64, all_forms
from worldline.store.secrets.scanner import Scanner
from worldline.store.secrets.stretches import Stretches
from worldline.store.secrets.vault import Vault

SETS: dict[str, dict[str, str]] = {
    "long": {"A": "sk-test-" + "a1B2c3D4e5F6g7H8", "B": "tok_" + "Zx9" * 12},
    "short": {"A": "pass-" + "w0rd", "B": "12345678"},
    "marks": {"A": "p@ss'w0rd" + "!long$enough:to/be", "B": 'quo"ted' + "\\secret" * 3},
    "phrase": {"A": "correct horse " + "battery staple"},
    "lines": {"A": "-----BEGIN X-----\n" + "\n".join("Zx8/+k" * 10 for _ in range(3)) + "\n-----END X-----"},
    "wide": {"A": "日本語の" + "パスワード"},
    "alike": {"A": "a" * 40, "B": "ab" * 20},
}
SCANNERS = {name: Scanner({label: all_forms(value) for label, value in held.items()}) for name, held in SETS.items()}
FORMS = {
    name: {form: ends for value in held.values() for form, ends in all_forms(value).items()}
    for name, held in SETS.items()
}
AROUND = [b"", b" ", b'"', b"a", b"0", b"=", b"\\n", b"\0", b"\xff", b"lamp ", b"/usr/lib/python3/site.py"]
BREAKS = [b"\n", b"\r\n", b"\\n", b"\\r\\n", b"\n    ", b"\\n    ", b"\\\\n", b"\\n\t", b"\r", b"\\t "]


@pytest.fixture(params=SETS)
def held(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_form_is_found_at_every_alignment_in_any_surroundings(held: str) -> None:
    vaults = [Vault(SETS[held], key_shapes=with_shapes) for with_shapes in (False, True)]
    for number, (form, _) in enumerate(sorted(FORMS[held].items())):
        around = AROUND[number % len(AROUND)]
        for shift in range(16) if number % 7 == 0 else (number % 16,):
            text = b" " * shift + around + form + b' "'
            assert all(vault.finds(text) for vault in vaults), (form, shift, around)


def test_the_shortest_stretch_is_as_long_as_the_shortest_part_of_any_form() -> None:
    """What the quick look rests on: in each form stands one unbroken word that is as long as what is looked for."""
    assert [name for name, scanner in SCANNERS.items() if scanner.stretches is None] == ["marks", "phrase", "wide"]
    for name, scanner in SCANNERS.items():
        if scanner.stretches is not None:
            assert all(scanner.stretches.any(form) for form in FORMS[name])
    assert (found := SCANNERS["long"].stretches) is not None and found.least == min(map(len, FORMS["long"])) == 24


def texts(held: str) -> st.SearchStrategy[bytes]:
    forms = st.sampled_from(sorted(FORMS[held]))
    broken = st.tuples(forms, st.integers(1, 80), st.integers(0, 80), st.sampled_from(BREAKS)).map(wrapped)
    values = st.sampled_from(sorted(SETS[held].values())).map(lambda value: value.encode())
    coded = st.tuples(st.binary(max_size=4), values, st.binary(max_size=40)).map(b"".join).map(base64.b64encode)
    cut = st.tuples(forms, st.integers(0, 60), st.integers(0, 60)).map(lambda it: it[0][it[1] : len(it[0]) - it[2]])
    part = forms | broken | cut | coded | st.sampled_from(AROUND + BREAKS) | st.binary(max_size=12)
    return st.lists(part, max_size=6).map(b"".join)


def wrapped(it: tuple[bytes, int, int, bytes]) -> bytes:
    form, width, first, newline = it
    lines = [form[:first], *(form[at : at + width] for at in range(first, len(form), width))]
    return newline.join(line for line in lines if line)


@pytest.mark.parametrize("name", SETS)
def test_the_quick_look_is_a_superset_of_the_exhaustive_search(name: str) -> None:
    exhaustive = Scanner({label: all_forms(value) for label, value in SETS[name].items()})
    exhaustive.stretches = None
    quick, vault = SCANNERS[name], Vault(SETS[name])

    @settings(max_examples=60, deadline=None)
    @given(texts(name))
    def check(data: bytes) -> None:
        assert quick.hits(data) == exhaustive.hits(data)
        assert quick.finds(data) == exhaustive.finds(data) == vault.finds(data)
        assert quick.finds(data) or not plainly_in(data, FORMS[name])

    check()


def plainly_in(data: bytes, forms: dict[bytes, bool]) -> bool:
    """By definition: some form stands in the data, whole."""
    return any(stands(data, form, ends) for form, ends in forms.items())


def stands(data: bytes, form: bytes, ends: bool) -> bool:
    at = data.find(form)
    while at >= 0:
        if not ends or data[at + len(form) : at + len(form) + 1] not in [bytes([code]) for code in BASE64]:
            return True
        at = data.find(form, at + 1)
    return False


class Everything:
    """A set that has all there is in it: a quick look that never says no."""

    def __contains__(self, anything: object) -> bool:
        return True


@pytest.mark.parametrize("name", SETS)
def test_what_may_still_become_a_secret_is_told_as_by_the_exhaustive_search(name: str) -> None:
    exhaustive = Scanner({label: all_forms(value) for label, value in SETS[name].items()})
    exhaustive.__dict__["_inside"] = Everything()

    @settings(max_examples=40, deadline=None)
    @given(texts(name), st.integers(0, 40))
    def check(data: bytes, cut: int) -> None:
        data = data[: len(data) - cut]
        assert SCANNERS[name].undecided(data) == exhaustive.undecided(data)

    check()


KEYS = [
    *(b"sk-proj-" + b"xY9_" * 10, b"sk-" + b"aB3d" * 10, b"AKIA" + b"ABCD2345" * 2, b"ghp_" + b"aB3dE6" * 6),
    *(b"eyJ" + b"a1" * 8 + b".eyJ" + b"b2" * 9 + b"." + b"c3" * 12, b"Authorization: Bearer " + b"t0k" * 9),
    *(
        b"Authorization: Basic " + b"QWxhZGRp" * 3,
        b'"access_token" : "' + b"f00-" * 8 + b'1"',
        b"bearer\t\t" + b"x1" * 12,
    ),
    *(
        b'\\\\\\"client_secret\\\\\\"    :    \\\\\\"' + b"s3" * 9 + b'\\\\\\"',
        b"?code=" + b"ab12" * 6,
        b"&sig=" + b"9f" * 20,
    ),
    *(b'"SecretAccessKey"    :    "' + b"aB3/" * 10 + b'"', b"aws_secret_access_key    =    " + b"aB3/" * 10),
    *(
        b"postgres://shop:s3cr3t-pass@db/shop",
        b"SAMLResponse=" + b"QUJD" * 10,
        b"'SAMLResponse':'" + b"QUJD" * 10 + b"'",
    ),
]
BITS = [
    b"sk-",
    b"eyJ",
    b"xox",
    b"code=",
    b"bearer ",
    b"://",
    b"-----BEGIN ",
    b"chatcmpl-" + b"a1B2" * 5,
    b"x" * 70,
    b"{}, ",
]
texts_with_keys = st.lists(st.sampled_from(KEYS + BITS + AROUND + BREAKS), max_size=7).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(texts_with_keys)
@example(b"postgres://shop:s3cr3t-pass@db/shop")
def test_keys_are_found_where_the_rules_find_them_without_any_quick_look(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "_stretches", lambda text: [(0, len(text))])
        everywhere = shapes.hits(data)
    assert shapes.hits(data) == everywhere
    assert Vault(key_shapes=True).finds(data) == Vault(SETS["long"], key_shapes=True).finds(data) == bool(everywhere)


@settings(max_examples=150, deadline=None)
@given(texts_with_keys, st.integers(0, 60))
def test_what_may_still_become_a_key_is_told_as_without_the_quick_look(data: bytes, cut: int) -> None:
    data = data[: len(data) - cut]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "_LAST", Everything())
        exhaustive = shapes.undecided(data)
    assert shapes.undecided(data) == exhaustive


@given(st.binary(max_size=80), st.integers(1, 9), st.frozensets(st.integers(0, 255)))
def test_stretches_are_the_maximal_runs(data: bytes, least: int, letters: frozenset[int]) -> None:
    stretches = Stretches(letters, least)
    assert list(stretches.spans(data)) == list(runs(data, letters.__contains__, least))
    assert stretches.any(data) == bool(list(stretches.spans(data)))
    assert all(byte in letters for byte in data[stretches.last(data) :])
    both = stretches.merged(Stretches(b"abc", 2))
    assert both.any(data) or not (stretches.any(data) or Stretches(b"abc", 2).any(data))


def runs(data: bytes, inside: Callable[[int], Any], least: int) -> Iterator[tuple[int, int]]:
    begin = None
    for at, byte in enumerate([*data, None]):
        if byte is not None and inside(byte):
            begin = at if begin is None else begin
        elif begin is not None:
            if at - begin >= least:
                yield begin, at
            begin = None
