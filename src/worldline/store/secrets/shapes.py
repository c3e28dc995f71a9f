"""Keys that are known by their shape: found by rule, although nobody registered them.

A rule is precise (a provider's prefix, alphabet and length) or reads a value by the name that stands before it, and its
length is bounded. What it finds is a guess, so it is replaced and counted, but never stops a run. Sources: the key
formats that the providers publish for secret scanning, RFC 6750 (bearer), RFC 7519 (JWT), RFC 7468 (PEM), RFC 6749
(OAuth), AWS Signature Version 4. The rules are versioned: a replay applies those that its recording's header names.

Nearly all text is passed over by two looks: a key needs 16 characters of one alphabet in a row, or a PEM header, or a
password in a URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from worldline.store.secrets.scanner import Hit
from worldline.store.secrets.stretches import Stretches

VERSION = 1
RUN = 16  # the shortest unbroken stretch of `_WORD` in any key
LONGEST = 20_000  # bytes that a key, its name and what is read around it may have
_BACK, _AHEAD = 64, 8  # bytes around a stretch that a rule may read: the name before it, the quote behind it

_WORD = rb"[A-Za-z0-9_\-+/=.~%]"
STRETCHES = Stretches([code for code in range(256) if re.match(_WORD, bytes([code]))], RUN)
"""Where alone a key can stand, unless it is a password in a URL."""
_END = rb"(?![A-Za-z0-9_\-])"
# A letter may be the end of an escape that stands for another character: `\n`, `%3D`, `\u0022`.
_BOUNDARY = rb"(?:[^A-Za-z0-9_\-]|\\[nrt]|%[0-9A-Fa-f]{2}|\\u00[0-9a-fA-F]{2})"
CONTEXT = 6  # bytes before a key that its rule reads
_QUOTE = rb"\\{0,3}[\"']"
_COLON = _QUOTE + rb"\s{0,4}[:=]\s{0,4}" + _QUOTE  # between a JSON name and its text
_NO_NAME = rb"(?![a-z_\-]+" + _QUOTE + rb"|[A-Z_\-]+" + _QUOTE + rb")"  # `"access_token": "your_access_token"`

_KEYS: dict[str, bytes] = {
    "anthropic-key": rb"sk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_\-]{32,256}",
    "openrouter-key": rb"sk-or-v1-[0-9a-f]{64}",
    "openai-key": rb"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_\-]{32,256}|[A-Za-z0-9]{32,64})",
    "stripe-key": rb"[rs]k_(?:live|test)_[A-Za-z0-9]{16,247}",
    "aws-access-key-id": rb"A(?:KIA|SIA)[A-Z2-7]{16}",
    "github-token": rb"(?:gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})",
    "google-key": rb"(?:AIza[A-Za-z0-9_\-]{35}|GOCSPX-[A-Za-z0-9_\-]{28}|ya29\.[A-Za-z0-9_\-]{32,2048})",
    "slack-token": rb"(?:xox[abeoprs]-[0-9][A-Za-z0-9\-]{23,250}|xapp-[0-9]-[A-Za-z0-9\-]{24,250})",
    "gitlab-token": rb"glpat-[A-Za-z0-9_\-]{20,300}",
    "huggingface-token": rb"hf_[A-Za-z0-9]{34,64}",
    "npm-token": rb"npm_[A-Za-z0-9]{36}",
    "pypi-token": rb"pypi-AgE[A-Za-z0-9_\-]{50,512}",
    "groq-key": rb"gsk_[A-Za-z0-9]{52}",
    "xai-key": rb"xai-[A-Za-z0-9]{80}",
    "jwt": rb"eyJ[A-Za-z0-9_\-]{8,2048}\.eyJ[A-Za-z0-9_\-]{8,4096}\.[A-Za-z0-9_\-]{16,1024}",
}
_TOKENS = (b"access_token", b"refresh_token", b"id_token", b"client_secret", b"SAMLResponse")
_SIGNED = (b"X-Amz-Signature", b"X-Amz-Security-Token", b"X-Amz-Credential", b"X-Goog-Signature", b"Signature", b"sig")
_PARAMETERS = (*_TOKENS, *_SIGNED, b"code")
_AWS = (b"aws_secret_access_key", b"awssecretaccesskey", b"secret_access_key", b"secretaccesskey")
_NAMED: dict[str, bytes] = {  # the group is the value alone
    "bearer": rb"(?i:bearer)\s{1,4}((?=[A-Za-z._~+/=\-]{0,255}[0-9])[A-Za-z0-9._~+/=\-]{16,4096})"
    + rb"(?![A-Za-z0-9._~+/=\-])",
    "basic-auth": rb"(?i:authorization)(?:" + _COLON + rb"|:\s{0,4})(?i:basic) ([A-Za-z0-9+/]{16,1024}={0,2})"
    + rb"(?![A-Za-z0-9+/=])",
    "aws-secret-key": rb"(?i:" + b"|".join(_AWS) + rb")(?:" + _COLON + rb"|\s{0,4}=\s{0,4})"
    + rb"([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
    "token": rb"(?:" + b"|".join(_TOKENS) + rb")" + _COLON + _NO_NAME + rb"([A-Za-z0-9_\-+/=.~%]{16,16384})"
    + rb"(?=" + _QUOTE + rb")",
    "url-token": rb"(?:(?<=[?&#;6])(?:" + b"|".join(_PARAMETERS) + rb")|SAMLResponse)="
    + rb"([A-Za-z0-9_\-+/.~%]{16,16384})(?![A-Za-z0-9_\-+/.~%])",
}  # fmt: skip
# How each name ends that has a gap between itself and its value, and how far before the value its last letters may be:
# what has no gap stands in one unbroken word with its value.
_NAME = re.compile(rb"bearer|basic|key|_token|secret|response")
_NEAR = 32
_LABELS = ("", *_KEYS, *_NAMED)
_RULES = re.compile(b"|".join([*(b"(" + rule + b")" + _END for rule in _KEYS.values()), *_NAMED.values()]))

# How every rule begins: the quick look before the rules themselves.
_WORDS = (b"bearer", b"authorization", *_AWS)
_ANCHORS = (
    *(b"sk-", b"sk_live_", b"sk_test_", b"rk_live_", b"rk_test_", b"AKIA", b"ASIA", b"AIza", b"GOCSPX-", b"ya29."),
    *(b"gho_", b"ghp_", b"ghr_", b"ghs_", b"ghu_", b"github_pat_", b"xox", b"xapp-", b"glpat-", b"hf_", b"npm_"),
    *(b"pypi-AgE", b"gsk_", b"xai-", b"eyJ", *_PARAMETERS),
)


def _any_of(exact: Iterable[bytes], any_case: Iterable[bytes]) -> tuple[bytes, bytes]:
    """A pattern for any of some words, by their first letters, and one for those letters."""
    rests: dict[bytes, list[bytes]] = {}
    for word in exact:
        rests.setdefault(re.escape(word[:1]), []).append(re.escape(word[1:]))
    for word in any_case:
        rests.setdefault(b"[%b%b]" % (word[:1], word[:1].upper()), []).append(b"(?i:%b)" % word[1:])
    words = b"|".join(first + b"(?:%b)" % b"|".join(rest) for first, rest in rests.items())
    return b"(?:%b)" % words, b"[%b]" % b"".join(first.strip(b"[]") for first in rests)


_BEGIN, _FIRST = _any_of(_ANCHORS, _WORDS)
# `_BOUNDARY`, and a beginning behind it, in the order of what is quickly told: of a pattern that begins with one class
# only bytes of that class are tried.
_BEGINS = re.compile(
    rb"[^A-Za-z0-9_\-](?:(?=" + _FIRST + rb")(?=" + _BEGIN + rb")"
    + rb"|(?:(?<=\\)[nrt]|(?<=%)[0-9A-Fa-f]{2}|(?<=\\)u00[0-9a-fA-F]{2})(?=" + _BEGIN + rb"))"
)  # fmt: skip
_OPEN_WORD = 17_000
_OPEN_END = rb"[\"'\\:=\s]{0,24}(?:(?i:basic) )?" + _WORD + rb"{0,%d}\\{0,3}\Z" % _OPEN_WORD
_OPEN = re.compile(_BEGIN + _OPEN_END)
_ENDS_AT_BOUNDARY = re.compile(_BOUNDARY + rb"\Z|\A\Z")
_PREFIXES = frozenset(word.lower()[:size] for word in (*_ANCHORS, *_WORDS) for size in range(1, len(word)))
_LONGEST_PREFIX = max(map(len, _PREFIXES))

_GAP = rb"(?:\s|\\{1,4}[nrt]){1,40}"
_HEADER = b"-----BEGIN "
_PEM = re.compile(
    rb"(-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    + _GAP + rb"(?:[A-Z][A-Za-z\-]{1,20}: [A-Za-z0-9,\-. ]{1,100}" + _GAP + rb"){0,4}"
    + rb"[A-Za-z0-9+/=]{16,128}(?:" + _GAP + rb"[A-Za-z0-9+/=]{16,128}){0,250}"
    + rb"(?:(?:" + _GAP + rb"[A-Za-z0-9+/=]{1,128}){0,2}(?:" + _GAP
    + rb")?-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?)"
)  # fmt: skip
_OPEN_PEM = re.compile(
    rb"-----BEGIN (?:(?!-----END )[A-Za-z0-9+/=:,.\s\\\-]){0,18000}(?:-----END[A-Z0-9 ]{0,70}-{0,4})?\Z"
)
_PASSWORD = re.compile(
    rb"(?<=[a-z0-9])://[^\s:/?#@\"'<>\\\[\]{}()]{0,128}:([^\s/@\"'<>\\\[\]{}()$*]{6,256})@(?=[A-Za-z0-9])"
)
_OPEN_PASSWORD = re.compile(rb"://[^\s/?#@\"'<>\\\[\]{}()$*]{0,400}@?\Z")
_MARKS = (_HEADER, b"://")
_LAST = frozenset(bytes([byte]) for word in (*_PREFIXES, *_MARKS) for byte in word + word.upper())
"""Each byte with which a part of a prefix or of a mark may end."""

_SHORTEST = 13  # a URL with a password of six letters


def hits(data: bytes) -> list[Hit]:
    """The keys in `data`, in order, none overlapping."""
    if len(data) < _SHORTEST:
        return []
    found = [hit for start, end in _stretches(data) for hit in _within(data, start, end)]
    if _HEADER in data:
        found += [Hit(*match.span(1), "private-key") for match in _PEM.finditer(data)]
    found += passwords(data)
    kept: list[Hit] = []
    for hit in sorted(found):
        if not kept or hit.start >= kept[-1].end:
            kept.append(hit)
    return kept


def passwords(data: bytes) -> list[Hit]:
    """Of the keys in `data` those that need no stretch: the passwords in URLs."""
    if b"@" not in data or b"://" not in data:
        return []
    return [Hit(*match.span(1), "url-password") for match in _PASSWORD.finditer(data)]


def _within(data: bytes, start: int, end: int) -> Iterator[Hit]:
    """The keys of one stretch; a rule is tried only where one may begin."""
    at = 0
    if start > 0:
        begun = _BEGINS.search(data, start, end)
        if begun is None:
            return
        at = begun.end()
    while True:
        if match := _RULES.match(data, at, end):
            group = match.lastindex or 0
            yield Hit(*match.span(group), _LABELS[group])
            at = match.end()
        begun = _BEGINS.search(data, at, end)
        if begun is None:
            return
        at = begun.end()


def _stretches(data: bytes) -> list[tuple[int, int]]:
    """Where a key may stand: around each long unbroken word that begins like one, or has its name before it."""
    places: list[tuple[int, int]] = []
    begins: dict[bytes, bool] = {}  # in JSON the same words come again and again
    for at, end in STRETCHES.spans(data):
        start = max(0, at - _BACK)
        if start > 0 and _NAME.search(data[at - _NEAR : at].lower()) is None:
            word = data[at - CONTEXT : end]
            if (known := begins.get(word)) is None:
                known = begins[word] = _BEGINS.search(word) is not None
            if not known:
                continue
        if places and start <= places[-1][1]:
            start = places.pop()[0]
        places.append((start, min(len(data), end + _AHEAD)))
    return places


def undecided(data: bytes) -> int:
    """The first place in `data` where a key may begin whose end is still to come; else its length."""
    tail = data[-LONGEST:]
    places = [len(tail)]
    word = STRETCHES.last(tail)  # where the unbroken word at the end begins
    first = max(0, word - _BACK, len(tail) - _OPEN_WORD)
    if first == 0 and _OPEN.match(tail):
        places.append(0)
    for begun in _BEGINS.finditer(tail, first):
        if begun.end() >= word or _OPEN.match(tail, begun.end()):
            places.append(begun.end())
            break
    if tail[-1:] in _LAST:
        ending = tail[-_LONGEST_PREFIX:].lower()
        places += [
            len(tail) - size
            for size in range(1, len(ending) + 1)
            if ending[-size:] in _PREFIXES and _ENDS_AT_BOUNDARY.search(tail[-size - CONTEXT : -size])
        ]
        places += [len(tail) - size for mark in _MARKS for size in range(1, len(mark)) if tail.endswith(mark[:size])]
    begin = tail.rfind(_HEADER)
    if begin >= 0 and _OPEN_PEM.match(tail, begin):
        places.append(begin)
    begin = tail.rfind(b"://", max(0, len(tail) - 500))
    if begin >= 0 and _OPEN_PASSWORD.match(tail, begin):
        places.append(begin)
    return len(data) - len(tail) + min(places)
