"""What holds a registered secret is in no snapshot of any substrate: a file, a link, a name, an attribute."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from worldline.engine.substrates.apart import secret_notes
from worldline.engine.substrates.btrfs import Btrfs
from worldline.engine.substrates.choose import open_workspace
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.git import REFS, Git
from worldline.engine.substrates.overlay import Overlay
from worldline.engine.substrates.substrate import Policy
from worldline.errors import SecretFound, Unavailable
from worldline.store.secrets.forms import forms
from worldline.store.secrets.vault import Vault

TOKEN, LABEL = "lamp-" + "token-7Qk93x" + "-nobodys", "SHOP_TOKEN"
OTHER = "another-" + "token-5Jd01m"


def policy(store: Path, value: str = TOKEN) -> Policy:
    return Policy(store=store, secrets=Vault({LABEL: value}))


def leaks(place: Path, value: str = TOKEN) -> list[str]:
    """What below a folder holds the value, as a text or in another form."""
    several = [form for form in forms(value) if len(form) >= 8]
    found = []
    for path in place.rglob("*"):
        data = os.fsencode(path.name) + (path.read_bytes() if path.is_file() and not path.is_symlink() else b"")
        found += [str(path)] if any(form in data for form in several) else []
    return found


@pytest.fixture
def place(quick: Path) -> Path:
    work = quick / "work"
    for folder in ("a", f"dir-{TOKEN}"):
        (work / folder).mkdir(parents=True)
    (work / ".env").write_text(f"SHOP_TOKEN={TOKEN}\n")
    (work / "a" / "mine.txt").write_text("nothing in it\n")
    (work / "a" / "large.bin").write_bytes(os.urandom((1 << 20) - 9) + TOKEN.encode() + os.urandom(3 << 20))
    (work / "a" / "link").symlink_to(f"/nowhere/{TOKEN}")
    (work / f"dir-{TOKEN}" / "inside.txt").write_text("1")
    return work


HELD = {".env", "a/large.bin", "a/link", f"dir-[secret:{LABEL}]"}


def test_files_leaves_out_whatever_holds_it_and_nothing_else(place: Path) -> None:
    store = place.parent / "runs"
    files = Files(store)
    env = files.open(place, policy(store))
    first, second = env.snapshot(1), env.snapshot(2)
    assert {note["path"] for note in secret_notes(first.notes)} == HELD
    assert secret_notes(second.notes) == secret_notes(first.notes) and second.digest == first.digest
    assert not leaks(store)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    (place / "a" / "mine.txt").write_text("other")
    env.restore(first)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    env.reseed("00")
    env.open_gate()
    (place / ".env").write_text("SHOP_TOKEN=\n")
    third = env.snapshot(3)
    assert {note["path"] for note in secret_notes(third.notes)} == HELD - {".env"}, "it is kept again"
    env.restore(first)
    assert (place / ".env").read_text() == "SHOP_TOKEN=\n", "what was not kept is not taken away"
    env.close()


def test_a_value_that_is_registered_later_is_found_in_what_did_not_change(place: Path) -> None:
    """What another run knew of a folder was read when another value was registered."""
    store = place.parent / "runs"
    files = Files(store)
    env = files.open(place, policy(store, OTHER))
    assert not secret_notes(env.snapshot(1).notes)
    env.close()
    names = {path.name for path in (store / ".snapshots" / "blobs").rglob("*") if path.is_file()}
    env = files.open(place, policy(store))
    ref = env.snapshot(2)
    env.close()
    assert {note["path"] for note in secret_notes(ref.notes)} == HELD
    (branch,) = files.fork(ref, 1, branch_seed="1", identity="run_test")
    assert sorted(str(path.relative_to(branch.root)) for path in branch.root.rglob("*")) == ["a", "a/mine.txt"]
    assert names, "the first one had them"


def test_who_does_not_know_the_value_is_told_the_paths(place: Path) -> None:
    store = place.parent / "runs"
    files = Files(store)
    env = files.open(place, policy(store))
    notes = secret_notes(env.snapshot(1).notes)
    env.close()
    later = files.open(place, Policy(store=store, apart=notes))
    assert secret_notes(later.snapshot(2).notes) == notes and not leaks(store)


def test_git_commits_none_of_it(place: Path) -> None:
    store = place.parent / "runs"
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    git = Git(store)
    env = git.open(place, policy(store))
    ref = env.snapshot(1)
    (place / "a" / "new.txt").write_text(f"new {TOKEN}")
    later = env.snapshot(2)
    listed = [["git", "ls-tree", "-r", "--name-only", f"{REFS}/{each.id}"] for each in (ref, later)]
    names = [subprocess.run(words, cwd=place, check=True, capture_output=True, text=True).stdout for words in listed]
    assert names == ["a/mine.txt\n", "a/mine.txt\n"]
    noted = {note["path"] for note in secret_notes(later.notes)}
    assert noted == {".env", "a/large.bin", "a/link", "a/new.txt", f"dir-[secret:{LABEL}]"}
    said = subprocess.run(
        ["git", "cat-file", "--batch", "--batch-all-objects"], cwd=place, check=True, capture_output=True
    )
    assert TOKEN.encode() not in said.stdout, "nor is it among the objects"
    before = (place / ".env").read_bytes()
    env.restore(ref)
    assert (place / ".env").read_bytes() == before and (place / "a" / "new.txt").exists()
    git.export(later)
    assert not leaks(store)


@pytest.mark.parametrize("kind", [Btrfs, Overlay])
def test_what_keeps_files_unread_is_refused_and_says_why(kind: type[Btrfs] | type[Overlay], place: Path) -> None:
    store = place.parent / "runs"
    with pytest.raises(Unavailable, match=f"it keeps files unread, and {LABEL} is not to be kept"):
        kind(store).open(place, policy(store))
    choice = open_workspace(place, policy(store), kind.name)
    assert choice.substrate.name == "files" and choice.degraded
    choice.env.snapshot(1)
    choice.env.close()
    assert not leaks(store)


@pytest.mark.parametrize("at", [0, 5, (1 << 20) - 9, (1 << 20), (2 << 20) - 1, (3 << 20) + 7])
def test_a_stream_is_given_on_up_to_where_it_begins(at: int) -> None:
    vault = Vault({LABEL: TOKEN}, policy="stop")
    data = b"x" * at + TOKEN.encode() + b"y" * (1 << 20)
    parts = [data[begin : begin + (1 << 20)] for begin in range(0, len(data), 1 << 20)]
    given: list[bytes] = []
    with pytest.raises(SecretFound):
        given.extend(vault.checked(parts))
    assert len(b"".join(given)) <= at and data.startswith(b"".join(given))
    assert vault.met is None and vault.redactions == 0, "nothing was about to be written"
    clean = [b"x" * (1 << 20), b"lamp-tok", b"en-7Qk93", b"z" * 100]
    assert list(vault.checked(clean)) == clean
