"""What stays out of every snapshot because a registered secret stands in it: a file, or whatever has it in its name.

It is named in the notes of the snapshot, `{"path":..,"why":..,"secret":LABEL}`, and nothing of it is kept, no digest
either. Who reads the workspace later, perhaps without the secret's value, is given these notes and leaves the same
paths alone.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from worldline.errors import SecretFound, Unavailable
from worldline.model.tree import Text, bytes_of
from worldline.store.secrets.vault import MARKER, Vault

if TYPE_CHECKING:
    from worldline.engine.substrates.substrate import Policy

Note = dict[str, str]
Attributes = tuple[tuple[Text, Text], ...]
SECRET = "secret"  # the field of a note that has the secret's label
_PART = 1 << 20


def secret_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Those of a snapshot's notes that name what was left out for a secret, each path once."""
    return tuple({note["path"]: note for note in notes if SECRET in note}.values())


def note_of(path: str, label: str) -> Note:
    """The note for what holds a secret; `path` as it is shown."""
    return {"path": path, "why": f"not kept: it holds the secret {label}", SECRET: label}


def refuse_whole(name: str, policy: Policy) -> None:
    """Raise `Unavailable` for a substrate that keeps a folder as it is, where there are secrets to keep out."""
    if policy.secrets is not None and policy.secrets.labels:
        why = f"it keeps files unread, and {policy.secrets.labels[0]} is not to be kept"
        raise Unavailable(f"{name} is not available: {why}", substrate=name, why=why)


class Apart:
    """Tells what is left out. `given` are the paths that were left out before, with their notes."""

    def __init__(self, secrets: Vault | None, notes: Iterable[Note]) -> None:
        self.vault = secrets if secrets is not None and secrets.labels else None
        self.given = {note["path"]: note for note in secret_notes(notes)}
        self._masked = [(_glob(path), note) for path, note in self.given.items() if MARKER.search(path.encode())]
        self.active = self.vault is not None or bool(self.given)
        self._held: dict[str, tuple[object, Note]] = {}  # files that were read: by what each is known again

    def by_name(self, path: str, shown: str) -> Note | None:
        """The note of what is left out whatever it holds; `path` as the system has it, `shown` as notes say it."""
        if (given := self.given.get(shown)) is not None:
            return given
        name = os.path.basename(path)
        if self.vault is not None and (label := self.vault.held_in(os.fsencode(name))) is not None:
            return note_of(self.vault.without(shown), label)
        return next((note for glob, note in self._masked if fnmatch.fnmatchcase(shown, glob)), None)

    def known(self, path: str, key: object) -> Note | None:
        """The note of a file that is as it was when the secret was found in it."""
        held = self._held.get(path)
        return held[1] if held is not None and held[0] == key else None

    def found(self, path: str, shown: str, error: SecretFound, key: object | None) -> Note:
        """A secret was found in a file. With a key it is believed again as long as that is the file's."""
        note = note_of(self.vault.without(shown) if self.vault is not None else shown, str(error.facts["label"]))
        if key is not None:
            self._held[path] = key, note
        return note

    def refuse(self, *texts: bytes) -> None:
        """Raise `SecretFound` where one of these holds a secret: what a link points to, attributes."""
        if self.vault is not None:
            for text in texts:
                self.vault.refuse(text)

    def without(self, attributes: Attributes) -> Attributes:
        """A folder's attributes but for those with a secret in them."""
        vault = self.vault
        if vault is None:
            return attributes
        return tuple(pair for pair in attributes if not any(vault.held_in(bytes_of(text)) for text in pair))

    def look_through(self, open_file: Callable[[], int]) -> None:
        """Raise `SecretFound` where a file that was kept before, when other secrets were registered, holds one now."""
        if self.vault is not None:
            source = open_file()
            try:
                first = os.read(source, _PART)
                if len(first) < _PART:
                    self.vault.refuse(first)
                    return
                for _ in self.vault.checked(chain([first], _parts(source))):
                    pass
            finally:
                os.close(source)


def _parts(source: int) -> Iterator[bytes]:
    while part := os.read(source, _PART):
        yield part


def _glob(path: str) -> str:
    """What matches the paths that a note stands for in which a secret was masked."""
    parts = MARKER.split(path.encode())
    return "*".join("".join(f"[{c}]" if c in "*?[" else c for c in part.decode()) for part in parts)
