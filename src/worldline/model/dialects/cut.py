"""A JSON text that was cut off, closed again at the last place where it can be: what a broken connection left.

Nothing is guessed. A number, a literal, a key or a name at the cut may be only half there, so it is dropped; only
prose (an answer's text, a call's arguments) keeps the part that came.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[{}\[\],:]|[^"{}\[\],:\s]+', re.DOTALL)
_CUT_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\u[0-9a-fA-F]{0,3})$")
_PROSE = frozenset({"content", "text", "refusal", "reasoning", "reasoning_content", "thinking", "arguments"})
_CLOSER = {"{": "}", "[": "]"}


def close(text: str) -> str:
    """The longest JSON text that begins like `text` and can be trusted; `text` itself where it is whole."""
    closers: list[str] = []
    safe = 0
    key = word = ""
    valued = False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in _CLOSER:
            closers.append(_CLOSER[mark])
            safe, valued = token.end(), False
        elif mark in ("}", "]"):
            if not closers or closers.pop() != mark:
                break
            safe, valued = token.end(), False
            if not closers:
                break
        elif mark == ",":
            # Only now is a number or literal before the comma known to be all there.
            safe, valued = token.start(), False
        elif mark == ":":
            key, valued = word, True
        elif mark[0] != '"':
            continue
        elif not token.group(1):
            if valued and key in _PROSE:
                return text[: token.start()] + _without_cut_escape(mark) + '"' + "".join(reversed(closers))
            break
        elif valued or (closers and closers[-1] == "]"):
            safe = token.end()
        else:
            word = mark[1:-1]
    return text[:safe] + "".join(reversed(closers))


def _without_cut_escape(opened: str) -> str:
    cut = _CUT_ESCAPE.search(opened)
    return opened[: cut.start(1)] if cut else opened
