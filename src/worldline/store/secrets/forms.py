"""Every byte form in which a registered secret is looked for.

A value is spelled as text (as it is, without its white space, JSON-escaped once and twice, percent-encoded, as
`\\uXXXX`, as HTML entities), in UTF-16, in hex and in base64; and each of those again in hex and base64. What is said
in text comes to rest inside of JSON, which may stand inside of JSON again: so text is looked for under further levels
of escapes, too, and as a program's own messages quote it. Of base64
only the characters that the secret alone determines are a form, at each of the three alignments: up to six bits at
either end, which it shares with its neighbours, are not. They stay where they are, and so does the text around.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from html.entities import codepoint2name

LEVELS = 4  # of JSON escapes: a document in a tool's arguments, in a model's answer, in a row, and one to spare
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_KEPT = (
    "",  # every byte encoded
    _UNRESERVED,  # RFC 3986, Python
    _UNRESERVED + "/",  # paths
    _UNRESERVED + "!'()*",  # encodeURIComponent
    _UNRESERVED + "!'()*;/?:@&=+$,#",  # encodeURI
    _UNRESERVED.replace("~", "*"),  # HTML forms
)
BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
SHORTEST = 8


def forms(value: str) -> set[bytes]:
    """The byte forms in which a value is looked for."""
    return set(all_forms(value))


def all_forms(value: str) -> dict[bytes, bool]:
    """Each form, and whether it is one only where no base64 character follows: base64 that ends without padding."""
    texts = {value, "".join(value.split())}
    found = {form for text in texts for form in _spelled(text)}
    found |= {part for text in texts for part, _ in _packed(_utf8(text))}
    ending = {form: False for form in found if len(form) >= SHORTEST}
    for form in list(ending):
        for packed, ends in _packed(form):
            ending[packed] = ending.get(packed, True) and ends
    for text in texts:
        ending |= dict(_packed(_utf8(text)))
        ending |= {_in_query(form, lower): ends for form, ends in _packed(_utf8(text)) for lower in (False, True)}
        ending |= dict.fromkeys(map(_utf8, _deep(text)), False)
    return {form: ends for form, ends in ending.items() if len(form) >= SHORTEST}


def _spelled(text: str) -> Iterator[bytes]:
    """A text in other characters, or in another character encoding."""
    for spelled in {*_json(text), *_percent(text), *_escaped(text), *_html(text)}:
        yield _utf8(spelled)
    yield text.encode("utf-16-le", "surrogatepass")
    yield text.encode("utf-16-be", "surrogatepass")


def _deep(text: str) -> Iterator[str]:
    """A text under every level of escapes: itself, as HTML, quoted in a message, and as `\\uXXXX`."""
    for spelled in {text, *_html(text), *_quoted(text)}:
        yield from _json(spelled, LEVELS)
    for level in range(LEVELS + 1):
        yield from _escaped(text, "\\" * 2**level)


def _quoted(text: str) -> Iterator[str]:
    """As programs quote a text in their messages (`repr`, `%r`, `inspect`)."""
    for quoted in (repr(text)[1:-1], ascii(text)[1:-1]):
        bare = quoted.replace("\\'", "'")
        yield from (bare, bare.replace("'", "\\'"), bare.replace('"', '\\"'))


def _json(text: str, levels: int = 2) -> set[str]:
    found = {text}
    for _ in range(levels):
        found |= {json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in found for ascii_only in (True, False)}
        found |= {one.replace("/", "\\/") for one in found}
    return found


def _percent(text: str) -> Iterator[str]:
    for kept in _KEPT:
        for digits in ("%{:02X}", "%{:02x}"):
            coded = "".join(chr(b) if chr(b) in kept else digits.format(b) for b in _utf8(text))
            yield coded
            yield coded.replace("%20", "+")


def _escaped(text: str, *backslashes: str) -> Iterator[str]:
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    for backslash in backslashes or ("\\", "\\\\"):
        yield "".join(f"{backslash}u{code}" for code in codes)
        yield "".join(f"{backslash}u{code.upper()}" for code in codes)


def _html(text: str) -> Iterator[str]:
    for apostrophe in ("'", "&#x27;", "&#39;", "&apos;"):
        named = "".join(f"&{codepoint2name[ord(c)]};" if ord(c) in codepoint2name else c for c in text)
        yield named.replace("'", apostrophe)
        plain = "".join(f"&{codepoint2name[ord(c)]};" if c in '&<>"' else c for c in text)
        yield plain.replace("'", apostrophe)
    for entity in ("&#{};", "&#x{:x};", "&#x{:X};"):
        yield "".join(entity.format(ord(c)) for c in text)
        yield "".join(entity.format(ord(c)) if c in "&<>\"'" or ord(c) > 126 else c for c in text)


def _packed(data: bytes) -> Iterable[tuple[bytes, bool]]:
    """Bytes in hex and base64: (form, whether it must stand at the end of its base64)."""
    digits = data.hex().encode("ascii")
    yield digits, False
    yield digits.upper(), False
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data)
        first, bits = -(-8 * before // 6), 8 * (before + len(data))
        coded = [(whole[first : bits // 6], False)]
        if bits % 6:
            coded += [(whole[first : bits // 6 + 1], True), (whole[first:], False)]
        for form, ends in coded:
            yield form, ends
            yield form.translate(bytes.maketrans(b"+/", b"-_")), ends


def _in_query(coded: bytes, lower: bool) -> bytes:
    """Base64 as it stands in a URL."""
    for char in b"+/=":
        digits = b"%%%02x" if lower else b"%%%02X"
        coded = coded.replace(bytes([char]), digits % char)
    return coded


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
