"""Recordings by somebody who wants the page to run something, fetch something, or fall over.

What is said in them went through the real recorder; each seal is in order. `hostile-index.skn` has an index that lies.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import worldline as wl
from tests.panel.runs.api import TURNS
from tests.panel.runs.minds import Turn, bundled
from tests.panel.runs.talk import TOOLS, record
from tests.store import hostile as forge
from worldline.store.bundle.container import INDEX

ELSEWHERE = "http://attacker.invalid"
HIT = "window.__hit=(window.__hit||0)+1"
TAGS = f"<script>{HIT}</script><img src=x onerror='{HIT}'><svg onload='{HIT}'>"
SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="{HIT}"><script>{HIT}</script>'
    f'<image href="{ELSEWHERE}/svg.png"/></svg>'
)
HTML = (
    f'<!doctype html><html><head><meta http-equiv="refresh" content="0;url={ELSEWHERE}/refresh">'
    f'<base href="{ELSEWHERE}/">'
    f'<style>@import "{ELSEWHERE}/import.css";body{{background:url({ELSEWHERE}/background.png)}}</style>'
    f'<link rel="stylesheet" href="{ELSEWHERE}/sheet.css"><script>{HIT};parent.{HIT};top.{HIT}</script></head>'
    f'<body onload="{HIT}"><img src="{ELSEWHERE}/pixel.png" onerror="{HIT}"><iframe src="javascript:{HIT}"></iframe>'
    f'<a href="javascript:{HIT}" target="_top">a link</a><form action="{ELSEWHERE}/form"><button>send</button></form>'
    f'<video src="{ELSEWHERE}/film.mp4" autoplay></video><object data="{ELSEWHERE}/object"></object>'
    f"{TAGS}</body></html>"
)
REVERSED = "\u202egnp.exe\u202c \u200f\u05d0\u05d1\u05d2 \u2066hidden\u2069"
LONE = "lone \ud800 surrogate \udfff"
LONG = "long-" * 20_000
KEYS = {
    "__proto__": {"polluted": True},
    "constructor": {"prototype": {"polluted": True}},
    "toString": "x",
    "hasOwnProperty": 1,
}
ESCAPES = (
    "\x1b]0;title\x07\x1b]8;;javascript:alert(1)\x07a link\x1b]8;;\x07\x1b[31mred\x1b[0m\x1b[2J\x1b[999;999H"
    "\x1b]52;c;aGk=\x07"
    f"{TAGS}\x1bP$q\x1b\\\x9b38;5;1m\n"
)
NODE = {
    "type": 2,
    "id": 5,
    "tagName": "script",
    "attributes": {},
    "childNodes": [{"type": 3, "id": 6, "textContent": HIT}],
}
RRWEB = [
    {"type": 4, "timestamp": 1, "data": {"href": f"javascript:{HIT}", "width": 640, "height": 400}},
    {
        "type": 2,
        "timestamp": 2,
        "data": {
            "initialOffset": {"left": 0, "top": 0},
            "node": {
                "type": 0,
                "id": 1,
                "childNodes": [
                    {
                        "type": 2,
                        "id": 2,
                        "tagName": "html",
                        "attributes": {"onload": HIT},
                        "childNodes": [
                            {"type": 2, "id": 3, "tagName": "head", "attributes": {}, "childNodes": [NODE]},
                            {
                                "type": 2,
                                "id": 4,
                                "tagName": "body",
                                "attributes": {"onload": HIT},
                                "childNodes": [
                                    {
                                        "type": 2,
                                        "id": 7,
                                        "tagName": "img",
                                        "attributes": {"src": f"{ELSEWHERE}/rrweb.png", "onerror": HIT},
                                        "childNodes": [],
                                    },
                                    {
                                        "type": 2,
                                        "id": 8,
                                        "tagName": "iframe",
                                        "attributes": {"src": f"javascript:{HIT}", "srcdoc": f"<script>{HIT}</script>"},
                                        "childNodes": [],
                                    },
                                ],
                            },
                        ],
                    }
                ],
            },
        },
    },
    {"type": 3, "timestamp": 3, "data": {"source": 99, "anything": TAGS}},
]


def spoken() -> None:
    """Everything that an agent can say, said badly."""
    wl.observe({"url": f"javascript:{HIT}", "title": TAGS, "width": -1, "height": 10**9}, src="window")
    tree: dict[str, Any] = {
        "role": TAGS,
        "name": REVERSED,
        "ref": "e1",
        "states": [TAGS, 7],
        "box": [-5, -5, 10**9, "x"],
        "children": [
            {"role": "button", "name": LONG, "ref": "__proto__", "value": KEYS, "box": "everywhere"},
            {"role": "link", "name": LONE, "ref": TAGS, "box": [0, 0, 10, 10], "children": "none"},
            "no node at all",
        ],
    }
    wl.observe(tree, src="a11y_full", name=TAGS)
    wl.observe({"changed": [{"ref": "__proto__", "polluted": True}], "added": 7, "removed": None}, src="a11y_delta")
    wl.observe(HTML.encode(), src="dom_full", name=f"javascript:{HIT}", media_type="text/html")
    wl.observe(SVG.encode(), src="screenshot", name=TAGS, media_type="image/svg+xml")
    wl.observe(SVG.encode(), src="screenshot", name=TAGS, media_type="image/png")
    wl.observe(b"\x89PNG\r\n\x1a\n" + b"no picture" * 40, src="screenshot", media_type="image/png")
    wl.observe(bomb(), src="screenshot", name="bomb", media_type="image/png")
    wl.observe(ESCAPES, src="terminal", name=TAGS)
    cast = [{"version": 2, "width": 10**9, "height": -1}, [0.1, "o", ESCAPES], ["x", 7, None], [1e308, "o", TAGS]]
    lines = "\n".join(json.dumps(line) for line in cast) + "\nno json\n"
    wl.observe(lines.encode(), src="terminal", name="x.cast", media_type="application/x-asciicast")
    wl.observe(RRWEB, src="rrweb")
    for level in ("error", TAGS, 7):
        wl.observe({"level": level, "text": TAGS + LONE, "url": f"javascript:{HIT}", "line": TAGS}, src="console")
    wl.observe(
        {
            "method": TAGS,
            "url": f"javascript:{HIT}//{TAGS}",
            "status": TAGS,
            "ms": "NaN",
            "size": -1,
            "type": [],
            "error": KEYS,
        },
        src="network",
    )
    wl.observe({**KEYS, "plan": [TAGS, LONE, REVERSED], TAGS: LONG[:5000]}, src="state")
    wl.permission("requested", TAGS, id="__proto__", policy=TAGS, by=REVERSED)
    wl.permission("denied", TAGS, id="__proto__", reason=LONE, rule=LONG[:9000])
    with wl.step(TAGS), wl.lane(REVERSED):
        wl.observe(TAGS, src="file", name=f"{ELSEWHERE}/{TAGS}")
    wl.outcome(TAGS[:199], facts=KEYS)


def bomb() -> bytes:
    """A picture of 60,000 by 60,000 pixels in a few hundred bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = (60_000).to_bytes(4, "big") * 2 + bytes([1, 0, 0, 0, 0])
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(10_000))) + chunk(b"IEND", b"")
    )


