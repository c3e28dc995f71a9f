"""Every relative link of a Markdown page leads somewhere: the file exists, and the heading that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from checks import ROOT, Verdict
from checks.files import repository_files, text_of

FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def check() -> Verdict:
    """Follow the links of every Markdown file in the repository."""
    pages = repository_files(".md")
    problems = [
        f"{page.relative_to(ROOT)}:{line}: {target}: {why}"
        for page in pages
        for line, target, why in broken_links(page)
    ]
    return Verdict(f"{len(pages)} pages", problems)


def broken_links(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line, target and reason of every relative link of `page` that leads nowhere."""
    text = blank(CODE, blank(FENCE, text_of(page)))
    for match in LINK.finditer(text):
        target = match.group(1) or match.group(2)
        if ELSEWHERE.match(target):
            continue
        path, _, heading = unquote(target).partition("#")
        place = (page.parent / path).resolve() if path else page
        why = ""
        if not place.is_relative_to(ROOT):
            why = "leads out of the repository"
        elif not place.exists():
            why = "no such file"
        elif heading and place.suffix == ".md" and heading not in headings(text_of(place)):
            why = "no such heading"
        if why:
            yield text.count("\n", 0, match.start()) + 1, target, why


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as repository hosts derive them."""
    anchors: set[str] = set()
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", blank(FENCE, text), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        same = sum(1 for other in anchors if other == anchor or re.fullmatch(re.escape(anchor) + r"-\d+", other))
        anchors.add(f"{anchor}-{same}" if same else anchor)
    return anchors


def blank(pattern: re.Pattern[str], text: str) -> str:
    """`text` with every match emptied, its line breaks kept, so that line numbers stay true."""
    return pattern.sub(lambda match: "\n" * match.group().count("\n"), text)
