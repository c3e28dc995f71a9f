"""Promise 5, of the entries of a bundle: one that is gone, added, renamed, moved, doubled or swapped is reported.

The container is made to fit again after each change, as somebody does who knows the format: its own digests would show
everything. What nobody can tell then is an export or a thumbnail that was left out, and that is the whole list.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store import hostile
from tests.tamper import subjects
from worldline.engine.export import EXPORTS
from worldline.errors import Damaged, WorldlineError
from worldline.store.bundle import container
from worldline.store.bundle.container import DECISIONS, NETWORK, STORED, THUMBS, Entry, content_named
from worldline.store.bundle.packed import PackedRecording
from worldline.store.verify import verify

OPTIONAL = {DECISIONS, NETWORK}
Part = tuple[Entry, bytes]


@pytest.fixture(scope="module", params=["whole", "expired"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with subjects.folder(tmp_path_factory) as folder:
        yield subjects.bundle_of(subjects.DIRECTORIES[request.param](folder / "runs"), folder / "run.skn")


def parts(bundle: Path) -> list[Part]:
    """Each entry with its stored bytes, in order."""
    packed = PackedRecording(str(bundle))
    return [(entry, b"".join(packed.stored(entry))) for entry in packed.container.entries]


def kinds_of(changed: list[Part], bundle: Path) -> set[str]:
    """What is found wrong with a bundle of these entries, whose container fits them."""
    packed, place = PackedRecording(str(bundle)), bundle.with_name("changed.skn")
    headed = [container.local_header(entry) + stored for entry, stored in changed]
    said = packed.container
    place.write_bytes(hostile.assembled(headed, [entry for entry, _ in changed], said.seal, said.withheld))
    try:
        return {problem.kind for problem in verify(PackedRecording(str(place)), exports=EXPORTS).problems}
    except WorldlineError as error:
        return {error.kind}


def named(part: Part, name: str) -> Part:
    return hostile.msgspec_replace(part[0], name=name), part[1]


def test_made_to_fit_without_a_change_it_is_the_same(bundle: Path) -> None:
    assert kinds_of(parts(bundle), bundle) == set()
    assert bundle.with_name("changed.skn").read_bytes() == bundle.read_bytes()


def test_no_entry_that_is_gone_goes_unnoticed(bundle: Path) -> None:
    untold = set()
    for at, (entry, _) in enumerate(whole := parts(bundle)):
        kinds = kinds_of(whole[:at] + whole[at + 1 :], bundle)
        if kinds:
            assert kinds & {"missing", "changed", "corrupt", "not-a-recording"}, (entry.name, kinds)
        else:
            untold.add(entry.name)
    assert untold == {entry.name for entry, _ in whole if entry.name in OPTIONAL or entry.name.startswith(THUMBS)}


def test_no_entry_in_another_place_goes_unnoticed(bundle: Path) -> None:
    """Every entry in every place; those of one rank in the order (the exports) may change theirs."""
    whole, count = parts(bundle), 0
    for at, to in itertools.permutations(range(len(whole)), 2):
        rest = whole[:at] + whole[at + 1 :]
        moved = [*rest[:to], whole[at], *rest[to:]]
        places = [container.place_of(entry.name) for entry, _ in moved]
        if places == sorted(places):
            continue
        assert "order" in kinds_of(moved, bundle), (whole[at][0].name, to)
        count += 1
    assert count > 100


def test_no_entry_under_another_name_goes_unnoticed(bundle: Path) -> None:
    whole = parts(bundle)
    free = [
        f"resources/{'0' * 64}.bin",
        f"thumbs/{'0' * 64}.webp",
        "snapshots/other/meta.json",
        "annotations.jsonl",
        "restricted/key",
        "expiry.jsonl",
        "../run.jsonl",
        "EVENTS.JSONL",
    ]
    taken = {entry.name for entry, _ in whole}
    for at, part in enumerate(whole):
        own = content_named(part[0].name)
        others = [name for name in free if name not in taken]
        others += [f"resources/{own}.html", f"resources/{own}"] if own is not None else []
        for name in others:
            if name == "annotations.jsonl" and (part[0].name in OPTIONAL or part[0].name.startswith(THUMBS)):
                continue  # what is optional is gone, and annotations stand outside the seal
            changed = whole[:at] + whole[at + 1 :] + [named(part, name)]
            changed.sort(key=lambda each: container.place_of(each[0].name))
            assert kinds_of(changed, bundle), (part[0].name, name)


def test_no_entry_that_comes_twice_goes_unnoticed(bundle: Path) -> None:
    for at, part in enumerate(whole := parts(bundle)):
        assert kinds_of([*whole[: at + 1], part, *whole[at + 1 :]], bundle) == {"damaged"}


def test_no_two_entries_with_swapped_contents_go_unnoticed(bundle: Path) -> None:
    whole = parts(bundle)
    for one, other in itertools.combinations(range(len(whole)), 2):
        changed = list(whole)
        changed[one] = named(whole[other], whole[one][0].name)
        changed[other] = named(whole[one], whole[other][0].name)
        assert kinds_of(changed, bundle), (whole[one][0].name, whole[other][0].name)


ADDED = {
    f"resources/{hashlib.sha256(b'more').hexdigest()}.txt": {"added"},
    f"thumbs/{'0' * 64}.webp": {"added"},
    "snapshots/other/meta.json": {"changed"},
    "expiry.jsonl": {"forged", "torn"},
    "more.txt": {"damaged"},
    "../more.txt": {"damaged"},
    "resources/": {"damaged"},
}


@pytest.mark.parametrize("name", ADDED)
def test_no_added_entry_goes_unnoticed(name: str, bundle: Path) -> None:
    whole = [part for part in parts(bundle) if part[0].name != name]
    entry = Entry(name, STORED, 4, 4, zlib.crc32(b"more"), hashlib.sha256(b"more").hexdigest())
    changed = sorted([*whole, (entry, b"more")], key=lambda part: container.place_of(part[0].name))
    assert kinds_of(changed, bundle) & ADDED[name]


def test_no_container_that_says_the_same_in_other_words_goes_unnoticed(bundle: Path) -> None:
    """Spaces, another order, a field that means nothing, twice the same: each with a digest and headers that fit."""
    packed = PackedRecording(str(bundle))
    headed = b"".join(container.local_header(entry) + stored for entry, stored in parts(bundle))
    text = container.encode(packed.container).partition(b',"container":')[0] + b"}"
    fields = json.loads(text)
    others = (
        json.dumps(fields).encode(),
        text + b" ",
        hostile.spelled(dict(reversed(fields.items()))),
        hostile.spelled({**fields, "more": 1}),
        text[:-1] + b',"seal":"%b"}' % packed.container.seal.encode(),
    )
    for other in (text, *others):
        before = other.rstrip()[:-1]
        data = before + b',"container":"' + hashlib.sha256(b"\x04" + before).hexdigest().encode() + b'"}'
        own = container.own_entry(data)
        directory = container.central_directory((*packed.container.entries, own))
        place = bundle.with_name("changed.skn")
        place.write_bytes(headed + container.local_header(own) + data + directory)
        if data == container.encode(packed.container):
            assert verify(PackedRecording(str(place)), exports=EXPORTS).ok
        else:
            with pytest.raises(Damaged):
                PackedRecording(str(place))