def lying(bundle: Path) -> bytes:
    """The same with an index that promises what is not there."""
    said = json.loads(forge.contents(bundle)[INDEX])
    said["rows"], said["raw"], said["span"] = 10**9, 10**12, [-5, 2**60]
    said["blocks"] = {"seq": [0, 5, 3], "t": [0, 10**18, -1], "raw": [0, 10**11, 7], "stored": [0, 10**11, 3]}
    said["lanes"] = {"name": ["__proto__", TAGS], "rows": [10**9, -1], "others": -1}
    said["marks"]["seq"], said["marks"]["kind"] = (
        [10**9] * len(said["marks"]["seq"]),
        [TAGS] * len(said["marks"]["kind"]),
    )
    said["trouble"] = {"seq": 10**9, "t": None, "kind": TAGS}
    said["result"] = json.dumps({"outcome": TAGS, "error": TAGS, "steps": "many", "__proto__": {"polluted": True}})
    return forge.remade(bundle, {INDEX: forge.spelled(said)})


def make(folder: Path) -> list[Path]:
    """`hostile.skn` and `hostile-index.skn`."""
    target, index = folder / "hostile.skn", folder / "hostile-index.skn"
    if not target.exists():
        asks = Turn(TAGS + REVERSED, "orders.read", {"order": TAGS})
        tools = {
            **TOOLS,
            "orders.read": wl.tool(name="orders.read")(lambda order: {"found": TAGS, "order": order, **KEYS}),
        }
        bundled(
            record(folder / "runs", TAGS, [asks, *TURNS[1:2], TURNS[-1]], tools=tools, agent=TAGS, then=spoken), target
        )
    if not index.exists():
        index.write_bytes(lying(target))
    return [target, index]
