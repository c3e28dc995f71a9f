"""What is to be taken out of a recording: rules as people write them, and the markers that stand for what went.

    secret-env:NAME    the value of that variable, in all the encodings that `store.secrets.forms` knows
    shapes             keys of a known shape (`store.secrets.shapes`)
    field:NAME         the value of every JSON member of that name
    tool:GLOB          what such tools were given, gave back, and failed with
    text:REGEX         what a pattern finds in a text
    content:PREFIX     one content, by the first characters of its name
    pictures           every picture

A marker depends on its rule alone. A pattern and a content's name could tell what was removed, so they are numbered.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from worldline.engine.redact.patterns import Search
from worldline.errors import SecretRefused, UsageError
from worldline.store.secrets import shapes
from worldline.store.secrets.forms import all_forms
from worldline.store.secrets.scanner import Scanner
from worldline.store.secrets.vault import MIN_LENGTH

UNREADABLE = "unreadable"  # what stands for a body that no rule can look into
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_PREFIX = re.compile(r"[0-9a-f]{8,64}")
_DATA_URL = re.compile(rb"data:image/[A-Za-z0-9.+\-]{1,40}(?:;[A-Za-z0-9=.+\-]{1,40}){0,4};base64,[A-Za-z0-9+/=_\-]*")
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_SPELLED = re.compile(  # the same in base64
    rb"(?:iVBORw0KGgo|/9j/|R0lGOD[dl]h|UklGR[A-Za-z0-9+/]{6}XRUJQ)[A-Za-z0-9+/=_\-\s]{16,}\Z"
)


class Hit(NamedTuple):
    """A stretch that goes: its first byte, the byte after it, and the label of its rule."""

    start: int
    end: int
    label: str


class Rules:
    """The rules of one derivation. `environment` gives the values of `secret-env`.

    `labels` names them as manifest and reports do, in the order given. Raises `UsageError` for a rule that cannot be
    read, a variable that is not set and a pattern that is refused, `SecretRefused` for a value that is too short.
    """

    def __init__(self, rules: Sequence[str], environment: Mapping[str, str]) -> None:
        self.labels: list[str] = []
        self.fields: dict[str, str] = {}
        self.contents: dict[str, str] = {}
        self.pictures: str | None = None
        self._tools: list[tuple[str, str]] = []
        self._patterns: list[Search] = []
        self._shapes: str | None = None
        secrets: dict[str, Mapping[bytes, bool]] = {}
        for rule in dict.fromkeys(rules):
            kind, _, name = rule.partition(":")
            match kind:
                case "secret-env":
                    label = self._labelled(rule)
                    secrets[label] = all_forms(_value(name, environment))
                case "field" if _NAME.fullmatch(name):
                    self.fields[name] = self._labelled(rule)
                case "tool" if _NAME.fullmatch(name):
                    self._tools.append((name, self._labelled(rule)))
                case "text" if name:
                    label = self._labelled(f"text:{len(self._patterns) + 1}")
                    self._patterns.append(Search.of(name, label))
                case "content" if _PREFIX.fullmatch(name):
                    self.contents[name] = self._labelled(f"content:{len(self.contents) + 1}")
                case "shapes" if rule == kind:
                    self._shapes = self._labelled(rule)
                case "pictures" if rule == kind:
                    self.pictures = self._labelled(rule)
                case _:
                    raise UsageError(_unknown(kind, rule), rule=rule)
        if not self.labels:
            raise UsageError("without a rule there is nothing to take out")
        self._scanner = Scanner(secrets)

    def _labelled(self, label: str) -> str:
        self.labels.append(label)
        return label

    @property
    def look_inside(self) -> bool:
        """Whether any rule has to read what it is about: then what cannot be read goes whole."""
        return len(self.contents) < len(self.labels)

    def tool(self, name: object) -> str | None:
        """The label of the rule that a tool's name falls under."""
        if not isinstance(name, str):
            return None
        return next((label for glob, label in self._tools if fnmatch.fnmatchcase(name, glob)), None)

    def content(self, name: object) -> str | None:
        """The label of the rule that a content's name falls under."""
        return next((label for prefix, label in self.contents.items() if str(name).startswith(prefix)), None)

    @property
    def tools(self) -> bool:
        """Whether there is a rule about tools."""
        return bool(self._tools)

    def residue(self, data: bytes) -> str | None:
        """The label of a secret's rule whose value still stands in `data`, in whatever form.

        Of one that is a number nobody can say so: it may be part of a time.
        """
        return next((hit.label for hit in self._scanner.hits(data) if not data[hit.start : hit.end].isdigit()), None)

    def in_bytes(self, data: bytes) -> Iterator[Hit]:
        """What goes whatever the bytes are: values of secrets in any encoding, keys by their shape, pictures."""
        yield from (Hit(*hit) for hit in self._scanner.hits(data))
        if self._shapes is not None:
            yield from (Hit(hit.start, hit.end, self._shapes) for hit in shapes.hits(data))
        yield from self.pictures_in(data)

    def pictures_in(self, data: bytes) -> Iterator[Hit]:
        """Pictures: bytes or base64 that are one, and data URLs with one."""
        if self.pictures is not None:
            yield from (Hit(*url.span(), self.pictures) for url in _DATA_URL.finditer(data))
            if is_picture(data) or _SPELLED.match(data[:4096]):
                yield Hit(0, len(data), self.pictures)

    def in_text(self, data: bytes) -> Iterator[Hit]:
        """What the patterns find in a text (of UTF-8 bytes; what is none is read byte by byte)."""
        if not self._patterns:
            return
        try:
            coding, text = "utf-8", data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            coding, text = "latin-1", data.decode("latin-1")
        plain = len(text) == len(data)
        for search in self._patterns:
            for start, end in search.found(text):
                if plain:
                    yield Hit(start, end, search.label)
                else:
                    first = len(text[:start].encode(coding, "surrogatepass"))
                    yield Hit(first, first + len(text[start:end].encode(coding, "surrogatepass")), search.label)


def marker(label: str) -> str:
    """What stands in the record in place of what a rule took out: ASCII that no quoting changes."""
    kind, _, name = label.partition(":")
    return f"[redacted:{kind}{'.' if name else ''}{re.sub(r'[^A-Za-z0-9_.*-]', '_', name)}]"


def is_picture(data: bytes) -> bool:
    """Whether bytes begin as those of a picture do."""
    return data.startswith(_SIGNATURES) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def _value(name: str, environment: Mapping[str, str]) -> str:
    value = environment.get(name)
    if not name or value is None:
        raise UsageError(f"secret-env:{name}: the variable is not set", variable=name)
    if len(value.encode("utf-8", "surrogatepass")) < MIN_LENGTH:
        raise SecretRefused(f"secret-env:{name}: under {MIN_LENGTH} bytes; it would be found everywhere", label=name)
    return value


def _unknown(kind: str, rule: str) -> str:
    if kind == "content":
        return f"{rule}: a content is named by 8 to 64 hex digits, the beginning of its name"
    if kind in ("field", "tool", "text"):
        return f"{kind}: what? write {kind}:{'REGEX' if kind == 'text' else 'NAME'}"
    kinds = "secret-env:NAME, shapes, field:NAME, tool:GLOB, text:REGEX, content:PREFIX, pictures"
    return f"no rule {kind!r}; there are {kinds}"
